/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_DECIDE_H
#define RTGRANT_BROKER_DECIDE_H

/*
 * Gathers the facts for policy_evaluate(), and for polkit where the policy leaves it to that.
 */

#include "broker/kinds/resources.h"
#include "broker/methods.h"

struct ask {
        const struct request *request;
        const struct lease *lease;      /* that the thread has already; NULL if none */
        struct user *user;              /* whose quota it takes */
        pid_t pid;                      /* the process of the thread */
        pid_t tid;
        pid_t feeds_tid;                /* the thread that it is to stay below; 0: none */
        struct irq_rung fed;            /* the interrupt, likewise */
        const struct resource_wants *resources; /* what is meant by the request's */
        bool in_user_namespace;         /* the caller or the target */
        bool interactive;               /* polkit may ask the user */
};

/*
 * VERDICT_ASK: nothing else stands in the way, and *ret_question is to be put to polkit; not
 * returned if that is known, or cannot be done. *ret_uses_token: a token of the bucket of grants.
 */
struct decision decide(const struct call *call, const struct ask *ask, bool *ret_uses_token,
                       struct authority_question *ret_question);

/* Notes the answer to @question in the call that is made again with it. */
void decide_answered(struct call *call, int resource, size_t role_index,
                     enum authority_answer answer);

/* decide() that tells which rules spoke, and asks nobody. */
struct decision decide_traced(const struct call *call, const struct ask *ask,
                              struct policy_trace *trace);

/* More words about a refusal; NULL if there are none. */
const char *decide_cause(const struct broker *broker, const struct decision *decision);

/* The facts about the caller of @call. */
struct situation decide_situation(const struct call *call, struct user *user);

/*
 * What polkit said to @about, whose role_index is no role's but one of a kind: AUTHORITY_UNASKED if
 * it is to be asked. AUTHORITY_NO where it cannot be: whose uid polkit knows by other names than
 * ours, it is not asked about.
 */
enum authority_answer decide_without_role(const struct call *call,
                                          const struct authority_question *about);

#endif
