/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_TARGET_H
#define RTGRANT_BROKER_TARGET_H

/*
 * Whose thread is meant, and whether the peer may speak for it: a thread of the peer's own user,
 * that runs with no more rights than that user.
 */

#include "broker/peer.h"
#include "broker/thread.h"

/* As decoded; numbers are the peer's own view. */
struct target_request {
        uint64_t pid;           /* 0: the peer's process, or the pidfd's */
        uint64_t tid;           /* 0: the main thread */
        int pidfd;              /* borrowed; -1: none */
        uint64_t inode;         /* of a pidfd of it that the peer has; 0: not told */
};

struct target {
        struct thread thread;   /* owned */
        struct creds creds;
        bool in_user_namespace;
        uid_t quota_uid;        /* whose quotas it counts against */
        uint64_t cap_permitted; /* what it may have at the most from now on */
        unsigned n_scanned;     /* threads looked at to find it: work to be accounted for */
};

/*
 * Finds and pins the target; the caller closes ret->thread.
 *
 * REASON_INVALID (an id that cannot be one, not a pidfd), REASON_UNSUPPORTED (an inode, where they
 * tell nothing), REASON_NAMESPACE, REASON_RESOURCES, REASON_TARGET_PRIVILEGED, or REASON_NO_SUCH_THREAD: the same for one that does not exist, is
 * hidden, is somebody else's, the kernel's, init or the broker itself.
 */
enum reason target_resolve(const struct kernel *kernel, const struct peer *peer,
                           const struct target_request *request, struct target *ret);

/*
 * Whether the target is still what was resolved: the same thread, running as the same user.
 * REASON_NONE, REASON_NO_SUCH_THREAD, REASON_TARGET_CHANGED.
 */
enum reason target_check(const struct kernel *kernel, const struct thread *thread,
                         const struct creds *creds);

#endif
