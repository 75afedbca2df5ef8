/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GUARD_GUARD_H
#define RTGRANT_BROKER_GUARD_GUARD_H

/*
 * A thread above everything that is granted, and above the dispatcher: it watches how much CPU time
 * leased real-time threads take, and makes the one that takes too much a normal one, whatever the
 * dispatcher is doing meanwhile. It sleeps as long as nothing is watched.
 *
 * In its loop it allocates nothing, writes no log and asks nobody. It shares one lock with the
 * dispatcher, with priority inheritance, held for no longer than a look at 64 threads or a demotion
 * takes. All functions are for the dispatcher.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/guard/judge.h"

#define GUARD_PRIORITY 97
#define GUARD_NONE UINT32_MAX

struct guard;

struct guard_limits {
        unsigned user_max;              /* of all CPUs together, in percent; 100: no limit */
        unsigned reserve;               /* of each CPU and of all, in percent */
        unsigned starved_ms;            /* that everybody else may get nothing of a CPU; 0: any */
};

struct guard_watched {
        pid_t pid;
        pid_t tid;
        uint64_t user;                  /* who shares a limit */
        void *owner;                    /* comes back in notices */
        struct guard_budget budget;
};

/* What it saw or did. */
struct guard_notice {
        void *owner;
        bool demoted;                   /* else only over budget */
        enum reason reason;
        uint64_t run_ms;                /* how long it ran without sleeping */
        unsigned share;                 /* of a CPU over its window, in hundredths of a percent */
        uint64_t took_ms;               /* from over budget to demoted */
        unsigned group_share;           /* of the user or of all, with these reasons; of one CPU */
        int cpu;                        /* with REASON_STARVED, and how long */
        uint64_t starved_ms;
        struct guard_budget budget;
};

/* Errors: pthread_create(3), eventfd(2). */
int guard_new(struct guard **ret);

/* May be NULL. Returns NULL. */
struct guard *guard_free(struct guard *guard);

/* Becomes readable when there are notices; guard_next() empties it. */
int guard_fd(const struct guard *guard);

/* Whether the kernel lets it come above all grants. Errors: sched_setattr(2). */
int guard_try(struct guard *guard);

void guard_set_limits(struct guard *guard, const struct guard_limits *limits);

/*
 * Watches a thread. *ret_id is for the following functions. Errors: -ESRCH (ended), -EMFILE,
 * -ENOMEM; of the first one, sched_setattr(2): the guard cannot outrank it.
 */
int guard_add(struct guard *guard, const struct guard_watched *watched, uint32_t *ret_id);

/* No more. True if it is demoted by the guard: has SCHED_OTHER, though nobody was told maybe. */
bool guard_remove(struct guard *guard, uint32_t id);

void guard_set_budget(struct guard *guard, uint32_t id, const struct guard_budget *budget);

/* Whether it is demoted by the guard. */
bool guard_is_demoted(struct guard *guard, uint32_t id);

/* It is, by a predecessor. */
void guard_set_demoted(struct guard *guard, uint32_t id);

/* It has its priority again, and starts anew. */
void guard_restored(struct guard *guard, uint32_t id);

/* Everybody starts anew: after a sleep of the machine, say. */
void guard_forgive(struct guard *guard);

/* Whether machine or daemon stood still for a second or more, since the last call; a notice too. */
bool guard_woke_up(struct guard *guard);

/* What happened to one of them next; false if nothing did. */
bool guard_next(struct guard *guard, struct guard_notice *ret);

#endif
