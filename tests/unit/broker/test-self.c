/* SPDX-License-Identifier: MIT */

/* The broker's own priority, and its budget with a time that is made up. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "broker/guard/guard.h"
#include "broker/log.h"
#include "broker/self.h"
#include "tests/unit/broker/broker-test.h"

#define SECOND_US UINT64_C(1000000)
#define MS_NS UINT64_C(1000000)
#define CHARGES 32      /* messages between two looks at the budget */

/* Each test in a child: what a failure leaves real-time ends with it, and cannot run away. */
struct world {
        struct self self;
        struct log *log;
        int said;       /* what the log wrote */
};

static void begin(struct world *w) {
        const struct rlimit cpu = { 20, 20 };
        const struct rlimit rttime = { 500 * 1000, 1000 * 1000 };

        CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0 && setrlimit(RLIMIT_RTTIME, &rttime) == 0);
        w->said = memfd_create("said", MFD_CLOEXEC);
        CHECK(w->said >= 0 && dup2(w->said, STDERR_FILENO) >= 0);
        CHECK(log_new(&w->log, LOG_DEBUG) == 0);
        self_init(&w->self, w->log);
}

static unsigned n_said(struct world *w, const char *word) {
        static char text[16 * 1024];
        unsigned found = 0;
        ssize_t n;

        w->log = log_free(w->log); /* which writes what waits */
        n = pread(w->said, text, sizeof(text) - 1, 0);
        CHECK(n >= 0);
        text[n] = '\0';
        for (const char *s = text; (s = strstr(s, word)); s++)
                found++;
        return found;
}

static bool is(int policy, int priority, bool reset_on_fork) {
        struct sched_values now;

        return sched_read((pid_t) syscall(SYS_gettid), &now) == 0 && now.policy == policy &&
               now.priority == priority && now.reset_on_fork == reset_on_fork;
}

static bool is_raised(void) {
        return is(SCHED_FIFO, SELF_PRIORITY, true);
}

static bool is_normal(void) {
        return is(SCHED_OTHER, 0, true);
}

static uint64_t own_cpu_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

/* As if so much CPU time had been used since the window began: none is, at real-time priority. */
static void use_up(struct self *self, uint64_t ns) {
        self->window_cpu_ns = own_cpu_ns() - ns;
}

static void charge(struct self *self, unsigned times, uint64_t now_us) {
        for (unsigned i = 0; i < times; i++)
                self_charge(self, now_us);
}

static void up_and_down(const void *userdata) {
        struct world w;

        begin(&w);
        CHECK(w.self.broken == REASON_NONE && !w.self.raised);
        CHECK(is_normal()); /* it was only tried */
        self_want(&w.self, true);
        CHECK(is_raised() && w.self.raised);
        self_want(&w.self, true);
        CHECK(is_raised());
        self_want(&w.self, false);
        CHECK(is_normal() && !w.self.raised);
        self_want(&w.self, false);
        CHECK(is_normal());
        self_want(&w.self, true);
        CHECK(is_raised());
        self_want(&w.self, false);
        CHECK(n_said(&w, "\n") == 0);
}

/* Above everything it gives, or the reasons for being there are none. */
static void above_all_grants(const void *userdata) {
        CHECK(SELF_PRIORITY > 94);
        CHECK(SELF_PRIORITY <= 99);
}

static void within_budget(const void *userdata) {
        struct world w;

        begin(&w);
        self_want(&w.self, true);
        charge(&w.self, CHARGES, 10 * SECOND_US); /* the first window begins */
        CHECK(w.self.window_us == 10 * SECOND_US);
        use_up(&w.self, 150 * MS_NS);
        charge(&w.self, CHARGES, 10 * SECOND_US + SECOND_US / 2);
        CHECK(is_raised());
        self_want(&w.self, false);
        CHECK(n_said(&w, "\n") == 0);
}

static void over_budget(const void *userdata) {
        struct world w;

        begin(&w);
        self_want(&w.self, true);
        charge(&w.self, CHARGES, 10 * SECOND_US);
        use_up(&w.self, 201 * MS_NS);
        charge(&w.self, CHARGES - 1, 10 * SECOND_US + 300000);
        CHECK(is_raised());
        charge(&w.self, 1, 10 * SECOND_US + 300000);
        CHECK(is_normal() && w.self.over_budget);

        /* it stays so until the window is over, whatever is wanted */
        self_want(&w.self, true);
        CHECK(is_normal());
        charge(&w.self, CHARGES, 11 * SECOND_US - 1);
        CHECK(is_normal());
        charge(&w.self, CHARGES, 11 * SECOND_US);
        CHECK(is_raised());

        /* over it once more: it is not said again */
        use_up(&w.self, 201 * MS_NS);
        charge(&w.self, CHARGES, 11 * SECOND_US + 1);
        CHECK(is_normal());
        self_want(&w.self, false);
        CHECK(n_said(&w, "going on at normal priority") == 1);
}

