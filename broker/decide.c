/* SPDX-License-Identifier: MIT */

#include "broker/decide.h"

#include <string.h>

#include "broker/facts.h"
#include "broker/guard/act.h"
#include "broker/session.h"
#include "broker/text.h"

struct situation decide_situation(const struct call *call, struct user *user) {
        struct broker *broker = call->broker;
        uint64_t now_us = broker_now_us(broker);
        struct situation now;

        now = (struct situation) {
                .authority = call->authority,
                .authority_role = call->authority_role,
                .resources_answered = call->resources_answered,
                .uid = call->peer->uid,
                .gids = call->peer->gids,
                .n_gids = call->peer->n_gids,
                .in_user_namespace = call->peer->in_user_namespace,
                .quota_uid = user->uid,
                .session = facts_session_matters(broker_policy(broker))
                                   ? session_read(call->peer->pid, call->peer->uid)
                                   : SESSION_UNREAD,
                .rt_possible = broker->self.broken == REASON_NONE,
                .threads_held = user->n_leases,
                .threads_held_by_role = user->threads_by_role,
                .threads_total = lease_table_size(&broker->leases),
                .grant_tokens = bucket_tokens(&user->grants, now_us),
                .grant_wait_ms =
                        (unsigned) ((bucket_wait_us(&user->grants, 1, now_us) + 999) / 1000),
        };
        memcpy(now.resource_answers, call->resource_answers, sizeof(now.resource_answers));
        return now;
}

/* Whether the lease would hold more than it does. Asking again for what is there costs nothing. */
static bool is_raise(const struct lease *lease, const struct ask *ask) {
        const struct request *request = ask->request;
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];

        if (lease->state != WIRE_LEASE_IN_FORCE || request->is_relative)
                return true;
        if (request->wants_sched && (!sched->held || sched->set.sched.policy != request->policy ||
                                     request->priority > sched->set.sched.priority))
                return true;

        if (request->wants_nice && (!nice->held || request->nice < nice->set.nice.nice))
                return true;

        return resource_is_raise(lease, request, ask->resources);
}

static const char *policy_word(const struct request *request, const struct decision *decision) {
        if (!request->wants_sched || decision->policy == SCHED_OTHER)
                return "other";

        return decision->policy == SCHED_FIFO ? "fifo" : "rr";
}

/* What polkit is told of the resource that it is asked about. */
static void describe_resource(const struct ask *ask, const struct decision *decision,
                              struct authority_question *question) {
        const struct resource_wants *resources = ask->resources;
        size_t n = 0;

        question->value = decision->values[decision->resource];
        for (unsigned i = 0; i < resources->n_names[decision->resource]; i++) {
                const char *label = resources->names[decision->resource][i].label;

                if (n > 0 && n + 1 < sizeof(question->device))
                        question->device[n++] = ' ';
                text_escape(question->device + n, sizeof(question->device) - n, label,
                            strlen(label));
                n = strlen(question->device);
        }
}

static struct authority_question make_question(const struct call *call, const struct ask *ask,
                                               const struct decision *decision) {
        struct authority_question question = {
                .action = decision->about_resource ? resource_action(decision->resource)
                          : call->action           ? call->action
                                                   : decision->role->action,
                .resource = decision->about_resource ? (int) decision->resource : -1,
                .bus_name = call->bus_name,
                .pid = call->peer->pid,
                .uid = call->peer->uid,
                .quota_uid = call->peer->quota_uid,
                .interactive = ask->interactive,
                .role_index = (size_t) (decision->role - broker_policy(call->broker)->roles),
                .role = decision->role->name,
                .policy = policy_word(ask->request, decision),
                .priority = decision->priority,
                .nice = decision->nice,
        };

        if (decision->about_resource)
                describe_resource(ask, decision, &question);
        return question;
}

