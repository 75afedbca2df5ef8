/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_APPLY_H
#define RTGRANT_BROKER_APPLY_H

/*
 * The decision is yes: what a lease is to hold comes into force, all of it or nothing.
 */

#include "broker/grant.h"
#include "policy/policy.h"

/* What @decision gives of scheduling. */
struct wanted apply_wanted(const struct request *request, const struct decision *decision);

/*
 * Puts @decision in force on @lease: first @resources, then @wanted, with the dispatcher above what
 * it gives. REASON_NONE, or why not: then nothing was changed, or it was undone.
 */
enum reason apply_decision(struct broker *broker, struct lease *lease,
                           const struct resource_wants *resources, const struct decision *decision,
                           const struct wanted *wanted, struct grant_outcome *ret);

#endif
