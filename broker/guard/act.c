/* SPDX-License-Identifier: MIT */

#include "broker/guard/act.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/grant.h"
#include "broker/guard/guard.h"
#include "broker/kinds/rttime.h"
#include "broker/lease-check.h"

/* Who kept to its budget for this many times the last back-off starts from the first one again. */
#define FORGIVEN_AFTER 10
/* Three times what a kernel with a fair server, or its throttle for real-time, lets others wait. */
#define STARVED_MS 2500
#define WARN_EVERY_US (5U * 1000 * 1000) /* for one thread */

static uint32_t id_of(const struct lease *lease) {
        return lease->guard - 1;
}

static struct guard_budget budget_of(const struct broker *broker, const struct lease *lease) {
        const struct role *role = &broker_policy(broker)->roles[lease->role_index];

        return guard_budget_make(role->run_us_max, role->cpu_window_us, role->cpu_percent_max,
                                 lease->timing.period_ns, lease->timing.computation_ns);
}

/* ---- what it is told of ---- */

static void describe(const struct broker *broker, const struct guard_notice *notice, char *text,
                     size_t size) {
        const struct policy *policy = broker_policy(broker);

        switch (notice->reason) {
        case REASON_RAN_ON:
                (void) snprintf(text, size, "it ran for %llu ms without sleeping, of %llu ms that it may",
                                (unsigned long long) notice->run_ms,
                                (unsigned long long) notice->budget.run_max_ns / 1000000);
                break;
        case REASON_CPU_SHARE:
                (void) snprintf(text, size, "it took %.1f%% of a CPU over %llu ms, of %.1f%% that it may",
                                notice->share / 100.0,
                                (unsigned long long) notice->budget.window_ns / 1000000,
                                notice->budget.share_max / 100.0);
                break;
        case REASON_CPU_PER_USER:
                (void) snprintf(text, size,
                                "the real-time threads of its user took %.1f%% of a CPU, more than "
                                "CPUPerUser=%u%% of all, and it is the largest with %.1f%%",
                                notice->group_share / 100.0, policy->cpu_per_user_percent_max,
                                notice->share / 100.0);
                break;
        case REASON_STARVED:
                (void) snprintf(text, size,
                                "real-time threads took %.1f%% of CPU %d, and nothing else got to "
                                "run there for %llu ms; it is the largest with %.1f%%",
                                notice->group_share / 100.0, notice->cpu,
                                (unsigned long long) notice->starved_ms, notice->share / 100.0);
                break;
        default:
                (void) snprintf(text, size,
                                "all real-time threads took %.1f%% of a CPU, and left less than "
                                "ReserveCPU=%u%%; it is the largest with %.1f%%",
                                notice->group_share / 100.0, policy->reserve_cpu_percent,
                                notice->share / 100.0);
                break;
        }
}

/* How long: from the first one again if the last is long ago, the same as others' at the time. */
static uint64_t begin_back_off(struct broker *broker, struct user *user) {
        const struct policy *policy = broker_policy(broker);
        uint64_t now_us = broker_now_us(broker);

        if (now_us >= user->back_off_until_us) {
                if (now_us >= user->back_off_until_us + FORGIVEN_AFTER * user->back_off_ms * 1000)
                        user->n_demotions = 0;
                user->n_demotions++;
                user->back_off_ms = guard_back_off_ms(policy->back_off_ms, policy->back_off_ms_max,
                                                      user->n_demotions);
        }

        user->back_off_until_us = now_us + user->back_off_ms * 1000;
        return user->back_off_ms;
}

static void end_back_off(struct lease *lease) {
        lease->back_off = sd_event_source_disable_unref(lease->back_off);
        lease->demoted_until_ms = 0;
}

/* Whether the thread has exactly what the guard made of it. */
static bool is_as_demoted(const struct lease *lease) {
        struct sched_values now;

        return sched_read(lease->thread.tid, &now) >= 0 && now.policy == SCHED_OTHER &&
               now.reset_on_fork;
}

