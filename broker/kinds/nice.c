/* SPDX-License-Identifier: MIT */

#include "broker/kinds/kind.h"

static int nice_capture(pid_t tid, const struct sched_values *now, union kind_values *ret) {
        ret->nice = (struct nice_values) { .nice = now->nice, .reset_on_fork = now->reset_on_fork };
        return 0;
}

static int write_values(pid_t tid, const struct sched_values *now,
                        const struct nice_values *values) {
        bool along = now->policy == SCHED_OTHER || now->policy == SCHED_BATCH;
        struct sched_values next = *now;
        int r;

        next.nice = values->nice;
        next.reset_on_fork = values->reset_on_fork;
        if (along || now->reset_on_fork != values->reset_on_fork) {
                r = sched_write(tid, &next);
                if (r < 0)
                        return r;
        }
        if (along)
                return 0;

        /* sched_setattr(2) takes a nice only along with OTHER and BATCH. All or nothing: a nice
         * without its flag would be left behind where a filter forbids only one of the two calls.
         */
        r = sched_write_nice(tid, values->nice);
        if (r < 0)
                (void) sched_write(tid, now);
        return r;
}

/* Children must not inherit a better nice than they could have by themselves: hence the flag. */
static int nice_apply(pid_t tid, const struct sched_values *before, const union kind_values *set) {
        struct sched_values now;
        int r;

        /* The sched kind has been at it since @before was read. */
        r = sched_read(tid, &now);
        if (r < 0)
                return r;

        return write_values(tid, &now, &set->nice);
}

static int nice_verify(pid_t tid, const struct sched_values *now, const union kind_values *set) {
        return now->nice == set->nice.nice && now->reset_on_fork == set->nice.reset_on_fork;
}

static bool nice_is_remainder(const struct sched_values *now, const union kind_values *saved,
                              const union kind_values *set) {
        return now->reset_on_fork && now->nice >= set->nice.nice && now->nice < saved->nice.nice;
}

static int nice_restore(pid_t tid, const union kind_values *saved, const union kind_values *set) {
        struct sched_values now;
        int r;

        r = sched_read(tid, &now);
        if (r < 0)
                return r;
        if (!nice_verify(tid, &now, set) && !nice_is_remainder(&now, saved, set))
                return 0;

        r = write_values(tid, &now, &saved->nice);
        return r < 0 ? r : 1;
}

const struct kind kind_nice = {
        .name = "nice",
        .capture = nice_capture,
        .apply = nice_apply,
        .verify = nice_verify,
        .is_remainder = nice_is_remainder,
        .restore = nice_restore,
};
