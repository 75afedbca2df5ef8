/* SPDX-License-Identifier: MIT */

#include "broker/user.h"

#include <stdlib.h>

#define LOG_BURST 8
#define EVENT_BURST 32
#define EVENT_REFILL_US (2U * 1000 * 1000)

#define USERS_TIDY 256          /* more than this: forget those that hold nothing */
#define USERS_MAX 16384

static void user_free(gpointer data) {
        struct user *user = data;

        (void) sd_event_source_disable_unref(user->throttle);
        free(user);
}

void user_table_init(struct user_table *table) {
        table->by_uid = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, user_free);
}

void user_table_done(struct user_table *table) {
        g_clear_pointer(&table->by_uid, g_hash_table_unref);
}

static bool user_is_idle(struct user *user, uint64_t now_us) {
        return user->n_connections == 0 && user->n_leases == 0 &&
               bucket_tokens(&user->grants, now_us) == user->grants.burst &&
               bucket_tokens(&user->messages, now_us) == user->messages.burst &&
               bucket_tokens(&user->lines, now_us) == user->lines.burst &&
               bucket_tokens(&user->events, now_us) == user->events.burst &&
               now_us >= user->back_off_until_us + 10 * user->back_off_ms * 1000;
}

static gboolean forget_if_idle(gpointer key, gpointer value, gpointer userdata) {
        return user_is_idle(value, *(uint64_t *) userdata);
}

struct user *user_get(struct user_table *table, const struct policy *policy, uid_t uid,
                      uint64_t now_us) {
        struct user *user;
        guint n;

        user = g_hash_table_lookup(table->by_uid, GUINT_TO_POINTER(uid));
        if (user)
                return user;

        n = g_hash_table_size(table->by_uid);
        if (n >= USERS_TIDY && n % USERS_TIDY == 0)
                (void) g_hash_table_foreach_remove(table->by_uid, forget_if_idle, &now_us);
        if (g_hash_table_size(table->by_uid) >= USERS_MAX)
                return NULL;

        user = calloc(1, sizeof(*user));
        if (!user)
                return NULL;

        user->uid = uid;
        bucket_init(&user->grants, policy->grant_burst, policy->grant_refill_ms * UINT64_C(1000),
                    now_us);
        bucket_init(&user->messages, policy->message_burst, policy->message_refill_us, now_us);
        bucket_init(&user->lines, LOG_BURST, USER_LOG_REFILL_US, now_us);
        bucket_init(&user->events, EVENT_BURST, EVENT_REFILL_US, now_us);
        g_queue_init(&user->connections);
        (void) g_hash_table_insert(table->by_uid, GUINT_TO_POINTER(uid), user);
        return user;
}

void user_table_apply_policy(struct user_table *table, const struct policy *policy,
                             uint64_t now_us) {
        GHashTableIter iter;
        gpointer value;

        g_hash_table_iter_init(&iter, table->by_uid);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
                struct user *user = value;

                bucket_change(&user->grants, policy->grant_burst,
                              policy->grant_refill_ms * UINT64_C(1000), now_us);
                bucket_change(&user->messages, policy->message_burst, policy->message_refill_us,
                              now_us);
        }
}

unsigned user_table_n_holders(const struct user_table *table) {
        GHashTableIter iter;
        unsigned n = 0;
        gpointer value;

        g_hash_table_iter_init(&iter, table->by_uid);
        while (g_hash_table_iter_next(&iter, NULL, &value))
                n += ((struct user *) value)->n_leases > 0;

        return n;
}

unsigned user_table_n_in_back_off(const struct user_table *table, uint64_t now_us) {
        GHashTableIter iter;
        unsigned n = 0;
        gpointer value;

        g_hash_table_iter_init(&iter, table->by_uid);
        while (g_hash_table_iter_next(&iter, NULL, &value))
                n += ((struct user *) value)->back_off_until_us > now_us;

        return n;
}
