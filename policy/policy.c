/* SPDX-License-Identifier: MIT */

/* The checks, one after the other. */

#include <string.h>

#include "policy/trial.h"

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
        { check_nice, applies_to_nice, ROLE_KEY_NICE },
        { check_lifetime, applies_to_seconds, ROLE_KEY_LIFETIME_MAX },
        { check_resources, applies_if_refused, ROLE_KEY_MEMLOCK },
        { check_order, applies_if_refused, ROLE_KEY_BELOW },
        { check_timing, applies_to_timing, ROLE_KEY_DECLARED_CPU },
        { check_broker_state, applies_if_refused, ROLE_KEY_PRIORITY },
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

struct decision evaluate_role(const struct trial *caller, const struct role *role) {
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
