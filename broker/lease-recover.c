/* SPDX-License-Identifier: MIT */

#include "broker/lease-recover.h"

#include <string.h>

#include "broker/broker.h"
#include "broker/connection.h"
#include "broker/grant.h"
#include "broker/guard/act.h"
#include "broker/ids.h"
#include "broker/kinds/rttime.h"
#include "broker/server.h"

static bool policy_is_known(int policy) {
        return policy == SCHED_OTHER || policy == SCHED_FIFO || policy == SCHED_RR ||
               policy == SCHED_BATCH || policy == SCHED_IDLE || policy == SCHED_POLICY_DEADLINE ||
               policy == SCHED_POLICY_EXT;
}

static bool values_are_sound(const struct lease_record_values *values, int priority_max) {
        return policy_is_known(values->policy) && values->priority >= 0 &&
               values->priority <= priority_max &&
               sched_is_rt(values->policy) == (values->priority != 0) && values->nice >= -20 &&
               values->nice <= 19 && values->nice_kind >= -20 && values->nice_kind <= 19;
}

static bool record_is_sound(const struct lease_record *record) {
        pid_t pid, tid;

        return (record->state == LEASE_RECORD_INTENT || record->state == LEASE_RECORD_LIVE ||
                record->state == LEASE_RECORD_CHANGING || record->state == LEASE_RECORD_ENDING) &&
               record->pid > 0 && record->tid > 0 && id_parse((uint64_t) record->pid, &pid) >= 0 &&
               id_parse((uint64_t) record->tid, &tid) >= 0 && record->want != 0 &&
               (record->want & ~(uint32_t) WIRE_WANT_ALL) == 0 &&
               record->lifetime <= WIRE_LIFETIME_SECONDS &&
               record->transport <= WIRE_TRANSPORT_REALTIMEKIT &&
               memchr(record->role, '\0', sizeof(record->role)) &&
               memchr(record->reason, '\0', sizeof(record->reason)) &&
               values_are_sound(&record->saved, 99) &&
               values_are_sound(&record->set, POLICY_PRIORITY_CEILING) &&
               values_are_sound(&record->next, POLICY_PRIORITY_CEILING);
}

static union kind_values values_from_record(const struct lease_record_values *values,
                                            enum kind_index kind) {
        union kind_values ret = {};

        if (kind == KIND_NICE) {
                ret.nice.nice = values->nice_kind;
                ret.nice.reset_on_fork = values->nice_reset_on_fork;
                return ret;
        }

        ret.sched = (struct sched_values) {
                .policy = values->policy,
                .priority = values->priority,
                .nice = values->nice,
                .reset_on_fork = values->reset_on_fork,
                .runtime_ns = values->runtime_ns,
                .deadline_ns = values->deadline_ns,
                .period_ns = values->period_ns,
                .other_flags = values->other_flags,
        };
        return ret;
}

static void read_grants(const struct lease_record *record, const struct lease_record_values *set,
                        struct grant grants[_KIND_MAX]) {
        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                uint32_t want = kind == KIND_SCHED ? WIRE_WANT_SCHED : WIRE_WANT_NICE;

                grants[kind] = (struct grant) {
                        .held = record->want & want,
                        .saved = values_from_record(&record->saved, kind),
                        .set = values_from_record(set, kind),
                };
        }
}

static struct lease *lease_from_record(struct broker *broker, unsigned slot,
                                       const struct lease_record *record) {
        struct lease *lease;
        struct user *user;

        user = user_get(&broker->users, broker_policy(broker), record->quota_uid,
                        broker_now_us(broker));
        lease = user ? calloc(1, sizeof(*lease)) : NULL;
        if (!lease)
                return NULL;

        memcpy(lease->id, record->id, sizeof(lease->id));
        memcpy(lease->role, record->role, sizeof(lease->role));
        memcpy(lease->reason, record->reason, sizeof(lease->reason));
        lease->broker = broker;
        lease->user = user;
        lease->uid = record->uid;
        lease->thread = THREAD_NONE;
        lease->cap_permitted = record->cap_permitted;
        lease->timing =
                (struct timing) { record->timing_ns[0], record->timing_ns[1], record->timing_ns[2] };
        lease->lifetime = record->lifetime;
        lease->transport = record->transport;
        lease->since_ms = record->since_ms;
        lease->demoted_until_ms = record->demoted_until_ms;
        lease->slot = slot;

        read_grants(record, record->state == LEASE_RECORD_LIVE ? &record->set : &record->next,
                    lease->grants);
        return lease;
}

static bool is_same_thread(const struct thread *thread, const struct lease_record *record) {
        if (record->inode != 0 && thread->inode != 0)
                return record->inode == thread->inode;

        return record->start_time != 0 && record->start_time == thread->start_time;
}

/* Half-way through a change: whichever of the two is in force is what the lease holds. */
static void settle_change(struct lease *lease, const struct lease_record *record) {
        struct grant grants[_KIND_MAX];
        struct sched_values now;

        if (record->state != LEASE_RECORD_CHANGING || grant_verify(lease) == 1)
                return;

        memcpy(grants, lease->grants, sizeof(grants));
        read_grants(record, &record->set, lease->grants);
        if (sched_read(lease->thread.tid, &now) < 0 ||
            !(grant_is_in_force(lease, lease->thread.tid, &now) || grant_remains(lease, &now)))
                memcpy(lease->grants, grants, sizeof(grants));
}

