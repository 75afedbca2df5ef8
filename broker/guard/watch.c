/* SPDX-License-Identifier: MIT */

/* What the guard's thread does with its table: looks, judges, demotes. No allocation, no log. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "broker/guard/table.h"
#include "broker/sched-values.h"

#define MS UINT64_C(1000000)
#define QUIET 2000U             /* below this share some of the looks will do */
#define PINNED_EVERY 4          /* looks at it between two at what CPUs it may run on */
#define MEMBER_MIN 10U          /* below this share nobody is to blame */
#define SUSPECT 9000U           /* of a CPU, by leased threads: others may get nothing of it */
#define FULL_PERCENT 88U        /* of a CPU: about what real-time threads can get, who may want more */

/* False if the thread ended. */
static bool read_counter(const struct guard_table *table, const struct guard_slot *slot,
                         uint64_t *ret_cpu_ns, uint64_t *ret_delay_ns) {
        char text[1024];
        ssize_t n;

        n = pread(slot->fd, text, sizeof(text) - 1, 0);
        if (n <= 0)
                return false;

        text[n] = '\0';
        *ret_delay_ns = 0;
        return slot->ticks ? guard_parse_stat(text, (size_t) n, table->tick_ns, ret_cpu_ns)
                           : guard_parse_schedstat(text, ret_cpu_ns, ret_delay_ns);
}

static int pinned_cpu(pid_t tid) {
        cpu_set_t set;

        if (sched_getaffinity(tid, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
                return -1;
        for (int cpu = 0; cpu < CPU_SETSIZE && cpu < GUARD_CPUS_MAX; cpu++)
                if (CPU_ISSET(cpu, &set))
                        return cpu;

        return -1;
}

/* Of one that may run on several: where it did last. -1 if that cannot be told. */
static int last_cpu(const struct guard_watched *watched) {
        char path[64], text[1024];
        ssize_t n;
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", watched->pid, watched->tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        n = read(fd, text, sizeof(text) - 1);
        (void) close(fd);
        if (n <= 0)
                return -1;

        text[n] = '\0';
        return guard_parse_stat_cpu(text, (size_t) n);
}

static void find_cpu(struct guard_slot *slot) {
        slot->cpu = pinned_cpu(slot->watched.tid);
        /* who does little starves nobody */
        slot->ran_on = slot->cpu >= 0 ? slot->cpu : slot->quiet ? -1 : last_cpu(&slot->watched);
        if (slot->ran_on >= GUARD_CPUS_MAX)
                slot->ran_on = -1;
}

void guard_table_sample(struct guard_table *table, uint32_t id, uint64_t now_ns,
                        enum guard_tick tick, uint64_t n_ticks) {
        struct guard_slot *slot = guard_table_slot(table, id);
        struct guard_sample sample = { .at_ns = now_ns, .tick = tick };
        uint64_t at_ns = slot->account.at_ns, used_ns = slot->account.used_ns;

        if (!slot->used || slot->demoted)
                return;
        if (slot->quiet && !table->idle && tick == GUARD_TICK_GOOD &&
            (n_ticks + id) % GUARD_QUIET_LOOKS != 0)
                return;
        if (!read_counter(table, slot, &sample.cpu_ns, &sample.delay_ns))
                return; /* ended: the dispatcher knows, or will */

        guard_account_add(&slot->account, &slot->watched.budget, &sample);
        slot->share = guard_account_share(&slot->account, &slot->watched.budget);
        slot->reason = guard_judge(&slot->account, &slot->watched.budget);
        slot->quiet = slot->share < QUIET &&
                      (slot->account.used_ns - used_ns) * (GUARD_FULL / QUIET) <=
                              slot->account.at_ns - at_ns;
        if (slot->n_looks++ % PINNED_EVERY == 0)
                find_cpu(slot);
}

bool guard_table_is_idle(struct guard_table *table) {
        uint64_t sum = 0;

        table->idle = true;
        for (uint32_t i = 0; i < table->n_slots && table->idle; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);

                if (!slot->used || slot->demoted)
                        continue;
                sum += slot->share;
                table->idle = slot->quiet && sum < QUIET;
        }

        return table->idle;
}

/*
 * By number, between two looks at what stands for the thread itself: if it ended meanwhile, the
 * number may be a stranger's, who gets back what it had.
 */
static bool demote(struct guard_table *table, struct guard_slot *slot) {
        pid_t tid = slot->watched.tid;
        struct sched_values before, demoted;
        uint64_t cpu_ns, delay_ns;

        if (sched_read(tid, &before) < 0 || !read_counter(table, slot, &cpu_ns, &delay_ns) ||
            !sched_is_rt(before.policy) || !before.reset_on_fork)
                return false;

        demoted = (struct sched_values) {
                .policy = SCHED_OTHER,
                .nice = before.nice,
                .reset_on_fork = true,
        };
        if (sched_write(tid, &demoted) < 0)
                return false;
        if (!read_counter(table, slot, &cpu_ns, &delay_ns)) {
                (void) sched_write(tid, &before);
                return false;
        }

        slot->demoted = true;
        return true;
}

static struct guard_notice notice_of(const struct guard_table *table, const struct guard_slot *slot,
                                     enum reason reason, unsigned group_share) {
        return (struct guard_notice) {
                .owner = slot->watched.owner,
                .reason = reason,
                .run_ms = guard_account_run_ns(&slot->account) / MS,
                .share = slot->share,
                .group_share = group_share,
                .cpu = table->canary.cpu,
                .starved_ms = (slot->account.at_ns - table->canary.sent_ns) / MS,
                .budget = slot->watched.budget,
        };
}

/* True if there is something to tell. */
static bool settle(struct guard_table *table, struct guard_slot *slot, enum reason reason,
                   unsigned group_share) {
        struct guard_account *account = &slot->account;

        slot->settled = false;
        switch (guard_account_settle(account, &slot->watched.budget, reason)) {
        case GUARD_WARN:
                slot->warning = notice_of(table, slot, reason, group_share);
                slot->tell_warning = true;
                return true;
        case GUARD_DEMOTE:
                if (!demote(table, slot))
                        return false;
                slot->demotion = notice_of(table, slot, reason, group_share);
                slot->demotion.demoted = true;
                slot->demotion.took_ms = (account->at_ns - account->over_since_ns) / MS;
                slot->tell_demotion = true;
                return true;
        case GUARD_FINE:
        case GUARD_WAIT:
                break;
        }

        return false;
}

/* Whom a limit is about: all, one user's threads, or those of one CPU. */
struct scope {
        enum reason reason;
        uint64_t limit;         /* of the sum of shares */
        uint64_t full;          /* what there is; 0: that does not matter */
        bool by_user;
        uint64_t user;
        int cpu;                /* that they are pinned to; -1: wherever */
        bool unpinned_too;      /* or were seen on */
};

static bool is_in(const struct scope *scope, const struct guard_slot *slot) {
        return (!scope->by_user || slot->watched.user == scope->user) &&
               (scope->cpu < 0 || (scope->unpinned_too ? slot->ran_on : slot->cpu) == scope->cpu);
}

/* The members of @scope, most of whom use nothing and are left out. */
static size_t gather(struct guard_table *table, const struct scope *scope, uint64_t *ret_sum) {
        size_t n = 0;

        *ret_sum = 0;
        for (uint32_t i = 0; i < table->n_slots; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);

                if (!slot->used || slot->demoted || slot->share < MEMBER_MIN || !is_in(scope, slot))
                        continue;
                *ret_sum += slot->share;
                table->members[n] = (struct guard_member) {
                        .share = slot->share,
                        .group = slot->watched.user,
                        .process = (uint64_t) slot->watched.pid,
                };
                table->member_slots[n++] = i;
        }

        return n;
}

