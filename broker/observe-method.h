/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_OBSERVE_METHOD_H
#define RTGRANT_BROKER_OBSERVE_METHOD_H

/* Who may observe which CPU, and what the answer to that is. For methods.c. */

#include "broker/methods.h"

/* Of polkit's answer about observing, in place of a role. */
#define ROLE_OBSERVE (SIZE_MAX - 1)

/*
 * Begins to observe a CPU for call->connection, and fills in the reason and the explanation of
 * @answer. False if polkit has to be asked before: then *ret_question is what.
 */
bool observe_method_start(const struct call *call, const struct wire_observe *request,
                          struct wire_answer *answer, struct authority_question *ret_question);

/* Fills in *ret, or if that is refused the reason and the explanation of @answer. */
enum reason observe_method_ask(const struct call *call, const struct wire_occupants *request,
                               union wire_response *ret);

#endif
