/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LISTENER_H
#define RTGRANT_BROKER_LISTENER_H

/*
 * The socket that clients connect to: made here, or handed over by systemd. One broker serves at a
 * path; the file of one that is no more is replaced.
 */

struct listener {
        int fd;         /* owned; -1: none yet */
        int lock_fd;    /* owned; -1 if systemd made the socket */
        char *path;     /* owned; NULL if systemd made the socket */
};

#define LISTENER_NONE ((struct listener) { .fd = -1, .lock_fd = -1 })

/*
 * Listens at @path, for everybody, and makes the folder that it is in.
 * Errors: -EADDRINUSE (somebody serves there), -ENOTSOCK (another file is there), -ENAMETOOLONG,
 * bind(2).
 */
int listener_open(struct listener *listener, const char *path);

/* Takes @fd, if it listens. Errors: -EPROTOTYPE (not of our kind, or one too many), fcntl(2). */
int listener_take(struct listener *listener, int fd);

/* Removes the file, if it was made here. */
void listener_done(struct listener *listener);

#endif