/* Who was warned before the others: of equals another is the largest each time. */
static size_t next_culprit(struct guard_table *table, const struct scope *scope, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!table->members[i].taken &&
                    guard_table_slot(table, table->member_slots[i])->account.over == scope->reason)
                        return i;

        return guard_judge_largest(table->members, n);
}

/*
 * Of a CPU that is full nobody knows how much is wanted: it hovers about its limit, and what one
 * leaves the others take. So it is fine only when it is clearly so, and comes down further than to
 * the limit: else it would be one thread each window, for as long as there are small ones.
 */
static uint64_t lower_limit(uint64_t limit) {
        return limit * 9 / 10;
}

static uint64_t target_of(const struct scope *scope, uint64_t sum, bool warned) {
        bool is_full = scope->full > 0 && sum >= scope->full * FULL_PERCENT / 100;

        return is_full || warned ? scope->limit * 3 / 4 : scope->limit;
}

static bool is_warned(struct guard_table *table, const struct scope *scope, size_t n) {
        if (scope->full == 0)
                return false;
        for (size_t i = 0; i < n; i++)
                if (guard_table_slot(table, table->member_slots[i])->account.over == scope->reason)
                        return true;

        return false;
}

/* True if there is something to tell. */
static bool judge_scope(struct guard_table *table, const struct scope *scope) {
        uint64_t sum, before, target;
        bool told = false, warned;
        size_t n, i;

        n = gather(table, scope, &sum);
        before = sum;
        warned = is_warned(table, scope, n);
        if (sum <= (warned ? lower_limit(scope->limit) : scope->limit))
                return false;
        target = target_of(scope, sum, warned);
        while (sum > target && (i = next_culprit(table, scope, n)) < n) {
                struct guard_slot *slot = guard_table_slot(table, table->member_slots[i]);

                table->members[i].taken = true;
                sum -= table->members[i].share;
                if (slot->over_now)
                        continue; /* judged already, for itself or by a narrower limit */
                slot->over_now = true;
                told |= settle(table, slot, scope->reason, (unsigned) before);
        }

        return told;
}

static bool judge_threads(struct guard_table *table, uint64_t *ret_sum) {
        bool told = false;

        *ret_sum = 0;
        for (uint32_t i = 0; i < table->n_slots; i++) {
                struct guard_slot *slot = guard_table_slot(table, i);

                if (!slot->used || slot->demoted)
                        continue;
                slot->over_now = slot->reason != REASON_NONE;
                if (slot->over_now)
                        told |= settle(table, slot, slot->reason, 0);
                *ret_sum += slot->share;
        }

        return told;
}

