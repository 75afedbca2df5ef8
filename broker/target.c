/* SPDX-License-Identifier: MIT */

#include "broker/target.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/ids.h"
#include "broker/namespace.h"
#include "broker/proc.h"

struct numbers {
        pid_t pid;              /* 0: that of the thread */
        pid_t tid;
};

static enum reason numbers_from_pidfd(const struct peer *peer, int pidfd, pid_t tid,
                                      struct numbers *ret, unsigned *n_scanned) {
        struct proc_status status;
        pid_t number;
        int r;

        r = kernel_pidfd_read_pid(pidfd, &number);
        if (r < 0)
                return r == -ESRCH     ? REASON_NO_SUCH_THREAD
                       : r == -EREMOTE ? REASON_NAMESPACE
                                       : REASON_INVALID;

        /* the pidfd of a thread says all; of a process, the number says which of its threads */
        if (tid == 0 || tid == number) {
                *ret = (struct numbers) { .tid = number };
                return REASON_NONE;
        }

        /* The number that comes along is the sender's view, which may be that of its namespace. */
        if (peer->ns_depth > 0) {
                r = proc_read_status(number, 0, &status);
                if (r < 0 || status.tgid != number)
                        return REASON_NO_SUCH_THREAD;
                ret->pid = number;
                return namespace_find_thread(number, tid, &ret->tid, n_scanned);
        }

        *ret = (struct numbers) { .pid = number, .tid = tid };
        return REASON_NONE;
}

/* The peer's numbers are those of its own pid namespace. */
static enum reason numbers_from_inner_ids(const struct peer *peer, pid_t pid, pid_t tid,
                                          struct numbers *ret, unsigned *n_scanned) {
        enum reason reason;

        ret->pid = peer->pid;
        if (pid != 0 && pid != peer->ns_pid) {
                reason = namespace_find_process(peer, pid, &ret->pid, n_scanned);
                if (reason != REASON_NONE)
                        return reason;
        }

        ret->tid = ret->pid;
        if (tid == 0 || tid == (pid != 0 ? pid : peer->ns_pid))
                return REASON_NONE;
        return namespace_find_thread(ret->pid, tid, &ret->tid, n_scanned);
}

static enum reason numbers_from_ids(const struct peer *peer, pid_t pid, pid_t tid,
                                    struct numbers *ret, unsigned *n_scanned) {
        if (peer->ns_depth > 0)
                return numbers_from_inner_ids(peer, pid, tid, ret, n_scanned);

        ret->pid = pid != 0 ? pid : peer->pid;
        ret->tid = tid != 0 ? tid : ret->pid;
        return REASON_NONE;
}

static enum reason find_numbers(const struct peer *peer, const struct target_request *request,
                                struct numbers *ret, unsigned *n_scanned) {
        pid_t pid = 0, tid = 0;

        if (request->pid != 0 && id_parse(request->pid, &pid) < 0)
                return REASON_INVALID;
        if (request->tid != 0 && id_parse(request->tid, &tid) < 0)
                return REASON_INVALID;

        if (request->pidfd >= 0)
                return numbers_from_pidfd(peer, request->pidfd, tid, ret, n_scanned);

        return numbers_from_ids(peer, pid, tid, ret, n_scanned);
}

/* Whether that is the inode of a pidfd of the thread, or of its process. */
static bool has_inode(const struct thread *thread, uint64_t inode) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (thread->inode == inode)
                return true;
        if (thread->pid == thread->tid)
                return false;

        fd = kernel_pidfd_open(thread->pid, /* thread= */ false);
        return fd >= 0 && fstat(fd, &st) >= 0 && st.st_ino == inode;
}

/* No user can name these; root must not. */
static bool is_untouchable(const struct thread *thread) {
        struct proc_stat stat;

        if (thread->pid == 1 || thread->pid == getpid())
                return true;

        return proc_read_stat(thread->pid, thread->tid, &stat) < 0 ||
               (stat.flags & PROC_FLAG_KTHREAD);
}

