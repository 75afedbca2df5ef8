/* SPDX-License-Identifier: MIT */

#include "broker/thread.h"

#include <errno.h>
#include <sys/stat.h>

#include "broker/cleanup.h"
#include "broker/proc.h"

void thread_close(struct thread *thread) {
        (void) close_fd(thread->fd);
        *thread = THREAD_NONE;
}

static int read_creds_from_proc(pid_t pid, pid_t tid, struct creds *ret) {
        struct proc_status status;
        int r;

        r = proc_read_status(pid, tid, &status);
        if (r < 0)
                return r;
        if (status.tgid != pid)
                return -ESRCH;

        *ret = (struct creds) {
                .pid = status.tgid,
                .tid = tid,
                .ruid = status.uids[PROC_REAL],
                .euid = status.uids[PROC_EFFECTIVE],
                .suid = status.uids[PROC_SAVED],
                .fsuid = status.uids[PROC_FS],
                .rgid = status.gids[PROC_REAL],
                .egid = status.gids[PROC_EFFECTIVE],
                .sgid = status.gids[PROC_SAVED],
                .fsgid = status.gids[PROC_FS],
        };
        return 0;
}

static int read_creds(const struct kernel *kernel, const struct thread *thread, struct creds *ret) {
        if (kernel->pidfd_info && thread->exact)
                return kernel_pidfd_read_creds(thread->fd, ret);

        return read_creds_from_proc(thread->pid, thread->tid, ret);
}

/* The process of a thread whose number alone is known. */
static int find_process(pid_t tid, pid_t *ret_pid) {
        struct proc_status status;
        int r;

        /* /proc/TID opens for every thread although only leaders are listed; Tgid tells the
         * process. */
        r = proc_read_status(tid, 0, &status);
        if (r < 0)
                return r;

        *ret_pid = status.tgid;
        return 0;
}

static int open_exact(const struct kernel *kernel, pid_t pid, pid_t tid, struct thread *thread,
                      struct creds *ret_creds) {
        struct stat st;
        int r;

        thread->fd = kernel_pidfd_open(tid, /* thread= */ true);
        if (thread->fd < 0)
                return thread->fd;
        thread->exact = true;

        if (kernel->pidfd_info) {
                r = kernel_pidfd_read_creds(thread->fd, ret_creds);
        } else {
                if (pid == 0) {
                        r = find_process(tid, &pid);
                        if (r < 0)
                                return r;
                }
                r = read_creds_from_proc(pid, tid, ret_creds);
        }
        if (r < 0)
                return r;
        if (ret_creds->tid != tid || (pid != 0 && ret_creds->pid != pid))
                return -ESRCH;
        thread->pid = ret_creds->pid;

        if (kernel->pidfd_inode) {
                if (fstat(thread->fd, &st) < 0)
                        return -errno;
                thread->inode = st.st_ino;
        }
        return 0;
}

static int open_by_process(pid_t pid, pid_t tid, struct thread *thread, struct creds *ret_creds) {
        int r;

        if (pid == 0) {
                r = find_process(tid, &pid);
                if (r < 0)
                        return r;
        }
        thread->pid = pid;

        thread->fd = kernel_pidfd_open(pid, /* thread= */ false);
        if (thread->fd < 0)
                /* kernels differ on the number of a thread that leads no process */
                return thread->fd == -EINVAL || thread->fd == -ENOENT ? -ESRCH : thread->fd;

        return read_creds_from_proc(pid, tid, ret_creds);
}

int thread_open(const struct kernel *kernel, pid_t pid, pid_t tid, struct thread *ret,
                struct creds *ret_creds) {
        struct thread thread = { .tid = tid, .fd = -1 };
        struct creds creds = {};
        int r;

        if (kernel->thread_pidfd)
                r = open_exact(kernel, pid, tid, &thread, &creds);
        else
                r = open_by_process(pid, tid, &thread, &creds);

        if (r >= 0 && !kernel->pidfd_inode) {
                struct proc_stat stat;

                r = proc_read_stat(thread.pid, tid, &stat);
                if (r >= 0)
                        thread.start_time = stat.start_time;
                if (r >= 0 && (stat.state == 'Z' || stat.state == 'X'))
                        r = -ESRCH;
        }
        /* What was read by number is the thread's only if it still lives; and one that ended has
         * ids until it is waited for, but nothing to give priority to. */
        if (r >= 0 && kernel_pidfd_is_dead(thread.fd))
                r = -ESRCH;
        if (r < 0) {
                thread_close(&thread);
                return r;
        }

        *ret = thread;
        *ret_creds = creds;
        return 0;
}

int thread_read_creds(const struct kernel *kernel, const struct thread *thread, struct creds *ret) {
        struct creds creds;
        int r;

        r = read_creds(kernel, thread, &creds);
        if (r < 0)
                return r;

        if (!thread->exact || !kernel->pidfd_info) {
                if (kernel_pidfd_is_dead(thread->fd))
                        return -ESRCH;
                if (thread->start_time != 0) {
                        struct proc_stat stat;

                        r = proc_read_stat(thread->pid, thread->tid, &stat);
                        if (r < 0)
                                return r;
                        if (stat.start_time != thread->start_time)
                                return -ESRCH;
                }
        }

        *ret = creds;
        return 0;
}
