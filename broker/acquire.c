/* SPDX-License-Identifier: MIT */

#include "broker/acquire.h"

#include <stdio.h>
#include <string.h>

#include "broker/answer.h"
#include "broker/apply.h"
#include "broker/connection.h"
#include "broker/decide.h"
#include "broker/explain.h"
#include "broker/guard/act.h"
#include "broker/kernel-cause.h"
#include "broker/kinds/resources.h"
#include "broker/kinds/rttime.h"
#include "broker/session.h"
#include "broker/standing.h"
#include "broker/text.h"

/* The nice value that stands in for a real-time priority which cannot be had. */
#define NICE_INSTEAD (-11)

/* A kind without its value, or a value without its kind: half a request must not pass for a whole.
 */
static bool is_whole(const struct wire_acquire *wire, enum wire_want want, uint64_t value,
                     const char *device) {
        bool wanted = wire->want & (uint32_t) want;

        return wanted == (value != 0) && (!device || wanted == (device[0] != '\0'));
}

static enum reason check_form(const struct call *call, const struct wire_acquire *wire,
                              const struct timing *timing) {
        if ((wire->flags & ~(uint64_t) WIRE_ACQUIRE_FLAGS_ALL) != 0 ||
            (wire->want & ~(uint32_t) WIRE_WANT_ALL) != 0)
                return REASON_INVALID;
        if (!is_whole(wire, WIRE_WANT_MEMLOCK, wire->memlock_bytes, NULL) ||
            !is_whole(wire, WIRE_WANT_CPU_LATENCY, wire->cpu_latency_us, NULL) ||
            !is_whole(wire, WIRE_WANT_BLOCK_QUEUE, wire->block_max_sectors_kb, wire->block) ||
            !is_whole(wire, WIRE_WANT_IRQ, wire->irq[0] != '\0', wire->irq) ||
            (wire->irq[0] == '\0' && wire->irq_priority != 0) || wire->padding != 0 ||
            wire->padding2 != 0)
                return REASON_INVALID;
        if (!(wire->flags & WIRE_ACQUIRE_RELATIVE) && wire->relative != 0)
                return REASON_INVALID;
        if (wire->feeds_tid != 0 && call->peer->ns_depth > 0)
                return REASON_NAMESPACE; /* its number is of another namespace */
        if (wire->feeds_tid > INT32_MAX)
                return REASON_INVALID;
        if (wire->lifetime > WIRE_LIFETIME_SECONDS ||
            (wire->lifetime == WIRE_LIFETIME_SECONDS) != (wire->lifetime_s != 0))
                return REASON_INVALID;
        if (((wire->flags & WIRE_ACQUIRE_PIDFD) != 0) != (call->pidfd >= 0))
                return REASON_INVALID;

        return timing_is_sound(timing) ? REASON_NONE : REASON_INVALID;
}

static struct request request_from(const struct wire_acquire *wire) {
        static const enum lifetime lifetimes[] = {
                [WIRE_LIFETIME_THREAD] = LIFETIME_THREAD,
                [WIRE_LIFETIME_CONNECTION] = LIFETIME_CONNECTION,
                [WIRE_LIFETIME_SECONDS] = LIFETIME_SECONDS,
        };

        struct request request = {
                .role = wire->role,
                .wants_sched = wire->want & WIRE_WANT_SCHED,
                .policy = (int) wire->policy,
                .priority = wire->priority,
                .is_relative = wire->flags & WIRE_ACQUIRE_RELATIVE,
                .relative = wire->relative,
                .period_ns = wire->period_ns,
                .computation_ns = wire->computation_ns,
                .wants_nice = wire->want & WIRE_WANT_NICE,
                .nice = wire->nice,
                .lifetime = lifetimes[wire->lifetime],
                .lifetime_s = wire->lifetime_s,
                .clamp = wire->flags & WIRE_ACQUIRE_CLAMP,
        };

        resource_request(wire, &request);
        return request;
}

/* The lease that the thread has already, if it is still that thread and that user. */
static struct lease *find_existing(const struct call *call, const struct target *target) {
        struct lease *lease = lease_find_by_tid(&call->broker->leases, target->thread.tid);

        if (!lease)
                return NULL;
        if (lease->thread.inode != target->thread.inode ||
            lease->thread.start_time != target->thread.start_time) {
                lease_end(call->broker, lease, REASON_THREAD_ENDED, "its thread ended");
                return NULL;
        }
        if (lease->uid != call->peer->uid) {
                lease_end(call->broker, lease, REASON_CREDENTIALS_CHANGED,
                          "its thread runs as another user");
                return NULL;
        }

        return lease;
}

