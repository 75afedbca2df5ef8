/* SPDX-License-Identifier: MIT */

#include "broker/kinds/kind.h"

#include <errno.h>

static int sched_capture(pid_t tid, const struct sched_values *now, union kind_values *ret) {
        ret->sched = *now;
        return 0;
}

static int sched_apply(pid_t tid, const struct sched_values *now, const union kind_values *set) {
        struct sched_values values = set->sched;

        /* Nice is another kind's: setting OTHER would set it along, so it is set to what it is. */
        values.nice = now->nice;
        values.runtime_ns = values.policy == now->policy ? now->runtime_ns : 0;
        return sched_write(tid, &values);
}

static int sched_verify(pid_t tid, const struct sched_values *now, const union kind_values *set) {
        return now->policy == set->sched.policy && now->priority == set->sched.priority &&
               now->reset_on_fork == set->sched.reset_on_fork;
}

static bool sched_is_remainder(const struct sched_values *now, const union kind_values *saved,
                               const union kind_values *set) {
        int rank = sched_rank(now->policy, now->priority);

        return now->reset_on_fork && rank <= sched_rank(set->sched.policy, set->sched.priority) &&
               rank > sched_rank(saved->sched.policy, saved->sched.priority);
}

static int sched_restore(pid_t tid, const union kind_values *saved, const union kind_values *set) {
        struct sched_values values = saved->sched;
        struct sched_values now;
        int r;

        r = sched_read(tid, &now);
        if (r < 0)
                return r;
        if (!sched_verify(tid, &now, set) && !sched_is_remainder(&now, saved, set))
                return 0;

        /* The owner may have reniced the thread meanwhile; sched_getattr(2) hides that while it is
         * real-time, and it cannot be undone without privilege. Nor is it by us. */
        values.nice = now.nice;
        r = sched_write(tid, &values);
        if (r < 0 && r != -ESRCH) {
                /* A deadline whose bandwidth is another's by now, say: rather nothing than what was
                 * lent. */
                values = (struct sched_values) { .policy = SCHED_OTHER, .nice = now.nice };
                r = sched_write(tid, &values);
        }
        return r < 0 ? r : 1;
}

const struct kind kind_sched = {
        .name = "sched",
        .capture = sched_capture,
        .apply = sched_apply,
        .verify = sched_verify,
        .is_remainder = sched_is_remainder,
        .restore = sched_restore,
};
