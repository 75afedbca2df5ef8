/* SPDX-License-Identifier: MIT */

#include "broker/acquire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/connection.h"
#include "broker/decide.h"
#include "broker/explain.h"
#include "broker/guard/act.h"
#include "broker/grant.h"
#include "broker/kinds/resources.h"
#include "broker/rttime.h"
#include "broker/session.h"
#include "broker/text.h"

/* What UPDATE can change. */
#define WANTS_CHANGED (WIRE_WANT_SCHED | WIRE_WANT_NICE)
#define WANTS_KNOWN                                                                 \
        (WANTS_CHANGED | WIRE_WANT_MEMLOCK | WIRE_WANT_CPU_LATENCY | WIRE_WANT_IRQ | \
         WIRE_WANT_BLOCK_QUEUE)

/* The nice value that stands in for a real-time priority which cannot be had. */
#define NICE_INSTEAD (-11)

static bool timing_is_declared(const struct timing *timing) {
        return timing->period_ns != 0 || timing->computation_ns != 0 || timing->deadline_ns != 0;
}

static bool timing_is_sound(const struct timing *timing) {
        if (!timing_is_declared(timing))
                return true;

        return timing->computation_ns > 0 && timing->computation_ns <= timing->deadline_ns &&
               timing->deadline_ns <= timing->period_ns && timing->period_ns <= POLICY_PERIOD_NS_MAX;
}

/* A kind without its value, or a value without its kind: half a request must not pass for a whole. */
static bool is_whole(const struct wire_acquire *wire, enum wire_want want, uint64_t value,
                     const char *device) {
        bool wanted = wire->want & (uint32_t) want;

        return wanted == (value != 0) && (!device || wanted == (device[0] != '\0'));
}

