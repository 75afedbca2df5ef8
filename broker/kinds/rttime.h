/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KINDS_RTTIME_H
#define RTGRANT_BROKER_KINDS_RTTIME_H

/*
 * A process with a real-time lease may have limited itself by RLIMIT_RTTIME, and would be killed
 * where the guard only demotes one thread. As long as such leases last, the limit is lifted to a
 * backstop, where the role says so and the broker has CAP_SYS_RESOURCE; never lowered.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "policy/policy.h"

struct broker;
struct lease;

/*
 * Whether the process may have a real-time thread, by what it has set itself, whatever was lifted
 * since. As rttime_judge(); REASON_NO_SUCH_THREAD if it is gone.
 */
enum reason rttime_check(struct broker *broker, pid_t pid, bool required);

/* The same for what @decision gives, as its role wants it; decision->rule is then that. */
enum reason rttime_admit(struct broker *broker, struct decision *decision, pid_t pid);

/* Lifts the limit, or puts it back: called after any change of what the lease holds or its role. */
void rttime_supervise(struct broker *broker, struct lease *lease);

/*
 * The kernel raises the soft limit by a second each time that it sends SIGXCPU: back to what it was.
 * And a program that was executed has lost its handler of that; another one has just got one.
 */
void rttime_revise(struct broker *broker, struct lease *lease);

#endif
