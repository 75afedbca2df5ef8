/* SPDX-License-Identifier: MIT */

/* Who stands above whom: a client below the server that it feeds. */

#include <string.h>

#include "policy/trial.h"

/* Lowers the priority below @above, or refuses. */
static bool stay_below(struct trial *t, int above, struct rule rule) {
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
                return clip(t, limit);
        }

        return refuse_limit(t, REASON_ABOVE_SERVER, limit);
}

bool check_order(struct trial *t) {
        const struct role *role = t->role;
        const struct situation *now = t->now;
        size_t index;

        if (!is_realtime(t->request))
                return true;
        if (!stay_below(t, now->feeds_priority, no_rule))
                return false;

        for (size_t i = 0; i < role->below.n_words && now->lowest_by_role; i++)
                if (policy_find_role(t->policy, role->below.words[i], &index) &&
                    !stay_below(t, now->lowest_by_role[index], role->rules[ROLE_KEY_BELOW]))
                        return false;

        return true;
}