/* CPU time of the window before does not count in the next. */
static void each_window_anew(const void *userdata) {
        struct world w;

        begin(&w);
        self_want(&w.self, true);
        charge(&w.self, CHARGES, 10 * SECOND_US);
        for (unsigned i = 1; i < 20; i++) {
                use_up(&w.self, 199 * MS_NS);
                charge(&w.self, CHARGES, (10 + i) * SECOND_US);
                CHECK(is_raised());
                CHECK(own_cpu_ns() - w.self.window_cpu_ns < 199 * MS_NS);
        }
        self_want(&w.self, false);
        CHECK(n_said(&w, "\n") == 0);
}

/*
 * The flood stops, and with it the messages whose count ends the window: a lease that is made
 * later must find the broker above it nevertheless.
 */
static void a_window_that_nobody_ends(const void *userdata) {
        struct world w;

        begin(&w);
        self_want(&w.self, true);
        charge(&w.self, CHARGES, 10 * SECOND_US);
        use_up(&w.self, 201 * MS_NS);
        charge(&w.self, CHARGES, 10 * SECOND_US + 1);
        CHECK(is_normal());

        charge(&w.self, 1, 60 * SECOND_US); /* one message, a minute later */
        self_want(&w.self, true);
        CHECK(is_raised());
        self_want(&w.self, false);
        (void) log_free(w.log);
}

/* Nobody's lease is real-time: nothing to keep a budget of. */
static void no_budget_without_need(const void *userdata) {
        struct world w;

        begin(&w);
        charge(&w.self, 10 * CHARGES, 10 * SECOND_US);
        CHECK(is_normal() && !w.self.over_budget && w.self.window_us == 0);
        CHECK(n_said(&w, "\n") == 0);
}

static void set_sys_nice(bool on) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        CHECK(syscall(SYS_capget, &header, data) == 0);
        data[0].effective =
                (data[0].effective & ~(1U << CAP_SYS_NICE)) | (on ? 1U << CAP_SYS_NICE : 0);
        CHECK(syscall(SYS_capset, &header, data) == 0);
}

static void not_allowed_at_first(const void *userdata) {
        struct world w;

        set_sys_nice(false);
        begin(&w);
        CHECK(w.self.broken == REASON_KERNEL_CAPABILITY);
        CHECK(strstr(w.self.cause, "CAP_SYS_NICE"));
        CHECK(!self_can_raise(&w.self));
        CHECK(!self_can_raise(&w.self));
        CHECK(is(SCHED_OTHER, 0, false));

        set_sys_nice(true);
        CHECK(self_can_raise(&w.self));
        CHECK(w.self.broken == REASON_NONE);
        CHECK(is_normal());
        self_want(&w.self, true);
        CHECK(is_raised());
        self_want(&w.self, false);
        CHECK(n_said(&w, "\n") == 2); /* once that it cannot, once that it can again */
}

static void not_allowed_any_more(const void *userdata) {
        struct world w;

        begin(&w);
        set_sys_nice(false);
        self_want(&w.self, true);
        CHECK(!w.self.raised && w.self.broken == REASON_KERNEL_CAPABILITY);
        CHECK(is_normal());
        CHECK(!self_can_raise(&w.self));
        set_sys_nice(true);
        CHECK(self_can_raise(&w.self));
        self_want(&w.self, true);
        CHECK(is_raised());
        self_want(&w.self, false);
        CHECK(is_normal());
        CHECK(n_said(&w, "any more") == 1);
}

static bool guard_is_refused;

int __real_sched_write(pid_t tid, const struct sched_values *values);
int __wrap_sched_write(pid_t tid, const struct sched_values *values);

int __wrap_sched_write(pid_t tid, const struct sched_values *values) {
        return guard_is_refused && values->priority == GUARD_PRIORITY
                       ? -EPERM
                       : __real_sched_write(tid, values);
}

