/* SPDX-License-Identifier: MIT */

#include "broker/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "broker/cleanup.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define OPEN_THREAD O_EXCL              /* PIDFD_THREAD of linux/pidfd.h */
#define PIDFS_MAGIC 0x50494446          /* PID_FS_MAGIC of linux/magic.h */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* struct pidfd_info as first published (64 bytes); include/uapi/linux/pidfd.h */
struct kernel_pidfd_info {
        uint64_t mask;
        uint64_t cgroupid;
        uint32_t pid;
        uint32_t tgid;
        uint32_t ppid;
        uint32_t ruid, rgid;
        uint32_t euid, egid;
        uint32_t suid, sgid;
        uint32_t fsuid, fsgid;
        uint32_t exit_code;
};

#define INFO_PID UINT64_C(0x1)
#define INFO_CREDS UINT64_C(0x2)
#define INFO_CGROUP UINT64_C(0x4)
#define IOCTL_GET_INFO _IOWR(0xFF, 11, struct kernel_pidfd_info)

int kernel_pidfd_open(pid_t pid, bool thread) {
        int fd;

        fd = (int) syscall(SYS_pidfd_open, pid, thread ? OPEN_THREAD : 0);
        return fd < 0 ? -errno : fd;
}

bool creds_equal(const struct creds *a, const struct creds *b) {
        return a->pid == b->pid && a->tid == b->tid && a->ruid == b->ruid && a->euid == b->euid &&
               a->suid == b->suid && a->fsuid == b->fsuid && a->rgid == b->rgid &&
               a->egid == b->egid && a->sgid == b->sgid && a->fsgid == b->fsgid;
}

int kernel_pidfd_read_creds(int pidfd, struct creds *ret) {
        /* EXIT must not be asked for: with it a dead thread answers with zeroes for its ids. */
        struct kernel_pidfd_info info = { .mask = INFO_PID | INFO_CREDS | INFO_CGROUP };

        if (ioctl(pidfd, IOCTL_GET_INFO, &info) < 0)
                return errno == EINVAL ? -ENOTTY : -errno;
        if ((info.mask & (INFO_PID | INFO_CREDS)) != (INFO_PID | INFO_CREDS))
                return -ESRCH;

        *ret = (struct creds) {
                .pid = (pid_t) info.tgid,
                .tid = (pid_t) info.pid,
                .ruid = info.ruid,
                .euid = info.euid,
                .suid = info.suid,
                .fsuid = info.fsuid,
                .rgid = info.rgid,
                .egid = info.egid,
                .sgid = info.sgid,
                .fsgid = info.fsgid,
                .cgroup = info.mask & INFO_CGROUP ? info.cgroupid : 0,
        };
        return 0;
}

bool kernel_pidfd_is_dead(int pidfd) {
        struct pollfd pollfd = { .fd = pidfd, .events = POLLIN };

        return poll(&pollfd, 1, 0) > 0;
}

/* Before anything is asked of it: fdinfo of other files can be long, and say anything. */
bool kernel_is_pidfd(int fd) {
        char path[64], target[32];
        struct statfs fs;
        ssize_t n;

        if (fstatfs(fd, &fs) >= 0 && fs.f_type == PIDFS_MAGIC)
                return true;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strcmp(target, "anon_inode:[pidfd]") == 0;
}

int kernel_pidfd_read_pid(int pidfd, pid_t *ret_tid) {
        _cleanup_close_ int fd = -1;
        char path[64], text[1024];
        const char *line;
        ssize_t n;
        int pid;

        if (!kernel_is_pidfd(pidfd))
                return -EBADF;

        /* works on every kernel that has pidfds */
        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';

        line = strstr(text, "\nPid:");
        if (!line || sscanf(line, "\nPid: %d", &pid) != 1)
                return -EBADF;
        if (pid == 0)
                return -EREMOTE;
        if (pid < 0)
                return -ESRCH;

        *ret_tid = pid;
        return 0;
}

static bool probe_peer_pidfd(void) {
        socklen_t length = sizeof(int);
        bool works;
        int pair[2], fd;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return false;

        works = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &length) >= 0;
        if (works)
                (void) close(fd);
        (void) close(pair[0]);
        (void) close(pair[1]);
        return works;
}

void kernel_probe(struct kernel *ret) {
        _cleanup_close_ int fd = -1;
        struct kernel kernel = {};
        struct statfs fs;
        struct creds creds;

        fd = kernel_pidfd_open(getpid(), true);
        kernel.thread_pidfd = fd >= 0;
        if (fd >= 0) {
                kernel.pidfd_info = kernel_pidfd_read_creds(fd, &creds) >= 0;
                kernel.pidfd_inode =
                        sizeof(ino_t) == 8 && fstatfs(fd, &fs) >= 0 && fs.f_type == PIDFS_MAGIC;
        }
        kernel.peer_pidfd = probe_peer_pidfd();

        *ret = kernel;
}