/* All that is known of a request on its way. */
struct acquisition {
        const struct call *call;
        const struct wire_acquire *wire;
        struct timing timing;
        struct request request;
        struct target target;
        struct user *user;   /* whose quota it takes */
        struct lease *lease; /* that the thread has already; NULL if none */
        struct decision decision;
        struct resource_wants resources;
        struct irq_rung fed;
        bool uses_token;
};

static struct refusal refusal_of(const struct acquisition *a, enum reason reason) {
        return (struct refusal){
                .reason = reason,
                .uid = a->call->peer->uid,
                .pid = a->wire->pid,
                .tid = a->wire->tid,
                .policy = broker_policy(a->call->broker),
                .request = &a->request,
                .feeds_tid = (pid_t) a->wire->feeds_tid,
                .feeds = a->wire->feeds,
                .session = reason == REASON_NO_ACTIVE_SESSION
                                   ? session_read(a->call->peer->pid, a->call->peer->uid)
                                   : SESSION_UNREAD,
                .action = a->call->action,
        };
}

static void finish_grant(const struct acquisition *a, struct lease *lease, bool is_new) {
        struct broker *broker = a->call->broker;

        if (a->wire->reason[0] != '\0' || is_new)
                text_escape(lease->reason, sizeof(lease->reason), a->wire->reason,
                            sizeof(a->wire->reason));
        if (timing_is_declared(&a->timing) || is_new)
                lease->timing = a->timing;
        lease->lifetime = a->wire->lifetime;
        lease_bind(lease, lease->lifetime == WIRE_LIFETIME_CONNECTION ? a->call->connection : NULL);
        (void) lease_set_expiry(broker, lease, a->decision.lifetime_s,
                                is_new ? lease->since_ms : broker_now_ms());
        (void) guard_act_watch(broker, lease);
        rttime_supervise(broker, lease);
        lease_save(broker, lease, NULL);

        broker_tell(broker, lease, is_new ? WIRE_EVENT_GRANTED : WIRE_EVENT_UPDATED, REASON_NONE,
                    is_new ? "granted" : "changed by its holder");
}

/* The decision is yes: do it. */
static enum reason carry_out(struct acquisition *a, struct wire_answer *answer,
                             struct grant_outcome *outcome) {
        struct broker *broker = a->call->broker;
        struct wanted wanted = apply_wanted(&a->request, &a->decision);
        struct lease *lease = a->lease;
        bool is_new = !lease;
        enum reason reason;

        wanted.checked = true;
        if (is_new) {
                if (lease_new(broker, a->user, a->call->peer->uid, &a->target, &lease) < 0)
                        return REASON_RESOURCES;
                lease->transport = a->call->transport;
                lease_set_role(broker, lease, a->decision.role);
        } else {
                lease->creds = a->target.creds; /* checked just now */
        }

        reason = apply_decision(broker, lease, &a->resources, &a->decision, &wanted, outcome);
        if (reason == REASON_NONE && is_new && lease_add(broker, lease) < 0) {
                grant_restore(broker, lease);
                reason = REASON_RESOURCES;
        }
        if (reason != REASON_NONE) {
                if (is_new)
                        (void) lease_free(broker, lease);
                lease_count_rt(broker, false, false);
                return reason;
        }

        if (!is_new)
                answer->flags |= WIRE_ANSWER_UPDATED;
        lease_set_role(broker, lease, a->decision.role);
        if (!is_new)
                resource_role_changed(broker, lease);
        finish_grant(a, lease, is_new);
        answer_outcome(lease, outcome, answer);
        explain_grant(&answer->explanation, &a->decision);
        answer_note(lease, answer);
        return REASON_NONE;
}

static enum reason find_target(struct acquisition *a) {
        const struct target_request target = {
                .pid = a->wire->pid,
                .tid = a->wire->tid,
                .pidfd = a->call->pidfd,
                .inode = a->wire->pidfd_inode,
        };
        struct broker *broker = a->call->broker;
        uint64_t now_us = broker_now_us(broker);
        enum reason reason;

        reason = target_resolve(&broker->kernel, a->call->peer, &target, &a->target);
        /* looking through the threads of a namespace is work: each counts for a message */
        for (unsigned n = a->target.n_scanned; n > 0; n--)
                (void) bucket_take(&a->call->user->messages, now_us);
        if (reason != REASON_NONE)
                return reason;

        a->user = user_get(&broker->users, broker_policy(broker), a->target.quota_uid, now_us);
        if (!a->user)
                return REASON_RESOURCES;
        a->lease = find_existing(a->call, &a->target);
        return REASON_NONE;
}

/* The interrupt below which the thread is to stay. */
static enum reason find_fed(struct acquisition *a, char *cause, size_t size) {
        const struct wire_acquire *wire = a->wire;

        if (wire->feeds[0] == '\0')
                return REASON_NONE;

