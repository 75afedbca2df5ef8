/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_SCHEDULING_H
#define RTGRANT_CLI_SCHEDULING_H

/*
 * How a thread is scheduled, read from and written to the kernel as chrt(1) does it. By raw system
 * calls: some C libraries have only stubs for the others (musl). sched(7)
 */

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define POLICY_DEADLINE 6       /* SCHED_DEADLINE, which older headers lack */

struct scheduling {
        int policy;
        int priority;           /* 1..99 with SCHED_FIFO and SCHED_RR, else 0 */
        bool reset_on_fork;
        uint64_t runtime_ns;    /* all three with SCHED_DEADLINE only */
        uint64_t deadline_ns;
        uint64_t period_ns;
};

/* @tid: 0 is the calling thread. Errors: sched_getattr(2). */
int scheduling_read(pid_t tid, struct scheduling *ret);

/* Leaves the static nice value alone. Errors: sched_setscheduler(2). */
int scheduling_write(pid_t tid, const struct scheduling *scheduling);

/* The static nice value, in force whenever the thread is not real-time. Errors: getpriority(2). */
int scheduling_read_nice(pid_t tid, int *ret_nice);
int scheduling_write_nice(pid_t tid, int nice);

/* "SCHED_FIFO"; NULL for one that is not known here. */
const char *policy_name(int policy);

/* Whether a priority of 1..99 belongs to the policy. */
static inline bool policy_is_realtime(int policy) {
        return policy == SCHED_FIFO || policy == SCHED_RR;
}

/* The range of priorities the kernel has for @policy; 0 and 0 where it has none. */
void policy_range(int policy, int *ret_min, int *ret_max);

/* The policies in the order of `chrt --max`; false past the last. @index from 0. */
bool policy_by_index(size_t index, int *ret_policy);

#endif
