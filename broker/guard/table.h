/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GUARD_TABLE_H
#define RTGRANT_BROKER_GUARD_TABLE_H

/*
 * The threads that the guard watches: shared by it and the dispatcher, under one lock. The
 * dispatcher makes room and frees it; the guard only looks, judges and demotes.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "broker/guard/canary.h"
#include "broker/guard/guard.h"

#define GUARD_CHUNK_SLOTS 64U
#define GUARD_CHUNKS_MAX 1024U
#define GUARD_CPUS_MAX 1024
/*
 * Intervals, of an 8th of the shortest limit, between two looks at who does little: who begins to
 * spin is looked at before it is over that.
 */
#define GUARD_QUIET_LOOKS 7

/* What every look touches comes first, in one line of the cache: there may be thousands. */
struct guard_slot {
        bool used;
        bool demoted;
        bool over_now;                  /* by this look, for whatever reason */
        bool tell_warning, tell_demotion; /* what the dispatcher does not know yet */
        bool ticks;                     /* no schedstat: fd is of stat, which counts in ticks */
        bool quiet;                     /* did little, now and over its window */
        bool settled;                   /* it is not over budget, and was not a moment ago */
        uint8_t n_looks;                /* at it, and on from 0 */
        enum reason reason;             /* as judged for itself, at the last sample */
        unsigned share;                 /* likewise */
        int cpu;                        /* that it is pinned to; -1: more than one */
        int ran_on;                     /* then, where it was seen; -1: nowhere yet */
        int fd;                         /* owned by the dispatcher */
        struct guard_watched watched;
        struct guard_account account;
        struct guard_notice warning, demotion;
        uint32_t next_free;
};

struct guard_table {
        pthread_mutex_t lock;           /* with priority inheritance */
        struct guard_slot *chunks[GUARD_CHUNKS_MAX]; /* owned; never moved or freed before the end */
        _Atomic uint32_t n_slots;       /* in all chunks, free ones too */
        _Atomic uint32_t n_watched;
        _Atomic uint64_t interval_ns;
        uint32_t free;                  /* GUARD_NONE: none */
        uint32_t next_told;
        struct guard_limits limits;
        struct canary canary;
        bool idle;                      /* at the last look: the guard's alone */
        unsigned n_cpus;
        uint64_t tick_ns;
        /* the guard's, to judge in; as large as all slots */
        struct guard_member *members;   /* owned */
        uint32_t *member_slots;         /* owned */
};

/* Errors: pthread_mutex_init(3). */
int guard_table_init(struct guard_table *table);
void guard_table_done(struct guard_table *table);

void guard_table_lock(struct guard_table *table);
void guard_table_unlock(struct guard_table *table);

static inline struct guard_slot *guard_table_slot(struct guard_table *table, uint32_t id) {
        return &table->chunks[id / GUARD_CHUNK_SLOTS][id % GUARD_CHUNK_SLOTS];
}

/* ---- the dispatcher's; they take the lock ---- */

int guard_table_add(struct guard_table *table, const struct guard_watched *watched,
                    uint32_t *ret_id);
bool guard_table_remove(struct guard_table *table, uint32_t id);
bool guard_table_next(struct guard_table *table, struct guard_notice *ret);

/* After budgets were changed. */
void guard_table_retime(struct guard_table *table);

/* It starts anew; under the lock. */
void guard_table_begin(struct guard_slot *slot);

/* ---- the guard's; under the lock ---- */

/* How often to look; 0: nothing is watched. Needs no lock. */
uint64_t guard_table_interval(struct guard_table *table);

void guard_table_sample(struct guard_table *table, uint32_t id, uint64_t now_ns,
                        enum guard_tick tick, uint64_t n_ticks);

/* Whether nobody does much, one by one and in sum. */
bool guard_table_is_idle(struct guard_table *table);

/* Warns and demotes. True if there is something to tell. */
bool guard_table_judge(struct guard_table *table, uint64_t now_ns);

#endif
