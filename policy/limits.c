/* SPDX-License-Identifier: MIT */

/* What a role gives a thread, and how many there may be. */

#include "policy/trial.h"

bool role_has_band(const struct role *role) {
        return role->priority_min >= PRIORITY_LOWEST &&
               role->priority_min <= role_priority_max(role);
}

static bool role_has_policy(const struct role *role, int policy) {
        return role->policies & 1U << policy;
}

bool check_policy(struct trial *t) {
        const struct request *request = t->request;
        const struct role *role = t->role;

        if (!request->wants_sched)
                return true;
        if (is_realtime(request) && !role_has_band(role))
                return refuse(t, REASON_POLICY_NOT_IN_ROLE, role->rules[ROLE_KEY_PRIORITY]);
        if (role_has_policy(role, request->policy))
                return true;

        /* RR is FIFO with a time slice: the lesser of the two, and never the other way round. */
        if (request->clamp && request->policy == SCHED_FIFO && role_has_policy(role, SCHED_RR)) {
                t->decision.policy = SCHED_RR;
                return clip(t, (struct limit) { .rule = role->rules[ROLE_KEY_POLICY] });
        }

        return refuse(t, REASON_POLICY_NOT_IN_ROLE, role->rules[ROLE_KEY_POLICY]);
}

bool check_priority(struct trial *t) {
        struct limit band = {
                .rule = t->role->rules[ROLE_KEY_PRIORITY],
                .asked = t->decision.priority,
                .low = t->role->priority_min,
                .high = timing_priority_max(t->role, t->request),
        };

        if (band.high < role_priority_max(t->role))
                band.rule = t->role->rules[ROLE_KEY_PRIORITY_BY_PERIOD];

        if (!is_realtime(t->request) || (band.asked >= band.low && band.asked <= band.high))
                return true;

        if (t->request->clamp && band.asked > band.high) {
                t->decision.priority = (int) band.high;
                return clip(t, band);
        }

        /* Also with clamp: the low end of the band would be more than was asked. */
        return refuse_limit(t, REASON_PRIORITY_LIMIT, band);
}

bool check_nice(struct trial *t) {
        int nice_min = t->role->nice_min; /* 0 at most: to be nice to others is in every role */
        struct limit floor = {
                .rule = t->role->rules[ROLE_KEY_NICE],
                .asked = t->request->nice,
                .low = nice_min,
                .high = nice_min,
        };

        if (!t->request->wants_nice || t->request->nice >= nice_min)
                return true;

        if (t->request->clamp) {
                t->decision.nice = nice_min;
                return clip(t, floor);
        }

        return refuse_limit(t, REASON_NICE_LIMIT, floor);
}

bool check_lifetime(struct trial *t) {
        unsigned max = t->role->lifetime_s_max;
        struct limit limit = {
                .rule = t->role->rules[ROLE_KEY_LIFETIME_MAX],
                .asked = t->request->lifetime_s,
                .low = max,
                .high = max,
        };

        if (t->request->lifetime != LIFETIME_SECONDS || t->request->lifetime_s <= max)
                return true;

        if (t->request->clamp && max > 0) {
                t->decision.lifetime_s = max;
                return clip(t, limit);
        }

        return refuse_limit(t, REASON_LIFETIME_LIMIT, limit);
}

bool check_broker_state(struct trial *t) {
        if (is_realtime(t->request) && !t->now->rt_possible)
                return refuse(t, REASON_DEGRADED, no_rule);
        if (is_realtime(t->request) && t->now->back_off_ms > 0) {
                refuse(t, REASON_BACK_OFF, t->policy->rules[BROKER_KEY_BACK_OFF]);
                t->decision.retry_after_ms = t->now->back_off_ms;
                return false;
        }

        return true;
}

static bool check_place(struct trial *t, enum reason reason, struct rule rule, unsigned held,
                        unsigned max) {
        if (held < max)
                return true;

        return refuse_limit(t, reason, (struct limit) {
                .rule = rule,
                .asked = (int64_t) held + 1,
                .low = max,
                .high = max,
        });
}

bool check_quotas(struct trial *t) {
        const struct policy *policy = t->policy;
        const struct situation *now = t->now;
        size_t index = (size_t) (t->role - policy->roles);
        enum broker_key key = now->quota_uid < POLICY_SYSTEM_UID_END &&
                                              policy->system_threads_per_user_max > 0
                                      ? BROKER_KEY_SYSTEM_THREADS_PER_USER
                                      : BROKER_KEY_THREADS_PER_USER;

        if (now->leased && now->leased_role == index)
                return true;
        if (!check_place(t, REASON_THREADS_PER_ROLE, t->role->rules[ROLE_KEY_THREADS_PER_USER],
                         now->threads_held_by_role[index], t->role->threads_per_user_max))
                return false;

        if (now->leased)
                return true;
        return check_place(t, REASON_THREADS_PER_USER, policy->rules[key], now->threads_held,
                           key == BROKER_KEY_SYSTEM_THREADS_PER_USER
                                   ? policy->system_threads_per_user_max
                                   : policy->threads_per_user_max) &&
               check_place(t, REASON_THREADS_TOTAL, policy->rules[BROKER_KEY_THREADS_MAX],
                           now->threads_total, policy->threads_max);
}

bool check_rate(struct trial *t) {
        if (t->now->grant_tokens > 0)
                return true;

        refuse(t, REASON_RATE, t->policy->rules[BROKER_KEY_GRANT_BURST]);
        t->decision.retry_after_ms = t->now->grant_wait_ms;
        return false;
}
