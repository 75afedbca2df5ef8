/* SPDX-License-Identifier: MIT */

#include "broker/guard/judge.h"

#include <limits.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* The kernel brings a running thread's time up to date at its tick, of 10 ms at the longest. */
#define TICK_NS (10 * MS)
#define GRACE_NS (200 * MS)     /* between the warning and the deed */
#define STEPS 12                /* of the ring in a window */
#define DECLARED_SHARE_MIN 500U

enum guard_tick guard_time_tick(struct guard_time *time, uint64_t monotonic_ns,
                                uint64_t boottime_ns, uint64_t interval_ns) {
        uint64_t elapsed = monotonic_ns - time->monotonic_ns;
        uint64_t asleep = (boottime_ns - time->boottime_ns) - elapsed;
        bool first = time->monotonic_ns == 0;

        time->monotonic_ns = monotonic_ns;
        time->boottime_ns = boottime_ns;
        /* the difference of both clocks is the time in suspend; below that is the time between
         * reading one and the other */
        if (first || (asleep > TICK_NS && asleep < UINT64_MAX - TICK_NS) ||
            elapsed > interval_ns + SECOND)
                return GUARD_TICK_RESUMED;
        if (elapsed > 2 * interval_ns + 50 * MS)
                return GUARD_TICK_LATE;

        time->now_ns += elapsed;
        return GUARD_TICK_GOOD;
}

struct guard_budget guard_budget_make(uint64_t run_max_us, uint64_t window_us, unsigned percent,
                                      uint64_t period_ns, uint64_t computation_ns) {
        struct guard_budget budget = {
                .run_max_ns = run_max_us * 1000,
                .window_ns = window_us * 1000,
                .share_max = percent * (GUARD_FULL / 100),
        };
        unsigned share;

        if (period_ns == 0)
                return budget;

        share = (unsigned) (computation_ns * 2 * GUARD_FULL / period_ns);
        if (share < DECLARED_SHARE_MIN)
                share = DECLARED_SHARE_MIN;
        if (share < budget.share_max)
                budget.share_max = share;
        /* a window of a few periods at least, or one of them would count for all */
        if (budget.window_ns < 4 * period_ns)
                budget.window_ns = 4 * period_ns;
        return budget;
}

void guard_account_reset(struct guard_account *account) {
        memset(account, 0, sizeof(*account));
}

static void push(struct guard_account *account, uint64_t step_ns) {
        unsigned last = (account->next + GUARD_RING - 1) % GUARD_RING;

        if (account->n_ring > 0 && account->at_ns - account->ring[last].at_ns < step_ns)
                return;

        account->ring[account->next].at_ns = account->at_ns;
        account->ring[account->next].used_ns = account->used_ns;
        account->next = (account->next + 1) % GUARD_RING;
        if (account->n_ring < GUARD_RING)
                account->n_ring++;
}

/* It has been awake for @ran_ns. */
static void begin_run(struct guard_account *account, uint64_t ran_ns) {
        account->run_at_ns = account->at_ns - ran_ns;
        account->run_used_ns = account->used_ns - ran_ns;
        account->run_delayed_ns = 0;
}

/*
 * Time that it neither ran nor waited for a CPU, it slept. When, nobody knows: if it did all of it
 * at first, it runs since. That may be unfair, so it counts for no more than half of what it may.
 */
static void follow_run(struct guard_account *account, const struct guard_budget *budget,
                       uint64_t used) {
        uint64_t awake = account->used_ns - account->run_used_ns + account->run_delayed_ns;
        uint64_t elapsed = account->at_ns - account->run_at_ns;

        if (elapsed > awake && elapsed - awake > TICK_NS + elapsed / 50)
                begin_run(account, used < budget->run_max_ns / 2 ? used : budget->run_max_ns / 2);
}

void guard_account_add(struct guard_account *account, const struct guard_budget *budget,
                       const struct guard_sample *sample) {
        uint64_t used = sample->cpu_ns - account->cpu_ns;
        uint64_t delayed = sample->delay_ns - account->delay_ns;
        uint64_t elapsed = sample->at_ns - account->at_ns;

        if (sample->tick == GUARD_TICK_RESUMED || !account->known) {
                guard_account_reset(account);
                account->known = true;
                account->at_ns = sample->at_ns;
                begin_run(account, 0);
        } else if (sample->tick == GUARD_TICK_GOOD) {
                /* no thread runs longer than time passes: what is more was used while it stood */
                if (used > elapsed + TICK_NS)
                        used = elapsed + TICK_NS;
                account->at_ns = sample->at_ns;
                account->used_ns += used;
                account->run_delayed_ns += delayed < elapsed ? delayed : elapsed;
                follow_run(account, budget, used);
        }

        account->cpu_ns = sample->cpu_ns;
        account->delay_ns = sample->delay_ns;
        push(account, budget->window_ns / STEPS);
}

