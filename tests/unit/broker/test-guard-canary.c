/* SPDX-License-Identifier: MIT */

/*
 * The guard's second signal on the real scheduler. A kernel with a fair server lets others run once
 * a second, so these tests wait for less than that; the daemon waits for longer.
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#include "broker/guard/canary.h"
#include "broker/guard/guard.h"
#include "tests/unit/broker/broker-test.h"

#define MS UINT64_C(1000000)

struct worker {
        pthread_t thread;
        pid_t tid;
        int priority;
        unsigned busy_ms;               /* of each 20 ms of its CPU time; 20: it never sleeps */
        _Atomic bool ends;
        uint32_t id;
};

static uint64_t clock_ms(clockid_t clock) {
        struct timespec now;

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / MS;
}

static int last_cpu_there_is(void) {
        cpu_set_t set;
        int last = 0;

        CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &set))
                        last = cpu;
        return last;
}

static void *work(void *userdata) {
        struct worker *worker = userdata;
        const struct sched_values values = {
                .policy = SCHED_FIFO,
                .priority = worker->priority,
                .reset_on_fork = true,
        };
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t) last_cpu_there_is(), &set);
        CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
        CHECK(sched_write(gettid(), &values) == 0);
        worker->tid = gettid();
        while (!worker->ends) {
                uint64_t end = clock_ms(CLOCK_THREAD_CPUTIME_ID) + worker->busy_ms;

                while (clock_ms(CLOCK_THREAD_CPUTIME_ID) < end && !worker->ends)
                        ;
                if (worker->busy_ms < 20)
                        (void) poll(NULL, 0, 20 - (int) worker->busy_ms);
        }
        return NULL;
}

static void start(struct guard *guard, struct worker *worker) {
        struct guard_watched watched = {
                .pid = getpid(),
                .owner = worker,
                /* it may do what it likes */
                .budget = { .run_max_ns = 60000 * MS, .window_ns = 500 * MS,
                            .share_max = GUARD_FULL },
        };

        CHECK(pthread_create(&worker->thread, NULL, work, worker) == 0);
        while (worker->tid == 0)
                (void) poll(NULL, 0, 1);
        watched.tid = worker->tid;
        CHECK(guard_add(guard, &watched, &worker->id) == 0);
}

static void finish(struct guard *guard, struct worker *worker) {
        worker->ends = true;
        (void) pthread_join(worker->thread, NULL);
        (void) guard_remove(guard, worker->id);
}

/* The next thing to be told within @ms; false if nothing is. */
static bool next_notice(struct guard *guard, int ms, struct guard_notice *ret) {
        uint64_t end = clock_ms(CLOCK_MONOTONIC) + (uint64_t) ms;

        while (clock_ms(CLOCK_MONOTONIC) < end) {
                if (guard_next(guard, ret))
                        return true;
                (void) poll(NULL, 0, 10);
        }
        return false;
}

/* What runs wild ends here at the latest. */
static struct guard *begin(unsigned starved_ms) {
        const struct rlimit cpu = { 8, 8 }, rttime = { 5000000, 5000000 };
        const struct guard_limits limits = { .user_max = 100, .starved_ms = starved_ms };
        struct guard *guard;

        CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0 && setrlimit(RLIMIT_RTTIME, &rttime) == 0);
        if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
                _exit(EXIT_SKIP);
        CHECK(guard_new(&guard) == 0);
        guard_set_limits(guard, &limits);
        return guard;
}

/* Whatever its role gives; and a smaller one on the same CPU keeps its priority. */
static void starve(const void *userdata) {
        struct worker hog = { .priority = 5, .busy_ms = 20 };
        struct worker small = { .priority = 9, .busy_ms = 3 };
        struct guard *guard = begin(300);
        struct guard_notice notice;

        start(guard, &small);
        start(guard, &hog);
        CHECK(next_notice(guard, 4000, &notice));
        CHECK(!notice.demoted && notice.owner == &hog && notice.reason == REASON_STARVED);
        /* warned of again if others took the CPU from it for a while */
        do
                CHECK(next_notice(guard, 2000, &notice));
        while (!notice.demoted);
        CHECK(notice.owner == &hog && notice.reason == REASON_STARVED);
        CHECK(notice.cpu == last_cpu_there_is());
        CHECK(notice.starved_ms >= 300 && notice.starved_ms < 1500);
        CHECK(notice.group_share >= 9000 && notice.share >= 5000);
        CHECK(!guard_is_demoted(guard, small.id));

        finish(guard, &hog);
        finish(guard, &small);
        (void) guard_free(guard);
}

static void test_who_starves_a_cpu_is_demoted(void **state) {
        test_need_root();
        test_in_child(starve, NULL);
}

/* Two thirds of a CPU leave room: no canary is sent, and nobody is demoted. */
static void leave_room(const void *userdata) {
        struct worker worker = { .priority = 5, .busy_ms = 13 };
        struct guard *guard = begin(300);
        struct guard_notice notice;

        start(guard, &worker);
        CHECK(!next_notice(guard, 2000, &notice));
        finish(guard, &worker);
        (void) guard_free(guard);
}

static void test_who_leaves_room_is_not(void **state) {
        test_need_root();
        test_in_child(leave_room, NULL);
}

/* A guard that ends while its canary waits for a CPU does not wait with it. */
static void end_while_it_waits(const void *userdata) {
        struct worker hog = { .priority = 5, .busy_ms = 20 };
        struct guard *guard = begin(60000);
        uint64_t begun;

        start(guard, &hog);
        (void) poll(NULL, 0, 1500);
        begun = clock_ms(CLOCK_MONOTONIC);
        (void) guard_free(guard);
        CHECK(clock_ms(CLOCK_MONOTONIC) - begun < 500);
        hog.ends = true;
        (void) pthread_join(hog.thread, NULL);
}

static void test_the_end_does_not_wait(void **state) {
        test_need_root();
        test_in_child(end_while_it_waits, NULL);
}

/* ---- the canary alone ---- */

static void test_it_comes_back(void **state) {
        struct canary canary = { .wake_fd = -1 };
        uint64_t sent_ns = 0;

        assert_int_equal(canary_start(&canary), 0);
        assert_int_equal(canary_waits(&canary, &sent_ns), -1);
        while (!canary_send(&canary, 0, 42))
                (void) poll(NULL, 0, 1);
        for (int i = 0; i < 1000 && canary_waits(&canary, &sent_ns) >= 0; i++)
                (void) poll(NULL, 0, 1);
        assert_int_equal(canary_waits(&canary, &sent_ns), -1);
        assert_false(canary_send(&canary, CPU_SETSIZE - 1, 43)); /* there is no such CPU */
        canary_stop(&canary);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_who_starves_a_cpu_is_demoted),
                cmocka_unit_test(test_who_leaves_room_is_not),
                cmocka_unit_test(test_the_end_does_not_wait),
                cmocka_unit_test(test_it_comes_back),
        };

        return cmocka_run_group_tests_name("guard-canary", tests, NULL, NULL);
}
