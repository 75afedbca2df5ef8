/* SPDX-License-Identifier: MIT */

#include "broker/self.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "broker/guard/guard.h"
#include "broker/kernel-cause.h"
#include "broker/log.h"
#include "broker/sched-values.h"

#define WINDOW_US (1000U * 1000)
#define BUDGET_NS (200U * 1000 * 1000) /* of real-time CPU a window: 20 % of one CPU */
#define CHARGE_EVERY 32                /* messages between two looks at the clock */
/* What the kernel counts of RLIMIT_RTTIME ends with a sleep, of a tick's precision at the worst. */
#define LIMIT_US_MIN (50U * 1000)
#define SLEEP_NS (200U * 1000)

static uint64_t own_cpu_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

/* The dispatcher calls all of this; 0 would do for "this thread", but 0 never goes to the kernel.
 */
static int set_own(bool rt) {
        struct sched_values values = {
                .policy = rt ? SCHED_FIFO : SCHED_OTHER,
                .priority = rt ? SELF_PRIORITY : 0,
                .reset_on_fork = true,
        };

        return sched_write((pid_t) syscall(SYS_gettid), &values);
}

static void self_try(struct self *self) {
        int r;

        r = set_own(true);
        if (r >= 0 && !(self->wanted && self->raised))
                (void) set_own(false);
        if (r >= 0 && self->guard)
                r = guard_try(self->guard);
        if (r >= 0) {
                self->broken = REASON_NONE;
                return;
        }

        self->broken =
                kernel_cause_find((pid_t) syscall(SYS_gettid), r, self->cause, sizeof(self->cause));
}

static void say_degraded(const struct self *self) {
        log_write(self->log, LOG_ERR,
                  &(struct log_fields) { .event = "degraded",
                                        .reason = reason_to_string(self->broken) },
                  "cannot run real-time itself, so no real-time grants will be given: %s",
                  self->cause);
}

/*
 * A limit of its own must not be what ends it (rtkit-daemon dies of that): lifted where that may be,
 * else the budget is kept far below it, and begins with a sleep. Below a few ticks neither helps.
 */
static void lift_own_limit(struct self *self) {
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

        if (setrlimit(RLIMIT_RTTIME, &limit) >= 0 || getrlimit(RLIMIT_RTTIME, &limit) < 0 ||
            limit.rlim_max == RLIM_INFINITY)
                return;

        /* without SIGXCPU on the way there */
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_RTTIME, &limit);
        self->limited = true;
        if (limit.rlim_max < LIMIT_US_MIN) {
                self->broken = REASON_KERNEL_OTHER;
                (void) snprintf(self->cause, sizeof(self->cause),
                                "its own RLIMIT_RTTIME of %llu us is too short to live with, and "
                                "lifting it takes CAP_SYS_RESOURCE (LimitRTTIME= of its unit)",
                                (unsigned long long) limit.rlim_max);
        } else if (limit.rlim_max / 4 < BUDGET_NS / 1000) {
                self->budget_ns = limit.rlim_max / 4 * 1000;
        }
}

void self_init(struct self *self, struct log *log) {
        *self = (struct self) { .log = log, .budget_ns = BUDGET_NS };

        lift_own_limit(self);
        self->hopeless = self->broken != REASON_NONE;
        if (!self->hopeless)
                self_try(self);
        if (self->broken != REASON_NONE)
                say_degraded(self);
}

void self_set_guard(struct self *self, struct guard *guard) {
        self->guard = guard;
        if (!guard || self->broken != REASON_NONE)
                return;

        self_try(self);
        if (self->broken != REASON_NONE)
                say_degraded(self);
}

void self_cannot_watch(struct self *self, int error) {
        self->broken = kernel_cause_find((pid_t) syscall(SYS_gettid), error, self->cause,
                                         sizeof(self->cause));
        say_degraded(self);
}

bool self_can_raise(struct self *self) {
        if (self->broken == REASON_NONE)
                return true;
        if (self->hopeless)
                return false;

        self_try(self);
        if (self->broken != REASON_NONE)
                return false;

        log_write(self->log, LOG_NOTICE, &(struct log_fields) { .event = "recovered" },
                  "can run real-time itself again; real-time grants are given");
        return true;
}

static void self_apply(struct self *self) {
        bool raise = self->wanted && !self->over_budget;
        int r;

        if (raise == self->raised || (raise && self->hopeless))
                return;

        r = set_own(raise);
        if (r >= 0) {
                self->raised = raise;
                /* what makes the kernel count anew is to wake up up there: enqueue_task_rt() */
                if (raise && self->limited)
                        (void) nanosleep(&(struct timespec) { .tv_nsec = SLEEP_NS }, NULL);
                return;
        }
        if (!raise)
                return; /* still above everything, which does no harm; tried again next time */

        self->broken =
                kernel_cause_find((pid_t) syscall(SYS_gettid), r, self->cause, sizeof(self->cause));
        log_write(self->log, LOG_ERR,
                  &(struct log_fields) { .event = "degraded",
                                        .reason = reason_to_string(self->broken) },
                  "cannot run real-time itself any more, so no more real-time grants will be "
                  "given: %s",
                  self->cause);
}

void self_want(struct self *self, bool wanted) {
        self->wanted = wanted;
        self_apply(self);
}

static void begin_window(struct self *self, uint64_t now_us) {
        self->window_us = now_us;
        self->window_cpu_ns = own_cpu_ns();
        self->over_budget = false;
        self_apply(self);
}

void self_charge(struct self *self, uint64_t now_us) {
        /* Down there it has to come up again in time, however few messages there are by then. */
        if (self->over_budget && now_us - self->window_us >= WINDOW_US)
                begin_window(self, now_us);
        if (!self->wanted || ++self->n_charges < CHARGE_EVERY)
                return;
        self->n_charges = 0;

        if (now_us - self->window_us >= WINDOW_US) {
                begin_window(self, now_us);
                return;
        }
        if (self->over_budget || own_cpu_ns() - self->window_cpu_ns < self->budget_ns)
                return;

        self->over_budget = true;
        self_apply(self);
        if (!self->over_budget_said)
                log_write(self->log, LOG_WARNING, &(struct log_fields) { .event = "own-budget" },
                          "so many requests that serving them took %u ms of real-time CPU within a "
                          "second; "
                          "going on at normal priority until the second is over (said once)",
                          (unsigned) (self->budget_ns / 1000000));
        self->over_budget_said = true;
}
