/* SPDX-License-Identifier: MIT */

#include "broker/peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#include "broker/cleanup.h"
#include "broker/proc.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int read_groups(int fd, gid_t primary, gid_t **ret_gids, size_t *ret_n_gids) {
        _cleanup_free_ gid_t *gids = NULL;
        socklen_t length = 32 * sizeof(gid_t);

        for (;;) {
                socklen_t room = length;
                gid_t *larger = realloc(gids, sizeof(gid_t) + room);

                if (!larger)
                        return -ENOMEM;
                gids = larger;

                if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids + 1, &length) >= 0)
                        break;
                /* with ERANGE the kernel says how much it needs: at most 65536 groups */
                if (errno != ERANGE || length <= room)
                        return -errno;
        }

        gids[0] = primary;
        *ret_gids = STEAL(gids);
        *ret_n_gids = 1 + length / sizeof(gid_t);
        return 0;
}

static int open_pidfd(const struct kernel *kernel, int fd, pid_t pid) {
        socklen_t length = sizeof(int);
        int pidfd;

        /* Linux 6.5: the very process that connected, even if its number is another's by now. */
        if (kernel->peer_pidfd) {
                if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) < 0)
                        return -errno;
                return pidfd;
        }

        /* Older: by number. A successor of the same number can only be mistaken for the connector
         * if it is the same user's, since every target is checked against the connector's uid. */
        return kernel_pidfd_open(pid, /* thread= */ false);
}

int peer_init_from_socket(const struct kernel *kernel, int fd, struct peer *ret) {
        struct peer peer = PEER_NONE;
        struct ucred cred;
        socklen_t length = sizeof(cred);
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0)
                return -errno;
        if (cred.pid <= 0)
                return -EREMOTE;

        peer.uid = cred.uid;
        peer.quota_uid = cred.uid;
        peer.pid = cred.pid;
        r = read_groups(fd, cred.gid, &peer.gids, &peer.n_gids);
        if (r < 0)
                return r;

        peer.pidfd = open_pidfd(kernel, fd, cred.pid);
        if (peer.pidfd < 0) {
                r = peer.pidfd;
                peer_done(&peer);
                return r;
        }

        *ret = peer;
        return 0;
}

static int check_uid(int pidfd, pid_t pid, uid_t uid) {
        struct proc_status status;
        struct creds creds;
        int r;

        r = kernel_pidfd_read_creds(pidfd, &creds);
        if (r >= 0)
                return creds.ruid == uid && creds.euid == uid && creds.suid == uid &&
                                       creds.fsuid == uid
                               ? 0
                               : -EPERM;
        if (r != -ENOTTY)
                return r;

        r = proc_read_status(pid, 0, &status);
        if (r >= 0 && kernel_pidfd_is_dead(pidfd))
                r = -ESRCH;
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTS(status.uids); i++)
                if (status.uids[i] != uid)
                        return -EPERM;
        return 0;
}

int peer_init_from_ids(const struct kernel *kernel, uid_t uid, pid_t pid, gid_t *gids,
                       size_t n_gids, struct peer *ret) {
        _cleanup_close_ int pidfd = -1;
        int r;

        pidfd = kernel_pidfd_open(pid, /* thread= */ false);
        if (pidfd < 0)
                return pidfd;
        r = check_uid(pidfd, pid, uid);
        if (r < 0)
                return r;

        *ret = (struct peer) {
                .uid = uid,
                .gids = gids,
                .n_gids = n_gids,
                .pid = pid,
                .pidfd = STEAL_FD(pidfd),
                .quota_uid = uid,
        };
        return 0;
}

void peer_done(struct peer *peer) {
        free(peer->gids);
        (void) close_fd(peer->pidfd);
        *peer = PEER_NONE;
}

static int read_loginuid(pid_t pid, uid_t *ret) {
        _cleanup_free_ char *text = NULL;
        uint32_t uid;
        int r;

        r = proc_read(pid, 0, "loginuid", &text, NULL);
        if (r < 0)
                return r;
        if (sscanf(text, "%" SCNu32, &uid) != 1 || uid == UINT32_MAX)
                return -ENODATA;

        *ret = uid;
        return 0;
}

int peer_read_quota_uid(pid_t pid, uid_t uid, bool *ret_in_user_namespace, uid_t *ret_quota_uid) {
        uid_t owner;
        int r;

        r = proc_in_initial_userns(pid);
        if (r < 0)
                return r;

        *ret_in_user_namespace = r == 0;
        *ret_quota_uid = uid;
        if (r > 0)
                return 0;

        /* A user may map any number of subordinate uids; the quota is that of the user behind them.
         */
        r = proc_userns_owner(pid, &owner);
        if (r == -EACCES || r == -EPERM)
                r = read_loginuid(pid, &owner);
        if (r >= 0)
                *ret_quota_uid = owner;
        return r == -ESRCH ? r : 0;
}

enum reason peer_complete(struct peer *peer) {
        struct proc_status status;
        bool in_user_namespace;
        uid_t quota_uid;
        int r;

        if (peer->complete)
                return REASON_NONE;

        r = proc_read_status(peer->pid, 0, &status);
        if (r >= 0)
                r = peer_read_quota_uid(peer->pid, peer->uid, &in_user_namespace, &quota_uid);
        /* What was read is the connector's only if it still lives after the reading. */
        if (r >= 0 && kernel_pidfd_is_dead(peer->pidfd))
                r = -ESRCH;
        if (r < 0)
                return r == -ESRCH ? REASON_NO_SUCH_THREAD : REASON_RESOURCES;

        peer->ns_depth = status.ns_depth;
        peer->ns_pid = status.ns_pid;
        peer->cap_permitted = status.cap_permitted;
        peer->in_user_namespace = in_user_namespace;
        peer->quota_uid = quota_uid;
        peer->admin = peer->uid == 0 && peer->ns_depth == 0 && !in_user_namespace;
        peer->complete = true;
        return REASON_NONE;
}
