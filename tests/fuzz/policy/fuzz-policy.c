/* SPDX-License-Identifier: MIT */

/* Feeds the reader any text: what it takes must be sound, and what it says must be readable. */

#include <glib.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what) {
        if (condition)
                return;

        g_printerr("not so: %s\n", what);
        abort();
}

#define REQUIRE(condition) require(condition, #condition)

static void check_messages(const char *messages) {
        const char *end;

        REQUIRE(messages);
        REQUIRE(g_utf8_validate(messages, -1, NULL));
        for (const char *s = messages; *s; s = end + 1) {
                end = strchr(s, '\n');
                REQUIRE(end);
                REQUIRE(g_str_has_prefix(s, "f:") || g_str_has_prefix(s, "and "));
                for (const char *c = s; c < end; c++)
                        REQUIRE(!g_ascii_iscntrl(*c) || *c == '\t');
        }
}

static void check_rules(const struct rule *rules, size_t n_rules, unsigned n_lines) {
        for (size_t i = 0; i < n_rules; i++) {
                REQUIRE(!rules[i].file == (rules[i].line == 0));
                REQUIRE(rules[i].line <= n_lines);
                REQUIRE(!rules[i].file || strcmp(rules[i].file, "f") == 0);
        }
}

static void check_role(const struct role *role, unsigned n_lines) {
        size_t length = strlen(role->name);

        REQUIRE(length >= 1 && length <= POLICY_ROLE_NAME_MAX);
        REQUIRE(role->description);
        REQUIRE(role->policies != 0);
        REQUIRE(role->policies < 8);
        REQUIRE(role->priority_min <= role->priority_max);
        REQUIRE(role->priority_max <= POLICY_PRIORITY_CEILING);
        REQUIRE((role->priority_min == 0) == (role->priority_max == 0));
        REQUIRE(role->priority_min >= 0);
        REQUIRE(role->nice_min >= -20 && role->nice_min <= 0);
        REQUIRE(role->threads_per_user_max >= 1);
        REQUIRE(role->lifetime_s_max >= 1);
        REQUIRE(role->declared_cpu_percent >= 1 && role->declared_cpu_percent <= 100);
        for (int i = 0; i < _RESOURCE_MAX; i++)
                REQUIRE(!role->resources[i].given ||
                        (role->resources[i].low >= 0 &&
                         role->resources[i].low <= role->resources[i].high));
        check_rules(role->rules, _ROLE_KEY_MAX, n_lines);
}

static void check_irq(const struct irq_rule *irq, unsigned n_lines) {
        REQUIRE(strlen(irq->name) >= 1);
        REQUIRE(strlen(irq->device) >= 1);
        REQUIRE(irq->priority >= 1 && irq->priority <= POLICY_PRIORITY_CEILING);
        check_rules(irq->rules, _IRQ_KEY_MAX, n_lines);
}

static void check_policy(const struct policy *policy, unsigned n_lines) {
        REQUIRE(policy->n_roles >= 1 && policy->n_roles <= POLICY_ROLES_MAX);
        REQUIRE(policy->default_role < policy->n_roles);
        REQUIRE(policy->threads_max >= 1);
        REQUIRE(policy->threads_per_user_max >= 1);
        REQUIRE(policy->connections_max >= 1);
        REQUIRE(policy->connections_per_user_max >= 1);
        REQUIRE(policy->grant_burst >= 1);
        REQUIRE(policy->grant_refill_ms >= 1);
        REQUIRE(policy->message_burst >= 1);
        REQUIRE(policy->message_refill_us >= 1);
        check_rules(policy->rules, _BROKER_KEY_MAX, n_lines);
        for (size_t i = 0; i < policy->n_roles; i++)
                check_role(&policy->roles[i], n_lines);
        REQUIRE(policy->n_irqs <= POLICY_IRQS_MAX);
        for (size_t i = 0; i < policy->n_irqs; i++)
                check_irq(&policy->irqs[i], n_lines);
}

static void check_entries(const struct policy_store *store) {
        struct policy_entry entry;
        size_t n = 0;

        for (; policy_store_entry(store, n, &entry); n++)
                REQUIRE(g_utf8_validate(entry.section, -1, NULL) && strlen(entry.key) > 0 &&
                        g_utf8_validate(entry.value, -1, NULL));
        REQUIRE(n == _BROKER_KEY_MAX + store->policy.n_roles * _ROLE_KEY_MAX +
                             store->policy.n_irqs * _IRQ_KEY_MAX);
}

static void check_decisions(const struct policy *policy, const uint8_t *data, size_t size) {
        const gid_t gids[] = { 0, data[0] };
        unsigned held[POLICY_ROLES_MAX] = { 0 };
        struct situation now = {
                .uid = data[size - 1],
                .gids = gids,
                .n_gids = G_N_ELEMENTS(gids),
                .rt_possible = true,
                .threads_held_by_role = held,
                .grant_tokens = 1,
        };

        for (int priority = 1; priority <= 99; priority++) {
                struct request request = {
                        .wants_sched = true,
                        .policy = data[0] & 1 ? SCHED_FIFO : SCHED_RR,
                        .priority = priority,
                        .clamp = data[0] & 2,
                };
                struct decision d = policy_evaluate(policy, &now, &request);

                if (d.verdict == VERDICT_GRANT)
                        REQUIRE(d.priority <= priority && d.priority >= d.role->priority_min &&
                                d.priority <= d.role->priority_max);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct policy_store *store = NULL;
        char *messages = NULL;
        unsigned n_lines = 1;
        int r;

        r = policy_store_parse("f", (const char *) data, size, &store, &messages);
        check_messages(messages);
        REQUIRE((r < 0) == !store);
        REQUIRE(r == 0 || strlen(messages) > 0);

        if (store) {
                for (size_t i = 0; i < size; i++)
                        n_lines += data[i] == '\n';
                check_policy(&store->policy, n_lines);
                check_entries(store);
                check_decisions(&store->policy, data, size);
        }

        policy_store_free(store);
        free(messages);
        return 0;
}
