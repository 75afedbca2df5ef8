/* SPDX-License-Identifier: MIT */

/* RTGRANT_DIRECT: what the caller may do itself is done without the broker, and nothing else. */

#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define DIRECT .size = sizeof(struct rtgrant_request), .flags = RTGRANT_DIRECT
#define FIFO(n) .wants_sched = true, .policy = SCHED_FIFO, .priority = (n)

static bool sched_equal(struct test_sched a, struct test_sched b) {
        return a.policy == b.policy && a.priority == b.priority && a.nice == b.nice &&
               a.reset_on_fork == b.reset_on_fork;
}

/* ---- as root: the kernel allows everything ---- */

struct root_case {
        const char *what;
        struct test_sched before;
        struct rtgrant_request request;
        struct test_sched after;
};

static const struct root_case root_cases[] = {
        { "FIFO", { SCHED_OTHER, 0, 0, false },
          { DIRECT, FIFO(7) },
          { SCHED_FIFO, 7, 0, true } },
        { "RR over FIFO", { SCHED_FIFO, 50, 0, false },
          { DIRECT, .wants_sched = true, .policy = SCHED_RR, .priority = 3 },
          { SCHED_RR, 3, 0, true } },
        { "a nice of 19 stays below FIFO", { SCHED_OTHER, 0, 19, false },
          { DIRECT, FIFO(7) },
          { SCHED_FIFO, 7, 19, true } },
        { "FIFO and better nice", { SCHED_OTHER, 0, 5, false },
          { DIRECT, FIFO(7), .wants_nice = true, .nice = -11 },
          { SCHED_FIFO, 7, -11, true } },
        { "FIFO and worse nice", { SCHED_OTHER, 0, 0, false },
          { DIRECT, FIFO(7), .wants_nice = true, .nice = 11 },
          { SCHED_FIFO, 7, 11, true } },
        { "nice alone", { SCHED_OTHER, 0, 0, false },
          { DIRECT, .wants_nice = true, .nice = -5 },
          { SCHED_OTHER, 0, -5, false } },
        { "nice of a real-time thread", { SCHED_RR, 9, 0, true },
          { DIRECT, .wants_nice = true, .nice = 4 },
          { SCHED_RR, 9, 4, true } },
        { "OTHER keeps the nice", { SCHED_FIFO, 9, 13, true },
          { DIRECT, .wants_sched = true, .policy = SCHED_OTHER },
          { SCHED_OTHER, 0, 13, true } },
        { "OTHER with a nice", { SCHED_FIFO, 9, 13, true },
          { DIRECT, .wants_sched = true, .policy = SCHED_OTHER, .wants_nice = true, .nice = -3 },
          { SCHED_OTHER, 0, -3, true } },
};

static void run_root_case(void *userdata) {
        const struct root_case *c = userdata;
        struct rtgrant_answer answer = { .size = sizeof(answer) };

        CHECK(test_nice_set(0, c->before.nice) == 0);
        CHECK(test_sched_set(0, c->before.policy, c->before.priority, c->before.nice,
                             c->before.reset_on_fork) == 0);
        CHECK(rtgrant_acquire(NULL, &c->request, &answer) == 0);
        CHECK(sched_equal(test_sched_get(0), c->after));

        CHECK(answer.reason == RTGRANT_REASON_NONE);
        CHECK(answer.route == RTGRANT_ROUTE_DIRECT);
        CHECK(answer.policy == c->after.policy && answer.priority == c->after.priority);
        CHECK(answer.nice == c->after.nice && answer.reset_on_fork == c->after.reset_on_fork);
        CHECK(answer.previous_policy == c->before.policy);
        CHECK(answer.previous_priority == c->before.priority);
        CHECK(answer.previous_nice == c->before.nice);
        CHECK(answer.pid == getpid() && answer.tid == syscall(SYS_gettid));
        CHECK(memcmp(answer.id.bytes, (uint8_t[16]) {}, 16) == 0);
}

static void test_as_root(void **state) {
        test_need_root();
        test_in_child(0, run_root_case, *state);
}

static void *run_until_told(void *userdata) {
        pthread_barrier_t *barrier = userdata;

        (void) pthread_barrier_wait(barrier);
        (void) pthread_barrier_wait(barrier);
        return NULL;
}

