/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SELF_H
#define RTGRANT_BROKER_SELF_H

/*
 * The dispatcher's own priority: above everything it gives while real-time leases exist, so that
 * no client can come between check and act or keep the broker from taking a grant back; normal
 * otherwise. Its own CPU time up there has a budget, as everybody's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "policy/reason.h"

#define SELF_PRIORITY 96

struct guard;
struct log;

struct self {
        struct log *log;                /* borrowed */
        struct guard *guard;            /* borrowed; has to outrank this; NULL: there is none yet */
        uint64_t budget_ns;             /* of real-time CPU a window */
        bool limited;                   /* by an RLIMIT_RTTIME that cannot be lifted */
        bool hopeless;                  /* so short a one that it stays broken */
        enum reason broken;             /* why it cannot run real-time; REASON_NONE if it can */
        char cause[200];                /* likewise, in words */
        bool wanted;                    /* real-time leases exist or one is being made */
        bool raised;
        bool over_budget;               /* until the window ends */
        bool over_budget_said;
        unsigned n_charges;
        uint64_t window_us;             /* CLOCK_MONOTONIC, when it began */
        uint64_t window_cpu_ns;         /* own CPU time then */
};

/* Tries once whether the kernel lets this thread run real-time. */
void self_init(struct self *self, struct log *log);

/* From now on @guard is tried too. */
void self_set_guard(struct self *self, struct guard *guard);

/* The kernel does not let the guard come above all grants: @error, negative. */
void self_cannot_watch(struct self *self, int error);

/* Tries again if it could not. Returns whether it can. */
bool self_can_raise(struct self *self);

/* @wanted: from now on above all grants, as far as the budget allows. */
void self_want(struct self *self, bool wanted);

/* Called for every message served: keeps the budget. */
void self_charge(struct self *self, uint64_t now_us);

#endif
