/* SPDX-License-Identifier: MIT */

#include "broker/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "broker/cleanup.h"

#define BACKLOG 128

static bool somebody_serves(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = -1;

        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return false;

        /* EAGAIN: the queue is full, so there is one */
        return connect(fd, (const struct sockaddr *) address, sizeof(*address)) >= 0 ||
               errno == EAGAIN || errno == EPROTOTYPE;
}

static int make_parent(const char *path) {
        _cleanup_free_ char *dir = NULL;
        char *slash;

        dir = strdup(path);
        if (!dir)
                return -ENOMEM;
        slash = strrchr(dir, '/');
        if (!slash || slash == dir)
                return 0;
        *slash = '\0';

        if (mkdir(dir, 0755) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

/* The lock outlives a killed broker's socket file, and is what says whether that file is stale. */
static int take_lock(const char *path) {
        _cleanup_close_ int fd = -1;
        char lock[sizeof(((struct sockaddr_un *) NULL)->sun_path) + 8];

        (void) snprintf(lock, sizeof(lock), "%s.lock", path);
        fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EADDRINUSE : -errno;

        return STEAL_FD(fd);
}

int listener_open(struct listener *listener, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);

        r = make_parent(path);
        if (r < 0)
                return r;
        listener->lock_fd = take_lock(path);
        if (listener->lock_fd < 0)
                return listener->lock_fd;
        if (somebody_serves(&address))
                return -EADDRINUSE;
        if (lstat(path, &st) >= 0 && !S_ISSOCK(st.st_mode))
                return -ENOTSOCK;
        (void) unlink(path);

        listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (listener->fd < 0 ||
            bind(listener->fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        listener->path = strdup(path);
        if (!listener->path)
                return -ENOMEM;
        /* everybody may ask: who it is, the kernel says; whether it may, the policy */
        if (chmod(path, 0666) < 0 || listen(listener->fd, BACKLOG) < 0)
                return -errno;

        return 0;
}

int listener_take(struct listener *listener, int fd) {
        if (listener->fd >= 0 || sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
                return -EPROTOTYPE;
        listener->fd = fd;
        return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

void listener_done(struct listener *listener) {
        if (listener->path)
                (void) unlink(listener->path);
        free(listener->path);
        (void) close_fd(listener->fd);
        (void) close_fd(listener->lock_fd);
        *listener = LISTENER_NONE;
}
