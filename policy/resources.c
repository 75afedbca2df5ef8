/* SPDX-License-Identifier: MIT */

/* What a role gives besides: locked memory, wake-up latency, disk queues, interrupts. */

#include "policy/trial.h"

static struct rule resource_rule(const struct role *role, enum resource_index resource) {
        static const enum role_key keys[_RESOURCE_MAX] = {
                [RESOURCE_MEMLOCK] = ROLE_KEY_MEMLOCK,
                [RESOURCE_CPU_LATENCY] = ROLE_KEY_CPU_LATENCY,
                [RESOURCE_BLOCK_QUEUE] = ROLE_KEY_BLOCK_QUEUE,
                [RESOURCE_IRQ] = ROLE_KEY_IRQ_PRIORITY,
        };

        return role->rules[keys[resource]];
}

/* Of latency and queues less is more: there the low end of the band is the limit. */
static bool resource_is_descending(enum resource_index resource) {
        return resource == RESOURCE_CPU_LATENCY || resource == RESOURCE_BLOCK_QUEUE;
}

/* A refusal of one resource; with clamp the others may still be had. */
static bool refuse_resource(struct trial *t, enum resource_index resource, enum reason reason,
                            struct limit limit) {
        struct decision *d = &t->decision;

        if (t->request->clamp && (t->request->wants_sched || t->request->wants_nice ||
                                  (d->resources & ~(1U << resource)) != 0)) {
                d->resources &= ~(1U << resource);
                return clip(t, limit);
        }

        refuse_limit(t, reason, limit);
        d->about_resource = true;
        d->resource = resource;
        return false;
}

static bool check_memlock(struct trial *t, struct limit limit) {
        const struct situation *now = t->now;
        const struct role *role = t->role;
        uint64_t user_max = role->memlock_per_user_max, total_max = t->policy->memlock_max;
        int64_t *value = &t->decision.values[RESOURCE_MEMLOCK];
        bool has_room;
        uint64_t left;

        if (user_max == 0)
                user_max = (uint64_t) role->resources[RESOURCE_MEMLOCK].high;
        limit.rule = role->rules[ROLE_KEY_MEMLOCK_PER_USER].file
                             ? role->rules[ROLE_KEY_MEMLOCK_PER_USER]
                             : limit.rule;
        left = user_max > now->memlock_held ? user_max - now->memlock_held : 0;
        if (total_max < now->memlock_total || total_max - now->memlock_total < left) {
                left = total_max > now->memlock_total ? total_max - now->memlock_total : 0;
                limit.rule = t->policy->rules[BROKER_KEY_MEMLOCK_MAX];
        }
        if ((uint64_t) *value <= left)
                return true;

        /* What is left may be less than the role gives at all. */
        has_room = left > 0 && (int64_t) left >= limit.low;
        limit.low = limit.high = (int64_t) left;
        if (!t->request->clamp || !has_room)
                return refuse_resource(t, RESOURCE_MEMLOCK, REASON_MEMLOCK_QUOTA, limit);

        *value = (int64_t) left;
        return clip(t, limit);
}

/* The kinds have actions of their own: whom polkit lets into the role it has to give these too. */
static bool check_resource_authority(struct trial *t, enum resource_index resource) {
        struct decision *d = &t->decision;
        struct limit limit = { .rule = t->role->rules[ROLE_KEY_ACTION] };
        enum reason reason;

        if (!t->by_polkit)
                return true;
        if (!(t->now->resources_answered & 1U << resource)) {
                /* About the role first, and about one thing at a time. */
                if (d->verdict == VERDICT_ASK)
                        return true;
                d->verdict = VERDICT_ASK;
                d->reason = REASON_NEEDS_AUTHORIZATION;
                d->about_resource = true;
                d->resource = resource;
                return true;
        }

        reason = authority_answer_reason(t->now->resource_answers[resource]);
        if (reason == REASON_NONE || refuse_resource(t, resource, reason, limit))
                return true;

        t->decision.authority = t->now->resource_answers[resource];
        return false;
}

static bool check_resource(struct trial *t, enum resource_index resource) {
        const struct resource_band *band = &t->role->resources[resource];
        int64_t *value = &t->decision.values[resource];
        struct limit limit = {
                .rule = resource_rule(t->role, resource),
                .asked = *value,
                .low = band->low,
                .high = band->high,
        };

        if (!band->given)
                return refuse_resource(t, resource, REASON_RESOURCE_NOT_IN_ROLE, limit);
        if (*value == 0)
                *value = band->high;
        if (t->request->unavailable[resource] != REASON_NONE)
                return refuse_resource(t, resource, t->request->unavailable[resource],
                                       (struct limit) { .rule = no_rule, .asked = *value });
        if (resource == RESOURCE_IRQ &&
            !(t->request->irq_roles & 1U << (t->role - t->policy->roles)))
                return refuse_resource(t, resource, REASON_IRQ_NOT_IN_ROLE,
                                       (struct limit) {
                                               .rule = t->role->rules[ROLE_KEY_IRQ_DEVICES],
                                               .asked = *value,
                                       });
        if (resource == RESOURCE_CPU_LATENCY && t->now->on_battery &&
            !t->role->cpu_latency_on_battery)
                return refuse_resource(
                        t, resource, REASON_ON_BATTERY,
                        (struct limit) {
                                .rule = t->role->rules[ROLE_KEY_CPU_LATENCY_ON_BATTERY],
                                .asked = *value,
                        });

        limit.asked = *value;
        if (*value < band->low || *value > band->high) {
                bool more = resource_is_descending(resource) ? *value < band->low
                                                             : *value > band->high;

                /* Also with clamp: nothing becomes more than was asked. */
                if (!t->request->clamp || !more)
                        return refuse_resource(t, resource, REASON_RESOURCE_LIMIT, limit);
                *value = resource_is_descending(resource) ? band->low : band->high;
                clip(t, limit);
        }

        return (resource != RESOURCE_MEMLOCK || check_memlock(t, limit)) &&
               check_resource_authority(t, resource);
}

bool check_resources(struct trial *t) {
        for (enum resource_index i = 0; i < _RESOURCE_MAX; i++)
                if (t->request->resources & 1U << i && !check_resource(t, i))
                        return false;

        return true;
}
