/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_CLOSER_H
#define RTGRANT_BROKER_CLOSER_H

/*
 * Closes descriptors that others have a hand in. The last close(2) of a socket that lingers, or of
 * a file of somebody's own file system, takes as long as they like, and so does closing a
 * connection in which such a descriptor lies unread: threads of their own wait for it, and for one
 * user no more than two.
 */

#include <sys/types.h>

struct closer;

/* Starts the first thread. Errors: -ENOMEM, pthread_create(3). */
int closer_new(struct closer **ret);

/* Waits until all is closed, at most a second. May be NULL. Returns NULL. */
struct closer *closer_free(struct closer *closer);

/* Takes @fd. @uid is whose it is. */
void closer_close(struct closer *closer, int fd, uid_t uid);

/*
 * The same for a client's socket. What was sent to it before is not lost to a reset, which the
 * kernel sends if anything is left unread.
 */
void closer_drop(struct closer *closer, int fd, uid_t uid);

#endif
