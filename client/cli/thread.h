/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_THREAD_H
#define RTGRANT_CLI_THREAD_H

/* Which thread is meant: its name for people, a descriptor that pins it, and its siblings. */

#include <stdint.h>
#include <sys/types.h>

#define THREAD_COMM_SIZE 128

struct thread {
        pid_t tid;
        pid_t pid;                      /* of its process; the tid if that could not be read */
        int pidfd;                      /* -1 if the kernel has none for this thread */
        char comm[THREAD_COMM_SIZE];    /* printable; "?" if it could not be read */
};

/* On success *ret is released by thread_done(). Errors: -ESRCH. */
int thread_init(pid_t tid, struct thread *ret);
void thread_done(struct thread *thread);

/* "jackd (pid 1234)", "audio-io (thread 1240)" */
#define THREAD_LABEL_SIZE (THREAD_COMM_SIZE + 32)
void thread_label(const struct thread *thread, char *buffer, size_t size);

/*
 * Whether the thread has that number in pidfs, which no other ever gets until reboot. Errors:
 * -ESRCH if it has another, -EOPNOTSUPP if the kernel has no pidfs (before 6.9).
 */
int thread_check_inode(const struct thread *thread, uint64_t inode);

/* A non-zero return ends the walk. */
typedef int (*thread_fn)(pid_t tid, void *userdata);

/*
 * Calls @each once for every thread of @pid, those too that are born meanwhile: passes are made
 * until one finds nobody new. Returns what @each returned last.
 *
 * Errors: -ESRCH if there is no such process, -EAGAIN if its threads never cease to multiply.
 */
int thread_each(pid_t pid, thread_fn each, void *userdata);

#endif
