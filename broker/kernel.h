/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KERNEL_H
#define RTGRANT_BROKER_KERNEL_H

/*
 * What the running kernel can do beyond Linux 6.1, found by trying, and the calls that older C
 * libraries do not know. Where a feature is missing its users take the older way.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kernel {
        bool thread_pidfd;      /* pidfd_open(PIDFD_THREAD), Linux 6.9 */
        bool pidfd_info;        /* PIDFD_GET_INFO, Linux 6.13 */
        bool pidfd_inode; /* a pidfd's inode number is never used again before a reboot, 6.9 */
        bool peer_pidfd;        /* SO_PEERPIDFD, Linux 6.5 */
};

void kernel_probe(struct kernel *ret);

/* Errors: pidfd_open(2). */
int kernel_pidfd_open(pid_t pid, bool thread);

/* Who a thread runs as. */
struct creds {
        pid_t pid;              /* of the process (tgid) */
        pid_t tid;              /* 0 where it is not known */
        uid_t ruid, euid, suid, fsuid;
        gid_t rgid, egid, sgid, fsgid;
        uint64_t cgroup;        /* of version 2, its number; 0 where it is not known. Not compared. */
};

bool creds_equal(const struct creds *a, const struct creds *b);

/* By the pidfd alone. Errors: -ESRCH (ended), -EREMOTE (other pid namespace), -ENOTTY (older
 * kernel). */
int kernel_pidfd_read_creds(int pidfd, struct creds *ret);

/* The thread ended, or for a process's pidfd the process. */
bool kernel_pidfd_is_dead(int pidfd);

/* Whether a descriptor that came from outside is a pidfd, and nothing that others have a hand in. */
bool kernel_is_pidfd(int fd);

/*
 * The number behind a pidfd that came from outside. Errors: -EBADF (no pidfd at all), -ESRCH
 * (ended), -EREMOTE (not visible in our pid namespace).
 */
int kernel_pidfd_read_pid(int pidfd, pid_t *ret_tid);

#endif
