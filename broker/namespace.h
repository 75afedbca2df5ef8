/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_NAMESPACE_H
#define RTGRANT_BROKER_NAMESPACE_H

/*
 * Numbers of another pid namespace below ours, as a client in a container or sandbox knows them,
 * and what they are here. The kernel has no call for this direction: it is a search in /proc, and
 * bounded. Where it fails there are pidfds.
 */

#include "broker/peer.h"

/*
 * The number here of the thread of process @pid that is @inner in its own pid namespace.
 * *n_scanned is raised by each thread looked at. REASON_NO_SUCH_THREAD, or REASON_NAMESPACE if
 * there are too many to look at.
 */
enum reason namespace_find_thread(pid_t pid, pid_t inner, pid_t *ret_tid, unsigned *n_scanned);

/*
 * The number here of the process that @peer knows as @inner, if it is of the same user and in the
 * same pid namespace. REASON_NAMESPACE if it is not found, or there are too many to look at.
 */
enum reason namespace_find_process(const struct peer *peer, pid_t inner, pid_t *ret_pid,
                                   unsigned *n_scanned);

#endif
