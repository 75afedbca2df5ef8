/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_LIBRTGRANT_THREAD_H
#define RTGRANT_CLIENT_LIBRTGRANT_THREAD_H

/*
 * What the kernel holds of a thread. By raw system calls: some C libraries (musl) have only stubs,
 * and rtgrant_demote_self_from_signal() needs functions that are safe in a signal handler. Those
 * that are, are marked so.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct thread_values {
        int policy;
        int priority;           /* with FIFO and RR, else 0 */
        int nice;               /* static: in force whenever the thread is not real-time */
        bool reset_on_fork;
};

/* Signal-safe. */
pid_t thread_self(void);

/* Of the calling process. Signal-safe. */
bool thread_is_own(pid_t tid);

bool policy_is_rt(int policy);

/* Signal-safe. Errors: sched_getattr(2). */
int thread_read(pid_t tid, struct thread_values *ret);

/* Sets all of @values but the nice of a real-time thread. Signal-safe. Errors: sched_setattr(2). */
int thread_write(pid_t tid, const struct thread_values *values);

/*
 * Gives a thread of policy SCHED_OTHER time slices of @slice_ns: the shorter they are, the sooner it
 * gets its turn, and the sooner that ends. Needs no right. Errors: -ENOTSUP before Linux 6.12,
 * -EBUSY if it has another policy, sched_setattr(2).
 */
int thread_write_slice(pid_t tid, uint64_t slice_ns);

/* The number of the process or thread behind a pidfd; 0 if it has ended or cannot be told. */
pid_t thread_of_pidfd(int pidfd);

/* Errors: setpriority(2). */
int thread_write_nice(pid_t tid, int nice);

/* Whether thread @tid of process @pid is listed in /proc. */
bool thread_exists(pid_t pid, pid_t tid);

/* In clock ticks since boot. Errors: open(2), read(2), -ENODATA if /proc says something else. */
int thread_read_start_time(pid_t pid, pid_t tid, uint64_t *ret);

/* The calling thread's, even where /proc is of another pid namespace and numbers it otherwise. */
int thread_read_own_start_time(uint64_t *ret);

/*
 * How process or thread @tid of @pid numbers itself, in the innermost of its pid namespaces.
 * Errors: open(2), read(2), -ENODATA on a kernel without NSpid.
 */
int thread_read_inner_tid(pid_t pid, pid_t tid, pid_t *ret);

/* The thread of @pid that numbers itself @inner. Errors: -ESRCH if none does, opendir(3). */
int thread_find_inner_tid(pid_t pid, pid_t inner, pid_t *ret);

/* Is given each thread of a process; a non-zero return ends it. */
typedef int (*thread_fn)(pid_t tid, void *userdata);

/* Returns what @each returned last. Errors: opendir(3). */
int thread_for_each(pid_t pid, thread_fn each, void *userdata);

#endif
