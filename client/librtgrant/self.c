/* SPDX-License-Identifier: MIT */

/* For the calling thread itself. */

#include <sched.h>

#include "client/librtgrant/public.h"
#include "client/librtgrant/thread.h"

int rtgrant_promote_self(const char *role, int policy, int priority,
                         struct rtgrant_answer *ret_answer) {
        struct rtgrant_request request = {
                .size = sizeof(request),
                .flags = RTGRANT_DIRECT,
                .role = role,
                .wants_sched = true,
                .policy = policy,
                .priority = priority,
        };

        return rtgrant_acquire(NULL, &request, ret_answer);
}

/* Signal-safe. */
int rtgrant_demote_self(void) {
        struct thread_values values;
        pid_t tid = thread_self();
        int r;

        r = thread_read(tid, &values);
        if (r < 0)
                return r;
        if (!policy_is_rt(values.policy))
                return 0;

        /* SCHED_OTHER takes a nice along: without it a nice of 19 would become 0, or be refused. */
        values.policy = SCHED_OTHER;
        values.priority = 0;
        r = thread_write(tid, &values);
        if (r < 0)
                return r;

        r = thread_read(tid, &values);
        if (r < 0)
                return r;

        /* A filter in a sandbox can say yes and do nothing. */
        return policy_is_rt(values.policy) ? -EPERM : 0;
}

void rtgrant_demote_self_from_signal(void) {
        int saved_errno = errno;

        (void) rtgrant_demote_self();
        errno = saved_errno;
}
