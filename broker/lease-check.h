/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LEASE_CHECK_H
#define RTGRANT_BROKER_LEASE_CHECK_H

/*
 * Keeps the books true: what became of leased threads since the grant. The end of a thread is told
 * by its pidfd; what nothing tells (other users, more rights, values changed by others) is looked
 * for every two seconds, as long as there are leases.
 */

struct broker;
struct lease;

/* Starts or stops the looking, after the number of leases changed. */
void lease_check_schedule(struct broker *broker);

/* Looks at all there are, now rather than within two seconds. */
void lease_check_all(struct broker *broker);

/* The lease's thread, or its process, ended: ends the lease, unless its grants moved on by exec(3).
 */
void lease_check_ended(struct broker *broker, struct lease *lease);

/* The lease's values are not in force, by others' doing: notes it and tells. */
void lease_check_changed(struct broker *broker, struct lease *lease);

#endif
