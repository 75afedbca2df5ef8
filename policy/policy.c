/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "policy/trial.h"

/* A policy that the kernel has and no role gives; SCHED_DEADLINE would outrun the broker itself. */
static bool is_foreign(int policy) {
        enum { SCHED_EXT_NUMBER = 7 }; /* Linux 6.12 */

        return policy == SCHED_BATCH || policy == SCHED_IDLE || policy == SCHED_DEADLINE ||
               policy == SCHED_EXT_NUMBER;
}

static bool check_sched(struct trial *t) {
        const struct request *request = t->request;
        bool realtime = is_realtime(request);
        struct limit kernel = {
                .asked = request->priority,
                .low = realtime ? PRIORITY_LOWEST : 0,
                .high = realtime ? PRIORITY_HIGHEST : 0,
        };
        struct limit relative = {
                .asked = request->relative,
                .low = POLICY_RELATIVE_MIN,
                .high = POLICY_RELATIVE_MAX,
        };

        if (is_foreign(request->policy))
                return refuse(t, REASON_UNSUPPORTED, no_rule);
        if (!realtime && request->policy != SCHED_OTHER)
                return refuse(t, REASON_INVALID, no_rule);
        if (request->is_relative)
                return realtime && request->priority == 0 && relative.asked >= relative.low &&
                                       relative.asked <= relative.high
                               ? true
                               : refuse_limit(t, REASON_INVALID, relative);
        if (request->priority < kernel.low || request->priority > kernel.high)
                return refuse_limit(t, REASON_INVALID, kernel);

        return true;
}

static bool check_ranges(struct trial *t) {
        const struct request *request = t->request;
        struct limit nice = { .asked = request->nice, .low = NICE_STRONGEST, .high = NICE_WEAKEST };

        if (!request->wants_sched && !request->wants_nice && request->resources == 0)
                return refuse(t, REASON_INVALID, no_rule);
        if (request->resources >> _RESOURCE_MAX != 0)
                return refuse(t, REASON_INVALID, no_rule);
        for (int i = 0; i < _RESOURCE_MAX; i++)
                if (request->resources & 1U << i &&
                    (request->values[i] < 0 || (request->values[i] == 0 && i != RESOURCE_IRQ)))
                        return refuse(t, REASON_INVALID, no_rule);
        if (request->wants_sched && !check_sched(t))
                return false;
        if (request->wants_nice &&
            (request->nice < NICE_STRONGEST || request->nice > NICE_WEAKEST))
                return refuse_limit(t, REASON_INVALID, nice);
        if (request->computation_ns > request->period_ns ||
            (request->computation_ns == 0) != (request->period_ns == 0) ||
            request->period_ns > POLICY_PERIOD_NS_MAX)
                return refuse(t, REASON_INVALID, no_rule);

        switch (request->lifetime) {
        case LIFETIME_THREAD:
        case LIFETIME_CONNECTION:
                return true;
        case LIFETIME_SECONDS:
                if (request->lifetime_s >= 1)
                        return true;
                break;
        }

        return refuse(t, REASON_INVALID, no_rule);
}

static bool check_namespace(struct trial *t) {
        if (t->now->in_user_namespace && !t->policy->user_namespaces)
                return refuse(t, REASON_USER_NAMESPACE,
                              t->policy->rules[BROKER_KEY_USER_NAMESPACES]);

        return true;
}

/* Whether polkit's answer is about @role. */
static bool is_answered(const struct policy *policy, const struct role *role,
                        const struct situation *now) {
        return now->authority != AUTHORITY_UNASKED &&
               (size_t) (role - policy->roles) == now->authority_role;
}

static bool id_list_has(const struct id_list *list, uint32_t id) {
        for (size_t i = 0; i < list->n_ids; i++)
                if (list->ids[i] == id)
                        return true;

        return list->everybody;
}

static bool id_list_has_any(const struct id_list *list, const gid_t *gids, size_t n_gids) {
        if (list->everybody)
                return true;

        for (size_t i = 0; i < n_gids; i++)
                if (id_list_has(list, gids[i]))
                        return true;

        return false;
}

