/* SPDX-License-Identifier: MIT */

/* The way without the broker: as far as the caller's own limits or capabilities go. */

#include <unistd.h>

#include "client/librtgrant/acquire.h"
#include "client/librtgrant/thread.h"

#define NICE_MIN (-20)
#define NICE_MAX 19

/* Back to what was; without privilege RESET_ON_FORK cannot be cleared again, sched(7). */
static void undo_realtime(pid_t tid, const struct thread_values *before) {
        struct thread_values values = *before;

        if (thread_write(tid, &values) < 0) {
                values.reset_on_fork = true;
                (void) thread_write(tid, &values);
        }
}

/* A better nice comes first: it may be refused, and can always be given back. */
static int apply_realtime(pid_t tid, const struct thread_values *before,
                          const struct thread_values *wanted) {
        int r;

        if (wanted->nice < before->nice) {
                r = thread_write_nice(tid, wanted->nice);
                if (r < 0)
                        return r;
        }

        r = thread_write(tid, wanted);
        if (r < 0) {
                if (wanted->nice < before->nice)
                        (void) thread_write_nice(tid, before->nice);
                return r;
        }

        if (wanted->nice > before->nice) {
                r = thread_write_nice(tid, wanted->nice);
                if (r < 0) {
                        undo_realtime(tid, before);
                        return r;
                }
        }

        return 0;
}

static int apply(const struct rtgrant_request *request, const struct thread_values *before,
                 const struct thread_values *wanted) {
        if (!request->wants_sched)
                return thread_write_nice(request->tid, wanted->nice);
        if (policy_is_rt(wanted->policy))
                return apply_realtime(request->tid, before, wanted);

        return thread_write(request->tid, wanted);
}

static bool is_in_force(const struct rtgrant_request *request, const struct thread_values *now) {
        if (request->wants_sched &&
            (now->policy != request->policy || now->priority != request->priority ||
             !now->reset_on_fork))
                return false;

        return !request->wants_nice || now->nice == request->nice;
}

static struct thread_values wanted_values(const struct rtgrant_request *request,
                                          const struct thread_values *before) {
        struct thread_values wanted = *before;

        if (request->wants_sched) {
                wanted.policy = request->policy;
                wanted.priority = request->priority;
                wanted.reset_on_fork = true;
        }
        if (request->wants_nice)
                wanted.nice = request->nice;

        return wanted;
}

/* A filter in a sandbox may answer with an errno of its choice: a broker may still help. */
static bool broker_may_help(int error) {
        return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

static bool is_direct(const struct rtgrant_request *request) {
        return request->flags & RTGRANT_DIRECT && !(request->flags & RTGRANT_DRY_RUN) &&
               request_is_of_thread(request) &&
               !request->is_relative && /* the broker knows bands */
               request->feeds_tid == 0 && !request->feeds &&
               request_is_own(request);
}

int acquire_directly(const struct rtgrant_request *request, struct rtgrant_answer *ret) {
        struct thread_values before, wanted, now;
        int r;

        if (!is_direct(request))
                return 0;
        if (!thread_is_own(request->tid))
                return -ESRCH;
        /* The kernel would cut it to what it knows. */
        if (request->wants_nice && (request->nice < NICE_MIN || request->nice > NICE_MAX))
                return -EINVAL;

        r = thread_read(request->tid, &before);
        if (r < 0)
                return broker_may_help(r) ? 0 : r;

        wanted = wanted_values(request, &before);
        r = apply(request, &before, &wanted);
        if (r < 0)
                return broker_may_help(r) ? 0 : r;

        r = thread_read(request->tid, &now);
        if (r < 0)
                return broker_may_help(r) ? 0 : r;
        /* A filter said yes and did nothing, or somebody else was there too: not ours to undo. */
        if (!is_in_force(request, &now))
                return 0;

        *ret = (struct rtgrant_answer) {
                .size = sizeof(*ret),
                .route = RTGRANT_ROUTE_DIRECT,
                .pid = getpid(),
                .tid = request->tid,
                .policy = now.policy,
                .priority = now.priority,
                .nice = now.nice,
                .reset_on_fork = now.reset_on_fork,
                .previous_policy = before.policy,
                .previous_priority = before.priority,
                .previous_nice = before.nice,
        };
        return 1;
}
