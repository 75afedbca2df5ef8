/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_ACQUIRE_H
#define RTGRANT_BROKER_ACQUIRE_H

/*
 * The way of a request: what is meant, what is true, may it, do it, say what came of it.
 */

#include "broker/methods.h"

/* ACQUIRE. @answer is zeroed by the caller. */
void acquire_lease(const struct call *call, const struct wire_acquire *wire,
                   struct wire_answer *answer);

/* UPDATE of a lease of the caller. */
void acquire_update(const struct call *call, struct lease *lease, const struct wire_update *wire,
                    struct wire_answer *answer);

/* RENEW of a lease of the caller. */
void acquire_renew(const struct call *call, struct lease *lease, unsigned lifetime_s,
                   struct wire_answer *answer);

/* The facts for policy_evaluate() about the caller of @call; all but what depends on the target. */
struct situation acquire_situation(const struct call *call, struct user *user);

/* Fills in what is in force on a lease's thread. */
void acquire_describe(const struct lease *lease, struct wire_answer *answer);

#endif
