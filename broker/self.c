/* SPDX-License-Identifier: MIT */

#include "broker/self.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "broker/kernel-cause.h"
#include "broker/log.h"
#include "broker/sched-values.h"

#define WINDOW_US (1000U * 1000)
#define BUDGET_NS (200U * 1000 * 1000) /* of real-time CPU a window: 20 % of one CPU */
#define CHARGE_EVERY 32                /* messages between two looks at the clock */

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
        if (r >= 0) {
                self->broken = REASON_NONE;
                (void) set_own(false);
                return;
        }

        self->broken =
                kernel_cause_find((pid_t) syscall(SYS_gettid), r, self->cause, sizeof(self->cause));
}

void self_init(struct self *self, struct log *log) {
        *self = (struct self) { .log = log };

        self_try(self);
        if (self->broken != REASON_NONE)
                log_write(log, LOG_ERR,
                          &(struct log_fields) { .event = "degraded",
                                                .reason = reason_to_string(self->broken) },
                          "cannot run real-time itself, so no real-time grants will be given: %s",
                          self->cause);
}

bool self_can_raise(struct self *self) {
        if (self->broken == REASON_NONE)
                return true;

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

        if (raise == self->raised)
                return;

        r = set_own(raise);
        if (r >= 0) {
                self->raised = raise;
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
        if (self->over_budget || own_cpu_ns() - self->window_cpu_ns < BUDGET_NS)
                return;

        self->over_budget = true;
        self_apply(self);
        if (!self->over_budget_said)
                log_write(self->log, LOG_WARNING, &(struct log_fields) { .event = "own-budget" },
                          "so many requests that serving them took %u ms of real-time CPU within a "
                          "second; "
                          "going on at normal priority until the second is over (said once)",
                          BUDGET_NS / 1000000);
        self->over_budget_said = true;
}
