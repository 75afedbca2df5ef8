/* SPDX-License-Identifier: MIT */

#include "broker/broker1-holders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/cleanup.h"

#define HOLDERS_MAX 256
#define HOLDERS_PER_USER_MAX 32

/* Events for one name: so many at once, then one each time this has passed. */
#define EVENTS_BURST 64
#define EVENTS_REFILL_US (20U * 1000)

struct id {
        uint8_t bytes[WIRE_LEASE_ID_SIZE];
};

struct holder {
        struct holders *all;            /* borrowed */
        char *name;                     /* owned */
        uid_t uid;
        GArray *leases;                 /* owned; of struct id */
        unsigned n_calls;               /* not answered yet */
        bool watching;
        bool watching_all;
        struct bucket events;           /* that it may be told of */
        uint64_t n_lost;                /* of the others */
        sd_bus_slot *gone;              /* owned; watches for its end */
        sd_bus_slot *here;              /* owned; whether that came too late */
};

struct holders {
        struct broker *broker;          /* borrowed; outlives this */
        GHashTable *by_name;            /* owned: name -> owned struct holder */
};

/* Still the name's: it may have been bound to something else since. */
static struct lease *find_bound(const struct holders *all, const struct id *id) {
        struct lease *lease = lease_find(&all->broker->leases, id->bytes);

        return lease && lease->lifetime == WIRE_LIFETIME_CONNECTION && !lease->connection ? lease
                                                                                           : NULL;
}

static void end_leases(struct holder *holder) {
        g_autoptr(GArray) leases = STEAL(holder->leases);

        /* each end tells, which looks at the leases of all holders */
        holder->leases = g_array_new(FALSE, FALSE, sizeof(struct id));
        for (guint i = 0; i < leases->len; i++) {
                struct lease *lease = find_bound(holder->all, &g_array_index(leases, struct id, i));

                if (lease)
                        lease_end(holder->all->broker, lease, REASON_DISCONNECTED,
                                  "its holder left the bus");
        }
}

static void holder_free(gpointer data) {
        struct holder *holder = data;

        holder->all->broker->n_watchers--;
        (void) sd_bus_slot_unref(holder->gone);
        (void) sd_bus_slot_unref(holder->here);
        g_array_unref(holder->leases);
        free(holder->name);
        free(holder);
}

/* It is off the table before its leases end, so that nobody tells it. */
static void holder_end(struct holder *holder) {
        (void) g_hash_table_steal(holder->all->by_name, holder->name);
        end_leases(holder);
        holder_free(holder);
}

static int on_gone(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct holder *holder = userdata;
        const char *name, *before, *after;

        if (sd_bus_message_read(message, "sss", &name, &before, &after) >= 0 &&
            strcmp(name, holder->name) == 0 && after[0] == '\0')
                holder_end(holder);
        return 0;
}

static int on_here(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct holder *holder = userdata;
        int is_here;

        holder->here = sd_bus_slot_unref(holder->here);
        if (sd_bus_message_is_method_error(message, NULL) ||
            sd_bus_message_read(message, "b", &is_here) < 0 || !is_here)
                holder_end(holder);
        return 0;
}

/* In this order: a name that ends before the match is there is missing in the answer. */
static int watch_name(struct holder *holder, sd_bus *connection) {
        _cleanup_free_ char *match = NULL;
        int r;

        if (asprintf(&match,
                     "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                     "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
                     holder->name) < 0) {
                match = NULL;
                return -ENOMEM;
        }
        r = sd_bus_add_match_async(connection, &holder->gone, match, on_gone, NULL, holder);
        if (r < 0)
                return r;

        return sd_bus_call_method_async(connection, &holder->here, "org.freedesktop.DBus",
                                        "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                        "NameHasOwner", on_here, holder, "s", holder->name);
}

int holders_new(struct broker *broker, struct holders **ret) {
        struct holders *holders;

        holders = calloc(1, sizeof(*holders));
        if (!holders)
                return -ENOMEM;

        holders->broker = broker;
        holders->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, holder_free);
        *ret = holders;
        return 0;
}

struct holders *holders_free(struct holders *holders) {
        if (!holders)
                return NULL;

        holders_clear(holders);
        g_hash_table_unref(holders->by_name);
        free(holders);
        return NULL;
}

void holders_clear(struct holders *holders) {
        GHashTableIter iter;
        gpointer holder;

        for (;;) {
                g_hash_table_iter_init(&iter, holders->by_name);
                if (!g_hash_table_iter_next(&iter, NULL, &holder))
                        return;
                holder_end(holder);
        }
}