unsigned guard_account_share(const struct guard_account *account,
                             const struct guard_budget *budget) {
        uint64_t begin_ns = account->at_ns, begin_used = account->used_ns, elapsed;

        for (unsigned i = 1; i <= account->n_ring; i++) {
                unsigned at = (account->next + GUARD_RING - i) % GUARD_RING;

                begin_ns = account->ring[at].at_ns;
                begin_used = account->ring[at].used_ns;
                if (account->at_ns - begin_ns >= budget->window_ns)
                        break;
        }

        /* one that has just begun is not judged by its first moment */
        elapsed = account->at_ns - begin_ns;
        if (elapsed < budget->window_ns)
                elapsed = budget->window_ns;
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): CPUWindow= is 100 ms at least */
        return (unsigned) ((account->used_ns - begin_used) / (elapsed / GUARD_FULL));
}

uint64_t guard_account_run_ns(const struct guard_account *account) {
        return account->used_ns - account->run_used_ns;
}

enum reason guard_judge(const struct guard_account *account, const struct guard_budget *budget) {
        if (guard_account_run_ns(account) > budget->run_max_ns)
                return REASON_RAN_ON;
        if (budget->share_max < GUARD_FULL &&
            guard_account_share(account, budget) > budget->share_max)
                return REASON_CPU_SHARE;

        return REASON_NONE;
}

enum guard_verdict guard_account_settle(struct guard_account *account,
                                        const struct guard_budget *budget, enum reason reason) {
        uint64_t grace = budget->window_ns / 4;

        if (grace > GRACE_NS)
                grace = GRACE_NS;
        if (reason == REASON_NONE) {
                /* not at the first moment below: who hovers about a limit is over it */
                if (account->fine_since_ns == 0)
                        account->fine_since_ns = account->at_ns;
                if (account->at_ns - account->fine_since_ns >= grace)
                        account->over = REASON_NONE;
                return GUARD_FINE;
        }

        account->fine_since_ns = 0;
        if (account->over == REASON_NONE) {
                account->over = reason;
                account->over_since_ns = account->at_ns;
                return GUARD_WARN;
        }

        return account->at_ns - account->over_since_ns >= grace ? GUARD_DEMOTE : GUARD_WAIT;
}

static uint64_t sum_of(const struct guard_member *members, size_t n_members, size_t like,
                       bool process) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n_members; i++)
                if (!members[i].taken && members[i].group == members[like].group &&
                    (!process || members[i].process == members[like].process))
                        sum += members[i].share;

        return sum;
}

size_t guard_judge_largest(const struct guard_member *members, size_t n_members) {
        uint64_t best_group = 0, best_process = 0;
        size_t best = n_members;

        for (size_t i = 0; i < n_members; i++) {
                uint64_t group, process;

                if (members[i].taken || members[i].share == 0)
                        continue;
                /* the sums of a group are made once for each run of equals: the caller sorts none */
                if (best < n_members && members[i].group == members[best].group &&
                    members[i].process == members[best].process) {
                        if (members[i].share > members[best].share)
                                best = i;
                        continue;
                }
                group = sum_of(members, n_members, i, false);
                process = sum_of(members, n_members, i, true);
                if (best == n_members || group > best_group ||
                    (group == best_group && process > best_process) ||
                    (group == best_group && process == best_process &&
                     members[i].share > members[best].share)) {
                        best = i;
                        best_group = group;
                        best_process = process;
                }
        }

        return best;
}

uint64_t guard_back_off_ms(uint64_t first_ms, uint64_t max_ms, unsigned n_times) {
        uint64_t ms = first_ms;

        while (n_times-- > 1 && ms < max_ms)
                ms *= 2;
        return ms < max_ms ? ms : max_ms;
}

static const char *parse_number(const char *text, uint64_t *ret) {
        uint64_t n = 0;

        if (*text < '0' || *text > '9')
                return NULL;
        for (; *text >= '0' && *text <= '9'; text++)
                n = n * 10 + (uint64_t) (*text - '0');

        *ret = n;
        return text;
}

bool guard_parse_schedstat(const char *text, uint64_t *ret_cpu_ns, uint64_t *ret_delay_ns) {
        text = parse_number(text, ret_cpu_ns);
        return text && *text == ' ' && parse_number(text + 1, ret_delay_ns);
}

/* From the third on, counted as proc(5) does; NULL if there is none. */
static const char *find_field(const char *text, size_t length, unsigned wanted) {
        while (length > 0 && text[length - 1] != ')')
                length--;
        if (length == 0)
                return NULL;

        text += length;
        for (unsigned field = 2; field < wanted; field++) {
                text = strchr(text, ' ');
                if (!text)
                        return NULL;
                text++;
        }
        return text;
}

int guard_parse_stat_cpu(const char *text, size_t length) {
        uint64_t cpu;

        text = find_field(text, length, 39);
        return text && parse_number(text, &cpu) && cpu <= INT_MAX ? (int) cpu : -1;
}

bool guard_parse_stat(const char *text, size_t length, uint64_t tick_ns, uint64_t *ret_cpu_ns) {
        uint64_t utime, stime;

        text = find_field(text, length, 14);
        if (!text)
                return false;
        text = parse_number(text, &utime);
        if (!text || *text != ' ' || !parse_number(text + 1, &stime))
                return false;

        *ret_cpu_ns = (utime + stime) * tick_ns;
        return true;
}
