/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GRANT_H
#define RTGRANT_BROKER_GRANT_H

/*
 * The bracket: check whose thread it is, act, read back, check again, and undo on any doubt. The
 * kernel sets threads by number only; between the two checks on a pinned thread the number cannot
 * have become another's unnoticed.
 */

#include "broker/lease.h"

struct wanted {
        bool sched;
        int policy;
        int priority;
        bool nice_too;
        int nice;
        bool checked;           /* whose thread it is was looked at just now, by target_resolve() */
};

struct grant_outcome {
        struct sched_values before;     /* what the thread had */
        struct sched_values after;      /* what it has, read back; only if granted */
        union kind_values was[_KIND_MAX]; /* the same by kinds, as far as they are wanted */
        int error;                      /* of the kernel, negative; 0 if it is not what failed */
        char cause[200];                /* in words, with REASON_KERNEL_*; else "" */
};

/*
 * Puts @wanted in force on the lease's thread. Captures what was there for kinds not held yet; for
 * held ones what was captured stays, unless the thread has been weakened since.
 *
 * REASON_NONE, or why not: then nothing was changed, or it was undone. The store knows at any time
 * what may be in force; on success the caller completes it by lease_save().
 */
enum reason grant_apply(struct broker *broker, struct lease *lease, const struct wanted *wanted,
                        struct grant_outcome *ret);

/* Restores what was there before the lease, where what was set is still in force. */
void grant_restore(struct broker *broker, struct lease *lease);

/* Whether what the lease holds is in force. Errors: -ESRCH. */
int grant_verify(const struct lease *lease);

/* The same for thread @tid, which has @now. */
bool grant_is_in_force(const struct lease *lease, pid_t tid, const struct sched_values *now);

/* Whether a thread that has @now has some of what the lease holds, in full or weakened. */
bool grant_remains(const struct lease *lease, const struct sched_values *now);

#endif
