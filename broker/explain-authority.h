/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_EXPLAIN_AUTHORITY_H
#define RTGRANT_BROKER_EXPLAIN_AUTHORITY_H

/* What polkit refused, in words. */

#include <stdbool.h>

#include "broker/explain.h"

/*
 * "WHAT; why polkit did not let it be (action ACTION)", and what helps. False, and nothing is written,
 * if @answer is a plain no: what helps then depends on what it was about.
 */
bool explain_answer(struct wire_explanation *ret, const char *what, enum authority_answer answer,
                    const char *action);

/* Of a role or resource. Nothing is written where the reason is another than polkit. */
void explain_authority(struct wire_explanation *ret, const struct refusal *refusal,
                       const char *wanted);

#endif
