/* SPDX-License-Identifier: MIT */

#include "broker/broker1-replies.h"

#include <sched.h>

#include "broker/broker1-values.h"
#include "broker/cleanup.h"
#include "broker/lease.h"

static const char *policy_to_string(uint32_t policy) {
        for (const struct word *word = values_policies; word->word; word++)
                if (word->number == policy)
                        return word->word;
        return "unknown";
}

/* Each pair is one call, and the first error ends the row. */
#define PAIR(type, key, value) \
        if (r >= 0)            \
        r = sd_bus_message_append(message, "{sv}", key, type, value)

static const char *rung_to_string(uint32_t rung) {
        static const char *const words[] = {
                [WIRE_RUNG_AS_ASKED] = "as-asked",
                [WIRE_RUNG_RR] = "rr",
                [WIRE_RUNG_NICE] = "nice",
        };

        return rung < ELEMENTS(words) ? words[rung] : "unknown";
}

static int append_answer(sd_bus_message *message, const struct wire_answer *answer) {
        char id[LEASE_ID_STRING_SIZE];
        int r;

        lease_id_to_string(answer->id, id);
        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "id", answer->flags & WIRE_ANSWER_DRY_RUN ? "" : id);
        PAIR("t", "pid", answer->pid);
        PAIR("t", "tid", answer->tid);
        PAIR("s", "role", answer->role);
        PAIR("s", "policy", policy_to_string(answer->policy));
        PAIR("i", "priority", answer->priority);
        PAIR("i", "nice", answer->nice);
        PAIR("b", "reset-on-fork", (int) answer->reset_on_fork);
        PAIR("s", "previous-policy", policy_to_string(answer->previous_policy));
        PAIR("i", "previous-priority", answer->previous_priority);
        PAIR("i", "previous-nice", answer->previous_nice);
        PAIR("b", "clamped", (answer->flags & WIRE_ANSWER_CLAMPED) != 0);
        PAIR("b", "dry-run", (answer->flags & WIRE_ANSWER_DRY_RUN) != 0);
        PAIR("b", "updated", (answer->flags & WIRE_ANSWER_UPDATED) != 0);
        PAIR("s", "note", answer->flags & WIRE_ANSWER_NOTED ? answer->explanation.text : "");
        PAIR("t", "memlock-bytes", answer->memlock_bytes);
        PAIR("t", "memlock-locked", answer->memlock_locked);
        PAIR("u", "cpu-latency-us", answer->cpu_latency_us);
        PAIR("u", "block-max-sectors-kb", answer->block_max_sectors_kb);
        PAIR("i", "irq-priority", answer->irq_priority);
        PAIR("s", "rung", rung_to_string(answer->rung));
        PAIR("s", "text", answer->explanation.text);
        PAIR("s", "rule", answer->explanation.rule);
        PAIR("x", "asked", answer->explanation.asked);
        PAIR("x", "limit", answer->explanation.limit);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static const char *step_to_string(const struct wire_step *step) {
        return step->reason != REASON_NONE       ? reason_to_string((enum reason) step->reason)
               : step->flags & WIRE_STEP_ASK     ? "asks-polkit"
               : step->flags & WIRE_STEP_CLAMPED ? "lowered"
                                                 : "passed";
}

static int append_step(sd_bus_message *message, const struct wire_step *step) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "role", step->role);
        PAIR("s", "rule", step->rule);
        PAIR("s", "says", step_to_string(step));
        PAIR("x", "asked", step->asked);
        PAIR("x", "limit", step->limit);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_steps(sd_bus_message *message, const struct wire_why_reply *why) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < why->n_steps; i++)
                r = append_step(message, &why->steps[i]);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_offer(sd_bus_message *message, const struct wire_offer *offer) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "role", offer->role);
        PAIR("s", "refusal", offer->reason == REASON_NONE
                                     ? ""
                                     : reason_to_string((enum reason) offer->reason));
        PAIR("b", "fifo", (offer->policies & 1U << SCHED_FIFO) != 0);
        PAIR("b", "rr", (offer->policies & 1U << SCHED_RR) != 0);
        PAIR("b", "other", (offer->policies & 1U << SCHED_OTHER) != 0);
        PAIR("i", "priority-min", offer->priority_min);
        PAIR("i", "priority-max", offer->priority_max);
        PAIR("i", "nice-min", offer->nice_min);
        PAIR("u", "threads-held", offer->threads_held);
        PAIR("u", "threads-max", offer->threads_max);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_offers(sd_bus_message *message, const struct wire_hello_reply *hello) {
        int r;

        r = sd_bus_message_open_container(message, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(message, "s", "offers");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'v', "aa{sv}");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < hello->n_offers; i++)
                r = append_offer(message, &hello->offers[i]);
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(message);
        return r;
}

