/* SPDX-License-Identifier: MIT */

#include "broker/reload.h"

#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/grant.h"
#include "broker/guard/act.h"
#include "broker/irq/table.h"
#include "broker/text.h"

static void drop_word(char *text, const char *word) {
        char *at = strstr(text, word);

        if (at)
                memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

void broker_log_policy_messages(struct broker *broker, int level, const char *messages) {
        for (const char *line = messages; line && *line;) {
                size_t length = strcspn(line, "\n");
                char text[400];

                text_escape(text, sizeof(text), line, length);
                drop_word(text, "warning: "); /* the line's level says so */
                log_write(broker->log, level, &(struct log_fields) { .event = "policy" }, "%s",
                          text);
                line += length + (line[length] == '\n');
        }
}

void broker_apply_log_level(struct broker *broker) {
        int level = broker->options.log_level;

        if (level < 0)
                level = broker_policy(broker)->log_level;
        log_set_level(broker->log, level < 0 ? LOG_NOTICE : level);
}

/* What @role still gives of what the lease holds. False if nothing of it can be kept. */
static bool fit(const struct lease *lease, const struct role *role, struct wanted *ret,
                bool *ret_lower) {
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];

        *ret = (struct wanted) {};
        *ret_lower = false;

        if (id_list_has(&role->deny_users, lease->uid))
                return false;

        if (sched->held) {
                int priority_max = role->priority_max < POLICY_PRIORITY_CEILING
                                           ? role->priority_max
                                           : POLICY_PRIORITY_CEILING;

                if (!(role->policies & (1U << sched->set.sched.policy)))
                        return false;
                if (sched_is_rt(sched->set.sched.policy) && priority_max == 0)
                        return false;

                ret->policy = sched->set.sched.policy;
                ret->priority = sched->set.sched.priority;
                if (ret->priority > priority_max && sched_is_rt(ret->policy)) {
                        ret->priority = priority_max;
                        ret->sched = true;
                }
        }
        if (nice->held && nice->set.nice.nice < role->nice_min) {
                ret->nice = role->nice_min;
                ret->nice_too = true;
        }

        *ret_lower = ret->sched || ret->nice_too;
        return true;
}

/* Whether the thread has more than @wanted; in full or by what its owner left of the grant. */
static bool is_above(const struct lease *lease, const struct wanted *wanted) {
        struct sched_values now;

        if (sched_read(lease->thread.tid, &now) < 0 ||
            !(grant_is_in_force(lease, lease->thread.tid, &now) || grant_remains(lease, &now)))
                return false;

        return (wanted->sched && sched_rank(now.policy, now.priority) >
                                         sched_rank(wanted->policy, wanted->priority)) ||
               (wanted->nice_too && now.nice < wanted->nice);
}

/* Returns whether anything was taken away. */
static bool fit_lease(struct broker *broker, struct lease *lease) {
        const struct role *role = policy_find_role(broker_policy(broker), lease->role, NULL);
        struct grant_outcome outcome;
        struct wanted wanted;
        bool lower, less;

        if (!role || !fit(lease, role, &wanted, &lower)) {
                lease_end(broker, lease, REASON_POLICY_RELOAD,
                          "the new policy does not give it any more");
                return true;
        }
        less = resource_fit(broker, lease, role);
        /* What somebody else lowered meanwhile is not raised to the new limit. */
        lower = lower && is_above(lease, &wanted);
        if (!lower && !less)
                return false;

        if (lower && grant_apply(broker, lease, &wanted, &outcome) != REASON_NONE) {
                lease_end(broker, lease, REASON_POLICY_RELOAD,
                          "it could not be lowered to what the new policy gives");
                return true;
        }
        lease_save(broker, lease, NULL);
        broker_tell(broker, lease, WIRE_EVENT_LOWERED, REASON_POLICY_RELOAD,
                    "lowered to what the new policy gives");
        return true;
}

/* The same leases, counted under the roles of the new policy. */
static void recount_roles(struct broker *broker) {
        struct lease *lease;

        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq)
                memset(lease->user->threads_by_role, 0, sizeof(lease->user->threads_by_role));

        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq) {
                size_t index = 0;

                (void) policy_find_role(broker_policy(broker), lease->role, &index);
                lease->role_index = index;
                lease->user->threads_by_role[index]++;
        }
}

unsigned broker_fit_leases(struct broker *broker) {
        struct lease *lease;
        unsigned n = 0;

        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq));) {
                seq = lease->seq;
                n += fit_lease(broker, lease);
        }

        return n;
}

static void keep_error(struct broker *broker, const char *messages) {
        size_t length = messages ? strcspn(messages, "\n") : 0;

        if (length == 0)
                text_copy(broker->policy_error, sizeof(broker->policy_error),
                          "the policy could not be read");
        else
                text_escape(broker->policy_error, sizeof(broker->policy_error), messages, length);
}

enum reason broker_reload(struct broker *broker, unsigned *ret_n_lowered) {
        _cleanup_free_ char *messages = NULL;
        struct policy_store *store = NULL;
        unsigned n;
        int r;

        /* Reading files and looking up names may take its time: not above everybody else. */
        self_want(&broker->self, false);
        r = policy_store_load(broker->options.policy_path, &store, &messages);
        self_want(&broker->self, broker->leases.n_rt > 0);
        broker_log_policy_messages(broker, r < 0 ? LOG_ERR : LOG_WARNING, messages);
        if (r < 0) {
                keep_error(broker, messages);
                log_write(broker->log, LOG_ERR, &(struct log_fields) { .event = "reload-failed" },
                          "the policy has a fault; the one before stays in force");
                return REASON_RELOAD_FAILED;
        }

        (void) policy_store_free(broker->policy);
        broker->policy = store;
        broker->policy_generation++;
        broker->policy_error[0] = '\0';
        broker_apply_log_level(broker);
        broker_apply_authority(broker);
        user_table_apply_policy(&broker->users, broker_policy(broker), broker_now_us(broker));
        recount_roles(broker);
        irq_table_set_rules(broker->irqs, broker_policy(broker)->irqs,
                            broker_policy(broker)->n_irqs);

        n = broker_fit_leases(broker);
        guard_act_apply_policy(broker);

        log_write(broker->log, LOG_NOTICE, &(struct log_fields) { .event = "reloaded" },
                  "policy read anew: %u leases, of which %u were lowered or ended",
                  lease_table_size(&broker->leases), n);
        if (ret_n_lowered)
                *ret_n_lowered = n;
        return REASON_NONE;
}
