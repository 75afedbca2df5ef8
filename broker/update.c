/* SPDX-License-Identifier: MIT */

#include "broker/update.h"

#include "broker/answer.h"
#include "broker/apply.h"
#include "broker/broker.h"
#include "broker/decide.h"
#include "broker/guard/act.h"
#include "broker/kinds/rttime.h"

/* What can be changed. */
#define WANTS_CHANGED (WIRE_WANT_SCHED | WIRE_WANT_NICE)

static void refuse_update(const struct call *call, struct wire_answer *answer, enum reason reason,
                          const struct request *request, const struct decision *decision,
                          const char *cause) {
        const struct refusal refusal = {
                .reason = reason,
                .uid = call->peer->uid,
                .policy = broker_policy(call->broker),
                .request = request,
                .decision = decision,
                .cause = cause,
        };

        answer_refuse(answer, &refusal);
}

/* The common end of UPDATE and RENEW: ask the policy, do it. False if polkit has to be asked. */
static bool change_lease(const struct call *call, struct lease *lease,
                         const struct request *request, const struct resource_wants *resources,
                         uint64_t flags, struct wire_answer *answer,
                         struct authority_question *ret_question) {
        const struct ask ask = {
                .request = request,
                .resources = resources,
                .lease = lease,
                .user = lease->user,
                .pid = lease->thread.pid,
                .tid = lease->thread.tid,
                .in_user_namespace = call->peer->in_user_namespace,
                .interactive = flags & WIRE_ACQUIRE_MAY_ASK,
        };
        struct broker *broker = call->broker;
        struct grant_outcome outcome;
        struct decision decision;
        struct wanted wanted;
        enum reason reason;
        bool uses_token;

        decision = decide(call, &ask, &uses_token, ret_question);
        if (decision.verdict == VERDICT_ASK)
                return false;
        if (decision.verdict == VERDICT_DENY) {
                refuse_update(call, answer, decision.reason, request, &decision,
                              decide_cause(broker, &decision));
                return true;
        }
        reason = request->wants_sched ? rttime_admit(broker, &decision, lease->thread.pid)
                                      : REASON_NONE;
        if (reason != REASON_NONE) {
                refuse_update(call, answer, reason, request, &decision, NULL);
                return true;
        }
        if (decision.clamped)
                answer->flags |= WIRE_ANSWER_CLAMPED;
        if (flags & WIRE_ACQUIRE_DRY_RUN) {
                answer_dry_run(request, &decision, lease->thread.tid, answer);
                return true;
        }

        wanted = apply_wanted(request, &decision);
        reason = apply_decision(broker, lease, resources, &decision, &wanted, &outcome);
        if (reason != REASON_NONE) {
                refuse_update(call, answer, reason, request, NULL, outcome.cause);
                return true;
        }
        answer_outcome(lease, &outcome, answer);
        answer_note(lease, answer);
        if (uses_token)
                (void) bucket_take(&lease->user->grants, broker_now_us(broker));
        if (request->lifetime == LIFETIME_SECONDS)
                (void) lease_set_expiry(broker, lease, decision.lifetime_s, broker_now_ms());
        return true;
}

static void finish_change(const struct call *call, struct lease *lease,
                          struct wire_answer *answer) {
        if (answer->reason != REASON_NONE || (answer->flags & WIRE_ANSWER_DRY_RUN))
                return;

        (void) guard_act_watch(call->broker, lease);
        rttime_supervise(call->broker, lease);
        lease_save(call->broker, lease, NULL);
        if (answer->tid == 0)
                answer_describe(lease, answer); /* its timing alone was changed */
        broker_tell(call->broker, lease, WIRE_EVENT_UPDATED, REASON_NONE, "changed by its holder");
}

/* Timing alone is declared anew for what the lease holds. */
static struct request update_request(const struct lease *lease, const struct wire_update *wire) {
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];
        bool declares = wire->period_ns != 0;
        struct request request = {
                .role = lease->role,
                .wants_sched = wire->want & WIRE_WANT_SCHED,
                .policy = (int) wire->policy,
                .priority = wire->priority,
                .wants_nice = wire->want & WIRE_WANT_NICE,
                .nice = wire->nice,
                .clamp = wire->flags & WIRE_ACQUIRE_CLAMP,
                .period_ns = declares ? wire->period_ns : lease->timing.period_ns,
                .computation_ns = declares ? wire->computation_ns : lease->timing.computation_ns,
        };

        if (wire->want == 0 && sched->held) {
                request.wants_sched = true;
                request.policy = sched->set.sched.policy;
                request.priority = sched->set.sched.priority;
        } else if (wire->want == 0 && nice->held) {
                request.wants_nice = true;
                request.nice = nice->set.nice.nice;
        }
        return request;
}

bool update_lease(const struct call *call, struct lease *lease, const struct wire_update *wire,
                  struct wire_answer *answer, struct authority_question *ret_question) {
        const uint64_t flags = WIRE_ACQUIRE_DRY_RUN | WIRE_ACQUIRE_CLAMP | WIRE_ACQUIRE_MAY_ASK;
        const struct timing timing = { wire->period_ns, wire->computation_ns, wire->deadline_ns };
        static const struct resource_wants no_resources;
        const struct request request = update_request(lease, wire);

        if ((wire->flags & ~flags) != 0 || (wire->want & ~(uint32_t) WIRE_WANT_ALL) != 0 ||
            !timing_is_sound(&timing) || (wire->want == 0 && !timing_is_declared(&timing))) {
                refuse_update(call, answer, REASON_INVALID, NULL, NULL, NULL);
                return true;
        }
        if ((wire->want & ~(uint32_t) WANTS_CHANGED) != 0) {
                refuse_update(call, answer, REASON_UNSUPPORTED, NULL, NULL, NULL);
                return true;
        }

        answer->flags |= WIRE_ANSWER_UPDATED;
        if (!change_lease(call, lease, &request, &no_resources, wire->flags, answer, ret_question))
                return false;
        if (answer->reason == REASON_NONE && timing_is_declared(&timing) &&
            !(wire->flags & WIRE_ACQUIRE_DRY_RUN))
                lease->timing = timing;
        finish_change(call, lease, answer);
        return true;
}

void update_renew(const struct call *call, struct lease *lease, unsigned lifetime_s,
                  struct wire_answer *answer) {
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];
        struct resource_wants resources;
        struct request request = {
                .role = lease->role,
                .wants_sched = sched->held,
                .policy = sched->set.sched.policy,
                .priority = sched->set.sched.priority,
                .wants_nice = nice->held,
                .nice = nice->set.nice.nice,
                .lifetime = lifetime_s > 0 ? LIFETIME_SECONDS : LIFETIME_THREAD,
                .lifetime_s = lifetime_s,
        };
        struct authority_question question;

        if ((lease->lifetime == WIRE_LIFETIME_SECONDS) != (lifetime_s != 0)) {
                refuse_update(call, answer, REASON_INVALID, NULL, NULL, NULL);
                return;
        }

        answer->flags |= WIRE_ANSWER_UPDATED;
        resource_request_held(lease, &request, &resources);
        if (grant_verify(lease) == 0 || resource_in_force(lease) == 0)
                lease->state = WIRE_LEASE_CHANGED;
        /* nothing that polkit would have to be asked about: it is what the lease holds */
        (void) change_lease(call, lease, &request, &resources, /* flags= */ 0, answer, &question);
        finish_change(call, lease, answer);
}