/* It could run real-time itself, and its guard could not: whom it gave priority nobody would watch. */
static void guard_not_allowed(const void *userdata) {
        struct guard *guard;
        struct world w;

        begin(&w);
        CHECK(guard_new(&guard) == 0);
        CHECK(w.self.broken == REASON_NONE);
        guard_is_refused = true;
        self_set_guard(&w.self, guard);
        CHECK(w.self.broken != REASON_NONE && w.self.cause[0] != '\0');
        CHECK(is_normal() && !self_can_raise(&w.self));

        guard_is_refused = false;
        CHECK(self_can_raise(&w.self) && w.self.broken == REASON_NONE);
        CHECK(is_normal());
        self_set_guard(&w.self, NULL);
        (void) guard_free(guard);
        CHECK(n_said(&w, "no real-time grants will be given") == 1);
}

static bool has_capability_of_limits(void) {
        const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
        struct rlimit now;

        CHECK(getrlimit(RLIMIT_RTTIME, &now) == 0);
        return now.rlim_max == RLIM_INFINITY || setrlimit(RLIMIT_RTTIME, &none) == 0;
}

/* Below its own RLIMIT_RTTIME, which would kill it. */
static void within_its_own_limit(const void *userdata) {
        const struct rlimit short_limit = { 50000, 80000 };
        struct rlimit now;
        struct world w;

        CHECK(setrlimit(RLIMIT_RTTIME, &short_limit) == 0);
        if (has_capability_of_limits())
                _exit(EXIT_SKIP);
        w.said = memfd_create("said", MFD_CLOEXEC);
        CHECK(w.said >= 0 && dup2(w.said, STDERR_FILENO) >= 0);
        CHECK(log_new(&w.log, LOG_DEBUG) == 0);
        self_init(&w.self, w.log);
        CHECK(getrlimit(RLIMIT_RTTIME, &now) == 0 && now.rlim_cur == 80000); /* no SIGXCPU */
        CHECK(w.self.broken == REASON_NONE && w.self.budget_ns == 20 * MS_NS);

        /* real-time all the time but for the broker's own pauses: a second of it is survived */
        for (uint64_t now_us = 10 * SECOND_US; now_us < 60 * SECOND_US; now_us += SECOND_US) {
                uint64_t end;

                self_want(&w.self, true);
                charge(&w.self, CHARGES, now_us);
                end = own_cpu_ns() + 20 * MS_NS;
                while (own_cpu_ns() < end)
                        ;
                charge(&w.self, CHARGES, now_us + 1000);
                CHECK(is_normal());
        }
        (void) log_free(w.log);
}

static void too_short_a_limit(const void *userdata) {
        const struct rlimit short_limit = { 10000, 10000 };
        struct world w;

        CHECK(setrlimit(RLIMIT_RTTIME, &short_limit) == 0);
        if (has_capability_of_limits())
                _exit(EXIT_SKIP);
        w.said = memfd_create("said", MFD_CLOEXEC);
        CHECK(w.said >= 0 && dup2(w.said, STDERR_FILENO) >= 0);
        CHECK(log_new(&w.log, LOG_DEBUG) == 0);
        self_init(&w.self, w.log);
        CHECK(w.self.broken != REASON_NONE && strstr(w.self.cause, "RLIMIT_RTTIME"));
        self_want(&w.self, true);
        CHECK(is(SCHED_OTHER, 0, false) && !self_can_raise(&w.self));
        CHECK(n_said(&w, "LimitRTTIME=") == 1);
}

struct self_case {
        const char *name;
        void (*body)(const void *userdata);
};

static const struct self_case cases[] = {
        { "up and down", up_and_down },
        { "above all grants", above_all_grants },
        { "within the budget", within_budget },
        { "over the budget, until the window ends", over_budget },
        { "each window anew", each_window_anew },
        { "a window that nobody ends", a_window_that_nobody_ends },
        { "no budget without need", no_budget_without_need },
        { "not allowed at first, then allowed", not_allowed_at_first },
        { "not allowed any more", not_allowed_any_more },
        { "a guard that is not allowed", guard_not_allowed },
        { "within its own limit", within_its_own_limit },
        { "too short a limit of its own", too_short_a_limit },
};

static void test_self(void **state) {
        const struct self_case *c = *state;

        test_need_root();
        test_in_child(c->body, NULL);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases)];

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[i] = test_row(cases[i].name, test_self, &cases[i]);

        return cmocka_run_group_tests_name("self", tests, NULL, NULL);
}
