/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_RTTIME_H
#define RTGRANT_BROKER_RTTIME_H

/*
 * RLIMIT_RTTIME: how long a real-time thread of a process may run without sleeping. At the soft
 * limit, and each second after it, the kernel sends SIGXCPU; at the hard one it kills the process.
 * RealtimeKit wants its clients to have set one. What is done about it: kinds/rttime.h.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/policy.h"

#define RTTIME_UNLIMITED UINT64_MAX

struct rttime {
        uint64_t soft_us; /* SIGXCPU, and again every second; or RTTIME_UNLIMITED */
        uint64_t hard_us; /* SIGKILL; likewise */
};

/* @text is all of /proc/PID/limits. Errors: -EBADMSG. */
int rttime_parse(const char *text, struct rttime *ret);

/* Errors: -ESRCH (ended), -EBADMSG, open(2). */
int rttime_read(pid_t pid, struct rttime *ret);

/* Takes CAP_SYS_RESOURCE. Errors: prlimit(2). */
int rttime_write(pid_t pid, const struct rttime *rttime);

/* Whether it has no limit yet. False also if the process is gone. */
bool rttime_is_unset(pid_t pid);

/*
 * Whether a process with these limits may have a real-time thread: REASON_NONE or
 * REASON_RTTIME_LETHAL; with @required, RealtimeKit's rule, also REASON_RTTIME.
 */
enum reason rttime_judge(const struct policy *policy, const struct rttime *rttime, bool required);

#endif