/* Found by its state in /proc: the barrier gives no number. */
static void direct_for_another_thread(void *userdata) {
        struct rtgrant_request request = { DIRECT, FIFO(4), .pid = getpid() };
        pthread_barrier_t barrier;
        struct test_sched now;
        pthread_t thread;

        (void) pthread_barrier_init(&barrier, NULL, 2);
        CHECK(pthread_create(&thread, NULL, run_until_told, &barrier) == 0);
        (void) pthread_barrier_wait(&barrier);
        /* In a child of fork(2) the first thread made gets the next number but for other's. */
        for (request.tid = getpid() + 1; syscall(SYS_tgkill, getpid(), request.tid, 0) < 0;)
                request.tid++;

        CHECK(rtgrant_acquire(NULL, &request, NULL) == 0);
        now = test_sched_get(request.tid);
        CHECK(now.policy == SCHED_FIFO && now.priority == 4 && now.reset_on_fork);
        CHECK(test_sched_get(0).policy == SCHED_OTHER);

        (void) pthread_barrier_wait(&barrier);
        (void) pthread_join(thread, NULL);
        CHECK(rtgrant_acquire(NULL, &request, NULL) == -ESRCH);
}

static void test_another_thread(void **state) {
        test_need_root();
        test_in_child(0, direct_for_another_thread, NULL);
}

/* ---- what no broker could help ---- */

static void script_count(struct fake_broker *broker) {
        script_refuse(broker);
}

static void test_hopeless_requests_do_not_reach_the_broker(void **state) {
        static const struct {
                struct rtgrant_request request;
                int expected;
        } cases[] = {
                { { DIRECT, FIFO(0) }, -EINVAL },
                { { DIRECT, FIFO(100) }, -EINVAL },
                { { DIRECT, FIFO(-1) }, -EINVAL },
                { { DIRECT, .wants_sched = true, .policy = 77, .priority = 1 }, -EINVAL },
                { { DIRECT, .wants_sched = true, .policy = SCHED_OTHER, .priority = 1 }, -EINVAL },
                { { DIRECT, .wants_nice = true, .nice = 20 }, -EINVAL },
                { { DIRECT, .wants_nice = true, .nice = -21 }, -EINVAL },
                { { DIRECT, FIFO(5), .tid = 1 }, -ESRCH },
                { { DIRECT, FIFO(5), .tid = INT32_MAX }, -ESRCH },
        };
        struct test_sched before = test_sched_get(0);
        struct fake_broker broker;
        struct rtgrant *handle;

        fake_start(&broker, script_count, NULL);
        assert_int_equal(rtgrant_open(&handle, broker.path, 0), 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                assert_int_equal(rtgrant_acquire(handle, &cases[i].request, NULL),
                                 cases[i].expected);
        assert_int_equal(broker.n_requests, 0);
        assert_true(sched_equal(test_sched_get(0), before));
        assert_null(rtgrant_close(handle));
        fake_stop(&broker);
}

/* ---- as nobody: by the broker, or as far as one's own right goes ---- */

struct nobody_case {
        const char *what;
        struct rtgrant_request request;
        enum rtgrant_route route;
        struct test_sched after;
};

static const struct nobody_case nobody_cases[] = {
        { "FIFO is the broker's", { DIRECT, FIFO(7) }, RTGRANT_ROUTE_BROKER,
          { SCHED_FIFO, 7, 5, true } },
        { "better nice is the broker's", { DIRECT, .wants_nice = true, .nice = -5 },
          RTGRANT_ROUTE_BROKER, { SCHED_OTHER, 0, -5, false } },
        { "worse nice is anybody's", { DIRECT, .wants_nice = true, .nice = 10 },
          RTGRANT_ROUTE_DIRECT, { SCHED_OTHER, 0, 10, false } },
        { "OTHER is anybody's", { DIRECT, .wants_sched = true, .policy = SCHED_OTHER },
          RTGRANT_ROUTE_DIRECT, { SCHED_OTHER, 0, 5, true } },
        { "both are the broker's", { DIRECT, FIFO(7), .wants_nice = true, .nice = 11 },
          RTGRANT_ROUTE_BROKER, { SCHED_FIFO, 7, 11, true } },
};

struct nobody_run {
        const struct nobody_case *c;
        const char *path;
};

static void run_nobody_case(void *userdata) {
        const struct nobody_run *run = userdata;
        struct rtgrant_answer answer = { .size = sizeof(answer) };

        CHECK(setenv("RTGRANT_SOCKET", run->path, true) == 0);
        CHECK(test_nice_set(0, 5) == 0);
        CHECK(rtgrant_acquire(NULL, &run->c->request, &answer) == 0);
        CHECK(sched_equal(test_sched_get(0), run->c->after));
        CHECK(answer.route == run->c->route);
        CHECK((answer.id.bytes[0] != 0) == (run->c->route == RTGRANT_ROUTE_BROKER));
}

static void test_as_nobody(void **state) {
        const struct nobody_case *c = *state;
        struct fake_broker broker;
        struct nobody_run run = { .c = c, .path = broker.path };

        test_need_root();
        fake_start(&broker, script_grant, NULL);
        test_in_child(UID_NOBODY, run_nobody_case, &run);
        assert_int_equal(broker.n_requests, c->route == RTGRANT_ROUTE_BROKER ? 1 : 0);
        /* The handle was closed again: the lease has to outlive it. */
        if (c->route == RTGRANT_ROUTE_BROKER)
                assert_int_equal(broker.acquired.lifetime, WIRE_LIFETIME_THREAD);
        fake_stop(&broker);
}

/* A broker that is not there, or says no: the thread goes on as it was. */
static void run_failures(void *userdata) {
        static const struct rtgrant_request requests[] = {
                { DIRECT, FIFO(7) },
                { DIRECT, .wants_nice = true, .nice = -5 },
                { DIRECT, FIFO(7), .wants_nice = true, .nice = -5 },
                { DIRECT, FIFO(7), .wants_nice = true, .nice = 11 },
        };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        const char *path = userdata;
        struct test_sched before;

        CHECK(setenv("RTGRANT_SOCKET", path ?: "/dev/null/there-is-no-socket", true) == 0);
        CHECK(test_nice_set(0, 3) == 0);
        before = test_sched_get(0);
        for (size_t i = 0; i < N_ELEMENTS(requests); i++) {
                CHECK(rtgrant_acquire(NULL, &requests[i], &answer) ==
                      (path ? -EPERM : RTGRANT_ABSENT));
                CHECK(sched_equal(test_sched_get(0), before));
        }
        CHECK(rtgrant_promote_self("desktop", SCHED_FIFO, 5, &answer) ==
              (path ? -EPERM : RTGRANT_ABSENT));
        CHECK(sched_equal(test_sched_get(0), before));
        CHECK(answer.reason == (path ? 24 : 0));
}

static void test_failures_change_nothing(void **state) {
        struct fake_broker broker;

        test_need_root();
        test_in_child(UID_NOBODY, run_failures, NULL);
        fake_start(&broker, script_refuse, NULL);
        test_in_child(UID_NOBODY, run_failures, broker.path);
        fake_stop(&broker);
}

static void run_promote_self(void *userdata) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct test_sched now;

        CHECK(setenv("RTGRANT_SOCKET", userdata, true) == 0);
        CHECK(rtgrant_promote_self("desktop", SCHED_RR, 5, &answer) == 0);
        now = test_sched_get(0);
        CHECK(now.policy == SCHED_RR && now.priority == 5 && now.reset_on_fork);
        CHECK(answer.route == (geteuid() == 0 ? RTGRANT_ROUTE_DIRECT : RTGRANT_ROUTE_BROKER));
}