static int on_back_off_over(sd_event_source *source, uint64_t usec, void *userdata) {
        struct lease *lease = userdata;
        struct broker *broker = lease->broker;
        const struct sched_values *set = &lease->grants[KIND_SCHED].set.sched;
        /* a reload meanwhile may have lowered what the role gives; nothing was there to be lowered */
        int priority_max = broker_policy(broker)->roles[lease->role_index].priority_max;
        const struct wanted wanted = {
                .sched = true,
                .policy = set->policy,
                .priority = set->priority < priority_max ? set->priority : priority_max,
        };
        struct grant_outcome outcome;
        enum reason reason;

        end_back_off(lease);
        if (!is_as_demoted(lease)) {
                /* somebody else has set something meanwhile: that stays */
                guard_restored(broker->guard, id_of(lease));
                lease->state = WIRE_LEASE_IN_FORCE;
                if (grant_verify(lease) == 0)
                        lease_check_changed(broker, lease);
                lease_save(broker, lease, NULL);
                return 0;
        }

        reason = grant_apply(broker, lease, &wanted, &outcome);
        if (reason != REASON_NONE) {
                lease_end(broker, lease, reason,
                          "its priority could not be restored after a demotion");
                return 0;
        }
        guard_restored(broker->guard, id_of(lease));
        lease->state = WIRE_LEASE_IN_FORCE;
        lease_save(broker, lease, NULL);
        broker_tell(broker, lease, WIRE_EVENT_RESTORED, REASON_BACK_OFF_OVER,
                    "it has its priority again");
        return 0;
}

static void wait_for_restore(struct broker *broker, struct lease *lease, uint64_t ms) {
        lease->state = WIRE_LEASE_DEMOTED;
        lease->demoted_until_ms = broker_now_ms() + ms;
        lease->back_off = sd_event_source_disable_unref(lease->back_off);
        (void) sd_event_add_time_relative(broker->event, &lease->back_off, CLOCK_MONOTONIC,
                                          ms * 1000, 1000, on_back_off_over, lease);
}

static void book(struct broker *broker, const struct guard_notice *notice) {
        struct lease *lease = notice->owner;
        uint64_t now_us = broker_now_us(broker), ms;
        char text[256], cause[200];

        describe(broker, notice, cause, sizeof(cause));
        if (!notice->demoted) {
                if (now_us < lease->warned_us + WARN_EVERY_US && lease->warned_us != 0)
                        return;
                lease->warned_us = now_us;
                broker_tell(broker, lease, WIRE_EVENT_OVER_BUDGET, notice->reason, cause);
                return;
        }

        ms = begin_back_off(broker, lease->user);
        wait_for_restore(broker, lease, ms);
        lease->warned_us = 0;
        lease_save(broker, lease, NULL);
        (void) snprintf(text, sizeof(text), "%s; demoted for %.1f s", cause, (double) ms / 1000);
        broker_tell(broker, lease, WIRE_EVENT_DEMOTED, notice->reason, text);
}

static void collect(struct broker *broker) {
        struct guard_notice notice;

        while (guard_next(broker->guard, &notice))
                book(broker, &notice);
}

static int on_notices(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct broker *broker = userdata;

        collect(broker);
        if (guard_woke_up(broker->guard))
                broker_woke_up(broker);
        return 0;
}

/* ---- what it watches ---- */

int guard_act_start(struct broker *broker) {
        int r;

        r = guard_new(&broker->guard);
        if (r >= 0)
                r = sd_event_add_io(broker->event, &broker->guard_notices, guard_fd(broker->guard),
                                    EPOLLIN, on_notices, broker);
        if (r >= 0)
                /* before requests of the same round */
                r = sd_event_source_set_priority(broker->guard_notices, SD_EVENT_PRIORITY_IMPORTANT);
        if (r < 0) {
                log_write(broker->log, LOG_ERR, NULL, "cannot start the guard: %s", strerror(-r));
                return r;
        }

        self_set_guard(&broker->self, broker->guard);
        guard_act_apply_policy(broker);
        return 0;
}

void guard_act_stop(struct broker *broker) {
        self_set_guard(&broker->self, NULL);
        broker->guard_notices = sd_event_source_disable_unref(broker->guard_notices);
        broker->guard = guard_free(broker->guard);
}