        a->request.raises_fed = wire->want & WIRE_WANT_IRQ && strcmp(wire->irq, wire->feeds) == 0;
        return irq_find_lowest(a->call->broker, wire->feeds, &a->fed, cause, size);
}

static struct ask ask_of(const struct acquisition *a) {
        return (struct ask){
                .request = &a->request,
                .lease = a->lease,
                .user = a->user,
                .pid = a->target.thread.pid,
                .tid = a->target.thread.tid,
                .feeds_tid = (pid_t) a->wire->feeds_tid,
                .fed = a->fed,
                .resources = &a->resources,
                .in_user_namespace = a->target.in_user_namespace,
                .interactive = a->wire->flags & WIRE_ACQUIRE_MAY_ASK,
        };
}

/* What can be known of the kernel's answer without asking it. */
static bool kernel_would_refuse(const struct acquisition *a, struct grant_outcome *outcome) {
        return a->request.wants_sched && sched_is_rt(a->decision.policy) &&
               kernel_cause_lacks_budget(a->target.thread.tid, outcome->cause,
                                         sizeof(outcome->cause));
}

/* False if polkit has to be asked before. */
static bool serve(struct acquisition *a, struct wire_answer *answer,
                  struct authority_question *ret_question) {
        const struct call *call = a->call;
        const struct ask ask = ask_of(a);
        char standing[STANDING_SIZE];
        struct refusal refusal;
        struct grant_outcome outcome = {};
        enum reason reason;

        a->decision = decide(call, &ask, &a->uses_token, ret_question);
        if (a->decision.verdict == VERDICT_ASK)
                return false;

        answer->pid = (uint64_t) a->target.thread.pid;
        answer->tid = (uint64_t) a->target.thread.tid;
        if (a->decision.verdict == VERDICT_DENY) {
                refusal = refusal_of(a, a->decision.reason);
                refusal.decision = &a->decision;
                refusal.cause = decide_cause(call->broker, &a->decision);
                if (a->decision.about_resource &&
                    a->request.unavailable[a->decision.resource] == a->decision.reason)
                        refusal.cause =
                                resource_cause(call->broker, a->decision.resource, &a->resources);
                if (refusal.reason == REASON_ABOVE_SERVER) {
                        standing_describe(call, &ask, &a->decision, standing);
                        refusal.cause = standing;
                }
                answer_refuse(answer, &refusal);
                return true;
        }
        if (a->request.wants_sched && !call->check_rttime) {
                reason = rttime_admit(call->broker, &a->decision, a->target.thread.pid);
                if (reason != REASON_NONE) {
                        refusal = refusal_of(a, reason);
                        refusal.decision = &a->decision;
                        answer_refuse(answer, &refusal);
                        return true;
                }
        }
        if (a->decision.clamped)
                answer->flags |= WIRE_ANSWER_CLAMPED;
        if (a->wire->flags & WIRE_ACQUIRE_DRY_RUN && kernel_would_refuse(a, &outcome)) {
                refusal = refusal_of(a, REASON_KERNEL_RT_GROUP);
                refusal.cause = outcome.cause;
                answer_refuse(answer, &refusal);
                return true;
        }
        if (a->wire->flags & WIRE_ACQUIRE_DRY_RUN) {
                answer_dry_run(&a->request, &a->decision, a->target.thread.tid, answer);
                explain_grant(&answer->explanation, &a->decision);
                return true;
        }

        reason = carry_out(a, answer, &outcome);
        if (reason != REASON_NONE) {
                refusal = refusal_of(a, reason);
                refusal.cause = outcome.cause;
                answer_refuse(answer, &refusal);
                return true;
        }
        if (a->uses_token)
                (void) bucket_take(&a->user->grants, broker_now_us(call->broker));
        return true;
}

/* What is asked instead, one rung down. False below the last. */
static bool step_down(struct acquisition *a, enum wire_rung rung) {
        struct request *request = &a->request;

        request->clamp = true;
        request->role = "";
        switch (rung) {
        case WIRE_RUNG_AS_ASKED:
                return false;
        case WIRE_RUNG_RR:
                if (!request->wants_sched || !sched_is_rt(request->policy))
                        return false;
                request->policy = SCHED_RR;
                return true;
        case WIRE_RUNG_NICE:
                if (!request->wants_nice)
                        request->nice = NICE_INSTEAD;
                request->wants_nice = true;
                request->wants_sched = false;
                request->is_relative = false;
                request->relative = 0;
                request->priority = 0;
                return true;
        }
        return false;
}

/* As serve(), and what is refused is tried one rung lower. The answer is the first refusal if
 * nothing at all can be had. */
