/* SPDX-License-Identifier: MIT */

#include "client/cli/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "client/cli/cleanup.h"
#include "client/cli/text.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define PIDFD_FOR_THREAD O_EXCL         /* PIDFD_THREAD, Linux 6.9 */
#define PIDFS_MAGIC 0x50494446          /* PID_FS_MAGIC */
#define PASSES_MAX 100

/* At most @size - 1 bytes of /proc/TID/FILE, terminated. Returns how many. */
static ssize_t read_proc(pid_t tid, const char *file, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) tid, file);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buffer, size - 1);
        if (n < 0)
                return -errno;

        buffer[n] = '\0';
        return n;
}

static void read_comm(pid_t tid, char *buffer, size_t size) {
        char raw[64];
        ssize_t n;

        n = read_proc(tid, "comm", raw, sizeof(raw));
        if (n < 1)
                (void) snprintf(raw, sizeof(raw), "?");
        else if (raw[n - 1] == '\n')
                raw[n - 1] = '\0';
        text_printable(buffer, size, raw);
}

static pid_t read_tgid(pid_t tid) {
        char status[1024];
        const char *line;

        /* The name above it is escaped by the kernel: no line of its own can come from there. */
        if (read_proc(tid, "status", status, sizeof(status)) < 0)
                return tid;
        line = strstr(status, "\nTgid:");
        return line ? (pid_t) atoi(line + strlen("\nTgid:")) : tid;
}

static int open_pidfd(pid_t tid) {
        long fd;

        fd = syscall(SYS_pidfd_open, tid, PIDFD_FOR_THREAD);
        if (fd < 0 && errno == EINVAL)
                fd = syscall(SYS_pidfd_open, tid, 0);
        return fd < 0 ? -errno : (int) fd;
}

int thread_init(pid_t tid, struct thread *ret) {
        int fd;

        fd = open_pidfd(tid);
        if (fd == -ESRCH)
                return -ESRCH;

        *ret = (struct thread) { .tid = tid, .pid = read_tgid(tid), .pidfd = fd < 0 ? -1 : fd };
        read_comm(tid, ret->comm, sizeof(ret->comm));
        return 0;
}

void thread_done(struct thread *thread) {
        cleanup_close(&thread->pidfd);
        thread->pidfd = -1;
}

void thread_label(const struct thread *thread, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "%s (%s %d)", thread->comm,
                        thread->tid == thread->pid ? "pid" : "thread", (int) thread->tid);
}

int thread_check_inode(const struct thread *thread, uint64_t inode) {
        struct statfs fs;
        struct stat st;

        /* Before pidfs, all pidfds shared one inode. */
        if (thread->pidfd < 0 || fstatfs(thread->pidfd, &fs) < 0 || fs.f_type != PIDFS_MAGIC)
                return -EOPNOTSUPP;
        if (fstat(thread->pidfd, &st) < 0)
                return -errno;
        return st.st_ino == inode ? 0 : -ESRCH;
}

struct seen {
        pid_t *tids;
        size_t n_tids;
        size_t n_allocated;
};

static bool seen_has(const struct seen *seen, pid_t tid) {
        for (size_t i = seen->n_tids; i-- > 0;)
                if (seen->tids[i] == tid)
                        return true;

        return false;
}

static int seen_add(struct seen *seen, pid_t tid) {
        if (seen->n_tids == seen->n_allocated) {
                size_t n = seen->n_allocated > 0 ? 2 * seen->n_allocated : 64;
                pid_t *tids = reallocarray(seen->tids, n, sizeof(*tids));

                if (!tids)
                        return -ENOMEM;
                seen->tids = tids;
                seen->n_allocated = n;
        }

        seen->tids[seen->n_tids++] = tid;
        return 0;
}

static void cleanup_dir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

/* One pass over the threads that are not @seen yet. *ret_new: whether there were any. */
static int walk(pid_t pid, struct seen *seen, thread_fn each, void *userdata, bool *ret_new) {
        _cleanup_(cleanup_dir) DIR *dir = NULL;
        const struct dirent *entry;
        char path[64];
        int r;

        *ret_new = false;
        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? -ESRCH : -errno;

        while ((entry = readdir(dir))) {
                pid_t tid = (pid_t) atoi(entry->d_name);

                if (tid < 1 || seen_has(seen, tid))
                        continue;
                r = seen_add(seen, tid);
                if (r < 0)
                        return r;
                *ret_new = true;
                r = each(tid, userdata);
                if (r != 0)
                        return r;
        }
        return 0;
}

int thread_each(pid_t pid, thread_fn each, void *userdata) {
        struct seen seen = { 0 };
        bool grew = true;
        int r = 0;

        for (size_t i = 0; r == 0 && grew && i < PASSES_MAX; i++)
                r = walk(pid, &seen, each, userdata, &grew);
        if (r == -ESRCH && seen.n_tids > 0) {
                /* the process ended meanwhile: all that there was has been seen */
                r = 0;
                grew = false;
        }
        free(seen.tids);

        return r == 0 && grew ? -EAGAIN : r;
}
