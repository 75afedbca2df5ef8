/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KERNEL_CAUSE_H
#define RTGRANT_BROKER_KERNEL_CAUSE_H

/*
 * Why the kernel refused to set a thread's scheduling. EPERM has at least four causes that look
 * alike; each is looked for by trying or reading, none is guessed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "policy/reason.h"

/*
 * @tid     the thread that was to be set
 * @error   what sched_setattr(2) or setpriority(2) returned, negative
 * @buffer  receives the cause in words: with the cgroup, the module, …
 */
enum reason kernel_cause_find(pid_t tid, int error, char *buffer, size_t size);

/*
 * Whether the kernel would refuse real-time priority to the thread for want of a budget of its
 * cgroup (RT_GROUP_SCHED). @buffer receives the cause then.
 */
bool kernel_cause_lacks_budget(pid_t tid, char *buffer, size_t size);

/*
 * The path of the cgroup in the line of /proc/PID/cgroup whose controllers include that one
 * (version 1), or are none ("", version 2).
 */
int kernel_cause_parse_cgroup(const char *text, const char *controller, char *buffer, size_t size);

#endif