static void test_promote_self(void **state) {
        struct fake_broker broker;

        test_need_root();
        fake_start(&broker, script_grant, NULL);
        test_in_child(0, run_promote_self, broker.path);
        assert_int_equal(broker.n_requests, 0);
        test_in_child(UID_NOBODY, run_promote_self, broker.path);
        assert_int_equal(broker.n_requests, 1);
        assert_string_equal(broker.acquired.role, "desktop");
        fake_stop(&broker);
}

/* ---- what is not for the direct way at all ---- */

static void test_only_the_own_process_and_only_for_good(void **state) {
        static const struct rtgrant_request cases[] = {
                { .size = sizeof(struct rtgrant_request), FIFO(7) },
                { DIRECT, FIFO(7), .pid = 1 },
                { .size = sizeof(struct rtgrant_request),
                  .flags = RTGRANT_DIRECT | RTGRANT_DRY_RUN, FIFO(7) },
        };
        struct test_sched before = test_sched_get(0);
        struct fake_broker broker;
        struct rtgrant *handle;

        fake_start(&broker, script_refuse, NULL);
        assert_int_equal(rtgrant_open(&handle, broker.path, 0), 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                assert_int_equal(rtgrant_acquire(handle, &cases[i], NULL), -EPERM);
                assert_int_equal(broker.n_requests, i + 1);
        }
        assert_true(sched_equal(test_sched_get(0), before));
        assert_null(rtgrant_close(handle));
        fake_stop(&broker);
}

/* ---- filters in a sandbox (L08) ---- */

struct filter {
        const char *path;
        uint32_t action;
};

