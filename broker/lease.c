/* SPDX-License-Identifier: MIT */

#include "broker/lease.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/connection.h"
#include "broker/grant.h"
#include "broker/guard/act.h"
#include "broker/lease-check.h"
#include "broker/proc.h"
#include "broker/text.h"

static guint id_hash(gconstpointer key) {
        guint hash;

        memcpy(&hash, key, sizeof(hash)); /* ids are random */
        return hash;
}

static gboolean id_equal(gconstpointer a, gconstpointer b) {
        return memcmp(a, b, WIRE_LEASE_ID_SIZE) == 0;
}

static gint seq_compare(gconstpointer a, gconstpointer b, gpointer userdata) {
        const uint64_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

void lease_table_init(struct lease_table *table) {
        *table = (struct lease_table) {
                .by_id = g_hash_table_new(id_hash, id_equal),
                .by_tid = g_hash_table_new(g_direct_hash, g_direct_equal),
                .by_seq = g_tree_new_full(seq_compare, NULL, NULL, NULL),
        };
}

void lease_table_done(struct lease_table *table) {
        g_clear_pointer(&table->by_id, g_hash_table_unref);
        g_clear_pointer(&table->by_tid, g_hash_table_unref);
        g_clear_pointer(&table->by_seq, g_tree_unref);
}

unsigned lease_table_size(const struct lease_table *table) {
        return g_hash_table_size(table->by_id);
}

struct lease *lease_find(const struct lease_table *table, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        return g_hash_table_lookup(table->by_id, id);
}

struct lease *lease_find_by_tid(const struct lease_table *table, pid_t tid) {
        return g_hash_table_lookup(table->by_tid, GINT_TO_POINTER(tid));
}

struct lease *lease_find_after(const struct lease_table *table, uint64_t seq) {
        GTreeNode *node = g_tree_upper_bound(table->by_seq, &seq);

        return node ? g_tree_node_value(node) : NULL;
}

static void make_id(struct lease_table *table, uint8_t id[WIRE_LEASE_ID_SIZE]) {
        /* up to 256 bytes come whole and without waiting, see getrandom(2) */
        if (table->n_random == 0 &&
            getrandom(table->random, sizeof(table->random), 0) == sizeof(table->random))
                table->n_random = sizeof(table->random);

        assert(table->n_random >= WIRE_LEASE_ID_SIZE);
        table->n_random -= WIRE_LEASE_ID_SIZE;
        memcpy(id, table->random + table->n_random, WIRE_LEASE_ID_SIZE);
}

int lease_new(struct broker *broker, struct user *user, uid_t uid, struct target *target,
              struct lease **ret) {
        struct lease *lease;
        int r;

        lease = calloc(1, sizeof(*lease));
        if (!lease)
                return -ENOMEM;

        r = lease_store_take(broker->store, &lease->slot);
        if (r < 0) {
                free(lease);
                return r;
        }

        make_id(&broker->leases, lease->id);
        lease->broker = broker;
        lease->user = user;
        lease->uid = uid;
        lease->thread = target->thread;
        lease->creds = target->creds;
        lease->cap_permitted = target->cap_permitted;
        lease->since_ms = broker_now_ms();
        target->thread = THREAD_NONE;

        *ret = lease;
        return 0;
}

struct lease *lease_free(struct broker *broker, struct lease *lease) {
        if (!lease)
                return NULL;

        (void) sd_event_source_disable_unref(lease->ended);
        (void) sd_event_source_disable_unref(lease->expiry);
        guard_act_forget(broker, lease, /* restore= */ false);
        resource_release_all(broker, lease);
        lease_store_clear(broker->store, lease->slot);
        thread_close(&lease->thread);
        free(lease);
        return NULL;
}

static int on_thread_ended(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct lease *lease = userdata;

        lease_check_ended(lease->broker, lease);
        return 0;
}

static int on_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        struct lease *lease = userdata;

        if (lease_is_orphan(lease))
                lease_end(lease->broker, lease, REASON_DISCONNECTED,
                          "its connection ended with the broker before this one");
        else
                lease_end(lease->broker, lease, REASON_EXPIRED, "its time is over");
        return 0;
}