static enum reason check_form(const struct call *call, const struct wire_acquire *wire,
                              const struct timing *timing) {
        if ((wire->flags & ~(uint64_t) WIRE_ACQUIRE_FLAGS_ALL) != 0 ||
            (wire->want & ~(uint32_t) WANTS_KNOWN) != 0)
                return REASON_INVALID;
        if (!is_whole(wire, WIRE_WANT_MEMLOCK, wire->memlock_bytes, NULL) ||
            !is_whole(wire, WIRE_WANT_CPU_LATENCY, wire->cpu_latency_us, NULL) ||
            !is_whole(wire, WIRE_WANT_BLOCK_QUEUE, wire->block_max_sectors_kb, wire->block) ||
            !is_whole(wire, WIRE_WANT_IRQ, wire->irq[0] != '\0', wire->irq) ||
            (wire->irq[0] == '\0' && wire->irq_priority != 0) ||
            wire->padding != 0 || wire->padding2 != 0)
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

static void refuse(const struct call *call, struct wire_answer *answer,
                   const struct refusal *refusal) {
        answer->reason = refusal->reason;
        if (refusal->decision && refusal->decision->role)
                text_copy(answer->role, sizeof(answer->role), refusal->decision->role->name);
        explain_refusal(&answer->explanation, refusal);
}

static struct wanted wanted_from(const struct request *request, const struct decision *decision) {
        return (struct wanted) {
                .sched = request->wants_sched,
                .policy = decision->policy,
                .priority = decision->priority,
                .nice_too = request->wants_nice,
                .nice = decision->nice,
        };
}

static void describe_now(const struct sched_values *now, struct wire_answer *answer) {
        answer->policy = (uint32_t) now->policy;
        answer->priority = now->priority;
        answer->nice = now->nice;
        answer->reset_on_fork = now->reset_on_fork;
}

static void describe_previous(const struct sched_values *before, struct wire_answer *answer) {
        answer->previous_policy = (uint32_t) before->policy;
        answer->previous_priority = before->priority;
        answer->previous_nice = before->nice;
}

static void describe_lease(const struct lease *lease, struct wire_answer *answer) {
        memcpy(answer->id, lease->id, sizeof(answer->id));
        memcpy(answer->role, lease->role, sizeof(answer->role));
        answer->pid = (uint64_t) lease->thread.pid;
        answer->tid = (uint64_t) lease->thread.tid;
        answer->granted_want = (lease->grants[KIND_SCHED].held ? WIRE_WANT_SCHED : 0) |
                               (lease->grants[KIND_NICE].held ? WIRE_WANT_NICE : 0) |
                               resource_held(lease);
        answer->memlock_bytes = (uint64_t) resource_held_value(lease, RESOURCE_MEMLOCK, NULL);
        answer->cpu_latency_us = (uint32_t) resource_held_value(lease, RESOURCE_CPU_LATENCY, NULL);
        answer->block_max_sectors_kb =
                (uint32_t) resource_held_value(lease, RESOURCE_BLOCK_QUEUE, NULL);
        answer->irq_priority = (int32_t) resource_held_value(lease, RESOURCE_IRQ, NULL);
        if (answer->memlock_bytes != 0)
                answer->memlock_locked = memlock_locked(lease->thread.pid);
}

void acquire_describe(const struct lease *lease, struct wire_answer *answer) {
        struct sched_values now;

        describe_lease(lease, answer);
        if (sched_read(lease->thread.tid, &now) >= 0)
                describe_now(&now, answer);
}

static void describe_outcome(const struct lease *lease, const struct grant_outcome *outcome,
                             struct wire_answer *answer) {
        describe_lease(lease, answer);
        describe_previous(&outcome->before, answer);
        describe_now(&outcome->after, answer);
}

static void describe_resources(const struct decision *decision, struct wire_answer *answer) {
        unsigned resources = decision->resources;

        if (resources & 1U << RESOURCE_MEMLOCK) {
                answer->granted_want |= WIRE_WANT_MEMLOCK;
                answer->memlock_bytes = (uint64_t) decision->values[RESOURCE_MEMLOCK];
        }
        if (resources & 1U << RESOURCE_CPU_LATENCY) {
                answer->granted_want |= WIRE_WANT_CPU_LATENCY;
                answer->cpu_latency_us = (uint32_t) decision->values[RESOURCE_CPU_LATENCY];
        }
        if (resources & 1U << RESOURCE_BLOCK_QUEUE) {
                answer->granted_want |= WIRE_WANT_BLOCK_QUEUE;
                answer->block_max_sectors_kb = (uint32_t) decision->values[RESOURCE_BLOCK_QUEUE];
        }
        if (resources & 1U << RESOURCE_IRQ) {
                answer->granted_want |= WIRE_WANT_IRQ;
                answer->irq_priority = (int32_t) decision->values[RESOURCE_IRQ];
        }
}

static void describe_dry_run(const struct request *request, const struct decision *decision,
                             pid_t tid, struct wire_answer *answer) {
        struct sched_values now;

        if (sched_read(tid, &now) >= 0)
                describe_previous(&now, answer);
        answer->flags |= WIRE_ANSWER_DRY_RUN;
        answer->policy =
                request->wants_sched ? (uint32_t) decision->policy : answer->previous_policy;
        answer->priority = request->wants_sched ? decision->priority : answer->previous_priority;
        answer->nice = request->wants_nice ? decision->nice : answer->previous_nice;
        answer->reset_on_fork = 1;
        answer->granted_want = (request->wants_sched ? WIRE_WANT_SCHED : 0) |
                               (request->wants_nice ? WIRE_WANT_NICE : 0);
        describe_resources(decision, answer);
        text_copy(answer->role, sizeof(answer->role), decision->role->name);
}

/* grant_apply() with the dispatcher above what it gives, and the counts kept. */
static enum reason apply(struct broker *broker, struct lease *lease, const struct wanted *wanted,
                         struct grant_outcome *outcome) {
        bool was_rt = lease_is_rt(lease);
        enum reason reason;

        if (wanted->sched && sched_is_rt(wanted->policy)) {
                self_want(&broker->self, true);
                if (broker->self.broken != REASON_NONE) {
                        text_copy(outcome->cause, sizeof(outcome->cause), broker->self.cause);
                        return REASON_DEGRADED;
                }
        }

        reason = grant_apply(broker, lease, wanted, outcome);
        if (reason == REASON_NONE)
                lease->state = WIRE_LEASE_IN_FORCE;
        /* a new one is counted when it is added */
        if (lease->seq != 0)
                lease_count_rt(broker, was_rt, lease_is_rt(lease));
        return reason;
}

/* All that a lease is to hold, or nothing. */
static enum reason apply_whole(struct broker *broker, struct lease *lease,
                               const struct resource_wants *resources,
                               const struct decision *decision, const struct wanted *wanted,
                               struct grant_outcome *outcome) {
        struct resource_undo undo;
        enum reason reason;

        *outcome = (struct grant_outcome) {};
        reason = resource_apply(broker, lease, resources, decision, &undo, outcome->cause,
                                sizeof(outcome->cause));
        if (reason != REASON_NONE)
                return reason;

        reason = apply(broker, lease, wanted, outcome);
        if (reason != REASON_NONE)
                resource_undo(broker, &undo);
        else
                resource_finish(broker, lease, resources, decision->resources);
        return reason;
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
        struct user *user;              /* whose quota it takes */
        struct lease *lease;            /* that the thread has already; NULL if none */
        struct decision decision;
        struct resource_wants resources;
        bool uses_token;
};

static struct refusal refusal_of(const struct acquisition *a, enum reason reason) {
        return (struct refusal) {
                .reason = reason,
                .uid = a->call->peer->uid,
                .pid = a->wire->pid,
                .tid = a->wire->tid,
                .policy = broker_policy(a->call->broker),
                .request = &a->request,
                .feeds_tid = (pid_t) a->wire->feeds_tid,
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
        lease_save(broker, lease, NULL);

        broker_tell(broker, lease, is_new ? WIRE_EVENT_GRANTED : WIRE_EVENT_UPDATED, REASON_NONE,
                    is_new ? "granted" : "changed by its holder");
}

/* The decision is yes: do it. */
static enum reason carry_out(struct acquisition *a, struct wire_answer *answer,
                             struct grant_outcome *outcome) {
        struct broker *broker = a->call->broker;
        struct wanted wanted = wanted_from(&a->request, &a->decision);
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

        reason = apply_whole(broker, lease, &a->resources, &a->decision, &wanted, outcome);
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
        finish_grant(a, lease, is_new);
        describe_outcome(lease, outcome, answer);
        explain_grant(&answer->explanation, &a->decision);
        return REASON_NONE;
}

static enum reason find_target(struct acquisition *a) {
        const struct target_request target = { a->wire->pid, a->wire->tid, a->call->pidfd };
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

static struct ask ask_of(const struct acquisition *a) {
        return (struct ask) {
                .request = &a->request,
                .lease = a->lease,
                .user = a->user,
                .pid = a->target.thread.pid,
                .tid = a->target.thread.tid,
                .feeds_tid = (pid_t) a->wire->feeds_tid,
                .in_user_namespace = a->target.in_user_namespace,
                .interactive = a->wire->flags & WIRE_ACQUIRE_MAY_ASK,
        };
}

/* False if polkit has to be asked before. */
static bool serve(struct acquisition *a, struct wire_answer *answer,
                  struct authority_question *ret_question) {
        const struct call *call = a->call;
        const struct ask ask = ask_of(a);
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
                        refusal.cause = resource_cause(call->broker, a->decision.resource,
                                                       &a->resources);
                refuse(call, answer, &refusal);
                return true;
        }
        if (a->decision.clamped)
                answer->flags |= WIRE_ANSWER_CLAMPED;
        if (a->wire->flags & WIRE_ACQUIRE_DRY_RUN) {
                describe_dry_run(&a->request, &a->decision, a->target.thread.tid, answer);
                explain_grant(&answer->explanation, &a->decision);
                return true;
        }

        reason = carry_out(a, answer, &outcome);
        if (reason != REASON_NONE) {
                refusal = refusal_of(a, reason);
                refusal.cause = outcome.cause;
                refuse(call, answer, &refusal);
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
                *answer = (struct wire_answer) {};
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
        refuse(a->call, answer, &refusal);
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
                reason = rttime_check(broker_policy(call->broker), a.target.thread.pid);
        if (reason == REASON_NONE) {
                resource_find(call->broker, &a.target.thread, wire, &a.request, &a.resources);
                done = wire->flags & WIRE_ACQUIRE_OR_LESS
                               ? serve_or_less(&a, answer, ret_question)
                               : serve(&a, answer, ret_question);
        } else {
                refusal = refusal_of(&a, reason);
                refuse(call, answer, &refusal);
        }

        thread_close(&a.target.thread);
        return done;
}

static void describe_step(const struct policy_step *step, struct wire_step *ret) {
        *ret = (struct wire_step) {
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
        struct ask ask;

        reason = check_form(call, wire, &a.timing);
        if (reason == REASON_NONE && call->peer->in_user_namespace &&
            !broker_policy(call->broker)->user_namespaces)
                reason = REASON_USER_NAMESPACE;
        if (reason == REASON_NONE) {
                a.request = request_from(wire);
                reason = find_target(&a);
        }
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

        refuse(call, answer, &refusal);
}

/* The common end of UPDATE and RENEW: ask the policy, do it. False if polkit has to be asked. */
static bool change_lease(const struct call *call, struct lease *lease,
                         const struct request *request, const struct resource_wants *resources,
                         uint64_t flags, struct wire_answer *answer,
                         struct authority_question *ret_question) {
        const struct ask ask = {
                .request = request,
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
        if (decision.clamped)
                answer->flags |= WIRE_ANSWER_CLAMPED;
        if (flags & WIRE_ACQUIRE_DRY_RUN) {
                describe_dry_run(request, &decision, lease->thread.tid, answer);
                return true;
        }

        wanted = wanted_from(request, &decision);
        reason = apply_whole(broker, lease, resources, &decision, &wanted, &outcome);
        if (reason != REASON_NONE) {
                refuse_update(call, answer, reason, request, NULL, outcome.cause);
                return true;
        }
        describe_outcome(lease, &outcome, answer);
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
        lease_save(call->broker, lease, NULL);
        if (answer->tid == 0)
                acquire_describe(lease, answer); /* its timing alone was changed */
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

bool acquire_update(const struct call *call, struct lease *lease, const struct wire_update *wire,
                    struct wire_answer *answer, struct authority_question *ret_question) {
        const uint64_t flags = WIRE_ACQUIRE_DRY_RUN | WIRE_ACQUIRE_CLAMP | WIRE_ACQUIRE_MAY_ASK;
        const struct timing timing = { wire->period_ns, wire->computation_ns, wire->deadline_ns };
        static const struct resource_wants no_resources;
        const struct request request = update_request(lease, wire);

        if ((wire->flags & ~flags) != 0 || (wire->want & ~(uint32_t) WANTS_KNOWN) != 0 ||
            !timing_is_sound(&timing) || (wire->want == 0 && !timing_is_declared(&timing))) {
                refuse_update(call, answer, REASON_INVALID, NULL, NULL, NULL);
                return true;
        }
        if ((wire->want & ~(uint32_t) WANTS_CHANGED) != 0) {
                refuse_update(call, answer, REASON_UNSUPPORTED, NULL, NULL, NULL);
                return true;
        }

        answer->flags |= WIRE_ANSWER_UPDATED;
        if (!change_lease(call, lease, &request, &no_resources, wire->flags, answer,
                                              ret_question))
                return false;
        if (answer->reason == REASON_NONE && timing_is_declared(&timing) &&
            !(wire->flags & WIRE_ACQUIRE_DRY_RUN))
                lease->timing = timing;
        finish_change(call, lease, answer);
        return true;
}

void acquire_renew(const struct call *call, struct lease *lease, unsigned lifetime_s,
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
