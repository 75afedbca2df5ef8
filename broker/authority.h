/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_AUTHORITY_H
#define RTGRANT_BROKER_AUTHORITY_H

/*
 * Asks polkit, without waiting for it. The only module that knows libpolkit and GError.
 *
 * Whatever goes wrong is an answer: AUTHORITY_FAILED if polkit is gone, hangs beyond our own time
 * limit or errs, AUTHORITY_OVERRUN if too many questions are on their way already. Answers are kept
 * for a while, until polkit says that its rules changed (but for what a user proved with a password),
 * a session changes or the policy is read anew.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "client/protocol.h"
#include "policy/policy.h"

struct authority;
struct authority_check;
struct broker;

/* What polkit is asked. Strings and the caller's process are only looked at during the call. */
struct authority_question {
        const char *action;
        const char *bus_name;   /* unique name on the system bus of who asks; NULL: by process */
        pid_t pid;              /* of who asks; without a bus name */
        uid_t uid;
        uid_t quota_uid;        /* whose questions are counted */
        bool interactive;       /* polkit may ask the user, which can take minutes */
        size_t role_index;      /* not polkit's to know: comes back with the answer */
        int resource;           /* enum resource_index that it is about; -1: the role itself */
        /* for rules: action.lookup("role") and so on */
        const char *role;
        const char *policy;     /* "fifo", "rr", "other" */
        int priority;
        int nice;
        char device[4 * WIRE_LABEL_SIZE]; /* where the resource is of one: its name, or all of them */
        int64_t value;          /* of the resource, in its unit; 0: none */
};

typedef void (*authority_done_fn)(enum authority_answer answer, void *userdata);

/* Connects to polkit in the background. Errors: -ENOMEM. */
int authority_new(struct broker *broker, struct authority **ret);

/* Answers all who wait, with AUTHORITY_FAILED: they must not outlive it. */
void authority_give_up(struct authority *authority);

/* Ends all questions without telling those who asked. May be NULL. Returns NULL. */
struct authority *authority_free(struct authority *authority);

/* What was answered to the same question not long ago; AUTHORITY_UNASKED if it was not asked. */
enum authority_answer authority_remember(struct authority *authority, const struct authority_question *question);

/* Forgets all answers. */
void authority_forget(struct authority *authority);

/*
 * Asks, and calls @done once from the main loop, with anything but AUTHORITY_UNASKED. *ret_check is
 * good until then. At most 2 questions of a user and 64 in all are on their way at a time; equal
 * ones of one asker are asked once.
 * Errors: -EBUSY (too many on their way), -ESRCH (who asks is gone), -ENOMEM.
 */
int authority_ask(struct authority *authority, const struct authority_question *question,
                  authority_done_fn done, void *userdata, struct authority_check **ret_check);

/* Who asked is gone: @done is not called any more. May be NULL. Returns NULL. */
struct authority_check *authority_cancel(struct authority_check *check);

#endif
