/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_EXPLAIN_H
#define RTGRANT_BROKER_EXPLAIN_H

/*
 * Words for a refusal: who asked for what, why not, and what helps. One place for all transports.
 */

#include "client/protocol.h"
#include "policy/policy.h"

struct refusal {
        enum reason reason;
        uid_t uid;
        uint64_t pid;                   /* as asked; 0: the asker's own */
        uint64_t tid;
        const struct policy *policy;
        const struct request *request;  /* NULL where it did not come to that */
        const struct decision *decision; /* NULL unless the policy refused */
        const char *cause;              /* of the kernel, in words; NULL or "" if there is none */
        enum session_state session;     /* of the asker, where that is the reason */
        pid_t feeds_tid;                /* that was named; 0: none */
        const char *feeds;              /* likewise; "" or NULL: no device */
        const char *action;             /* that polkit decides about; NULL: the role's */
};

void explain_refusal(struct wire_explanation *ret, const struct refusal *refusal);

/* Of a grant: which role was picked and why, if none was named, and what lowered it, if anything. */
void explain_grant(struct wire_explanation *ret, const struct decision *decision);

/* Puts the words of refusal->decision, which there is, in place of those of explain_wire(). */
void explain_policy(struct wire_explanation *ret, const struct refusal *refusal);

#define EXPLAIN_MESSAGE_SIZE 900

/* All of it in one line, as D-Bus errors have it: "TEXT [FILE:LINE]; HELP". */
void explain_message(char buffer[EXPLAIN_MESSAGE_SIZE], const struct wire_explanation *why);

/* For what needs no more words: protocol, connections, leases. */
void explain_wire(struct wire_explanation *ret, enum reason reason);

#endif
