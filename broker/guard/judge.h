/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GUARD_JUDGE_H
#define RTGRANT_BROKER_GUARD_JUDGE_H

/*
 * Whether a real-time thread takes more than it may. Pure: no system call, clock, allocation or
 * lock. All times are of the guard's own clock, in which no time passes while the machine, the
 * daemon or a virtual CPU stood still: what happened meanwhile is nobody's fault.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/reason.h"

#define GUARD_RING 16
#define GUARD_FULL 10000U       /* one CPU: shares are in hundredths of a percent of it */

/* ---- the clock ---- */

struct guard_time {
        uint64_t now_ns;                /* the guard's clock */
        uint64_t monotonic_ns;          /* CLOCK_MONOTONIC and _BOOTTIME at the last tick; 0: none yet */
        uint64_t boottime_ns;
};

enum guard_tick {
        GUARD_TICK_GOOD,
        GUARD_TICK_LATE,                /* held up: what was used since the last tick does not count */
        GUARD_TICK_RESUMED,             /* likewise, and for so long that everybody starts anew */
};

/* A tick, of which the next was due @interval_ns after the last. */
enum guard_tick guard_time_tick(struct guard_time *time, uint64_t monotonic_ns,
                                uint64_t boottime_ns, uint64_t interval_ns);

/* ---- one thread ---- */

struct guard_budget {
        uint64_t run_max_ns;            /* without sleeping */
        uint64_t window_ns;             /* that the share is taken over; at least 1 ms */
        unsigned share_max;             /* GUARD_FULL and more: no limit */
};

/*
 * What a role gives, and what a thread declared of itself: with a declaration, twice the declared
 * share, 5 % at least, and never more than the role gives. @period_ns 0: nothing was declared.
 */
struct guard_budget guard_budget_make(uint64_t run_max_us, uint64_t window_us, unsigned percent,
                                      uint64_t period_ns, uint64_t computation_ns);

struct guard_account {
        struct {
                uint64_t at_ns;
                uint64_t used_ns;
        } ring[GUARD_RING];             /* at steps of a 12th of the window */
        unsigned n_ring;
        unsigned next;
        bool known;                     /* the following are of an earlier sample */
        uint64_t at_ns;                 /* the last sample */
        uint64_t used_ns;               /* CPU time since the account began, as far as it counts */
        uint64_t cpu_ns;                /* as the kernel counted at the last sample */
        uint64_t delay_ns;
        uint64_t run_at_ns;             /* since when it has not slept */
        uint64_t run_used_ns;
        uint64_t run_delayed_ns;
        uint64_t over_since_ns;         /* with over != NONE */
        uint64_t fine_since_ns;         /* likewise: it is not over just now; 0: it is */
        enum reason over;
};

struct guard_sample {
        uint64_t at_ns;
        uint64_t cpu_ns;                /* CPU time of the thread, all its life */
        uint64_t delay_ns;              /* likewise: ready to run, while others ran; 0 if unknown */
        enum guard_tick tick;
};

void guard_account_reset(struct guard_account *account);

void guard_account_add(struct guard_account *account, const struct guard_budget *budget,
                       const struct guard_sample *sample);

/* The share of a CPU over the window of @budget. */
unsigned guard_account_share(const struct guard_account *account,
                             const struct guard_budget *budget);

/* How long it has been running, or ready to run, without having slept: only its CPU time. */
uint64_t guard_account_run_ns(const struct guard_account *account);

/* REASON_NONE, REASON_RAN_ON or REASON_CPU_SHARE. */
enum reason guard_judge(const struct guard_account *account, const struct guard_budget *budget);

enum guard_verdict {
        GUARD_FINE,
        GUARD_WARN,                     /* over budget, from now on */
        GUARD_WAIT,                     /* still, and was warned */
        GUARD_DEMOTE,                   /* and was warned long enough */
};

/* What to do with one that is over budget by @reason; NONE: that is not. */
enum guard_verdict guard_account_settle(struct guard_account *account,
                                        const struct guard_budget *budget, enum reason reason);

/* ---- several ---- */

/* A thread among others that share a limit. */
struct guard_member {
        unsigned share;
        uint64_t group;                 /* of the user, who comes before the process */
        uint64_t process;
        bool taken;                     /* demoted or about to be: counts no more */
};

/*
 * Who of @members has to go first so that the others fit in the limit: the largest thread of the
 * largest process of the largest user. @n_members if nobody is left.
 */
size_t guard_judge_largest(const struct guard_member *members, size_t n_members);

/* How long a demotion lasts, the @n_times-th in a row from 1: doubled each time, up to @max_ms. */
uint64_t guard_back_off_ms(uint64_t first_ms, uint64_t max_ms, unsigned n_times);

/* ---- what the kernel says ---- */

/* /proc/PID/task/TID/schedstat. False if that is not what @text is. */
bool guard_parse_schedstat(const char *text, uint64_t *ret_cpu_ns, uint64_t *ret_delay_ns);

/* /proc/PID/task/TID/stat, whose second field is any text. @tick_ns: of utime and stime. */
bool guard_parse_stat(const char *text, size_t length, uint64_t tick_ns, uint64_t *ret_cpu_ns);

/* Of the same text, the CPU that it ran on last; -1 if that is not what @text is. */
int guard_parse_stat_cpu(const char *text, size_t length);

#endif
