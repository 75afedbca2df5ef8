/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LEASE_STORE_H
#define RTGRANT_BROKER_LEASE_STORE_H

/*
 * The leases on file, so that a broker that was killed can be succeeded: each in a slot of a
 * memory-mapped file in the state directory. Writing one is a copy, no system call, and what was
 * written survives the writer (not the machine: priorities do not survive that either).
 *
 * A slot is written before the kernel is asked, and says whether that was still to be done.
 */

#include <stdint.h>

#include "broker/kinds/kind.h"
#include "broker/resource.h"
#include "client/protocol.h"

struct lease_store;

enum lease_record_state {
        LEASE_RECORD_INTENT = 1,        /* about to be put in force: next */
        LEASE_RECORD_LIVE = 2,          /* in force: set */
        LEASE_RECORD_CHANGING = 3,      /* in force: set, or already next */
        LEASE_RECORD_RESOURCE = 4,      /* what the lease of that id holds of a resource */
        LEASE_RECORD_ENDING = 5,        /* set, or already what was there before */
};

struct lease_record_values {
        uint64_t runtime_ns, deadline_ns, period_ns, other_flags;
        int32_t policy, priority, nice;
        uint32_t reset_on_fork;
        int32_t nice_kind;              /* of the nice kind */
        uint32_t nice_reset_on_fork;
};

/* A slot of its own for each resource that a lease holds. */
struct lease_record_resource {
        uint32_t kind;                  /* enum resource_index */
        int32_t pid;
        uint64_t key;
        int64_t value;                  /* that this lease holds */
        struct resource_value saved;    /* these three are the same in all records of a resource */
        struct resource_value set;
        struct resource_value next;     /* in force: set, or already this */
        char label[WIRE_LABEL_SIZE];
};

/* One slot. Plain numbers of fixed size: the successor may be built by another compiler. */
struct lease_record {
        uint32_t state;                 /* enum lease_record_state */
        uint32_t sum;                   /* over everything else */
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint64_t inode;
        uint64_t start_time;
        uint64_t since_ms;
        uint64_t expires_ms;
        uint64_t demoted_until_ms;      /* by the guard; 0: not */
        uint64_t cap_permitted;
        uint64_t timing_ns[3];
        uint64_t connection;            /* the cookie of the one it lives as long as; else 0 */
        int32_t pid, tid;
        uint32_t uid, gid;
        uint32_t quota_uid;
        uint32_t want;                  /* enum wire_want */
        uint32_t lifetime;
        uint32_t transport;
        union {
                struct {
                        struct lease_record_values saved, set, next;
                };
                struct lease_record_resource resource; /* with LEASE_RECORD_RESOURCE */
        };
        char role[WIRE_ROLE_SIZE];
        char reason[WIRE_REASON_SIZE];
};

/*
 * Opens or makes DIR/leases, mode 0600, and locks it against a second broker.
 *
 * Errors: -EBUSY (another broker has it), -EBADMSG (not ours, damaged, or somebody could have
 * written to it: left as it is, and nothing of it is believed), other errno.
 */
int lease_store_open(const char *dir, struct lease_store **ret);

/* May be NULL. Returns NULL. The file stays, for a successor. */
struct lease_store *lease_store_close(struct lease_store *store);

/* How many slots there are, and what a predecessor left in one: NULL if nothing. */
unsigned lease_store_n_slots(const struct lease_store *store);
const struct lease_record *lease_store_get(const struct lease_store *store, unsigned slot);

/* Errors: -ENOSPC (the disk or the table is full). The slot stays taken until cleared. */
int lease_store_take(struct lease_store *store, unsigned *ret_slot);

void lease_store_put(struct lease_store *store, unsigned slot, const struct lease_record *record);

/* Frees the slot. */
void lease_store_clear(struct lease_store *store, unsigned slot);

#endif