static void run_filtered(void *userdata) {
        struct rtgrant_request sched = { DIRECT, FIFO(7) };
        struct rtgrant_request nice = { DIRECT, .wants_nice = true, .nice = -4 };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        const struct filter *filter = userdata;
        scmp_filter_ctx context;

        CHECK(setenv("RTGRANT_SOCKET", filter->path, true) == 0);
        context = seccomp_init(SCMP_ACT_ALLOW);
        CHECK(seccomp_rule_add(context, filter->action, SCMP_SYS(sched_setattr), 0) == 0);
        CHECK(seccomp_rule_add(context, filter->action, SCMP_SYS(setpriority), 0) == 0);
        CHECK(seccomp_load(context) == 0);
        seccomp_release(context);

        CHECK(rtgrant_acquire(NULL, &sched, &answer) == 0);
        CHECK(answer.route == RTGRANT_ROUTE_BROKER);
        CHECK(test_sched_get(0).policy == SCHED_FIFO);
        CHECK(rtgrant_acquire(NULL, &nice, &answer) == 0);
        CHECK(answer.route == RTGRANT_ROUTE_BROKER);
        CHECK(test_sched_get(0).nice == -4);
}

/* As root, whom only the filter stops. With 0 it says yes and does nothing. */
static void test_filters(void **state) {
        static const uint32_t actions[] = {
                SCMP_ACT_ERRNO(EPERM),
                SCMP_ACT_ERRNO(EACCES),
                SCMP_ACT_ERRNO(ENOSYS),
                SCMP_ACT_ERRNO(0),
        };
        struct fake_broker broker;
        struct filter filter = { .path = broker.path };

        test_need_root();
        fake_start(&broker, script_grant, NULL);
        for (size_t i = 0; i < N_ELEMENTS(actions); i++) {
                filter.action = actions[i];
                test_in_child(0, run_filtered, &filter);
        }
        fake_stop(&broker);
}

/* Half of what is wanted is done, the other half refused, by the broker too: nothing stays. */
struct half {
        const char *path;
        int filtered;           /* system call that is refused */
        struct rtgrant_request request;
};

static void run_half(void *userdata) {
        const struct half *half = userdata;
        struct test_sched before;
        scmp_filter_ctx context;

        CHECK(setenv("RTGRANT_SOCKET", half->path, true) == 0);
        CHECK(test_nice_set(0, 5) == 0);
        before = test_sched_get(0);
        context = seccomp_init(SCMP_ACT_ALLOW);
        CHECK(seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), half->filtered, 0) == 0);
        CHECK(seccomp_load(context) == 0);
        seccomp_release(context);

        CHECK(rtgrant_acquire(NULL, &half->request, NULL) == -EPERM);
        CHECK(sched_equal(test_sched_get(0), before));
}

static void test_no_halves(void **state) {
        struct fake_broker broker;
        struct half halves[] = {
                { broker.path, SCMP_SYS(sched_setattr),
                  { DIRECT, FIFO(7), .wants_nice = true, .nice = -5 } },
                { broker.path, SCMP_SYS(setpriority),
                  { DIRECT, FIFO(7), .wants_nice = true, .nice = 15 } },
                { broker.path, SCMP_SYS(setpriority),
                  { DIRECT, FIFO(7), .wants_nice = true, .nice = -5 } },
        };

        test_need_root();
        fake_start(&broker, script_refuse, NULL);
        for (size_t i = 0; i < N_ELEMENTS(halves); i++)
                test_in_child(0, run_half, &halves[i]);
        assert_int_equal(broker.n_requests, 1);
        fake_stop(&broker);
}

#define N_ROOT N_ELEMENTS(root_cases)
#define N_NOBODY N_ELEMENTS(nobody_cases)

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_another_thread),
                cmocka_unit_test(test_hopeless_requests_do_not_reach_the_broker),
                cmocka_unit_test(test_failures_change_nothing),
                cmocka_unit_test(test_promote_self),
                cmocka_unit_test(test_only_the_own_process_and_only_for_good),
                cmocka_unit_test(test_filters),
                cmocka_unit_test(test_no_halves),
        };
        struct CMUnitTest tests[N_ROOT + N_NOBODY + N_ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < N_ROOT; i++)
                tests[n++] = (struct CMUnitTest) {
                        .name = root_cases[i].what,
                        .test_func = test_as_root,
                        .initial_state = (void *) &root_cases[i],
                };
        for (size_t i = 0; i < N_NOBODY; i++)
                tests[n++] = (struct CMUnitTest) {
                        .name = nobody_cases[i].what,
                        .test_func = test_as_nobody,
                        .initial_state = (void *) &nobody_cases[i],
                };
        memcpy(&tests[n], others, sizeof(others));

        return cmocka_run_group_tests_name("lib-direct", tests, NULL, NULL);
}