bool lease_is_rt(const struct lease *lease) {
        return lease->grants[KIND_SCHED].held &&
               sched_is_rt(lease->grants[KIND_SCHED].set.sched.policy);
}

void lease_count_rt(struct broker *broker, bool was_rt, bool is_rt) {
        if (is_rt && !was_rt)
                broker->leases.n_rt++;
        if (was_rt && !is_rt)
                broker->leases.n_rt--;

        self_want(&broker->self, broker->leases.n_rt > 0);
}

static void count_in(struct lease *lease, int by) {
        lease->user->n_leases = (unsigned) ((int) lease->user->n_leases + by);
        lease->user->threads_by_role[lease->role_index] =
                (unsigned) ((int) lease->user->threads_by_role[lease->role_index] + by);
}

static int watch_thread(struct broker *broker, struct lease *lease) {
        int r;

        lease->ended = sd_event_source_disable_unref(lease->ended);
        r = sd_event_add_io(broker->event, &lease->ended, lease->thread.fd, EPOLLIN,
                            on_thread_ended, lease);
        if (r < 0)
                return r;

        /* Requests of the same round see the end of a thread before they are served. */
        return sd_event_source_set_priority(lease->ended, SD_EVENT_PRIORITY_IMPORTANT);
}

int lease_add(struct broker *broker, struct lease *lease) {
        int r;

        r = watch_thread(broker, lease);
        if (r >= 0)
                r = guard_act_watch(broker, lease);
        if (r < 0)
                return r;

        lease->seq = ++broker->leases.last_seq;
        (void) g_hash_table_insert(broker->leases.by_id, lease->id, lease);
        (void) g_hash_table_insert(broker->leases.by_tid, GINT_TO_POINTER(lease->thread.tid),
                                   lease);
        g_tree_insert(broker->leases.by_seq, &lease->seq, lease);
        count_in(lease, 1);
        lease_count_rt(broker, false, lease_is_rt(lease));
        lease_check_schedule(broker);
        return 0;
}

static void lease_remove(struct broker *broker, struct lease *lease) {
        (void) g_hash_table_remove(broker->leases.by_id, lease->id);
        (void) g_hash_table_remove(broker->leases.by_tid, GINT_TO_POINTER(lease->thread.tid));
        (void) g_tree_remove(broker->leases.by_seq, &lease->seq);
        lease_bind(lease, NULL);
        count_in(lease, -1);
}

void lease_rebind_thread(struct broker *broker, struct lease *lease, struct thread *thread,
                         const struct creds *creds) {
        (void) g_hash_table_remove(broker->leases.by_tid, GINT_TO_POINTER(lease->thread.tid));
        lease->ended = sd_event_source_disable_unref(lease->ended);
        thread_close(&lease->thread);

        lease->thread = *thread;
        lease->creds = *creds;
        *thread = THREAD_NONE;
        (void) g_hash_table_insert(broker->leases.by_tid, GINT_TO_POINTER(lease->thread.tid),
                                   lease);
        (void) watch_thread(broker, lease);
        guard_act_rebind(broker, lease);
        lease_save(broker, lease, NULL);
}

int lease_set_expiry(struct broker *broker, struct lease *lease, unsigned seconds,
                     uint64_t now_ms) {
        lease->expiry = sd_event_source_disable_unref(lease->expiry);
        lease->expires_ms = 0;
        if (seconds == 0)
                return 0;

        lease->expires_ms = now_ms + seconds * UINT64_C(1000);
        /* BOOTTIME: a lease for a minute does not outlive a night's sleep */
        return sd_event_add_time_relative(broker->event, &lease->expiry, CLOCK_BOOTTIME,
                                          seconds * UINT64_C(1000000), 1000, on_expired, lease);
}