void guard_act_apply_policy(struct broker *broker) {
        const struct guard_limits limits = {
                .user_max = broker_policy(broker)->cpu_per_user_percent_max,
                .reserve = broker_policy(broker)->reserve_cpu_percent,
                .starved_ms = STARVED_MS,
        };
        struct lease *lease;

        guard_set_limits(broker->guard, &limits);
        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq) {
                (void) guard_act_watch(broker, lease);
                rttime_supervise(broker, lease);
        }
}

int guard_act_reserve(struct broker *broker, struct lease *lease) {
        const struct guard_watched watched = {
                .pid = lease->thread.pid,
                .tid = lease->thread.tid,
                .user = lease->user->uid,
                .owner = lease,
                .budget = budget_of(broker, lease),
        };
        uint32_t id;
        int r;

        if (!broker->guard)
                return 0; /* a test of the books alone */
        if (lease->guard != 0) {
                guard_set_budget(broker->guard, id_of(lease), &watched.budget);
                return 0;
        }

        r = guard_add(broker->guard, &watched, &id);
        if (r >= 0)
                lease->guard = id + 1;
        return r;
}

int guard_act_watch(struct broker *broker, struct lease *lease) {
        if (lease_is_rt(lease))
                return guard_act_reserve(broker, lease);

        guard_act_forget(broker, lease, /* restore= */ false);
        return 0;
}

void guard_act_rebind(struct broker *broker, struct lease *lease) {
        bool demoted;

        if (lease->guard == 0)
                return;

        demoted = guard_remove(broker->guard, id_of(lease));
        lease->guard = 0;
        if (guard_act_watch(broker, lease) >= 0 && demoted)
                guard_set_demoted(broker->guard, id_of(lease));
}

static void put_back(const struct broker *broker, struct lease *lease) {
        struct sched_values values = lease->grants[KIND_SCHED].saved.sched;
        struct sched_values now;
        struct creds creds;

        if (thread_read_creds(&broker->kernel, &lease->thread, &creds) == -ESRCH ||
            !is_as_demoted(lease) || sched_read(lease->thread.tid, &now) < 0)
                return;

        values.nice = now.nice;
        (void) sched_write(lease->thread.tid, &values);
}

void guard_act_forget(struct broker *broker, struct lease *lease, bool restore) {
        bool demoted;

        end_back_off(lease);
        if (lease->guard == 0)
                return;

        demoted = guard_remove(broker->guard, id_of(lease));
        lease->guard = 0;
        if (demoted && restore)
                put_back(broker, lease);
}

void guard_act_resume(struct broker *broker, struct lease *lease) {
        uint64_t now_ms = broker_now_ms(), max_ms = broker_policy(broker)->back_off_ms_max;
        uint64_t ms = lease->demoted_until_ms > now_ms ? lease->demoted_until_ms - now_ms : 1;

        if (lease->demoted_until_ms == 0 || lease->guard == 0)
                return;
        if (!is_as_demoted(lease)) {
                lease->demoted_until_ms = 0;
                return;
        }

        /* the clock may have been set meanwhile */
        if (ms > max_ms)
                ms = max_ms;
        guard_set_demoted(broker->guard, id_of(lease));
        lease->user->n_demotions = 1;
        lease->user->back_off_ms = ms;
        lease->user->back_off_until_us = broker_now_us(broker) + ms * 1000;
        wait_for_restore(broker, lease, ms);
}

bool guard_act_is_demoted(struct broker *broker, struct lease *lease) {
        if (lease->guard == 0 || !guard_is_demoted(broker->guard, id_of(lease)))
                return false;
        if (lease->state != WIRE_LEASE_DEMOTED)
                collect(broker);

        return true;
}

unsigned guard_act_back_off_ms(const struct broker *broker, const struct user *user) {
        uint64_t now_us = broker_now_us(broker);

        if (user->back_off_until_us <= now_us)
                return 0;
        return (unsigned) ((user->back_off_until_us - now_us + 999) / 1000);
}
