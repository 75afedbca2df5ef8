/* SPDX-License-Identifier: MIT */

#include "broker/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/facts.h"
#include "broker/proc.h"
#include "broker/sched-values.h"
#include "broker/text.h"

#define RUNGS_MAX 6
#define LEASES_SHOWN 3

struct rung {
        int priority;
        pid_t tid;              /* 0: not to be shown */
        char name[2 * WIRE_COMM_SIZE];
};

struct ladder {
        struct rung rungs[RUNGS_MAX];
        size_t n_rungs;
};

/* From the top; of two alike the one that came first. */
static void insert(struct ladder *ladder, const struct rung *rung) {
        size_t at = ladder->n_rungs;

        if (ladder->n_rungs == RUNGS_MAX)
                return;

        for (; at > 0 && ladder->rungs[at - 1].priority < rung->priority; at--)
                ladder->rungs[at] = ladder->rungs[at - 1];
        ladder->rungs[at] = *rung;
        ladder->n_rungs++;
}

static void add(struct ladder *ladder, const char *name, int priority, pid_t tid) {
        struct rung rung = { .priority = priority, .tid = tid };

        text_escape(rung.name, sizeof(rung.name), name, strlen(name));
        insert(ladder, &rung);
}

/* Keeps those nearest to @priority, nearest first. */
static void keep_nearest(const struct lease *nearest[LEASES_SHOWN], const struct lease *lease,
                         int priority) {
        const struct lease *next = lease;

        for (size_t i = 0; i < LEASES_SHOWN && next; i++) {
                const struct lease *kept = nearest[i];

                if (kept && abs(kept->grants[KIND_SCHED].set.sched.priority - priority) <=
                                    abs(next->grants[KIND_SCHED].set.sched.priority - priority))
                        continue;
                nearest[i] = next;
                next = kept;
        }
}

static void add_lease(const struct lease *lease, struct ladder *ladder) {
        char name[WIRE_COMM_SIZE];

        proc_read_comm(lease->thread.pid, lease->thread.tid, name, sizeof(name));
        add(ladder, name, lease->grants[KIND_SCHED].set.sched.priority, lease->thread.tid);
}

static void add_leases(const struct call *call, const struct ask *ask, int priority,
                       struct ladder *ladder) {
        const struct lease *nearest[LEASES_SHOWN] = {}, *lease;
        struct broker *broker = call->broker;

        if (ask->user->n_leases == 0)
                return;
        facts_charge(call);
        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq)
                if (lease->user == ask->user && lease != ask->lease && lease_is_rt(lease) &&
                    lease->thread.tid != ask->feeds_tid)
                        keep_nearest(nearest, lease, priority);

        for (size_t i = 0; i < LEASES_SHOWN && nearest[i]; i++)
                add_lease(nearest[i], ladder);
}

void standing_describe(const struct call *call, const struct ask *ask,
                       const struct decision *decision, char buffer[STANDING_SIZE]) {
        struct ladder ladder = {};
        struct sched_values feeds;
        size_t n;

        if (ask->fed.priority > 0)
                add(&ladder, ask->fed.name, ask->fed.priority, 0);
        /* whose it is may be hidden from the asker */
        if (ask->feeds_tid > 0 && sched_read(ask->feeds_tid, &feeds) >= 0 &&
            sched_is_rt(feeds.policy))
                add(&ladder, "thread", feeds.priority, ask->feeds_tid);
        add_leases(call, ask, (int) decision->asked, &ladder);
        add(&ladder, "this one", (int) decision->asked, 0);

        n = (size_t) snprintf(buffer, STANDING_SIZE, "from the top:");
        for (size_t i = 0; i < ladder.n_rungs && n < STANDING_SIZE; i++) {
                const struct rung *rung = &ladder.rungs[i];
                char number[16] = "";

                if (rung->tid > 0)
                        (void) snprintf(number, sizeof(number), " (%d)", rung->tid);
                n += (size_t) snprintf(buffer + n, STANDING_SIZE - n, "%s %s%s %d",
                                       i > 0 ? "," : "", rung->name, number, rung->priority);
        }
}
