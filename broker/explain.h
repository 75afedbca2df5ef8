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
        const char *action;             /* that polkit decides about; NULL: the role's */
};

void explain_refusal(struct wire_explanation *ret, const struct refusal *refusal);

/* For what needs no more words: protocol, connections, leases. */
void explain_wire(struct wire_explanation *ret, enum reason reason);

#endif