void lease_set_role(struct broker *broker, struct lease *lease, const struct role *role) {
        size_t index = (size_t) (role - broker_policy(broker)->roles);

        if (lease->seq != 0) {
                lease->user->threads_by_role[lease->role_index]--;
                lease->user->threads_by_role[index]++;
        }
        lease->role_index = index;
        text_copy(lease->role, sizeof(lease->role), role->name);
}

void lease_bind(struct lease *lease, struct connection *connection) {
        if (lease->connection)
                g_queue_unlink(connection_leases(lease->connection), &lease->in_connection);

        lease->connection = connection;
        lease->in_connection.data = lease;
        if (connection)
                g_queue_push_tail_link(connection_leases(connection), &lease->in_connection);
}

int lease_orphan(struct broker *broker, struct lease *lease) {
        lease_bind(lease, NULL);
        return lease_set_expiry(broker, lease, LEASE_ORPHAN_S, broker_now_ms());
}

bool lease_is_orphan(const struct lease *lease) {
        return lease->lifetime == WIRE_LIFETIME_CONNECTION && !lease->connection &&
               lease->transport == WIRE_TRANSPORT_SOCKET;
}

void lease_take_up(struct broker *broker, struct lease *lease, struct connection *connection) {
        (void) lease_set_expiry(broker, lease, 0, 0);
        lease_bind(lease, connection);
        lease_save(broker, lease, NULL);
}

void lease_end(struct broker *broker, struct lease *lease, enum reason reason, const char *text) {
        bool was_rt = lease_is_rt(lease);
        enum wire_event_kind kind;

        lease->ending = true;
        lease_save(broker, lease, NULL);
        guard_act_forget(broker, lease, reason != REASON_THREAD_ENDED);
        if (reason != REASON_THREAD_ENDED)
                grant_restore(broker, lease);
        /* the process may go on without the thread, and the machine without either */
        resource_release_all(broker, lease);

        kind = reason == REASON_RELEASED || reason == REASON_THREAD_ENDED ||
                               reason == REASON_DISCONNECTED || reason == REASON_EXPIRED
                       ? WIRE_EVENT_ENDED
                       : WIRE_EVENT_REVOKED;
        broker_tell(broker, lease, kind, reason, text);

        lease_remove(broker, lease);
        (void) lease_free(broker, lease);
        lease_count_rt(broker, was_rt, false);
        lease_check_schedule(broker);
}

static struct lease_record_values values_to_record(const struct sched_values *sched,
                                                   const struct nice_values *nice) {
        return (struct lease_record_values) {
                .policy = sched->policy,
                .priority = sched->priority,
                .nice = sched->nice,
                .reset_on_fork = sched->reset_on_fork,
                .runtime_ns = sched->runtime_ns,
                .deadline_ns = sched->deadline_ns,
                .period_ns = sched->period_ns,
                .other_flags = sched->other_flags,
                .nice_kind = nice->nice,
                .nice_reset_on_fork = nice->reset_on_fork,
        };
}

