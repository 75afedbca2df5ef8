/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_TRIAL_H
#define RTGRANT_POLICY_TRIAL_H

/* One answer in the making, for the files that make up policy_evaluate(). */

#include <sched.h>

#include "policy/policy.h"

/* What the kernel takes, sched(7) and setpriority(2). */
#define PRIORITY_LOWEST 1
#define PRIORITY_HIGHEST 99
#define NICE_STRONGEST (-20)
#define NICE_WEAKEST 19

static const struct rule no_rule = { .file = NULL };

/* Each check passes, lowers the answer, or turns it into a refusal. */
struct trial {
        const struct policy *policy;
        const struct situation *now;
        const struct request *request;
        const struct role *role;        /* NULL: none chosen yet */
        struct decision decision;
        bool by_polkit;                 /* no list lets the caller in: polkit does, or is to be asked */
        struct policy_trace *trace;     /* NULL: nobody wants to know */
};

struct limit {
        struct rule rule;
        int64_t asked;
        int64_t low;
        int64_t high;
};

/* The refusals return false, so that a check can end with one. */
static inline bool refuse_limit(struct trial *t, enum reason reason, struct limit limit) {
        t->decision = (struct decision) {
                .verdict = VERDICT_DENY,
                .reason = reason,
                .role = t->role,
                .rule = limit.rule,
                .asked = limit.asked,
                .limit = limit.high,
                .limit_low = limit.low,
        };
        return false;
}

static inline bool refuse(struct trial *t, enum reason reason, struct rule rule) {
        return refuse_limit(t, reason, (struct limit) { .rule = rule });
}

/* Notes that a limit lowers the grant; the first one explains it. Returns true. */
static inline bool clip(struct trial *t, struct limit limit) {
        struct decision *d = &t->decision;

        if (!d->clamped) {
                d->clamped = true;
                d->rule = limit.rule;
                d->asked = limit.asked;
                d->limit = limit.high;
                d->limit_low = limit.low;
        }
        return true;
}

static inline bool is_realtime(const struct request *request) {
        return request->wants_sched &&
               (request->policy == SCHED_FIFO || request->policy == SCHED_RR);
}

/* 0 where the role has no band. */
static inline int role_priority_max(const struct role *role) {
        return role->priority_max < POLICY_PRIORITY_CEILING ? role->priority_max
                                                            : POLICY_PRIORITY_CEILING;
}

/* Each check_...() says whether the request passes; if not, t->decision is the refusal. */

/* ---- request.c ---- */

bool check_ranges(struct trial *t);

/* ---- admit.c ---- */

bool check_namespace(struct trial *t);
bool check_admission(struct trial *t);

/* Whether polkit's answer is about @role. */
bool authority_is_answered(const struct policy *policy, const struct role *role,
                           const struct situation *now);

/* ---- limits.c ---- */

bool role_has_band(const struct role *role);
bool check_policy(struct trial *t);
bool check_priority(struct trial *t);
bool check_nice(struct trial *t);
bool check_lifetime(struct trial *t);
bool check_broker_state(struct trial *t);
bool check_quotas(struct trial *t);
bool check_rate(struct trial *t);

/* ---- resources.c ---- */

bool check_resources(struct trial *t);

/* ---- choose.c ---- */

/* The best that any role answers. */
struct decision evaluate_every_role(const struct trial *t);

/* ---- policy.c ---- */

/* What one role answers. */
struct decision evaluate_role(const struct trial *caller, const struct role *role);

/* ---- timing.c ---- */

/* The priority that @request means within @role: its own, or a place in the role's band. */
int timing_priority(const struct role *role, const struct request *request);

/* The highest that its declared period may have in @role; without one, the end of the band. */
int timing_priority_max(const struct role *role, const struct request *request);

/* Whether what is declared is left over: of the CPUs, and of the role's part of them. */
bool check_timing(struct trial *t);

/* ---- order.c ---- */

/* The priority stays below what the thread feeds, and below the roles that its own names. */
bool check_order(struct trial *t);

#endif