static bool is_listed(const struct role *role, const struct situation *now) {
        return id_list_has(&role->allow_users, now->uid) ||
               id_list_has_any(&role->allow_groups, now->gids, now->n_gids) ||
               role->sessions & 1U << now->session;
}

static bool check_admission(struct trial *t) {
        enum reason reason;

        reason = policy_role_admits(t->policy, t->role, t->now, &t->decision.rule);
        t->by_polkit = !is_listed(t->role, t->now);
        if (reason == REASON_NEEDS_AUTHORIZATION) {
                /* All else is checked first: nobody is asked for what would be refused anyway. */
                t->decision.verdict = VERDICT_ASK;
                t->decision.reason = reason;
                return true;
        }
        if (reason != REASON_NONE)
                return refuse(t, reason, t->decision.rule);

        return true;
}

static bool role_has_band(const struct role *role) {
        return role->priority_min >= PRIORITY_LOWEST &&
               role->priority_min <= role_priority_max(role);
}

static bool role_has_policy(const struct role *role, int policy) {
        return role->policies & 1U << policy;
}

static bool check_policy(struct trial *t) {
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

static bool check_priority(struct trial *t) {
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

static bool check_nice(struct trial *t) {
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

static bool check_lifetime(struct trial *t) {
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

        limit.low = limit.high = (int64_t) left;
        if (!t->request->clamp || left == 0)
                return refuse_resource(t, RESOURCE_MEMLOCK, REASON_MEMLOCK_QUOTA, limit);

        *value = (int64_t) left;
        return clip(t, limit);
}

static enum reason answer_reason(enum authority_answer answer) {
        switch (answer) {
        case AUTHORITY_UNASKED:
                return REASON_NEEDS_AUTHORIZATION;
        case AUTHORITY_YES:
                return REASON_NONE;
        case AUTHORITY_OVERRUN:
                return REASON_AUTHORITY_BUSY;
        case AUTHORITY_FAILED:
                return REASON_AUTHORITY_UNAVAILABLE;
        default:
                return REASON_NOT_AUTHORIZED;
        }
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

        reason = answer_reason(t->now->resource_answers[resource]);
        return reason == REASON_NONE || refuse_resource(t, resource, reason, limit);
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

static bool check_resources(struct trial *t) {
        for (enum resource_index i = 0; i < _RESOURCE_MAX; i++)
                if (t->request->resources & 1U << i && !check_resource(t, i))
                        return false;

        return true;
}

static bool check_broker(struct trial *t) {
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

static bool check_quotas(struct trial *t) {
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

static bool check_rate(struct trial *t) {
        if (t->now->grant_tokens > 0)
                return true;

        refuse(t, REASON_RATE, t->policy->rules[BROKER_KEY_GRANT_BURST]);
        t->decision.retry_after_ms = t->now->grant_wait_ms;
        return false;
}

/* What is granted if no check objects. */
static struct decision decision_as_asked(const struct role *role, const struct request *request) {
        struct decision decision = {
                .verdict = VERDICT_GRANT,
                .role = role,
                .policy = request->wants_sched ? request->policy : SCHED_OTHER,
                .priority = is_realtime(request) ? timing_priority(role, request) : 0,
                .nice = request->wants_nice ? request->nice : 0,
                .lifetime_s = request->lifetime == LIFETIME_SECONDS ? request->lifetime_s : 0,
                .resources = request->resources,
        };

        memcpy(decision.values, request->values, sizeof(decision.values));
        return decision;
}

static bool applies_always(const struct request *request) {
        return true;
}

static bool applies_to_sched(const struct request *request) {
        return request->wants_sched;
}

static bool applies_to_nice(const struct request *request) {
        return request->wants_nice;
}

static bool applies_to_seconds(const struct request *request) {
        return request->lifetime == LIFETIME_SECONDS;
}

static bool applies_to_timing(const struct request *request) {
        return request->period_ns != 0;
}

static bool applies_if_refused(const struct request *request) {
        return false;
}

/* In order; the first that fails is the reason. */
static const struct {
        bool (*check)(struct trial *t);
        bool (*applies)(const struct request *request); /* for the trace: when passing says something */
        enum role_key key;      /* the rule that it goes by, unless it names another */
} checks[] = {
        { check_admission, applies_always, ROLE_KEY_ALLOW_GROUPS },
        { check_policy, applies_to_sched, ROLE_KEY_POLICY },
        { check_priority, is_realtime, ROLE_KEY_PRIORITY },
        { check_order, applies_if_refused, ROLE_KEY_BELOW },
        { check_nice, applies_to_nice, ROLE_KEY_NICE },
        { check_lifetime, applies_to_seconds, ROLE_KEY_LIFETIME_MAX },
        { check_resources, applies_if_refused, ROLE_KEY_MEMLOCK },
        { check_timing, applies_to_timing, ROLE_KEY_DECLARED_CPU },
        { check_broker, applies_if_refused, ROLE_KEY_PRIORITY },
        { check_quotas, applies_always, ROLE_KEY_THREADS_PER_USER },
        { check_rate, applies_if_refused, ROLE_KEY_THREADS_PER_USER },
};

/* What a check said, for those who ask why. */
static void note(struct trial *t, struct rule rule, bool passed) {
        struct policy_trace *trace = t->trace;
        const struct decision *d = &t->decision;
        struct policy_step step = { .role = t->role, .rule = rule };

        if (trace->n_steps == POLICY_TRACE_MAX)
                return;

        if (!passed) {
                step.reason = d->reason;
                step.rule = d->rule;
                step.asked = d->asked;
                step.limit = d->limit;
        } else if (trace->n_steps == 0 || trace->steps[trace->n_steps - 1].role != t->role) {
                step.rule = d->rule;    /* the first check: who let the caller in */
                step.ask = d->verdict == VERDICT_ASK;
        } else if (d->clamped && !trace->clamped) {
                step.clamped = true;
                step.rule = d->rule;
                step.asked = d->asked;
                step.limit = d->limit;
        }
        trace->clamped = d->clamped;
        trace->steps[trace->n_steps++] = step;
}

static struct decision evaluate_role(const struct trial *caller, const struct role *role) {
        struct trial t = *caller;

        t.role = role;
        t.decision = decision_as_asked(role, t.request);

        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
                bool passed = checks[i].check(&t);

                if (t.trace && (!passed || checks[i].applies(t.request)))
                        note(&t, role->rules[checks[i].key], passed);
                if (!passed)
                        break;
        }

        return t.decision;
}

/* Whether @word, which may end in "*", is @text or its beginning. */
static bool word_matches(const char *word, const char *text) {
        size_t length = strlen(word);

        if (length > 0 && word[length - 1] == '*')
                return strlen(text) >= length - 1 && memcmp(word, text, length - 1) == 0;

        return strcmp(word, text) == 0;
}

static bool words_match(const struct word_list *list, const char *text) {
        for (size_t i = 0; text && i < list->n_words; i++)
                if (word_matches(list->words[i], text))
                        return true;

        return false;
}

/* The name in a path; a path itself has its chance before. */
static const char *base_name(const char *path) {
        const char *name = path;

        for (const char *c = path; c && *c; c++)
                if (*c == '/')
                        name = c + 1;
        return name;
}

/* Whether a hint of @role speaks of this program; never whether it may. */
static enum pick role_hint(const struct role *role, const struct situation *now) {
        if (words_match(&role->units, now->unit))
                return PICK_UNIT;
        if (words_match(&role->executables, now->executable) ||
            words_match(&role->executables, base_name(now->executable)))
                return PICK_EXECUTABLE;

        return PICK_NONE;
}

static unsigned count_resources(unsigned resources) {
        unsigned n = 0;

        for (; resources != 0; resources &= resources - 1)
                n++;
        return n;
}

static unsigned missing_resources(const struct role *role, const struct request *request) {
        unsigned given = 0;

        for (int i = 0; i < _RESOURCE_MAX; i++)
                given |= role->resources[i].given ? 1U << i : 0;
        return count_resources(request->resources & ~given);
}

/* How far the request is outside of what the role gives; 0: within. */
static unsigned thread_distance(const struct role *role, const struct request *request) {
        int max = role_priority_max(role), nice_min = role->nice_min;

        if (!is_realtime(request))
                return request->wants_nice && request->nice < nice_min
                               ? (unsigned) (nice_min - request->nice)
                               : 0;
        if (!role_has_band(role))
                return UINT32_MAX;
        if (request->is_relative)
                return 0;
        if (request->priority < role->priority_min)
                return (unsigned) (role->priority_min - request->priority);

        return request->priority > max ? (unsigned) (request->priority - max) : 0;
}

static unsigned role_distance(const struct role *role, const struct request *request) {
        enum { MISSING = 1000 }; /* more than priorities or nice can be apart */
        unsigned distance = thread_distance(role, request);

        return distance == UINT32_MAX ? distance
                                      : distance + MISSING * missing_resources(role, request);
}

/* Whether grant @a gives more than grant @b; likewise of what a yes of polkit would give. */
static bool grant_is_better(const struct decision *a, const struct decision *b,
                            const struct request *request) {
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->policy != b->policy)
                return a->policy == request->policy;
        if (a->nice != b->nice)
                return a->nice < b->nice;
        if (a->resources != b->resources)
                return count_resources(a->resources) > count_resources(b->resources);

        return a->lifetime_s > b->lifetime_s;
}

static bool is_hinted(const struct trial *t, const struct decision *d) {
        return role_hint(d->role, t->now) != PICK_NONE;
}

/* How far the caller got with the role that refused. */
static int denial_rank(const struct trial *t, const struct decision *denial) {
        switch (denial->reason) {
        case REASON_NOT_ALLOWED:
        case REASON_DENIED:
                return 0;
        case REASON_NO_ACTIVE_SESSION:
        case REASON_NOT_AUTHORIZED:
        case REASON_AUTHORITY_UNAVAILABLE:
        case REASON_AUTHORITY_BUSY:
                /* About other roles polkit was not asked: it is not they that it refused. */
                return is_answered(t->policy, denial->role, t->now) ? 2 : 0;
        default:
                return 1;
        }
}

/* Whether refusal @a came nearer to a grant than refusal @b. */
static bool denial_is_nearer(const struct trial *t, const struct decision *a,
                             const struct decision *b) {
        int a_rank = denial_rank(t, a), b_rank = denial_rank(t, b);
        unsigned a_distance = role_distance(a->role, t->request);
        unsigned b_distance = role_distance(b->role, t->request);

        if (a_rank != b_rank)
                return a_rank > b_rank;
        if (is_hinted(t, a) != is_hinted(t, b))
                return is_hinted(t, a);
        if (a_distance != b_distance)
                return a_distance < b_distance;

        return a->role == &t->policy->roles[t->policy->default_role];
}

static bool decision_is_better(const struct trial *t, const struct decision *a,
                               const struct decision *b) {
        if (a->verdict != b->verdict)
                return a->verdict > b->verdict;
        if (a->verdict == VERDICT_DENY)
                return denial_is_nearer(t, a, b);

        /* The role meant for the program, unless another gives more of what was asked. */
        if (a->clamped == b->clamped && is_hinted(t, a) != is_hinted(t, b))
                return is_hinted(t, a);
        if (t->request->is_relative && a->clamped == b->clamped)
                return false; /* a place in any band is as good: the first */

        return grant_is_better(a, b, t->request);
}

/* What is given whole is better than what is clamped, so the first that gives it serves. */
static struct decision evaluate_every_role(const struct trial *t) {
        const struct policy *policy = t->policy;
        struct decision best, d;

        best = evaluate_role(t, &policy->roles[0]);
        for (size_t i = 1; i < policy->n_roles; i++) {
                d = evaluate_role(t, &policy->roles[i]);
                if (decision_is_better(t, &d, &best))
                        best = d;
        }

        best.pick = role_hint(best.role, t->now);
        if (best.pick == PICK_UNIT)
                best.pick_rule = best.role->rules[ROLE_KEY_UNITS];
        else if (best.pick == PICK_EXECUTABLE)
                best.pick_rule = best.role->rules[ROLE_KEY_EXECUTABLES];
        else
                best.pick = best.clamped ? PICK_MOST : PICK_FIRST;
        return best;
}

struct decision policy_evaluate(const struct policy *policy, const struct situation *now,
                                const struct request *request) {
        return policy_evaluate_traced(policy, now, request, NULL);
}

struct decision policy_evaluate_traced(const struct policy *policy, const struct situation *now,
                                       const struct request *request,
                                       struct policy_trace *trace) {
        struct trial t = { .policy = policy, .now = now, .request = request, .trace = trace };
        const struct role *role;

        if (!check_ranges(&t) || !check_namespace(&t))
                return t.decision;

        if (!request->role || request->role[0] == '\0')
                return evaluate_every_role(&t);

        role = policy_find_role(policy, request->role, NULL);
        if (!role) {
                refuse(&t, REASON_NO_SUCH_ROLE, no_rule);
                return t.decision;
        }

        return evaluate_role(&t, role);
}

/* Of a role about which polkit is to be asked. */
static enum reason authority_reason(const struct policy *policy, const struct role *role,
                                    const struct situation *now) {
        if (now->authority == AUTHORITY_UNASKED)
                return REASON_NEEDS_AUTHORIZATION;
        if (!is_answered(policy, role, now))
                return REASON_NOT_AUTHORIZED;

        return answer_reason(now->authority);
}

static bool session_is_lacking(const struct situation *now) {
        return now->session != SESSION_UNREAD && now->session != SESSION_ACTIVE;
}

enum reason policy_role_admits(const struct policy *policy, const struct role *role,
                               const struct situation *now, struct rule *ret_rule) {
        const struct rule *rules = role->rules;

        if (id_list_has(&role->deny_users, now->uid)) {
                *ret_rule = rules[ROLE_KEY_DENY_USERS];
                return REASON_DENIED;
        }
        if (id_list_has_any(&role->deny_groups, now->gids, now->n_gids)) {
                *ret_rule = rules[ROLE_KEY_DENY_GROUPS];
                return REASON_DENIED;
        }
        if (id_list_has(&role->allow_users, now->uid)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_USERS];
                return REASON_NONE;
        }
        if (id_list_has_any(&role->allow_groups, now->gids, now->n_gids)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_GROUPS];
                return REASON_NONE;
        }
        if (role->sessions & 1U << now->session) {
                *ret_rule = rules[ROLE_KEY_ALLOW_SESSIONS];
                return REASON_NONE;
        }
        if (policy->ask_polkit && role->action[0] != '\0') {
                enum reason reason = authority_reason(policy, role, now);

                *ret_rule = rules[ROLE_KEY_ACTION];
                /* The commonest cause of a no, and polkit does not say it. */
                return reason == REASON_NOT_AUTHORIZED && is_answered(policy, role, now) &&
                                       session_is_lacking(now)
                               ? REASON_NO_ACTIVE_SESSION
                               : reason;
        }
        if (role->sessions != 0 && session_is_lacking(now)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_SESSIONS];
                return REASON_NO_ACTIVE_SESSION;
        }

        /* The list that the caller would have to be put on. */
        *ret_rule = rules[ROLE_KEY_ALLOW_GROUPS].file ? rules[ROLE_KEY_ALLOW_GROUPS]
                                                      : rules[ROLE_KEY_ALLOW_USERS];
        return REASON_NOT_ALLOWED;
}

const struct role *policy_find_role(const struct policy *policy, const char *name,
                                    size_t *ret_index) {
        for (size_t i = 0; i < policy->n_roles; i++)
                if (strcmp(policy->roles[i].name, name) == 0) {
                        if (ret_index)
                                *ret_index = i;
                        return &policy->roles[i];
                }

        return NULL;
}