static bool serve_or_less(struct acquisition *a, struct wire_answer *answer,
                          struct authority_question *ret_question) {
        const struct request asked = a->request;
        struct wire_answer first;

        a->request.clamp = true;
        if (!serve(a, answer, ret_question))
                return false;

        first = *answer;
        for (enum wire_rung rung = WIRE_RUNG_RR;
             answer->reason != REASON_NONE && rung <= WIRE_RUNG_NICE; rung++) {
                a->request = asked;
                if (!step_down(a, rung))
                        continue;
                /* a lease that came to nothing took the thread with it */
                if (a->target.thread.fd < 0 && find_target(a) != REASON_NONE)
                        break;
                *answer = (struct wire_answer){};
                if (!serve(a, answer, ret_question))
                        return false;
                answer->rung = rung;
        }
        if (answer->reason != REASON_NONE)
                *answer = first;
        return true;
}

/* The policy says so too; but looking for the thread in a namespace is work, for nothing here. */
static bool refuse_namespace(const struct acquisition *a, struct wire_answer *answer) {
        const struct policy *policy = broker_policy(a->call->broker);
        const struct decision decision = {
                .verdict = VERDICT_DENY,
                .reason = REASON_USER_NAMESPACE,
                .rule = policy->rules[BROKER_KEY_USER_NAMESPACES],
        };
        struct refusal refusal;

        if (!a->call->peer->in_user_namespace || policy->user_namespaces)
                return false;

        refusal = refusal_of(a, REASON_USER_NAMESPACE);
        refusal.decision = &decision;
        answer_refuse(answer, &refusal);
        return true;
}

bool acquire_lease(const struct call *call, const struct wire_acquire *wire,
                   struct wire_answer *answer, struct authority_question *ret_question) {
        struct acquisition a = {
                .call = call,
                .wire = wire,
                .timing = { wire->period_ns, wire->computation_ns, wire->deadline_ns },
                .target.thread = THREAD_NONE,
        };
        char cause[256] = "";
        struct refusal refusal;
        enum reason reason;
        bool done = true;

        reason = check_form(call, wire, &a.timing);
        if (reason == REASON_NONE) {
                a.request = request_from(wire);
                if (refuse_namespace(&a, answer))
                        return true;
                reason = find_target(&a);
        }
        if (reason == REASON_NONE && call->check_rttime)
                reason = rttime_check(call->broker, a.target.thread.pid, /* required= */ true);
        if (reason == REASON_NONE)
                reason = find_fed(&a, cause, sizeof(cause));
        if (reason == REASON_NONE) {
                resource_find(call->broker, &a.target.thread, wire, &a.request, &a.resources);
                done = wire->flags & WIRE_ACQUIRE_OR_LESS ? serve_or_less(&a, answer, ret_question)
                                                          : serve(&a, answer, ret_question);
        } else {
                refusal = refusal_of(&a, reason);
                refusal.cause = cause;
                answer_refuse(answer, &refusal);
        }

        thread_close(&a.target.thread);
        return done;
}

static void describe_step(const struct policy_step *step, struct wire_step *ret) {
        *ret = (struct wire_step){
                .reason = step->reason,
                .flags = (step->clamped ? WIRE_STEP_CLAMPED : 0) | (step->ask ? WIRE_STEP_ASK : 0),
                .asked = step->asked,
                .limit = step->limit,
        };
        text_copy(ret->role, sizeof(ret->role), step->role->name);
        if (step->rule.file)
                (void) snprintf(ret->rule, sizeof(ret->rule), "%s:%u", step->rule.file,
                                step->rule.line);
}

enum reason acquire_why(const struct call *call, const struct wire_acquire *wire,
                        struct wire_why_reply *ret) {
        struct acquisition a = {
                .call = call,
                .wire = wire,
                .timing = { wire->period_ns, wire->computation_ns, wire->deadline_ns },
                .target.thread = THREAD_NONE,
        };
        struct policy_trace trace = {};
        enum reason reason;
        char cause[256];
        struct ask ask;

        reason = check_form(call, wire, &a.timing);
        if (reason == REASON_NONE && call->peer->in_user_namespace &&
            !broker_policy(call->broker)->user_namespaces)
                reason = REASON_USER_NAMESPACE;
        if (reason == REASON_NONE) {
                a.request = request_from(wire);
                reason = find_target(&a);
        }
        if (reason == REASON_NONE)
                reason = find_fed(&a, cause, sizeof(cause));
        if (reason == REASON_NONE) {
                resource_find(call->broker, &a.target.thread, wire, &a.request, &a.resources);
                ask = ask_of(&a);
                (void) decide_traced(call, &ask, &trace);
        }

        memset(ret, 0, offsetof(struct wire_why_reply, steps));
        ret->step_size = sizeof(struct wire_step);
        for (size_t i = 0; i < trace.n_steps && i < WIRE_STEPS_MAX; i++)
                describe_step(&trace.steps[i], &ret->steps[ret->n_steps++]);
        thread_close(&a.target.thread);
        return reason;
}
