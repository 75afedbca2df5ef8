/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_PEER_H
#define RTGRANT_BROKER_PEER_H

/*
 * Who is asking: from the kernel, never from a message. The cheap part is read when the peer
 * connects, the rest when it first asks for something; neither changes afterwards, since the
 * user who connected is the one who answers for what the connection asks.
 */

#include <stdbool.h>
#include <stddef.h>

#include "broker/kernel.h"
#include "policy/reason.h"

struct peer {
        uid_t uid;              /* effective, at connect(2) */
        gid_t *gids;            /* owned; all groups, the effective one first */
        size_t n_gids;
        pid_t pid; /* of the process; 0 if it lives in a pid namespace not below ours */
        int pidfd;              /* owned */

        bool complete;          /* the rest is known */
        unsigned ns_depth;      /* pid namespaces below ours that it lives in */
        pid_t ns_pid;           /* its number in the innermost */
        bool in_user_namespace;
        uid_t quota_uid; /* whose quotas it uses: its uid, or the owner of its user namespace */
        uint64_t cap_permitted;
        bool admin;             /* uid 0 in the initial pid and user namespaces */
};

#define PEER_NONE ((struct peer) { .pidfd = -1 })

/* Errors: -EREMOTE (not visible in our pid namespace), -ESRCH (gone already), -ENOMEM,
 * getsockopt(2). */
int peer_init_from_socket(const struct kernel *kernel, int fd, struct peer *ret);

/*
 * As somebody trusted says who is asking. The process numbered @pid must run as @uid, with all of
 * its user ids. Takes @gids on success.
 * Errors: -EPERM (it does not), -ESRCH (gone already), pidfd_open(2).
 */
int peer_init_from_ids(const struct kernel *kernel, uid_t uid, pid_t pid, gid_t *gids,
                       size_t n_gids, struct peer *ret);

/* REASON_NONE, REASON_NO_SUCH_THREAD if the process is gone, REASON_RESOURCES. */
enum reason peer_complete(struct peer *peer);

void peer_done(struct peer *peer);

/* The owner whose quotas a process uses; @uid if it lives in the initial user namespace. */
int peer_read_quota_uid(pid_t pid, uid_t uid, bool *ret_in_user_namespace, uid_t *ret_quota_uid);

#endif
