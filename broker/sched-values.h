/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SCHED_VALUES_H
#define RTGRANT_BROKER_SCHED_VALUES_H

/*
 * The kernel's scheduling attributes of a thread, read and set by raw system calls: some C
 * libraries have none or stubs for them (musl). sched(7), sched_setattr(2).
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef SCHED_BATCH
#define SCHED_BATCH 3
#endif
#ifndef SCHED_IDLE
#define SCHED_IDLE 5
#endif
#define SCHED_POLICY_DEADLINE 6
#define SCHED_POLICY_EXT 7

struct sched_values {
        int policy;
        int priority;           /* with FIFO and RR, else 0 */
        int nice;               /* the static one: in force whenever the thread is not real-time */
        bool reset_on_fork;
        uint64_t
                runtime_ns; /* OTHER and BATCH: custom slice (Linux 6.12), 0 if default; DEADLINE */
        uint64_t deadline_ns;   /* DEADLINE only */
        uint64_t period_ns;
        uint64_t other_flags;   /* SCHED_FLAG_RECLAIM, _DL_OVERRUN: kept as they are */
};

static inline bool sched_is_rt(int policy) {
        return policy == SCHED_FIFO || policy == SCHED_RR;
}

/*
 * How much of the CPU a policy can take from others: 0 IDLE, 1 OTHER and BATCH, above that real-time
 * by priority, then DEADLINE. Who may go from one to another without privilege goes down, or stays.
 */
int sched_rank(int policy, int priority);

/* @tid is at least 1; asserted. Errors: -ESRCH. */
int sched_read(pid_t tid, struct sched_values *ret);

/* Sets all of @values but, on a real-time thread, its static nice. Errors: sched_setattr(2). */
int sched_write(pid_t tid, const struct sched_values *values);

/* Errors: setpriority(2). */
int sched_write_nice(pid_t tid, int nice);

/* "FIFO", "RR", "OTHER", …; never NULL. */
const char *sched_policy_to_string(int policy);

#endif
