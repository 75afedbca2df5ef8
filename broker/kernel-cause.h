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

/* The path of the cgroup in a line of /proc/PID/cgroup whose controllers include cpu (version 1).
 */
int kernel_cause_parse_cpu_cgroup(const char *text, char *buffer, size_t size);

#endif
