/* SPDX-License-Identifier: MIT */

#include <assert.h>
#include <sched.h>
#include <string.h>

#include "policy/reader/book.h"

static const struct rule built_in = { .file = NULL };

static void set_defaults(struct policy_store *store, struct section *section) {
        struct report report;

        report_init(&report);
        for (size_t i = 0; i < section->n_keys; i++)
                book_set(store, section, &section->keys[i], section->keys[i].fallback, built_in,
                         &report);
        assert(report.n_messages == 0);
        report_done(&report);
}

static struct section *add_section(struct policy_store *store, struct section section) {
        struct policy_book *book = store->book;
        struct section *added = &book->sections[book->n_sections++];

        *added = section;
        set_defaults(store, added);
        return added;
}

struct policy_store *book_open(void) {
        struct policy_store *store = g_new0(struct policy_store, 1);
        struct policy_book *book = g_new0(struct policy_book, 1);

        book->strings = g_string_chunk_new(1024);
        book->blocks = g_ptr_array_new_with_free_func(g_free);
        store->book = book;
        store->policy.roles = book->roles;
        store->policy.irqs = book->irqs;

        add_section(store, (struct section) {
                .title = "Broker",
                .keys = broker_keys,
                .n_keys = _BROKER_KEY_MAX,
                .base = &store->policy,
                .rules = store->policy.rules,
        });
        return store;
}

struct section *book_find_section(const struct policy_store *store, const char *title,
                                  size_t length) {
        struct policy_book *book = store->book;

        for (size_t i = 0; i < book->n_sections; i++)
                if (strlen(book->sections[i].title) == length &&
                    memcmp(book->sections[i].title, title, length) == 0)
                        return &book->sections[i];

        return NULL;
}

struct section *book_add_role(struct policy_store *store, const char *name, size_t length) {
        g_autofree char *title = g_strdup_printf("Role %.*s", (int) length, name);
        struct policy_book *book = store->book;
        struct role *role;

        if (store->policy.n_roles == POLICY_ROLES_MAX)
                return NULL;

        role = &book->roles[store->policy.n_roles++];
        role->name = g_string_chunk_insert_len(book->strings, name, (gssize) length);

        return add_section(store, (struct section) {
                .title = g_string_chunk_insert(book->strings, title),
                .keys = role_keys,
                .n_keys = _ROLE_KEY_MAX,
                .base = role,
                .rules = role->rules,
        });
}

struct section *book_add_irq(struct policy_store *store, const char *name, size_t length) {
        g_autofree char *title = g_strdup_printf("Irq %.*s", (int) length, name);
        struct policy_book *book = store->book;
        struct irq_rule *irq;

        if (store->policy.n_irqs == POLICY_IRQS_MAX)
                return NULL;

        irq = &book->irqs[store->policy.n_irqs++];
        irq->name = g_string_chunk_insert_len(book->strings, name, (gssize) length);

        return add_section(store, (struct section) {
                .title = g_string_chunk_insert(book->strings, title),
                .keys = irq_keys,
                .n_keys = _IRQ_KEY_MAX,
                .base = irq,
                .rules = irq->rules,
        });
}

void book_set(struct policy_store *store, struct section *section, const struct key *key,
              const char *value, struct rule at, struct report *report) {
        struct policy_book *book = store->book;
        size_t index = (size_t) (key - section->keys);
        struct value_context context = {
                .report = report,
                .strings = book->strings,
                .blocks = book->blocks,
                .key = key,
                .at = at,
        };

        if (!key->parse(&context, value, section->base))
                return;

        section->values[index] = g_string_chunk_insert_const(book->strings, value);
        section->rules[index] = at;
}

static const char *suggest_role(const struct policy *policy, const char *name) {
        for (size_t i = 0; i < policy->n_roles; i++)
                if (edit_distance(policy->roles[i].name, strlen(policy->roles[i].name), name,
                                  strlen(name)) <= 2)
                        return policy->roles[i].name;

        return NULL;
}

/* A key of [Broker] that names a role; @fallback is the index of the one that it means if empty. */
static bool check_role_key(struct policy_store *store, enum broker_key key, size_t fallback,
                           size_t *ret_index, struct report *report) {
        struct policy *policy = &store->policy;
        struct section *broker = &store->book->sections[0];
        const char *name = broker->values[key], *near;

        if (name[0] == '\0') {
                *ret_index = fallback;
                broker->values[key] = policy->roles[fallback].name;
                return true;
        }
        if (policy_find_role(policy, name, ret_index))
                return true;

        near = suggest_role(policy, name);
        report_fault(report, policy->rules[key], "%s=%s: there is no [Role %s]%s%s%s",
                     broker->keys[key].name, name, name, near ? ", did you mean " : "",
                     near ? near : "", near ? "?" : "");
        return false;
}

