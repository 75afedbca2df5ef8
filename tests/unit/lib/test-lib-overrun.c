/* SPDX-License-Identifier: MIT */

/* The library's handler of SIGXCPU: threads that run past RLIMIT_RTTIME, for real. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/lib/lib-test.h"

#define SOFT_MS 50
#define HARD_MS 400

static uint64_t clock_ms(clockid_t clock) {
        struct timespec now;

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

static void spin(uint64_t ms) {
        while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < ms)
                ;
}

/* A process of nobody's with the limits of RealtimeKit's clients; should anything fail, they end it. */
static void set_limits(unsigned hard_ms) {
        const struct rlimit rttime = { SOFT_MS * 1000, hard_ms * 1000 }, cpu = { 4, 4 };

        CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0);
        CHECK(setrlimit(RLIMIT_RTTIME, &rttime) == 0);
}

static bool is_readable(int fd) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

        return poll(&poll_fd, 1, 0) == 1;
}

static void run_on(void *userdata) {
        struct rtgrant_overrun overrun;
        int fd = -1, again = -1;

        set_limits(HARD_MS);
        CHECK(rtgrant_survive_overruns(&fd) == 0 && fd >= 0);
        CHECK(rtgrant_survive_overruns(&again) == 0 && again == fd);
        CHECK(rtgrant_survive_overruns(NULL) == 0);
        CHECK(test_sched_set(0, SCHED_FIFO, 5, 0, true) == 0);
        test_become(UID_NOBODY);
        CHECK(!is_readable(fd) && rtgrant_next_overrun(&overrun) == 0);

        errno = 4242;
        spin(2 * HARD_MS);
        CHECK(errno == 4242);
        CHECK(test_sched_get(0).policy == SCHED_OTHER);
        CHECK(is_readable(fd));
        CHECK(rtgrant_next_overrun(&overrun) == 1);
        CHECK(overrun.tid == gettid() && overrun.priority == 5 && overrun.error == 0);
        CHECK(overrun.cpu_ns / 1000000 < HARD_MS && overrun.at_ns != 0);
        CHECK(rtgrant_next_overrun(&overrun) == 0);
        CHECK(!is_readable(fd));
}

static void test_a_thread_that_runs_on_is_demoted_and_told_of(void **state) {
        test_need_root();
        test_in_child(0, run_on, NULL);
}

struct runner {
        pthread_t thread;
        pid_t tid;
        bool runs_on;
        int policy;             /* in the end */
};

static void *run(void *userdata) {
        struct runner *runner = userdata;

        runner->tid = gettid();
        if (test_sched_set(0, SCHED_RR, 3, 0, true) == 0 && runner->runs_on)
                spin(HARD_MS + 100);
        runner->policy = test_sched_get(0).policy;
        return NULL;
}

/* Only those that run on; several at a time, with none lost. */
static void run_several(void *userdata) {
        struct runner runners[4] = { [1].runs_on = true, [3].runs_on = true };
        struct rtgrant_overrun overruns[3];

        /* room for the time that the one which is told waits for a CPU, as on a busy machine */
        set_limits(4 * HARD_MS);
        CHECK(rtgrant_survive_overruns(NULL) == 0);
        for (size_t i = 0; i < N_ELEMENTS(runners); i++)
                CHECK(pthread_create(&runners[i].thread, NULL, run, &runners[i]) == 0);
        for (size_t i = 0; i < N_ELEMENTS(runners); i++)
                (void) pthread_join(runners[i].thread, NULL);

        for (size_t i = 0; i < N_ELEMENTS(runners); i++)
                CHECK(runners[i].policy == (runners[i].runs_on ? SCHED_OTHER : SCHED_RR));
        CHECK(rtgrant_next_overrun(&overruns[0]) == 1);
        CHECK(rtgrant_next_overrun(&overruns[1]) == 1);
        CHECK(rtgrant_next_overrun(&overruns[2]) == 0);
        CHECK((overruns[0].tid == runners[1].tid && overruns[1].tid == runners[3].tid) ||
              (overruns[0].tid == runners[3].tid && overruns[1].tid == runners[1].tid));
}

static void test_only_those_that_run_on(void **state) {
        test_need_root();
        test_in_child(0, run_several, NULL);
}

/* A signal that somebody sends while it is real-time counts: what it means is the sender's. */
static void send_many(void *userdata) {
        struct rtgrant_overrun overrun;
        unsigned n = 0;

        CHECK(rtgrant_survive_overruns(NULL) == 0);
        for (unsigned i = 0; i < 40; i++) {
                CHECK(test_sched_set(0, SCHED_FIFO, 1 + (int) i, 0, true) == 0);
                CHECK(raise(SIGXCPU) == 0);
        }
        while (rtgrant_next_overrun(&overrun) == 1)
                CHECK(overrun.priority == (int) ++n);
        CHECK(n == 16);

        CHECK(test_sched_set(0, SCHED_FIFO, 9, 0, true) == 0);
        CHECK(raise(SIGXCPU) == 0);
        CHECK(rtgrant_next_overrun(&overrun) == 1 && overrun.priority == 9);
        CHECK(rtgrant_next_overrun(&overrun) == 0);
}

static void test_the_oldest_are_kept(void **state) {
        test_need_root();
        test_in_child(0, send_many, NULL);
}

static void on_signal(int number) {
}

static void busy(void *userdata) {
        struct rtgrant_overrun overrun;

        CHECK(rtgrant_next_overrun(&overrun) == 0);
        CHECK(signal(SIGXCPU, on_signal) != SIG_ERR);
        CHECK(rtgrant_survive_overruns(NULL) == -EBUSY);
        CHECK(signal(SIGXCPU, SIG_IGN) == on_signal);
        CHECK(rtgrant_survive_overruns(NULL) == -EBUSY);
        CHECK(signal(SIGXCPU, SIG_DFL) == SIG_IGN);
        CHECK(rtgrant_survive_overruns(NULL) == 0);
}

static void test_the_programs_own_handler_stays(void **state) {
        test_in_child(0, busy, NULL);
}

/* A thread that is not real-time: nothing to do, and nothing to tell. */
static void not_real_time(void *userdata) {
        struct rtgrant_overrun overrun;

        CHECK(rtgrant_survive_overruns(NULL) == 0);
        CHECK(raise(SIGXCPU) == 0);
        CHECK(rtgrant_next_overrun(&overrun) == 0);
}

static void test_others_are_left_alone(void **state) {
        test_in_child(0, not_real_time, NULL);
}

static void use_up_cpu(void) {
        const struct rlimit cpu = { 1, 3 };

        if (setrlimit(RLIMIT_CPU, &cpu) == 0 && rtgrant_survive_overruns(NULL) == 0)
                spin(2500);
        _exit(0);
}

static void test_a_limit_of_cpu_time_still_ends_it(void **state) {
        int status;
        pid_t pid;

        pid = fork();
        if (pid == 0)
                use_up_cpu();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGXCPU);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_thread_that_runs_on_is_demoted_and_told_of),
                cmocka_unit_test(test_only_those_that_run_on),
                cmocka_unit_test(test_the_oldest_are_kept),
                cmocka_unit_test(test_the_programs_own_handler_stays),
                cmocka_unit_test(test_others_are_left_alone),
                cmocka_unit_test(test_a_limit_of_cpu_time_still_ends_it),
        };

        return cmocka_run_group_tests_name("lib-overrun", tests, NULL, NULL);
}
