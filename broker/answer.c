/* SPDX-License-Identifier: MIT */

#include "broker/answer.h"

#include <string.h>

#include "broker/explain.h"
#include "broker/kinds/resources.h"
#include "broker/text.h"

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

void answer_describe(const struct lease *lease, struct wire_answer *answer) {
        struct sched_values now;

        describe_lease(lease, answer);
        if (sched_read(lease->thread.tid, &now) >= 0)
                describe_now(&now, answer);
}

void answer_outcome(const struct lease *lease, const struct grant_outcome *outcome,
                    struct wire_answer *answer) {
        describe_lease(lease, answer);
        describe_previous(&outcome->before, answer);
        describe_now(&outcome->after, answer);
}

void answer_note(const struct lease *lease, struct wire_answer *answer) {
        char text[200];

        resource_explain(lease, text, sizeof(text));
        if (text[0] == '\0')
                return;
        text_copy(answer->explanation.text, sizeof(answer->explanation.text), text);
        answer->flags |= WIRE_ANSWER_NOTED;
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

void answer_dry_run(const struct request *request, const struct decision *decision, pid_t tid,
                    struct wire_answer *answer) {
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

void answer_refuse(struct wire_answer *answer, const struct refusal *refusal) {
        answer->reason = refusal->reason;
        if (refusal->decision && refusal->decision->role)
                text_copy(answer->role, sizeof(answer->role), refusal->decision->role->name);
        explain_refusal(&answer->explanation, refusal);
}
