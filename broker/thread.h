/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_THREAD_H
#define RTGRANT_BROKER_THREAD_H

/*
 * A thread pinned so that its number cannot come to mean another one unnoticed: by its own pidfd
 * where the kernel has them for threads, else by the pidfd of its process and its start time.
 */

#include "broker/kernel.h"

struct thread {
        pid_t pid;
        pid_t tid;
        int fd;                 /* owned: pidfd of the thread or (old kernel) of the process */
        bool exact;             /* @fd is the thread's own */
        uint64_t inode;         /* of @fd where that is unique, else 0 */
        uint64_t start_time;    /* clock ticks since boot; 0 where @inode serves */
};

#define THREAD_NONE ((struct thread) { .fd = -1 })

/*
 * Pins the thread numbered @tid, which must be of process @pid if that is not 0, and reads who it
 * runs as. The caller ends it with thread_close().
 * Errors: -ESRCH (none, or of another process), -EMFILE and other errno of pidfd_open(2).
 */
int thread_open(const struct kernel *kernel, pid_t pid, pid_t tid, struct thread *ret,
                struct creds *ret_creds);

/* Leaves THREAD_NONE behind. */
void thread_close(struct thread *thread);

/* Who it runs as now. Errors: -ESRCH if it ended or its number is another's now. */
int thread_read_creds(const struct kernel *kernel, const struct thread *thread, struct creds *ret);

#endif
