/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LEASE_H
#define RTGRANT_BROKER_LEASE_H

/*
 * Leases: what was given to whom, what was there before, and until when. A lease is of one thread,
 * and a thread has at most one. It ends by itself with its thread, its connection or its time.
 */

#include <glib.h>
#include <systemd/sd-event.h>

#include "broker/kinds/kind.h"
#include "broker/lease-store.h"
#include "broker/resource.h"
#include "broker/target.h"
#include "broker/timing.h"
#include "broker/user.h"
#include "client/protocol.h"

struct broker;
struct connection;

struct grant {
        bool held;
        union kind_values saved;        /* what was there before the lease */
        union kind_values set;
};

struct lease {
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint64_t seq;                   /* in order of birth; 0: in no table yet */
        struct broker *broker;          /* borrowed; outlives the lease */
        struct user *user;              /* borrowed; its quotas count this lease */
        uid_t uid;                      /* who may speak for the lease */
        struct connection *connection;  /* borrowed; NULL unless it lives as long as that */
        GList in_connection;            /* link in connection->leases */
        struct thread thread;           /* owned */
        struct creds creds;             /* as they must stay */
        uint64_t cap_permitted;         /* more than this must not be added */
        struct grant grants[_KIND_MAX];
        struct hold *holds[LEASE_HOLDS_MAX]; /* owned; what it has of resources */
        unsigned n_holds;
        char role[WIRE_ROLE_SIZE];
        size_t role_index;              /* in the policy in force; its quota counts this lease */
        char reason[WIRE_REASON_SIZE];
        struct timing timing;
        enum wire_lifetime lifetime;
        enum wire_transport transport;
        enum wire_lease_state state;
        bool ending;                    /* what was there is being put back */
        uint64_t since_ms;              /* CLOCK_REALTIME */
        uint64_t expires_ms;            /* CLOCK_REALTIME; 0: never */
        unsigned slot;                  /* in the store */
        uint32_t guard;                 /* its number there, plus one; 0: not watched */
        uint64_t demoted_until_ms;      /* CLOCK_REALTIME; 0: not demoted */
        uint64_t warned_us;             /* when it was last said to be over budget */
        sd_event_source *back_off;      /* owned; runs while it is demoted */
        sd_event_source *ended;         /* owned; the thread's end */
        sd_event_source *expiry;        /* owned; NULL unless for seconds */
};

struct lease_table {
        GHashTable *by_id;              /* owned: id -> struct lease; owns the leases */
        GHashTable *by_tid;             /* owned: tid -> borrowed struct lease */
        GTree *by_seq;                  /* owned: &seq -> borrowed struct lease */
        uint64_t last_seq;
        uint8_t random[16 * WIRE_LEASE_ID_SIZE]; /* of the kernel's, for the next ids */
        unsigned n_random;              /* bytes of it that are left */
        unsigned n_rt;                  /* leases whose grant is real-time */
};

void lease_table_init(struct lease_table *table);
void lease_table_done(struct lease_table *table);

unsigned lease_table_size(const struct lease_table *table);
struct lease *lease_find(const struct lease_table *table, const uint8_t id[WIRE_LEASE_ID_SIZE]);
struct lease *lease_find_by_tid(const struct lease_table *table, pid_t tid);

/* The first lease born after @seq; NULL if none. */
struct lease *lease_find_after(const struct lease_table *table, uint64_t seq);

/*
 * A lease for @target, with nothing granted yet and in no table. Takes target->thread on success.
 * Errors: -ENOMEM, -ENOSPC (no room in the store).
 */
int lease_new(struct broker *broker, struct user *user, uid_t uid, struct target *target,
              struct lease **ret);

/* Frees a lease that is in no table, without restoring anything. May be NULL. Returns NULL. */
struct lease *lease_free(struct broker *broker, struct lease *lease);

/* Puts @lease, whose grants are in force, into the tables and watches its thread. Errors: -ENOMEM.
 */
int lease_add(struct broker *broker, struct lease *lease);

/*
 * Binds it to another thread that its grants moved to, as exec(3) by a thread that leads no process
 * does. Takes @thread.
 */
void lease_rebind_thread(struct broker *broker, struct lease *lease, struct thread *thread,
                         const struct creds *creds);

/* Makes it last @seconds from @now_ms (CLOCK_REALTIME, for display), or with 0 until its thread
 * ends. */
int lease_set_expiry(struct broker *broker, struct lease *lease, unsigned seconds, uint64_t now_ms);

/* Counts it under another role. */
void lease_set_role(struct broker *broker, struct lease *lease, const struct role *role);

/* Binds it to a connection, or with NULL unbinds it. */
void lease_bind(struct lease *lease, struct connection *connection);

/*
 * Those of a connection that was lost with the broker that had it: they go on for a while, so that
 * their client can connect anew and renew them, which binds them again.
 */
#define LEASE_ORPHAN_S 10
/* Errors: -ENOMEM, and then nothing would end it. */
int lease_orphan(struct broker *broker, struct lease *lease);
bool lease_is_orphan(const struct lease *lease);
void lease_take_up(struct broker *broker, struct lease *lease, struct connection *connection);

/* Whether what it grants is real-time. */
bool lease_is_rt(const struct lease *lease);

/* Tells n_rt after what a lease grants has changed from or to real-time. */
void lease_count_rt(struct broker *broker, bool was_rt, bool is_rt);

/*
 * Ends it: restores what was there, tells its watchers, frees it. @reason is why, one of
 * REASON_RELEASED and following; with REASON_THREAD_ENDED there is nothing left to restore.
 * @text is for the watchers and the log.
 */
void lease_end(struct broker *broker, struct lease *lease, enum reason reason, const char *text);

/* Writes it to the store. @next is what is about to be set, as far as it is held; NULL if nothing.
 */
void lease_save(struct broker *broker, const struct lease *lease,
                const struct grant next[_KIND_MAX]);

/* For listings and events; reads what is in force from the kernel. */
void lease_describe(struct broker *broker, struct lease *lease, struct wire_lease *ret);

#define LEASE_ID_STRING_SIZE (2 * WIRE_LEASE_ID_SIZE + 1)
void lease_id_to_string(const uint8_t id[WIRE_LEASE_ID_SIZE], char buffer[LEASE_ID_STRING_SIZE]);

#endif
