/* SPDX-License-Identifier: MIT */

#include "broker/irq/irqbalance.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "broker/cleanup.h"
#include "broker/proc.h"

/* The directory is root's alone, and so is who listens there. */
static bool is_trusted(const char *directory) {
        struct stat st;

        return lstat(directory, &st) >= 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
               (st.st_mode & 0022) == 0;
}

/* Errors: -ECONNREFUSED if it is what a dead one left; connect(2). */
static int connect_to(const char *directory, const char *name, struct irqbalance *ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct proc_stat stat;
        _cleanup_close_ int fd = -1;
        int n;

        n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        if (peer.uid != 0)
                return -EACCES;
        if (proc_read_stat(peer.pid, 0, &stat) < 0)
                return -ESRCH;
        *ret = (struct irqbalance){ .pid = peer.pid, .start_time = stat.start_time };
        return STEAL_FD(fd);
}

int irqbalance_connect(const char *directory, struct irqbalance *ret) {
        struct dirent *entry;
        int fd = -ENOENT;
        DIR *dir;

        if (!is_trusted(directory))
                return -ENOENT;
        dir = opendir(directory);
        if (!dir)
                return -ENOENT;
        while (fd < 0 && (entry = readdir(dir))) {
                int r;

                if (strncmp(entry->d_name, "irqbalance", strlen("irqbalance")) != 0)
                        continue;
                r = connect_to(directory, entry->d_name, ret);
                if (r >= 0 || r != -ECONNREFUSED)
                        fd = r;
        }
        (void) closedir(dir);
        return fd;
}

int irqbalance_send(int fd, const char *text) {
        const struct ucred self = { .pid = getpid(), .uid = geteuid(), .gid = getegid() };
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(self))];
        } control = {};
        struct iovec iov = { .iov_base = (void *) (uintptr_t) text, .iov_len = strlen(text) };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes),
        };
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_CREDENTIALS;
        header->cmsg_len = CMSG_LEN(sizeof(self));
        memcpy(CMSG_DATA(header), &self, sizeof(self));
        return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool irqbalance_is_gone(const struct irqbalance *instance) {
        struct proc_stat stat;

        return proc_read_stat(instance->pid, 0, &stat) < 0 ||
               stat.start_time != instance->start_time;
}
