/* SPDX-License-Identifier: MIT */

/* Declared timing: whether there is room for it, and the priorities that follow from it. */

#include "policy/trial.h"

#define RELATIVE_STEPS (POLICY_RELATIVE_MAX - POLICY_RELATIVE_MIN)

/* Periods from 250 µs to 256 ms: ten octaves, four places each. */
#define PERIOD_NS_SHORTEST UINT64_C(250000)
#define OCTAVES 10
#define PLACES_PER_OCTAVE 4

/* How far down the band a period belongs: 0 for the shortest, PLACES for the longest; monotonic. */
#define PLACES (OCTAVES * PLACES_PER_OCTAVE)

static int period_place(uint64_t period_ns) {
        uint64_t base = PERIOD_NS_SHORTEST;
        int octave = 0;

        if (period_ns <= base)
                return 0;
        while (octave < OCTAVES && period_ns >= 2 * base) {
                base *= 2;
                octave++;
        }
        if (octave == OCTAVES)
                return PLACES;

        return octave * PLACES_PER_OCTAVE +
               (int) ((period_ns - base) * PLACES_PER_OCTAVE / base);
}

int timing_priority_max(const struct role *role, const struct request *request) {
        int low = role->priority_min, high = role_priority_max(role);

        if (!role->priority_by_period || request->period_ns == 0 || high < low)
                return high;

        return high - (high - low) * period_place(request->period_ns) / PLACES;
}

int timing_priority(const struct role *role, const struct request *request) {
        int low = role->priority_min, high = timing_priority_max(role, request);
        int priority;

        if (!request->is_relative)
                return request->priority;
        if (high < low)
                return high;
        if (!role->priority_by_period || request->period_ns == 0)
                return low + (high - low) * (request->relative - POLICY_RELATIVE_MIN) /
                                     RELATIVE_STEPS;

        /* The period says where; what is relative is so to that place, and not above it. */
        priority = high + request->relative;
        return priority > high ? high : priority < low ? low : priority;
}

/* In millionths of one CPU, rounded up: what is declared is never counted as less. */
static uint64_t demand_ppm(const struct request *request) {
        return (request->computation_ns * UINT64_C(1000000) + request->period_ns - 1) /
               request->period_ns;
}

static bool check_share(struct trial *t, unsigned n_cpus, uint64_t declared_ppm, unsigned percent,
                        struct rule rule) {
        uint64_t asked = declared_ppm + demand_ppm(t->request);
        uint64_t limit = (uint64_t) percent * 10000 * n_cpus;

        if (asked <= limit)
                return true;

        return refuse_limit(t, REASON_ADMISSION, (struct limit) {
                .rule = rule,
                .asked = (int64_t) asked,
                .low = (int64_t) limit,
                .high = (int64_t) limit,
        });
}

bool check_timing(struct trial *t) {
        const struct policy *policy = t->policy;
        const struct role *role = t->role;
        size_t index = (size_t) (role - policy->roles);

        if (t->request->period_ns == 0)
                return true;

        for (int i = 0; i < _DECLARED_MAX; i++) {
                const struct declared *set = &t->now->declared[i];

                if (set->n_cpus > 0 &&
                    !(check_share(t, set->n_cpus, set->ppm_by_role ? set->ppm_by_role[index] : 0,
                                  role->declared_cpu_percent,
                                  role->rules[ROLE_KEY_DECLARED_CPU]) &&
                      check_share(t, set->n_cpus, set->ppm, 100 - policy->reserve_cpu_percent,
                                  policy->rules[BROKER_KEY_RESERVE_CPU])))
                        return false;
        }
        return true;
}
