/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_USER_H
#define RTGRANT_BROKER_USER_H

/*
 * What one user holds and how fast it asks: everything that is counted is counted here, under the
 * uid that owns the quota. A user stays known until nothing is held and its buckets are full
 * again, so that reconnecting is no way to a fresh start.
 */

#include <glib.h>
#include <systemd/sd-event.h>

#include "broker/bucket.h"
#include "policy/policy.h"

/* How often one line about a user comes back, and the same one is worth saying again. */
#define USER_LOG_REFILL_US (60U * 1000 * 1000)

struct user {
        uid_t uid;
        unsigned n_connections;
        unsigned n_leases;
        unsigned threads_by_role[POLICY_ROLES_MAX];
        struct bucket grants;
        struct bucket messages;
        unsigned n_demotions;           /* in a row, by the guard */
        uint64_t back_off_ms;           /* the last one's length */
        uint64_t back_off_until_us;     /* no new real-time before; CLOCK_MONOTONIC */
        struct bucket lines;            /* of the log */
        unsigned n_lines_suppressed;
        struct bucket events;           /* lines of it about what befalls leases */
        unsigned n_events_suppressed;
        enum reason last_refusal;       /* that was logged */
        uint64_t last_refusal_us;
        sd_event_source *throttle; /* owned; running while the user's connections are not read */
        GQueue connections;             /* of struct connection, embedded links */
};

struct user_table {
        GHashTable *by_uid;             /* owned: uid -> owned struct user */
};

void user_table_init(struct user_table *table);
void user_table_done(struct user_table *table);

/* The user of that uid, made if need be. NULL if so many users are known that no more fit. */
struct user *user_get(struct user_table *table, const struct policy *policy, uid_t uid,
                      uint64_t now_us);

/* New limits for everybody. */
void user_table_apply_policy(struct user_table *table, const struct policy *policy,
                             uint64_t now_us);

/* Users that hold leases. */
unsigned user_table_n_holders(const struct user_table *table);

/* How many of them get no new real-time priority for a while, by the guard's doing. */
unsigned user_table_n_in_back_off(const struct user_table *table, uint64_t now_us);

#endif