static const char *why_not_adopted(const struct broker *broker, const struct lease *lease,
                                   const struct lease_record *record,
                                   const struct connection *connection) {
        if (record->state == LEASE_RECORD_INTENT)
                return "the broker was killed while it made this grant";
        if (record->state == LEASE_RECORD_ENDING)
                return "the broker was killed while it ended this lease";
        if (record->lifetime == WIRE_LIFETIME_CONNECTION &&
            (connection ? connection_peer(connection)->uid != record->uid
                        : record->transport != WIRE_TRANSPORT_SOCKET))
                return "its connection ended with the broker before this one";
        if (record->lifetime == WIRE_LIFETIME_SECONDS && record->expires_ms <= broker_now_ms())
                return "its time was over";
        if (lease->creds.ruid != record->uid || lease->creds.euid != record->uid ||
            lease->creds.suid != record->uid)
                return "its thread runs as another user";
        if (!policy_find_role(broker_policy(broker), record->role, NULL))
                return "its role is no more";

        return NULL;
}

/* Out of memory: nobody would know of the lease any more, so what it gave must not stay either. */
static void restore_without_lease(struct broker *broker, const struct lease_record *record) {
        struct lease lease = { .broker = broker, .thread = THREAD_NONE };

        if (thread_open(&broker->kernel, record->pid, record->tid, &lease.thread, &lease.creds) < 0)
                return;

        if (is_same_thread(&lease.thread, record)) {
                read_grants(record,
                            record->state == LEASE_RECORD_LIVE ? &record->set : &record->next,
                            lease.grants);
                settle_change(&lease, record);
                grant_restore(broker, &lease);
        }
        thread_close(&lease.thread);
}

static void recover_slot(struct broker *broker, unsigned slot, const struct lease_record *from,
                         struct lease_recovery *recovery) {
        const struct lease_record record = *from;
        struct connection *connection = NULL;
        const struct role *role;
        struct lease *lease;
        const char *text;

        if (!record_is_sound(&record)) {
                lease_store_clear(broker->store, slot);
                recovery->n_damaged++;
                return;
        }

        lease = lease_from_record(broker, slot, &record);
        if (!lease) {
                restore_without_lease(broker, &record);
                lease_store_clear(broker->store, slot);
                recovery->n_restored++;
                return;
        }
        if (thread_open(&broker->kernel, record.pid, record.tid, &lease->thread, &lease->creds) <
                    0 ||
            !is_same_thread(&lease->thread, &record)) {
                (void) lease_free(broker, lease);
                recovery->n_ended++;
                return;
        }

        settle_change(lease, &record);
        role = policy_find_role(broker_policy(broker), record.role, &lease->role_index);
        if (role)
                lease_set_role(broker, lease, role);
        if (lease_add(broker, lease) < 0) {
                grant_restore(broker, lease);
                (void) lease_free(broker, lease);
                recovery->n_restored++;
                return;
        }

        guard_act_resume(broker, lease);
        if (record.lifetime == WIRE_LIFETIME_CONNECTION && record.connection != 0)
                connection = server_find(broker->server, record.connection);
        text = why_not_adopted(broker, lease, &record, connection);
        if (text) {
                lease_end(broker, lease, REASON_RESTART, text);
                recovery->n_restored++;
                return;
        }
        if (record.lifetime == WIRE_LIFETIME_SECONDS) {
                (void) lease_set_expiry(
                        broker, lease,
                        (unsigned) ((record.expires_ms - broker_now_ms()) / 1000 + 1),
                        broker_now_ms());
                /* rounded up for the timer, but not once more by each successor */
                lease->expires_ms = record.expires_ms;
        }
        if (connection)
                lease_bind(lease, connection);
        else if (record.lifetime == WIRE_LIFETIME_CONNECTION && lease_orphan(broker, lease) < 0) {
                lease_end(broker, lease, REASON_RESTART, "no timer could be set for its client");
                recovery->n_restored++;
                return;
        }
        lease_save(broker, lease, NULL);
        recovery->n_adopted++;
}

void lease_recover(struct broker *broker, struct lease_recovery *ret) {
        struct lease_recovery recovery = {};
        struct lease *lease;

        for (unsigned slot = 0; slot < lease_store_n_slots(broker->store); slot++) {
                const struct lease_record *record = lease_store_get(broker->store, slot);

                if (record && record->state != LEASE_RECORD_RESOURCE)
                        recover_slot(broker, slot, record, &recovery);
        }
        /* and what they hold, now that it is known which of them go on */
        for (unsigned slot = 0; slot < lease_store_n_slots(broker->store); slot++) {
                const struct lease_record *record = lease_store_get(broker->store, slot);

                if (record && record->state == LEASE_RECORD_RESOURCE)
                        (void) resource_recover(broker, slot, record);
        }
        resource_recovered(broker);
        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq)
                rttime_supervise(broker, lease);

        *ret = recovery;
}
