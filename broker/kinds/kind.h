/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KINDS_KIND_H
#define RTGRANT_BROKER_KINDS_KIND_H

/*
 * A kind of grant: one file with the same operations. Whether the thread is still the right one
 * is not a kind's business: grant.c brackets every call with that check, and reads the thread's
 * scheduling once before and once after for all kinds that are about it.
 */

#include "broker/sched-values.h"

enum kind_index {
        KIND_SCHED,
        KIND_NICE,
        _KIND_MAX,
};

struct nice_values {
        int nice;
        bool reset_on_fork;
};

/* What a kind saves, and what it sets. */
union kind_values {
        struct sched_values sched;
        struct nice_values nice;
};

struct kind {
        const char *name;

        /* What is there now, to be restored later; @now is what the thread has. Errors: kernel. */
        int (*capture)(pid_t tid, const struct sched_values *now, union kind_values *ret);

        /* Errors: as the kernel says. */
        int (*apply)(pid_t tid, const struct sched_values *now, const union kind_values *set);

        /* 1 if what was set is in force, 0 if something else is. Errors: kernel. */
        int (*verify)(pid_t tid, const struct sched_values *now, const union kind_values *set);

        /*
         * Whether what the thread has is what was set, or what its owner left of that: the owner may
         * weaken a grant, bit by bit, and what remains is still better than what was saved. That it
         * remains of a grant RESET_ON_FORK tells, which only the privileged can clear.
         */
        bool (*is_remainder)(const struct sched_values *now, const union kind_values *saved,
                             const union kind_values *set);

        /*
         * Puts back what was saved, but only where what was set is still in force or remains in
         * part, and never something better than the thread has by others' doing.
         * Returns 1 if restored, 0 if it was somebody else's value and left alone. Errors: kernel.
         */
        int (*restore)(pid_t tid, const union kind_values *saved, const union kind_values *set);
};

extern const struct kind kind_sched;
extern const struct kind kind_nice;

/* The table: in the order in which they are applied; they are restored in the opposite one. */
extern const struct kind *const kinds[_KIND_MAX];

#endif
