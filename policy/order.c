/* SPDX-License-Identifier: MIT */

/* Who stands above whom: a client below the server that it feeds, that below its sound card. */

#include <string.h>

#include "policy/trial.h"

/* Lowers the priority below @above, or refuses. */
static bool stay_below(struct trial *t, int above, enum superior superior, struct rule rule) {
        bool clamped = t->decision.clamped;
        struct limit limit = {
                .rule = rule,
                .asked = t->decision.priority,
                .low = t->role->priority_min,
                .high = above - 1,
        };

        if (above == 0 || t->decision.priority < above)
                return true;
        if (t->request->clamp && limit.high >= limit.low) {
                t->decision.priority = (int) limit.high;
                t->decision.superior = clamped ? t->decision.superior : superior;
                return clip(t, limit);
        }

        refuse_limit(t, REASON_ABOVE_SERVER, limit);
        t->decision.superior = superior;
        return false;
}

/* Of the interrupt: what it has, or what it is given in the same breath. */
static int fed_irq_priority(const struct trial *t) {
        int priority = t->now->feeds_irq_priority;
        int64_t given = t->decision.values[RESOURCE_IRQ];

        if (priority != 0 && t->request->raises_fed &&
            t->decision.resources & 1U << RESOURCE_IRQ && given > priority)
                priority = (int) given;
        return priority;
}

bool check_order(struct trial *t) {
        const struct role *role = t->role;
        const struct situation *now = t->now;
        size_t index;

        if (!is_realtime(t->request))
                return true;
        if (!stay_below(t, now->feeds_priority, SUPERIOR_THREAD, no_rule) ||
            !stay_below(t, fed_irq_priority(t), SUPERIOR_IRQ, no_rule))
                return false;

        for (size_t i = 0; i < role->below.n_words && now->lowest_by_role; i++)
                if (policy_find_role(t->policy, role->below.words[i], &index) &&
                    !stay_below(t, now->lowest_by_role[index], SUPERIOR_ROLE,
                                role->rules[ROLE_KEY_BELOW]))
                        return false;

        return true;
}
