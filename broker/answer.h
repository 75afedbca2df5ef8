/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_ANSWER_H
#define RTGRANT_BROKER_ANSWER_H

/*
 * What an answer says: what a thread has and had, or why it gets nothing.
 */

#include "broker/explain.h"
#include "broker/grant.h"

/* What is in force on the lease's thread, as the kernel says. */
void answer_describe(const struct lease *lease, struct wire_answer *answer);

/* What came of a change. */
void answer_outcome(const struct lease *lease, const struct grant_outcome *outcome,
                    struct wire_answer *answer);

/* What was given, and yet is not as it should be, in words; if there is anything. */
void answer_note(const struct lease *lease, struct wire_answer *answer);

/* What thread @tid would have. */
void answer_dry_run(const struct request *request, const struct decision *decision, pid_t tid,
                    struct wire_answer *answer);

void answer_refuse(struct wire_answer *answer, const struct refusal *refusal);

#endif