static enum reason check_creds(const struct peer *peer, const struct creds *creds) {
        if (creds->ruid != peer->uid || creds->euid != peer->uid || creds->suid != peer->uid ||
            creds->fsuid != peer->uid)
                return REASON_NO_SUCH_THREAD;

        if (creds->rgid != creds->egid || creds->rgid != creds->sgid || creds->rgid != creds->fsgid)
                return REASON_TARGET_PRIVILEGED;

        return REASON_NONE;
}

static enum reason check_other_process(const struct peer *peer, struct target *target) {
        struct proc_status status;
        int r;

        r = peer_read_quota_uid(target->thread.pid, peer->uid, &target->in_user_namespace,
                                &target->quota_uid);
        if (r >= 0)
                r = proc_read_status(target->thread.pid, target->thread.tid, &status);
        if (r < 0)
                return r == -ESRCH ? REASON_NO_SUCH_THREAD : REASON_RESOURCES;

        /* A program with file capabilities may speak for itself; nobody may speak for it. In a user
         * namespace capabilities say nothing: whether to serve those at all is for the policy. */
        if (status.cap_permitted != 0 && peer->uid != 0 && !target->in_user_namespace)
                return REASON_TARGET_PRIVILEGED;
        target->cap_permitted = status.cap_permitted;

        if (peer->in_user_namespace) {
                target->in_user_namespace = true;
                target->quota_uid = peer->quota_uid;
        }
        return REASON_NONE;
}

static enum reason check_target(const struct peer *peer, struct target *target) {
        enum reason reason;

        reason = check_creds(peer, &target->creds);
        if (reason != REASON_NONE)
                return reason;
        if (peer->uid == 0 && is_untouchable(&target->thread))
                return REASON_NO_SUCH_THREAD;

        if (target->thread.pid != peer->pid)
                return check_other_process(peer, target);

        target->cap_permitted = peer->cap_permitted;
        target->in_user_namespace = peer->in_user_namespace;
        target->quota_uid = peer->quota_uid;
        return REASON_NONE;
}

enum reason target_resolve(const struct kernel *kernel, const struct peer *peer,
                           const struct target_request *request, struct target *ret) {
        struct target target = { .thread = THREAD_NONE };
        struct numbers numbers = {};
        enum reason reason;
        int r;

        if (request->inode != 0 && !kernel->pidfd_inode)
                return REASON_UNSUPPORTED;

        reason = find_numbers(peer, request, &numbers, &target.n_scanned);
        ret->n_scanned = target.n_scanned;
        if (reason != REASON_NONE)
                return reason;

        r = thread_open(kernel, numbers.pid, numbers.tid, &target.thread, &target.creds);
        if (r < 0)
                return r == -EMFILE || r == -ENFILE || r == -ENOMEM ? REASON_RESOURCES
                                                                    : REASON_NO_SUCH_THREAD;

        reason = check_target(peer, &target);
        if (reason == REASON_NONE && request->inode != 0 &&
            !has_inode(&target.thread, request->inode))
                reason = REASON_NO_SUCH_THREAD;
        /* The numbers stood for the peer, and for what its pidfd names, only as long as they live. */
        if (reason == REASON_NONE &&
            (kernel_pidfd_is_dead(peer->pidfd) ||
             (request->pidfd >= 0 && kernel_pidfd_is_dead(request->pidfd))))
                reason = REASON_NO_SUCH_THREAD;
        if (reason != REASON_NONE) {
                thread_close(&target.thread);
                return reason;
        }

        *ret = target;
        return REASON_NONE;
}

enum reason target_check(const struct kernel *kernel, const struct thread *thread,
                         const struct creds *creds) {
        struct creds now;

        if (thread_read_creds(kernel, thread, &now) < 0)
                return REASON_NO_SUCH_THREAD;

        return creds_equal(&now, creds) ? REASON_NONE : REASON_TARGET_CHANGED;
}
