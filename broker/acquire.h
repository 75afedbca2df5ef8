/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_ACQUIRE_H
#define RTGRANT_BROKER_ACQUIRE_H

/*
 * The way of a request: what is meant, what is true, may it, do it, say what came of it.
 */

#include "broker/methods.h"

/*
 * ACQUIRE. @answer is zeroed by the caller. False if polkit has to be asked before: *ret_question
 * is what, and nothing was done.
 */
bool acquire_lease(const struct call *call, const struct wire_acquire *wire,
                   struct wire_answer *answer, struct authority_question *ret_question);

/* WHY: the rules of the policy that speak of such a request, in order. Nothing is asked or done. */
enum reason acquire_why(const struct call *call, const struct wire_acquire *wire,
                        struct wire_why_reply *ret);

#endif
