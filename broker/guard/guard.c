/* SPDX-License-Identifier: MIT */

#include "broker/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/guard/table.h"
#include "broker/sched-values.h"
#include "broker/worker.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define STACK_BYTES (256U * 1024)
#define CHUNK 64                /* looked at before the lock is given to others */

struct guard {
        pthread_t thread;
        pid_t tid;
        int wake_fd;                    /* owned; written when the first is watched */
        int notice_fd;                  /* owned */
        _Atomic bool ending;
        _Atomic bool woke_up;           /* and the dispatcher was not told yet */
        struct guard_table table;       /* has the lock */
        struct guard_time time;
        uint64_t tick;
};

static uint64_t read_clock(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * SECOND + (uint64_t) ts.tv_nsec;
}

static void sleep_until(uint64_t at_ns) {
        const struct timespec ts = { .tv_sec = (time_t) (at_ns / SECOND),
                                     .tv_nsec = (long) (at_ns % SECOND) };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

/* A tick over all, the first with @interval_ns 0. *ret_idle: nobody does much. True if there is something to tell. */
static bool look_at_all(struct guard *guard, uint64_t interval_ns, bool *ret_idle) {
        struct guard_table *table = &guard->table;
        enum guard_tick tick;
        uint64_t boottime_ns = read_clock(CLOCK_BOOTTIME);
        bool told;

        tick = guard_time_tick(&guard->time, read_clock(CLOCK_MONOTONIC), boottime_ns, interval_ns);
        guard->tick++;

        guard_table_lock(table);
        for (uint32_t i = 0; i < table->n_slots; i++) {
                guard_table_sample(table, i, guard->time.now_ns, tick, guard->tick);
                if (i % CHUNK == CHUNK - 1) {
                        guard_table_unlock(table);
                        guard_table_lock(table);
                }
        }
        *ret_idle = guard_table_is_idle(table);
        told = tick == GUARD_TICK_GOOD && guard_table_judge(table, guard->time.now_ns);
        guard_table_unlock(table);
        if (tick != GUARD_TICK_GOOD)
                canary_forgive(&table->canary, guard->time.now_ns);
        if (tick == GUARD_TICK_RESUMED && interval_ns != 0) {
                guard->woke_up = true;
                return true;
        }
        return told;
}

static void watch(struct guard *guard) {
        uint64_t next_ns = read_clock(CLOCK_MONOTONIC);
        uint64_t shortest_ns, interval_ns = 0;
        bool idle = false;

        guard->time.monotonic_ns = 0;
        while (!guard->ending && (shortest_ns = guard_table_interval(&guard->table)) != 0) {
                uint64_t now_ns = read_clock(CLOCK_MONOTONIC);

                if (look_at_all(guard, interval_ns, &idle))
                        (void) eventfd_write(guard->notice_fd, 1);

                /* an 8th of the shortest limit; who has been idle so far needs all of it to go over */
                interval_ns = idle ? GUARD_QUIET_LOOKS * shortest_ns : shortest_ns;
                next_ns += interval_ns;
                if (next_ns < now_ns)
                        next_ns = now_ns + interval_ns;
                sleep_until(next_ns);
        }
}

static void *guard_run(void *userdata) {
        struct guard *guard = userdata;
        volatile char stack[32 * 1024];
        eventfd_t value;

        /* locked in memory when first touched: now rather than when it matters */
        for (size_t i = 0; i < sizeof(stack); i += 1024)
                stack[i] = 0;

        guard->tid = (pid_t) syscall(SYS_gettid);
        (void) eventfd_write(guard->notice_fd, 1);
        while (!guard->ending) {
                if (eventfd_read(guard->wake_fd, &value) < 0 && errno != EINTR)
                        break;
                watch(guard);
        }
        return NULL;
}

static int start(struct guard *guard) {
        eventfd_t value;
        int r;

        r = worker_start(guard_run, guard, STACK_BYTES, &guard->thread);
        if (r < 0)
                return r;

        /* until it has said its number */
        while (eventfd_read(guard->notice_fd, &value) < 0 && errno == EINTR)
                ;
        return fcntl(guard->notice_fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : 0;
}

int guard_new(struct guard **ret) {
        struct guard *guard;
        int r;

        guard = calloc(1, sizeof(*guard));
        if (!guard)
                return -ENOMEM;

        guard->wake_fd = eventfd(0, EFD_CLOEXEC);
        guard->notice_fd = eventfd(0, EFD_CLOEXEC);
        r = guard->wake_fd < 0 || guard->notice_fd < 0 ? -errno : 0;
        if (r >= 0)
                r = guard_table_init(&guard->table);
        if (r >= 0)
                r = start(guard);
        if (r < 0) {
                guard_table_done(&guard->table);
                (void) close_fd(guard->wake_fd);
                (void) close_fd(guard->notice_fd);
                free(guard);
                return r;
        }

        *ret = guard;
        return 0;
}

struct guard *guard_free(struct guard *guard) {
        if (!guard)
                return NULL;

        guard->ending = true;
        (void) eventfd_write(guard->wake_fd, 1);
        (void) pthread_join(guard->thread, NULL);
        guard_table_done(&guard->table);
        (void) close_fd(guard->wake_fd);
        (void) close_fd(guard->notice_fd);
        free(guard);
        return NULL;
}

int guard_fd(const struct guard *guard) {
        return guard->notice_fd;
}

void guard_set_limits(struct guard *guard, const struct guard_limits *limits) {
        guard_table_lock(&guard->table);
        guard->table.limits = *limits;
        guard_table_unlock(&guard->table);
}

static int set_priority(struct guard *guard, int priority) {
        const struct sched_values values = {
                .policy = priority > 0 ? SCHED_FIFO : SCHED_OTHER,
                .priority = priority,
                .reset_on_fork = true,
        };

        return sched_write(guard->tid, &values);
}

int guard_try(struct guard *guard) {
        int r;

        r = set_priority(guard, GUARD_PRIORITY);
        if (r >= 0 && guard->table.n_watched == 0)
                (void) set_priority(guard, 0);
        return r;
}

int guard_add(struct guard *guard, const struct guard_watched *watched, uint32_t *ret_id) {
        bool first = guard->table.n_watched == 0;
        int r;

        if (first) {
                r = set_priority(guard, GUARD_PRIORITY);
                if (r < 0)
                        return r;
        }
        r = guard_table_add(&guard->table, watched, ret_id);
        if (r >= 0 && first)
                (void) eventfd_write(guard->wake_fd, 1);
        return r;
}

bool guard_remove(struct guard *guard, uint32_t id) {
        return guard_table_remove(&guard->table, id);
}

static bool budgets_are_equal(const struct guard_budget *a, const struct guard_budget *b) {
        return a->run_max_ns == b->run_max_ns && a->window_ns == b->window_ns &&
               a->share_max == b->share_max;
}

void guard_set_budget(struct guard *guard, uint32_t id, const struct guard_budget *budget) {
        struct guard_slot *slot = guard_table_slot(&guard->table, id);

        /* Asked for again as it is: no reason to go through all the others. */
        if (budgets_are_equal(&slot->watched.budget, budget))
                return;

        guard_table_lock(&guard->table);
        slot->watched.budget = *budget;
        guard_table_unlock(&guard->table);
        guard_table_retime(&guard->table);
}

bool guard_is_demoted(struct guard *guard, uint32_t id) {
        bool demoted;

        guard_table_lock(&guard->table);
        demoted = guard_table_slot(&guard->table, id)->demoted;
        guard_table_unlock(&guard->table);
        return demoted;
}

void guard_set_demoted(struct guard *guard, uint32_t id) {
        guard_table_lock(&guard->table);
        guard_table_slot(&guard->table, id)->demoted = true;
        guard_table_unlock(&guard->table);
}

void guard_restored(struct guard *guard, uint32_t id) {
        struct guard_slot *slot = guard_table_slot(&guard->table, id);

        guard_table_lock(&guard->table);
        slot->demoted = false;
        guard_table_begin(slot);
        guard_table_unlock(&guard->table);
}

void guard_forgive(struct guard *guard) {
        guard_table_lock(&guard->table);
        for (uint32_t i = 0; i < guard->table.n_slots; i++)
                guard_table_begin(guard_table_slot(&guard->table, i));
        guard_table_unlock(&guard->table);
}

bool guard_next(struct guard *guard, struct guard_notice *ret) {
        eventfd_t value;

        if (guard_table_next(&guard->table, ret))
                return true;

        /* emptied first, or a notice that comes just now would wait for the next one */
        (void) eventfd_read(guard->notice_fd, &value);
        return guard_table_next(&guard->table, ret);
}

bool guard_woke_up(struct guard *guard) {
        return atomic_exchange(&guard->woke_up, false);
}
