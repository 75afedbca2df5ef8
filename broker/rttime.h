/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_RTTIME_H
#define RTGRANT_BROKER_RTTIME_H

/*
 * RealtimeKit's rule: who gets real-time priority must have limited how long a real-time thread of
 * its process may run without sleeping, so that one that runs wild is stopped by the kernel.
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

/* Whether it has no limit yet. False also if the process is gone. */
bool rttime_is_unset(pid_t pid);

/* REASON_NONE; REASON_RTTIME; REASON_NO_SUCH_THREAD if the process is gone. */
enum reason rttime_check(const struct policy *policy, pid_t pid);

#endif