/* What the policy says, by all that it may have to know. */
static struct decision evaluate(const struct call *call, struct situation *now,
                                const struct request *request, struct policy_trace *trace) {
        const struct policy *policy = broker_policy(call->broker);
        struct policy_trace none;
        struct decision decision;

        decision = policy_evaluate_traced(policy, now, request, trace);
        /* Most are let in by a list. Who is not learns whether that is for want of a session. */
        if (decision.reason != REASON_NOT_AUTHORIZED || now->session != SESSION_UNREAD)
                return decision;

        now->session = session_read(call->peer->pid, call->peer->uid);
        if (now->session == SESSION_UNREAD)
                return decision;
        none = (struct policy_trace) {};
        if (trace)
                *trace = none;
        return policy_evaluate_traced(policy, now, request, trace);
}

static struct situation gather(const struct call *call, const struct ask *ask, struct facts *facts,
                               bool *ret_uses_token) {
        struct broker *broker = call->broker;
        struct situation now = decide_situation(call, ask->user);

        now.in_user_namespace = ask->in_user_namespace;
        *ret_uses_token = !ask->lease || is_raise(ask->lease, ask);
        if (*ret_uses_token)
                now.back_off_ms = guard_act_back_off_ms(broker, ask->user);
        if (ask->lease) {
                now.leased = true;
                now.leased_role = ask->lease->role_index;
        }
        if (!*ret_uses_token) {
                /* no more than was granted: neither a token nor polkit is needed again */
                now.grant_tokens = now.grant_tokens > 0 ? now.grant_tokens : 1;
                now.authority = AUTHORITY_YES;
                now.authority_role = ask->lease->role_index;
                now.resources_answered = ask->request->resources;
                for (size_t i = 0; i < _RESOURCE_MAX; i++)
                        now.resource_answers[i] = AUTHORITY_YES;
        }
        resource_situation(broker, ask->user, ask->pid, ask->request, &now);
        facts_gather(call, ask, facts, &now);
        if (ask->request->wants_sched && sched_is_rt(ask->request->policy))
                now.rt_possible = self_can_raise(&broker->self);
        return now;
}

struct decision decide(const struct call *call, const struct ask *ask, bool *ret_uses_token,
                       struct authority_question *ret_question) {
        struct broker *broker = call->broker;
        struct facts facts;
        struct situation now = gather(call, ask, &facts, ret_uses_token);
        struct decision decision;

        /* What polkit said not long ago it is not asked again, about the role and each resource. */
        for (;;) {
                enum authority_answer answer;

                decision = evaluate(call, &now, ask->request, NULL);
                if (decision.verdict != VERDICT_ASK)
                        return decision;

                *ret_question = make_question(call, ask, &decision);
                answer = broker->authority ? authority_remember(broker->authority, ret_question)
                                           : AUTHORITY_FAILED;
                if (answer == AUTHORITY_UNASKED)
                        return decision;
                if (ret_question->resource >= 0) {
                        now.resources_answered |= 1U << ret_question->resource;
                        now.resource_answers[ret_question->resource] = answer;
                } else {
                        now.authority = answer;
                        now.authority_role = ret_question->role_index;
                }
        }
}

struct decision decide_traced(const struct call *call, const struct ask *ask,
                              struct policy_trace *trace) {
        struct facts facts;
        bool uses_token;
        struct situation now = gather(call, ask, &facts, &uses_token);

        return evaluate(call, &now, ask->request, trace);
}

void decide_answered(struct call *call, int resource, size_t role_index,
                     enum authority_answer answer) {
        if (resource >= 0) {
                call->resources_answered |= 1U << resource;
                call->resource_answers[resource] = answer;
                return;
        }

        call->authority = answer;
        call->authority_role = role_index;
}

enum authority_answer decide_without_role(const struct call *call,
                                          const struct authority_question *about) {
        if (!call->broker->authority || call->peer->in_user_namespace)
                return AUTHORITY_NO;
        if (call->authority != AUTHORITY_UNASKED && call->authority_role == about->role_index)
                return call->authority;

        return authority_remember(call->broker->authority, about);
}

const char *decide_cause(const struct broker *broker, const struct decision *decision) {
        return decision->reason == REASON_DEGRADED ? broker->self.cause : NULL;
}
