/* SPDX-License-Identifier: MIT */

#include "broker/grant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/kernel-cause.h"

static bool wants(const struct wanted *wanted, enum kind_index kind) {
        return kind == KIND_SCHED ? wanted->sched : wanted->nice_too;
}

static union kind_values values_wanted(const struct wanted *wanted, enum kind_index kind) {
        union kind_values values = {};

        if (kind == KIND_SCHED) {
                values.sched.policy = wanted->policy;
                values.sched.priority = wanted->priority;
                values.sched.reset_on_fork = true;
        } else {
                values.nice.nice = wanted->nice;
                values.nice.reset_on_fork = true;
        }
        return values;
}

/*
 * A thread that was weakened by its owner or by an administrator since the grant goes back to
 * that, not to the better value it had before. RESET_ON_FORK is still ours then.
 */
static void lower_saved(enum kind_index kind, union kind_values *saved,
                        const union kind_values *now) {
        if (kind == KIND_NICE) {
                if (now->nice.nice > saved->nice.nice)
                        saved->nice.nice = now->nice.nice;
                return;
        }

        if (sched_rank(now->sched.policy, now->sched.priority) <=
            sched_rank(saved->sched.policy, saved->sched.priority)) {
                bool reset_on_fork = saved->sched.reset_on_fork;

                saved->sched = now->sched;
                saved->sched.reset_on_fork = reset_on_fork;
        }
}

/* Both kinds set RESET_ON_FORK. Where both are held, sched alone puts it back, last. */
static void share_flag(struct grant grants[_KIND_MAX]) {
        struct grant *sched = &grants[KIND_SCHED], *nice = &grants[KIND_NICE];

        if (!sched->held || !nice->held)
                return;

        sched->saved.sched.reset_on_fork =
                sched->saved.sched.reset_on_fork && nice->saved.nice.reset_on_fork;
        nice->saved.nice.reset_on_fork = true;
}

static int prepare(pid_t tid, const struct wanted *wanted, const struct sched_values *before,
                   struct grant grants[_KIND_MAX], union kind_values was[_KIND_MAX]) {
        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                struct grant *grant = &grants[kind];
                union kind_values now;
                int r;

                if (!wants(wanted, kind))
                        continue;

                r = kinds[kind]->capture(tid, before, &now);
                if (r < 0)
                        return r;

                was[kind] = now;
                if (!grant->held)
                        grant->saved = now;
                else if (kinds[kind]->verify(tid, before, &grant->set) == 0)
                        lower_saved(kind, &grant->saved, &now);

                grant->held = true;
                grant->set = values_wanted(wanted, kind);
        }

        share_flag(grants);
        return 0;
}

/*
 * Undoes the kinds up to @last, where the thread is known to be the right one. It goes back to what
 * it had just before: that may be less than an earlier grant, by its owner's doing.
 */
static void undo(const struct lease *lease, const struct grant next[_KIND_MAX],
                 const struct wanted *wanted, const struct grant_outcome *outcome,
                 enum kind_index last) {
        for (enum kind_index kind = last + 1; kind-- > 0;) {
                union kind_values was = outcome->was[kind];

                if (!wants(wanted, kind))
                        continue;

                /* sched alone puts RESET_ON_FORK back, last */
                if (kind == KIND_NICE && next[KIND_SCHED].held)
                        was.nice.reset_on_fork = true;
                (void) kinds[kind]->restore(lease->thread.tid,
                                            lease->grants[kind].held ? &was : &next[kind].saved,
                                            &next[kind].set);
        }
}

/*
 * The number may be a stranger's by now, or the thread's program another's: what was saved is not
 * theirs. If it carries exactly what was set, it loses that and keeps the nice that it has.
 */
static void undo_stranger(struct broker *broker, pid_t tid, const struct wanted *wanted) {
        struct sched_values now;

        if (sched_read(tid, &now) < 0)
                return;

        if (wanted->sched && now.policy == wanted->policy && now.priority == wanted->priority &&
            now.reset_on_fork) {
                now.policy = SCHED_OTHER;
                now.priority = 0;
                now.runtime_ns = 0;
                (void) sched_write(tid, &now);
        }
        if (wanted->nice_too && now.nice == wanted->nice && wanted->nice < 0) {
                (void) sched_write_nice(tid, 0);
                log_write(broker->log, LOG_WARNING,
                          &(struct log_fields) { .event = "undone", .tid = tid },
                          "thread %d became another while its nice was set; it has nice 0 now, and "
                          "what it had "
                          "before cannot be known",
                          tid);
        }
}

/*
 * The thread may have gone on under the number of its process: exec(3) by a thread that does not
 * lead one. Then it took along what was set, and what was there before is its own there too.
 */
