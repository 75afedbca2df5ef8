/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_TIMING_H
#define RTGRANT_BROKER_TIMING_H

/*
 * What a client declares about its thread: how often it runs, how long, and until when.
 */

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

struct timing {
        uint64_t period_ns; /* all 0: not declared */
        uint64_t computation_ns;
        uint64_t deadline_ns;
};

static inline bool timing_is_declared(const struct timing *timing) {
        return timing->period_ns != 0 || timing->computation_ns != 0 || timing->deadline_ns != 0;
}

/* Declared whole and in order, or not at all. */
static inline bool timing_is_sound(const struct timing *timing) {
        if (!timing_is_declared(timing))
                return true;

        return timing->computation_ns > 0 && timing->computation_ns <= timing->deadline_ns &&
               timing->deadline_ns <= timing->period_ns &&
               timing->period_ns <= POLICY_PERIOD_NS_MAX;
}

#endif
