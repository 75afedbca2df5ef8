/* SPDX-License-Identifier: MIT */

#include "client/rtgrant-change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void finish(struct change *change, enum change_result result, int error) {
        change->result = result;
        change->error = error;
}

/* What is wrong with a path is said of the path, not of the broker. */
static int check_path(const char *block) {
        struct stat st;

        return block && strchr(block, '/') && stat(block, &st) < 0 ? -errno : 0;
}

/* Asks for the parts of @options that are still wanted. */
static void ask_broker(struct broker *broker, const struct options *options,
                       const struct thread *thread, struct change *change) {
        struct rtgrant_request request;
        int r;

        r = check_path(options->resources.block);
        if (r < 0) {
                finish(change, CHANGE_FAILED, r);
                return;
        }
        r = broker_connect(broker);
        if (r < 0) {
                finish(change, CHANGE_NO_BROKER, r);
                return;
        }

        broker_request(options, thread, &request);
        change->answer = (struct rtgrant_answer) { .size = sizeof(change->answer) };
        r = rtgrant_acquire(broker->handle, &request, &change->answer);
        if (r >= 0)
                finish(change, CHANGE_GRANTED, 0);
        else if (r == -EPERM)
                finish(change, CHANGE_REFUSED, r);
        else
                finish(change, broker_is_error(r) && r != -ENODEV ? CHANGE_NO_BROKER : CHANGE_FAILED, r);
}

/*
 * Without privilege the kernel lets a thread that has RESET_ON_FORK be lowered only by a call that
 * sets the flag again; sched(7).
 */
static int write_keeping_flag(pid_t tid, const struct scheduling *wanted) {
        struct scheduling now, with_flag = *wanted;
        int r;

        r = scheduling_read(tid, &now);
        if (r < 0)
                return r;
        if (!now.reset_on_fork || wanted->reset_on_fork)
                return -EPERM;

        with_flag.reset_on_fork = true;
        return scheduling_write(tid, &with_flag);
}

/* Ends the lease of the thread, if it has one that is the caller's to end. */
static bool release_lease(struct broker *broker, pid_t tid, struct change *change) {
        struct rtgrant_id id;

        if (broker_find_lease(broker, tid, &id) < 0)
                return false;

        change->answer = (struct rtgrant_answer) { .size = sizeof(change->answer) };
        return rtgrant_release(broker->handle, &id, &change->answer) >= 0;
}

/* Back to a policy that needs no privilege. A lease that stands in the way is ended first. */
static void lower(struct broker *broker, const struct options *options, const struct thread *thread,
                  struct change *change) {
        const struct scheduling *wanted = &options->scheduling;
        struct scheduling now;
        bool released;
        int r;

        released = release_lease(broker, thread->tid, change);
        if (released && scheduling_read(thread->tid, &now) >= 0 && now.policy == wanted->policy &&
            now.reset_on_fork >= wanted->reset_on_fork) {
                finish(change, CHANGE_RELEASED, 0);
                return;
        }

        r = scheduling_write(thread->tid, wanted);
        if (r == -EPERM)
                r = write_keeping_flag(thread->tid, wanted);
        if (r < 0)
                finish(change, CHANGE_FAILED, r);
        else
                finish(change, released ? CHANGE_RELEASED : CHANGE_DIRECT, 0);
}

/* The policy, as far as the kernel gives it. Returns false if that was not far enough. */
static bool change_policy(struct broker *broker, const struct options *options,
                          const struct thread *thread, struct change *change) {
        const struct scheduling *wanted = &options->scheduling;
        int r;

        /* Bands, and what others have and declare, only the broker knows. */
        r = options->is_relative || options->feeds_tid > 0 || options->feeds ||
                                    options->rate > 0
                    ? -EPERM
                    : scheduling_write(thread->tid, wanted);
        if (r == -EPERM && !policy_is_realtime(wanted->policy) && wanted->policy != POLICY_DEADLINE)
                lower(broker, options, thread, change);
        else
                finish(change, r < 0 ? CHANGE_FAILED : CHANGE_DIRECT, r);
        return change_is_done(change);
}

/* The answer of every broker to what none of them has, without asking one. */
static void refuse_unsupported(int policy, struct change *change) {
        struct rtgrant_answer *answer = &change->answer;

        *answer = (struct rtgrant_answer) {
                .size = sizeof(*answer),
                .reason = RTGRANT_REASON_UNSUPPORTED,
        };
        (void) snprintf(answer->text, sizeof(answer->text),
                        "the kernel does not let this user set %s, and no broker gives it",
                        policy_name(policy));
        (void) snprintf(answer->help, sizeof(answer->help),
                        "a broker gives SCHED_FIFO (-f), SCHED_RR (-r) and --nice");
        finish(change, CHANGE_REFUSED, -EPERM);
}

/* What the kernel refused. */
static void change_by_broker(struct broker *broker, const struct options *rest,
                             const struct thread *thread, struct change *change) {
        const struct scheduling *wanted = &rest->scheduling;

        if (rest->sched_wanted && wanted->policy != SCHED_OTHER &&
            !policy_is_realtime(wanted->policy)) {
                refuse_unsupported(wanted->policy, change);
                return;
        }

        ask_broker(broker, rest, thread, change);
        if (!change_is_done(change) && rest->sched_wanted && !rest->nice_wanted && !rest->dry_run &&
            !resources_are_wanted(&rest->resources) &&
            write_keeping_flag(thread->tid, wanted) >= 0)
                finish(change, CHANGE_DIRECT, 0);
}

/*
 * What the kernel lets the caller do. What it refuses stays wanted in @rest; and with the policy
 * refused, the nice value too, since without privilege it could not be put back.
 */
static void change_directly(struct broker *broker, const struct options *options,
                            const struct thread *thread, struct options *rest,
                            struct change *change) {
        int r;

        finish(change, CHANGE_DIRECT, 0);
        if (options->sched_wanted)
                rest->sched_wanted = !change_policy(broker, options, thread, change);
        if (!options->nice_wanted || !change_is_done(change))
                return;

        r = scheduling_write_nice(thread->tid, options->nice);
        rest->nice_wanted = r < 0;
        if (r < 0)
                finish(change, CHANGE_FAILED, r == -EACCES ? -EPERM : r);
}

/* All or nothing: the policy is undone if the nice value was refused. */
static void put_back(const struct options *options, const struct options *rest,
                     const struct scheduling *before, pid_t tid) {
        if (options->sched_wanted && !rest->sched_wanted && scheduling_write(tid, before) == -EPERM)
                (void) write_keeping_flag(tid, before);
}

void change_thread(struct broker *broker, const struct options *options,
                   const struct thread *thread, struct change *ret) {
        struct options rest = *options;
        struct change change = { 0 };
        struct scheduling before;
        int r;

        r = scheduling_read(thread->tid, &before);
        if (r < 0) {
                finish(ret, CHANGE_FAILED, r);
                return;
        }

        /* what only a broker has comes as one lease with the rest, all or nothing */
        if (options->dry_run || resources_are_wanted(&options->resources)) {
                change_by_broker(broker, options, thread, &change);
        } else {
                change_directly(broker, options, thread, &rest, &change);
                if (change.error == -EPERM)
                        change_by_broker(broker, &rest, thread, &change);
                if (!change_is_done(&change))
                        put_back(options, &rest, &before, thread->tid);
        }
        *ret = change;
}