static void undo_moved(struct broker *broker, const struct lease *lease,
                       const struct grant next[_KIND_MAX], const struct wanted *wanted) {
        pid_t pid = lease->thread.pid;
        struct sched_values now;

        if (lease->thread.tid == pid || lease_find_by_tid(&broker->leases, pid) ||
            sched_read(pid, &now) < 0)
                return;

        for (enum kind_index kind = _KIND_MAX; kind-- > 0;)
                if (wants(wanted, kind) && kinds[kind]->verify(pid, &now, &next[kind].set) == 1)
                        (void) kinds[kind]->restore(pid, &next[kind].saved, &next[kind].set);
}

static enum reason apply_all(const struct lease *lease, const struct grant next[_KIND_MAX],
                             const struct wanted *wanted, struct grant_outcome *outcome) {
        pid_t tid = lease->thread.tid;
        int r;

        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                if (!wants(wanted, kind))
                        continue;

                r = kinds[kind]->apply(tid, &outcome->before, &next[kind].set);
                if (r < 0) {
                        if (kind > 0)
                                undo(lease, next, wanted, outcome, kind - 1);
                        outcome->error = r;
                        return kernel_cause_find(tid, r, outcome->cause, sizeof(outcome->cause));
                }
        }

        return REASON_NONE;
}

static enum reason verify_all(const struct lease *lease, const struct grant next[_KIND_MAX],
                              const struct wanted *wanted, struct grant_outcome *outcome) {
        if (sched_read(lease->thread.tid, &outcome->after) < 0)
                return REASON_NO_SUCH_THREAD;

        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++)
                if (wants(wanted, kind) &&
                    kinds[kind]->verify(lease->thread.tid, &outcome->after, &next[kind].set) != 1) {
                        undo(lease, next, wanted, outcome, _KIND_MAX - 1);
                        return REASON_KERNEL_MISMATCH;
                }

        return REASON_NONE;
}

enum reason grant_apply(struct broker *broker, struct lease *lease, const struct wanted *wanted,
                        struct grant_outcome *ret) {
        struct grant next[_KIND_MAX];
        enum reason reason;

        *ret = (struct grant_outcome) {};
        memcpy(next, lease->grants, sizeof(next));

        if (!wanted->checked) {
                reason = target_check(&broker->kernel, &lease->thread, &lease->creds);
                if (reason != REASON_NONE)
                        return reason;
        }
        if (sched_read(lease->thread.tid, &ret->before) < 0 ||
            prepare(lease->thread.tid, wanted, &ret->before, next, ret->was) < 0)
                return REASON_NO_SUCH_THREAD;

        lease_save(broker, lease, next);
        reason = apply_all(lease, next, wanted, ret);
        if (reason == REASON_NONE)
                reason = verify_all(lease, next, wanted, ret);
        if (reason == REASON_NONE) {
                reason = target_check(&broker->kernel, &lease->thread, &lease->creds);
                if (reason != REASON_NONE)
                        undo_stranger(broker, lease->thread.tid, wanted);
        }
        if (reason != REASON_NONE) {
                undo_moved(broker, lease, next, wanted);
                lease_save(broker, lease, NULL);
                return reason;
        }

        memcpy(lease->grants, next, sizeof(next));
        return REASON_NONE;
}

void grant_restore(struct broker *broker, struct lease *lease) {
        struct creds now;

        /* Whoever it runs as now: what is ours is taken back, if it is that thread at all. */
        if (thread_read_creds(&broker->kernel, &lease->thread, &now) == -ESRCH)
                return;

        for (enum kind_index kind = _KIND_MAX; kind-- > 0;) {
                struct grant *grant = &lease->grants[kind];

                if (grant->held)
                        (void) kinds[kind]->restore(lease->thread.tid, &grant->saved, &grant->set);
        }
}

int grant_verify(const struct lease *lease) {
        struct sched_values now;
        int r;

        r = sched_read(lease->thread.tid, &now);
        if (r < 0)
                return r;

        return grant_is_in_force(lease, lease->thread.tid, &now);
}

bool grant_is_in_force(const struct lease *lease, pid_t tid, const struct sched_values *now) {
        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                const struct grant *grant = &lease->grants[kind];

                if (grant->held && kinds[kind]->verify(tid, now, &grant->set) != 1)
                        return false;
        }

        return true;
}

bool grant_remains(const struct lease *lease, const struct sched_values *now) {
        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                const struct grant *grant = &lease->grants[kind];

                if (grant->held && kinds[kind]->is_remainder(now, &grant->saved, &grant->set))
                        return true;
        }

        return false;
}
