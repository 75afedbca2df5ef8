/* SPDX-License-Identifier: MIT */

/* Whether a request is one that the kernel could know at all. */

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

bool check_ranges(struct trial *t) {
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