static bool judge_cpus(struct guard_table *table, uint64_t limit) {
        static uint64_t sums[GUARD_CPUS_MAX];
        bool told = false;

        for (int cpu = 0; cpu < GUARD_CPUS_MAX; cpu++)
                sums[cpu] = 0;
        for (uint32_t i = 0; i < table->n_slots; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);

                if (slot->used && !slot->demoted && slot->cpu >= 0)
                        sums[slot->cpu] += slot->share;
        }
        for (int cpu = 0; cpu < GUARD_CPUS_MAX; cpu++) {
                const struct scope scope = { REASON_CPU_RESERVE, limit, GUARD_FULL, .cpu = cpu };

                if (sums[cpu] > lower_limit(limit))
                        told |= judge_scope(table, &scope);
        }

        return told;
}

/* The next CPU after @after that leased threads take nearly all of; -1 if there is none. */
static int next_suspect(struct guard_table *table, int after) {
        static uint64_t sums[GUARD_CPUS_MAX];

        for (int cpu = 0; cpu < GUARD_CPUS_MAX; cpu++)
                sums[cpu] = 0;
        for (uint32_t i = 0; i < table->n_slots; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);

                if (slot->used && !slot->demoted && slot->ran_on >= 0)
                        sums[slot->ran_on] += slot->share;
        }
        for (int i = 1; i <= GUARD_CPUS_MAX; i++) {
                int cpu = (after + i) % GUARD_CPUS_MAX;

                if (sums[cpu] >= SUSPECT)
                        return cpu;
        }

        return -1;
}

/* Whether all others on a CPU get nothing of it; then the largest there has to go. */
static bool judge_starved(struct guard_table *table, uint64_t now_ns) {
        struct scope scope = { REASON_STARVED, .unpinned_too = true };
        struct guard_slot *slot;
        uint64_t sent_ns, sum;
        size_t n, i;

        scope.cpu = canary_waits(&table->canary, &sent_ns);
        if (scope.cpu < 0) {
                scope.cpu = next_suspect(table, table->canary.cpu);
                if (scope.cpu >= 0)
                        (void) canary_send(&table->canary, scope.cpu, now_ns);
                return false;
        }
        if (now_ns - sent_ns < table->limits.starved_ms * MS)
                return false;

        /* somebody whom we gave nothing may be the one who takes it all */
        n = gather(table, &scope, &sum);
        i = sum >= SUSPECT ? next_culprit(table, &scope, n) : n;
        if (i == n)
                return false;
        slot = guard_table_slot(table, table->member_slots[i]);
        if (slot->over_now)
                return false; /* judged already */
        slot->over_now = true;
        return settle(table, slot, scope.reason, (unsigned) sum);
}

static bool judge_users(struct guard_table *table, uint64_t limit) {
        bool told = false;
        uint64_t sum;

        for (uint32_t i = 0; i < table->n_slots; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);
                const struct scope scope = { REASON_CPU_PER_USER, limit, .by_user = true,
                                             .user = slot->watched.user, .cpu = -1 };

                /* a user over the limit has a thread that takes its part */
                if (!slot->used || slot->demoted || slot->over_now || slot->share < MEMBER_MIN)
                        continue;
                (void) gather(table, &scope, &sum);
                if (sum > limit)
                        told |= judge_scope(table, &scope);
        }

        return told;
}

bool guard_table_judge(struct guard_table *table, uint64_t now_ns) {
        const struct guard_limits *limits = &table->limits;
        uint64_t all = (uint64_t) table->n_cpus * GUARD_FULL;
        uint64_t user_limit = all * limits->user_max / 100;
        uint64_t cpu_limit = (uint64_t) GUARD_FULL * (100 - limits->reserve) / 100;
        const struct scope everybody = { REASON_CPU_RESERVE, cpu_limit * table->n_cpus, all,
                                         .cpu = -1 };
        uint64_t sum;
        bool told;

        told = judge_threads(table, &sum);
        /* what nothing is kept of can be had whole, and a little more by how it is measured */
        if (limits->reserve > 0 && sum > lower_limit(cpu_limit))
                told |= judge_cpus(table, cpu_limit);
        if (limits->user_max < 100 && sum > user_limit)
                told |= judge_users(table, user_limit);
        if (limits->reserve > 0 && sum > lower_limit(everybody.limit))
                told |= judge_scope(table, &everybody);
        if (limits->starved_ms > 0 && sum >= SUSPECT)
                told |= judge_starved(table, now_ns);

        for (uint32_t i = 0; i < table->n_slots; i++) {
                struct guard_slot *slot = guard_table_slot(table, i);

                if (!slot->used || slot->demoted || slot->over_now || slot->settled)
                        continue;
                (void) guard_account_settle(&slot->account, &slot->watched.budget, REASON_NONE);
                slot->settled = slot->account.over == REASON_NONE;
        }

        return told;
}
