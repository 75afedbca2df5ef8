/* SPDX-License-Identifier: MIT */

/* Prints where each field of the wire lies, one "RECORD FIELD OFFSET SIZE" a line, for wire.py. */

#include <stddef.h>
#include <stdio.h>

#include "client/protocol.h"
#include "policy/reason.h"

#define RECORD(record) printf("record %s %zu\n", #record, sizeof(struct wire_##record))
#define FIELD(record, field)                                                                      \
        printf("field %s %s %zu %zu\n", #record, #field, offsetof(struct wire_##record, field),   \
               sizeof(((struct wire_##record *) NULL)->field))
#define NUMBER(name) printf("number %s %d\n", #name, (int) WIRE_##name)

static void print_requests(void) {
        RECORD(header);
        FIELD(header, size), FIELD(header, version), FIELD(header, verb), FIELD(header, serial);

        RECORD(hello);
        FIELD(hello, flags);

        RECORD(acquire);
        FIELD(acquire, flags), FIELD(acquire, pid), FIELD(acquire, tid), FIELD(acquire, want);
        FIELD(acquire, policy), FIELD(acquire, priority), FIELD(acquire, nice);
        FIELD(acquire, lifetime), FIELD(acquire, lifetime_s);
        FIELD(acquire, role), FIELD(acquire, reason);
        FIELD(acquire, period_ns), FIELD(acquire, computation_ns), FIELD(acquire, deadline_ns);
        FIELD(acquire, memlock_bytes), FIELD(acquire, cpu_latency_us);
        FIELD(acquire, block_max_sectors_kb), FIELD(acquire, irq_priority);
        FIELD(acquire, padding), FIELD(acquire, irq), FIELD(acquire, block);
        FIELD(acquire, feeds_tid), FIELD(acquire, relative), FIELD(acquire, padding2);
        FIELD(acquire, feeds), FIELD(acquire, pidfd_inode);

        RECORD(update);
        FIELD(update, id), FIELD(update, flags), FIELD(update, want), FIELD(update, policy);
        FIELD(update, priority), FIELD(update, nice);
        FIELD(update, period_ns), FIELD(update, computation_ns), FIELD(update, deadline_ns);

        RECORD(lease_ref);
        FIELD(lease_ref, id), FIELD(lease_ref, lifetime_s), FIELD(lease_ref, padding);

        RECORD(plain);

        RECORD(list);
        FIELD(list, flags), FIELD(list, after);

        RECORD(observe);
        FIELD(observe, flags), FIELD(observe, cpu), FIELD(observe, padding);

        RECORD(occupants);
        FIELD(occupants, from_ns), FIELD(occupants, to_ns);
}

static void print_replies(void) {
        RECORD(explanation);
        FIELD(explanation, asked), FIELD(explanation, limit), FIELD(explanation, retry_after_ms);
        FIELD(explanation, padding), FIELD(explanation, rule), FIELD(explanation, text);
        FIELD(explanation, help);

        RECORD(answer);
        FIELD(answer, reason), FIELD(answer, flags), FIELD(answer, id), FIELD(answer, pid);
        FIELD(answer, tid), FIELD(answer, policy), FIELD(answer, priority), FIELD(answer, nice);
        FIELD(answer, reset_on_fork), FIELD(answer, previous_policy);
        FIELD(answer, previous_priority), FIELD(answer, previous_nice);
        FIELD(answer, count), FIELD(answer, role);
        FIELD(answer, memlock_bytes), FIELD(answer, memlock_locked);
        FIELD(answer, cpu_latency_us), FIELD(answer, block_max_sectors_kb);
        FIELD(answer, irq_priority), FIELD(answer, granted_want), FIELD(answer, rung);
        FIELD(answer, padding), FIELD(answer, explanation);

        RECORD(offer);
        FIELD(offer, role), FIELD(offer, reason), FIELD(offer, policies);
        FIELD(offer, priority_min), FIELD(offer, priority_max), FIELD(offer, nice_min);
        FIELD(offer, threads_held), FIELD(offer, threads_max), FIELD(offer, padding);

        RECORD(hello_reply);
        FIELD(hello_reply, reason), FIELD(hello_reply, state), FIELD(hello_reply, features);
        FIELD(hello_reply, kinds), FIELD(hello_reply, uid), FIELD(hello_reply, pid);
        FIELD(hello_reply, n_leases), FIELD(hello_reply, n_users);
        FIELD(hello_reply, n_leases_own), FIELD(hello_reply, n_leases_max);
        FIELD(hello_reply, n_connections), FIELD(hello_reply, policy_generation);
        FIELD(hello_reply, started_ms), FIELD(hello_reply, version);
        FIELD(hello_reply, policy_error), FIELD(hello_reply, n_offers);
        FIELD(hello_reply, offer_size), FIELD(hello_reply, offers);
        FIELD(hello_reply, back_off_ms), FIELD(hello_reply, n_users_in_back_off);
}

static void print_listings(void) {
        RECORD(lease);
        FIELD(lease, id), FIELD(lease, pid), FIELD(lease, tid);
        FIELD(lease, since_ms), FIELD(lease, expires_ms);
        FIELD(lease, period_ns), FIELD(lease, computation_ns), FIELD(lease, deadline_ns);
        FIELD(lease, uid), FIELD(lease, state), FIELD(lease, policy), FIELD(lease, priority);
        FIELD(lease, nice), FIELD(lease, granted_want), FIELD(lease, granted_policy);
        FIELD(lease, granted_priority), FIELD(lease, granted_nice);
        FIELD(lease, transport), FIELD(lease, lifetime), FIELD(lease, irq_priority);
        FIELD(lease, memlock_bytes), FIELD(lease, cpu_latency_us);
        FIELD(lease, block_max_sectors_kb);
        FIELD(lease, comm), FIELD(lease, role), FIELD(lease, reason);
        FIELD(lease, irq), FIELD(lease, block);

        RECORD(list_reply);
        FIELD(list_reply, reason), FIELD(list_reply, n_leases), FIELD(list_reply, next);
        FIELD(list_reply, lease_size), FIELD(list_reply, padding), FIELD(list_reply, leases);

        RECORD(step);
        FIELD(step, role), FIELD(step, rule), FIELD(step, reason), FIELD(step, flags);
        FIELD(step, asked), FIELD(step, limit);

        RECORD(why_reply);
        FIELD(why_reply, reason), FIELD(why_reply, n_steps), FIELD(why_reply, step_size);
        FIELD(why_reply, padding), FIELD(why_reply, steps);

        RECORD(policy_entry);
        FIELD(policy_entry, section), FIELD(policy_entry, key);
        FIELD(policy_entry, value), FIELD(policy_entry, origin);

        RECORD(policy_reply);
        FIELD(policy_reply, reason), FIELD(policy_reply, n_entries), FIELD(policy_reply, next);
        FIELD(policy_reply, policy_generation), FIELD(policy_reply, entry_size);
        FIELD(policy_reply, entries);

        RECORD(occupant);
        FIELD(occupant, ns), FIELD(occupant, comm);

        RECORD(occupants_reply);
        FIELD(occupants_reply, reason), FIELD(occupants_reply, n_occupants);
        FIELD(occupants_reply, since_ns), FIELD(occupants_reply, until_ns);
        FIELD(occupants_reply, occupant_size), FIELD(occupants_reply, padding);
        FIELD(occupants_reply, occupants);

        RECORD(event);
        FIELD(event, kind), FIELD(event, reason), FIELD(event, n_lost), FIELD(event, lease);
        FIELD(event, text);
}

static void print_numbers(void) {
        NUMBER(VERSION), NUMBER(RECORD_MAX);
        NUMBER(HELLO), NUMBER(ACQUIRE), NUMBER(UPDATE), NUMBER(RENEW), NUMBER(RELEASE);
        NUMBER(LIST), NUMBER(WATCH), NUMBER(REVOKE), NUMBER(RELOAD), NUMBER(RESTORE_ALL);
        NUMBER(POLICY), NUMBER(WHY), NUMBER(OBSERVE), NUMBER(OCCUPANTS), NUMBER(REPLY), NUMBER(EVENT);
        NUMBER(WANT_SCHED), NUMBER(WANT_NICE), NUMBER(WANT_MEMLOCK), NUMBER(WANT_CPU_LATENCY);
        NUMBER(WANT_IRQ), NUMBER(WANT_BLOCK_QUEUE);
        NUMBER(LIFETIME_THREAD), NUMBER(LIFETIME_CONNECTION), NUMBER(LIFETIME_SECONDS);
        NUMBER(ACQUIRE_DRY_RUN), NUMBER(ACQUIRE_CLAMP), NUMBER(ACQUIRE_PIDFD);
        NUMBER(ACQUIRE_RELATIVE), NUMBER(ACQUIRE_OR_LESS);
        NUMBER(HELLO_ADMIN), NUMBER(LIST_ALL);
        NUMBER(ANSWER_CLAMPED), NUMBER(ANSWER_DRY_RUN), NUMBER(ANSWER_UPDATED),
                NUMBER(ANSWER_NOTED);
        NUMBER(STATE_DEGRADED), NUMBER(STATE_ADMIN), NUMBER(STATE_POLICY_BROKEN);
        NUMBER(STATE_OLD_KERNEL);
        NUMBER(LEASE_IN_FORCE), NUMBER(LEASE_CHANGED), NUMBER(LEASE_DEMOTED);
        NUMBER(EVENT_GRANTED), NUMBER(EVENT_UPDATED), NUMBER(EVENT_ENDED), NUMBER(EVENT_REVOKED);
        NUMBER(EVENT_CHANGED), NUMBER(EVENT_LOWERED);
        NUMBER(OFFERS_MAX), NUMBER(LEASES_MAX), NUMBER(POLICY_ENTRIES_MAX), NUMBER(STEPS_MAX);
        NUMBER(OCCUPANTS_MAX), NUMBER(OBSERVE_MAY_ASK);
}

static void print_reasons(void) {
#define X(symbol, number, word) printf("reason %s %d %s\n", #symbol, number, word);
        REASONS(X)
#undef X
}

static int run(void) {
        print_requests();
        print_replies();
        print_listings();
        print_numbers();
        print_reasons();
        return 0;
}

int main(void) {
        return run();
}