void lease_save(struct broker *broker, const struct lease *lease,
                const struct grant next[_KIND_MAX]) {
        const struct grant *now = lease->grants;
        const struct grant *saved = next ? next : now;
        bool in_force = now[KIND_SCHED].held || now[KIND_NICE].held;
        struct lease_record record = {
                .state = lease->ending ? LEASE_RECORD_ENDING
                         : !next       ? LEASE_RECORD_LIVE
                         : in_force    ? LEASE_RECORD_CHANGING
                                       : LEASE_RECORD_INTENT,
                .inode = lease->thread.inode,
                .start_time = lease->thread.start_time,
                .since_ms = lease->since_ms,
                .expires_ms = lease->expires_ms,
                .demoted_until_ms = lease->demoted_until_ms,
                .cap_permitted = lease->cap_permitted,
                .timing_ns = { lease->timing.period_ns, lease->timing.computation_ns,
                               lease->timing.deadline_ns },
                .connection = lease->connection ? connection_cookie(lease->connection) : 0,
                .pid = lease->thread.pid,
                .tid = lease->thread.tid,
                .uid = lease->uid,
                .gid = lease->creds.rgid,
                .quota_uid = lease->user->uid,
                .want = (saved[KIND_SCHED].held ? WIRE_WANT_SCHED : 0) |
                        (saved[KIND_NICE].held ? WIRE_WANT_NICE : 0) | resource_held(lease),
                .lifetime = lease->lifetime,
                .transport = lease->transport,
                .saved = values_to_record(&saved[KIND_SCHED].saved.sched,
                                          &saved[KIND_NICE].saved.nice),
                .set = values_to_record(&now[KIND_SCHED].set.sched, &now[KIND_NICE].set.nice),
                .next = values_to_record(&saved[KIND_SCHED].set.sched, &saved[KIND_NICE].set.nice),
        };

        memcpy(record.id, lease->id, sizeof(record.id));
        memcpy(record.role, lease->role, sizeof(record.role));
        memcpy(record.reason, lease->reason, sizeof(record.reason));
        lease_store_put(broker->store, lease->slot, &record);
}

void lease_describe(struct broker *broker, struct lease *lease, struct wire_lease *ret) {
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];
        const char *irq = "", *block = "";
        struct sched_values now = {};

        if (sched_read(lease->thread.tid, &now) >= 0 && !lease->ending &&
            lease->state == WIRE_LEASE_IN_FORCE &&
            (!grant_is_in_force(lease, lease->thread.tid, &now) || !resource_in_force(lease)))
                lease_check_changed(broker, lease);

        *ret = (struct wire_lease) {
                .pid = (uint64_t) lease->thread.pid,
                .tid = (uint64_t) lease->thread.tid,
                .since_ms = lease->since_ms,
                .expires_ms = lease->expires_ms,
                .period_ns = lease->timing.period_ns,
                .computation_ns = lease->timing.computation_ns,
                .deadline_ns = lease->timing.deadline_ns,
                .uid = lease->uid,
                .state = lease->state,
                .policy = (uint32_t) now.policy,
                .priority = now.priority,
                .nice = now.nice,
                .granted_want =
                        (sched->held ? WIRE_WANT_SCHED : 0) | (nice->held ? WIRE_WANT_NICE : 0) |
                        resource_held(lease),
                .granted_policy = (uint32_t) sched->set.sched.policy,
                .granted_priority = sched->set.sched.priority,
                .granted_nice = nice->set.nice.nice,
                .transport = lease->transport,
                .lifetime = lease->lifetime,
                .irq_priority = (int32_t) resource_held_value(lease, RESOURCE_IRQ, &irq),
                .memlock_bytes = (uint64_t) resource_held_value(lease, RESOURCE_MEMLOCK, NULL),
                .cpu_latency_us = (uint32_t) resource_held_value(lease, RESOURCE_CPU_LATENCY, NULL),
                .block_max_sectors_kb =
                        (uint32_t) resource_held_value(lease, RESOURCE_BLOCK_QUEUE, &block),
        };
        text_copy(ret->irq, sizeof(ret->irq), irq);
        text_copy(ret->block, sizeof(ret->block), block);
        memcpy(ret->id, lease->id, sizeof(ret->id));
        memcpy(ret->role, lease->role, sizeof(ret->role));
        memcpy(ret->reason, lease->reason, sizeof(ret->reason));
        proc_read_comm(lease->thread.pid, lease->thread.tid, ret->comm, sizeof(ret->comm));
}

void lease_id_to_string(const uint8_t id[WIRE_LEASE_ID_SIZE], char buffer[LEASE_ID_STRING_SIZE]) {
        for (size_t i = 0; i < WIRE_LEASE_ID_SIZE; i++)
                (void) snprintf(buffer + 2 * i, 3, "%02x", id[i]);
}
