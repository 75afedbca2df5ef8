/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LEASE_RECOVER_H
#define RTGRANT_BROKER_LEASE_RECOVER_H

/*
 * After a predecessor was killed: takes its leases over from the store, or restores what was there
 * before them. Nothing is set on a thread that is not proven to be the one of the record.
 */

struct broker;

struct lease_recovery {
        unsigned n_adopted;
        unsigned n_restored;    /* bound to a connection that is gone, over, or changed */
        unsigned n_ended;       /* threads that are gone */
        unsigned n_damaged;
};

void lease_recover(struct broker *broker, struct lease_recovery *ret);

#endif