static int append_hello(sd_bus_message *message, const struct wire_hello_reply *hello) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "version", hello->version);
        PAIR("u", "uid", hello->uid);
        PAIR("t", "pid", hello->pid);
        PAIR("b", "admin", (hello->state & WIRE_STATE_ADMIN) != 0);
        PAIR("b", "degraded", (hello->state & WIRE_STATE_DEGRADED) != 0);
        PAIR("b", "old-kernel", (hello->state & WIRE_STATE_OLD_KERNEL) != 0);
        PAIR("s", "policy-error", hello->policy_error);
        PAIR("u", "policy-generation", hello->policy_generation);
        PAIR("u", "leases", hello->n_leases);
        PAIR("u", "leases-own", hello->n_leases_own);
        PAIR("u", "leases-max", hello->n_leases_max);
        PAIR("u", "users", hello->n_users);
        PAIR("t", "started-ms", hello->started_ms);
        if (r >= 0)
                r = append_offers(message, hello);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static const char *state_to_string(uint32_t state) {
        static const char *const words[] = {
                [WIRE_LEASE_IN_FORCE] = "in-force",
                [WIRE_LEASE_CHANGED] = "changed",
                [WIRE_LEASE_DEMOTED] = "demoted",
        };

        return state < ELEMENTS(words) ? words[state] : "unknown";
}

static int append_pairs_of_lease(sd_bus_message *message, const struct wire_lease *lease) {
        char id[LEASE_ID_STRING_SIZE];
        int r = 0;

        lease_id_to_string(lease->id, id);
        PAIR("s", "id", id);
        PAIR("u", "uid", lease->uid);
        PAIR("t", "pid", lease->pid);
        PAIR("t", "tid", lease->tid);
        PAIR("s", "name", lease->comm);
        PAIR("s", "role", lease->role);
        PAIR("s", "reason", lease->reason);
        PAIR("s", "state", state_to_string(lease->state));
        PAIR("s", "policy", policy_to_string(lease->policy));
        PAIR("i", "priority", lease->priority);
        PAIR("i", "nice", lease->nice);
        PAIR("s", "granted-policy", policy_to_string(lease->granted_policy));
        PAIR("i", "granted-priority", lease->granted_priority);
        PAIR("i", "granted-nice", lease->granted_nice);
        PAIR("s", "lifetime", lease->lifetime <= WIRE_LIFETIME_SECONDS
                                      ? values_lifetimes[lease->lifetime].word
                                      : "unknown");
        PAIR("t", "since-ms", lease->since_ms);
        PAIR("t", "expires-ms", lease->expires_ms);
        PAIR("t", "period-ns", lease->period_ns);
        PAIR("t", "computation-ns", lease->computation_ns);
        PAIR("t", "deadline-ns", lease->deadline_ns);
        PAIR("t", "memlock-bytes", lease->memlock_bytes);
        PAIR("u", "cpu-latency-us", lease->cpu_latency_us);
        PAIR("s", "irq", lease->irq);
        PAIR("i", "irq-priority", lease->irq_priority);
        PAIR("s", "block", lease->block);
        PAIR("u", "block-max-sectors-kb", lease->block_max_sectors_kb);
        return r;
}

static int append_lease(sd_bus_message *message, const struct wire_lease *lease) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        if (r >= 0)
                r = append_pairs_of_lease(message, lease);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

int values_append_event(sd_bus_message *message, const struct wire_event *event) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        if (r >= 0)
                r = append_pairs_of_lease(message, &event->lease);
        PAIR("t", "lost", event->n_lost);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_list(sd_bus_message *message, const struct wire_list_reply *list) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < list->n_leases; i++)
                r = append_lease(message, &list->leases[i]);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_append(message, "t", list->next);
}

static int append_policy(sd_bus_message *message, const struct wire_policy_reply *policy) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "(ssss)");
        for (uint32_t i = 0; r >= 0 && i < policy->n_entries; i++)
                r = sd_bus_message_append(message, "(ssss)", policy->entries[i].section,
                                          policy->entries[i].key, policy->entries[i].value,
                                          policy->entries[i].origin);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_append(message, "t", policy->next);
}

int values_append_reply(sd_bus_message *message, enum wire_verb verb,
                        const union wire_response *response) {
        switch (verb) {
        case WIRE_HELLO:
                return append_hello(message, &response->hello);
        case WIRE_LIST:
                return append_list(message, &response->list);
        case WIRE_POLICY:
                return append_policy(message, &response->policy);
        case WIRE_WHY:
                return append_steps(message, &response->why);
        case WIRE_WATCH:
                return sd_bus_message_append(message, "a{sv}", 0);
        case WIRE_RELOAD:
        case WIRE_RESTORE_ALL:
                return sd_bus_message_append(message, "a{sv}", 1, "count", "u",
                                             response->answer.count);
        default:
                return append_answer(message, &response->answer);
        }
}
