/* SPDX-License-Identifier: MIT */

#include "broker/apply.h"

#include <errno.h>

#include "broker/broker.h"
#include "broker/guard/act.h"
#include "broker/text.h"

struct wanted apply_wanted(const struct request *request, const struct decision *decision) {
        return (struct wanted){
                .sched = request->wants_sched,
                .policy = decision->policy,
                .priority = decision->priority,
                .nice_too = request->wants_nice,
                .nice = decision->nice,
        };
}

/* Above it first, and somebody to watch it: else it must not be given. */
static enum reason prepare_rt(struct broker *broker, struct lease *lease,
                              struct grant_outcome *outcome) {
        int r;

        self_want(&broker->self, true);
        r = broker->self.broken == REASON_NONE ? guard_act_reserve(broker, lease) : 0;
        if (r == -EPERM)
                self_cannot_watch(&broker->self, r);
        if (broker->self.broken != REASON_NONE) {
                text_copy(outcome->cause, sizeof(outcome->cause), broker->self.cause);
                return REASON_DEGRADED;
        }

        return r >= 0 ? REASON_NONE : r == -ESRCH ? REASON_NO_SUCH_THREAD : REASON_RESOURCES;
}

/* grant_apply() with the dispatcher above what it gives, and the counts kept. */
static enum reason apply(struct broker *broker, struct lease *lease, const struct wanted *wanted,
                         struct grant_outcome *outcome) {
        bool was_rt = lease_is_rt(lease);
        enum reason reason = REASON_NONE;

        if (wanted->sched && sched_is_rt(wanted->policy))
                reason = prepare_rt(broker, lease, outcome);
        if (reason == REASON_NONE)
                reason = grant_apply(broker, lease, wanted, outcome);
        if (reason == REASON_NONE)
                lease->state = WIRE_LEASE_IN_FORCE;
        else
                (void) guard_act_watch(broker, lease);
        /* a new one is counted when it is added */
        if (lease->seq != 0)
                lease_count_rt(broker, was_rt, lease_is_rt(lease));
        return reason;
}

enum reason apply_decision(struct broker *broker, struct lease *lease,
                           const struct resource_wants *resources, const struct decision *decision,
                           const struct wanted *wanted, struct grant_outcome *ret) {
        struct resource_undo undo;
        enum reason reason;

        *ret = (struct grant_outcome){};
        reason = resource_apply(broker, lease, resources, decision, &undo, ret->cause,
                                sizeof(ret->cause));
        if (reason != REASON_NONE)
                return reason;

        reason = apply(broker, lease, wanted, ret);
        if (reason != REASON_NONE)
                resource_undo(broker, &undo);
        else
                resource_finish(broker, lease, resources, decision->resources);
        return reason;
}