/* Its clients ask for a priority and cannot say by which policy. */
static void check_realtimekit(const struct policy *policy, struct report *report) {
        const struct role *role = &policy->roles[policy->realtimekit_role];
        const struct rule *rule = &policy->rules[BROKER_KEY_REALTIMEKIT_ROLE];

        if (!rule->file)
                return;
        if (role->priority_max == 0 || !(role->policies & 1U << policy->realtimekit_policy))
                report_warning(report, *rule,
                               "RealtimeKitRole=%s gives RealtimeKit's clients only nice: the "
                               "role has no priorities by RealtimeKitPolicy=%s", role->name,
                               policy->realtimekit_policy == SCHED_FIFO ? "fifo" : "rr");
}

static void check_bands(const struct role *role, const struct role *other,
                        struct report *report) {
        const struct rule *rule = &role->rules[ROLE_KEY_PRIORITY];
        const struct rule *other_rule = &other->rules[ROLE_KEY_PRIORITY];

        if (role->priority_max == 0 || other->priority_max == 0 ||
            role->priority_min > other->priority_max || other->priority_min > role->priority_max)
                return;

        report_warning(report, *rule,
                       "the priorities of [Role %s], %d to %d, overlap those of [Role %s], "
                       "%d to %d (%s:%u)", role->name, role->priority_min, role->priority_max,
                       other->name, other->priority_min, other->priority_max, other_rule->file,
                       other_rule->line);
}

/* What is written and cannot come to anything. */
static void check_use(const struct role *role, struct report *report) {
        bool realtime = role->policies & (1U << SCHED_FIFO | 1U << SCHED_RR);

        if (role->priority_max > 0 && !realtime)
                report_warning(report, role->rules[ROLE_KEY_PRIORITY],
                               "Priority= is of no use: Policy= of [Role %s] has no fifo and no rr",
                               role->name);
        if (role->priority_max == 0 && !(role->policies & 1U << SCHED_OTHER))
                report_warning(report, role->rules[ROLE_KEY_POLICY],
                               "[Role %s] gives no real-time priority: it has no Priority=",
                               role->name);
}

/* Below= names roles that there are, with priorities above its own. */
static void check_below(const struct policy *policy, const struct role *role,
                        struct report *report) {
        const struct rule *at = &role->rules[ROLE_KEY_BELOW];

        for (size_t i = 0; i < role->below.n_words; i++) {
                const char *name = role->below.words[i], *near = suggest_role(policy, name);
                const struct role *other = policy_find_role(policy, name, NULL);

                if (!other)
                        report_fault(report, *at, "Below=%s: there is no [Role %s]%s%s%s", name,
                                     name, near ? ", did you mean " : "", near ? near : "",
                                     near ? "?" : "");
                else if (other == role)
                        report_fault(report, *at, "Below=%s: a role cannot be below itself", name);
                else if (other->priority_max > 0 && other->priority_max <= role->priority_min)
                        report_fault(report, *at,
                                     "Below=%s: its priorities, up to %d, leave none of this "
                                     "role's, from %d", name, other->priority_max,
                                     role->priority_min);
        }
}

static void check_irqs(const struct policy *policy, const char *file, struct report *report) {
        for (size_t i = 0; i < policy->n_irqs; i++) {
                const struct irq_rule *irq = &policy->irqs[i];
                const struct rule *at = &irq->rules[IRQ_KEY_DEVICE];

                if (!at->file)
                        at = &irq->rules[IRQ_KEY_PRIORITY];
                if (irq->device[0] == '\0' && report->error == 0)
                        report_fault(report, at->file ? *at : (struct rule) { .file = file },
                                     "[Irq %s] has no Device=", irq->name);
        }
}

void book_check(struct policy_store *store, const char *file, struct report *report) {
        struct policy *policy = &store->policy;

        if (policy->n_roles == 0) {
                if (report->error == 0)
                        report_fault(report, (struct rule) { .file = file },
                                     "there is no [Role NAME]");
                return;
        }

        (void) check_role_key(store, BROKER_KEY_DEFAULT_ROLE, 0, &policy->default_role, report);
        if (check_role_key(store, BROKER_KEY_REALTIMEKIT_ROLE, policy->default_role,
                           &policy->realtimekit_role, report))
                check_realtimekit(policy, report);

        check_irqs(policy, file, report);
        for (size_t i = 0; i < policy->n_roles; i++) {
                check_use(&policy->roles[i], report);
                check_below(policy, &policy->roles[i], report);
                for (size_t j = 0; j < i; j++)
                        check_bands(&policy->roles[i], &policy->roles[j], report);
        }
}