static unsigned count_of(const struct holders *holders, uid_t uid) {
        GHashTableIter iter;
        gpointer holder;
        unsigned n = 0;

        g_hash_table_iter_init(&iter, holders->by_name);
        while (g_hash_table_iter_next(&iter, NULL, &holder))
                n += ((struct holder *) holder)->uid == uid;
        return n;
}

enum reason holders_add(struct holders *holders, sd_bus *connection, const char *name, uid_t uid) {
        struct holder *holder = g_hash_table_lookup(holders->by_name, name);

        if (holder) {
                holder->n_calls++;
                return REASON_NONE;
        }
        if (g_hash_table_size(holders->by_name) >= HOLDERS_MAX)
                return REASON_CONNECTIONS_TOTAL;
        if (count_of(holders, uid) >= HOLDERS_PER_USER_MAX)
                return REASON_CONNECTIONS_PER_USER;

        holder = calloc(1, sizeof(*holder));
        if (!holder)
                return REASON_RESOURCES;
        holder->all = holders;
        holder->uid = uid;
        holder->n_calls = 1;
        holder->leases = g_array_new(FALSE, FALSE, sizeof(struct id));
        holders->broker->n_watchers++;
        bucket_init(&holder->events, EVENTS_BURST, EVENTS_REFILL_US,
                    broker_now_us(holders->broker));
        holder->name = strdup(name);
        if (!holder->name || watch_name(holder, connection) < 0) {
                holder_free(holder);
                return REASON_RESOURCES;
        }

        (void) g_hash_table_insert(holders->by_name, holder->name, holder);
        return REASON_NONE;
}

/* Also drops what has ended: no more is noted than there are leases. */
static void drop(struct holder *holder, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        for (guint i = holder->leases->len; i-- > 0;) {
                const struct id *one = &g_array_index(holder->leases, struct id, i);

                if (memcmp(one->bytes, id, sizeof(one->bytes)) == 0 ||
                    !find_bound(holder->all, one))
                        g_array_remove_index_fast(holder->leases, i);
        }
}

static void drop_everywhere(struct holders *holders, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        GHashTableIter iter;
        gpointer holder;

        g_hash_table_iter_init(&iter, holders->by_name);
        while (g_hash_table_iter_next(&iter, NULL, &holder))
                drop(holder, id);
}

void holders_take(struct holders *holders, const char *name, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        struct holder *holder = g_hash_table_lookup(holders->by_name, name);
        struct id copy;

        memcpy(copy.bytes, id, sizeof(copy.bytes));
        drop_everywhere(holders, id);
        if (holder && find_bound(holders, &copy))
                g_array_append_val(holder->leases, copy);
}

void holders_watch(struct holders *holders, const char *name, bool all) {
        struct holder *holder = g_hash_table_lookup(holders->by_name, name);

        if (!holder)
                return;

        holder->watching = true;
        holder->watching_all = all;
}

void holders_settle(struct holders *holders, const char *name) {
        struct holder *holder = g_hash_table_lookup(holders->by_name, name);

        if (!holder)
                return;

        if (holder->n_calls > 0)
                holder->n_calls--;
        if (holder->watching || holder->n_calls > 0)
                return;

        drop(holder, (const uint8_t[WIRE_LEASE_ID_SIZE]) {});
        if (holder->leases->len == 0)
                (void) g_hash_table_remove(holders->by_name, holder->name);
}

static bool is_to_know(const struct holder *holder, const struct wire_lease *lease) {
        if (holder->watching && (holder->watching_all || holder->uid == lease->uid))
                return true;

        for (guint i = 0; i < holder->leases->len; i++)
                if (memcmp(g_array_index(holder->leases, struct id, i).bytes, lease->id,
                           sizeof(lease->id)) == 0)
                        return true;
        return false;
}

void holders_tell(struct holders *holders, const struct wire_event *event, holders_send_fn send,
                  void *userdata) {
        uint64_t now_us = broker_now_us(holders->broker);
        struct wire_event mine = *event;
        GHashTableIter iter;
        gpointer data;

        g_hash_table_iter_init(&iter, holders->by_name);
        while (g_hash_table_iter_next(&iter, NULL, &data)) {
                struct holder *holder = data;

                if (!is_to_know(holder, &event->lease))
                        continue;
                mine.n_lost = holder->n_lost;
                if (!bucket_take(&holder->events, now_us) || !send(holder->name, &mine, userdata))
                        holder->n_lost++;
        }
}
