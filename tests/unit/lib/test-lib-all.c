/* SPDX-License-Identifier: MIT */

/* rtgrant_acquire_all(): every thread, those too that come and go meanwhile. */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define FIFO_5 .size = sizeof(struct rtgrant_request), .wants_sched = true,                        \
               .policy = SCHED_FIFO, .priority = 5

/* Threads that only wait, in the order in which they were made. */
struct crew {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct member {
                struct crew *crew;
                pthread_t thread;
                pid_t tid;
                bool leave;
        } members[128];
        unsigned n;
};

static void *run_member(void *userdata) {
        struct member *member = userdata;
        struct crew *crew = member->crew;

        (void) pthread_mutex_lock(&crew->lock);
        member->tid = (pid_t) syscall(SYS_gettid);
        (void) pthread_cond_broadcast(&crew->wake);
        while (!member->leave)
                (void) pthread_cond_wait(&crew->wake, &crew->lock);
        (void) pthread_mutex_unlock(&crew->lock);
        return NULL;
}

static void crew_add(struct crew *crew) {
        struct member *member = &crew->members[crew->n++];

        member->crew = crew;
        CHECK(pthread_create(&member->thread, NULL, run_member, member) == 0);
        (void) pthread_mutex_lock(&crew->lock);
        while (member->tid == 0)
                (void) pthread_cond_wait(&crew->wake, &crew->lock);
        (void) pthread_mutex_unlock(&crew->lock);
}

static void crew_init(struct crew *crew, unsigned n) {
        memset(crew, 0, sizeof(*crew));
        (void) pthread_mutex_init(&crew->lock, NULL);
        (void) pthread_cond_init(&crew->wake, NULL);
        while (crew->n < n)
                crew_add(crew);
}

static void crew_dismiss(struct crew *crew, unsigned index) {
        struct member *member = &crew->members[index];

        if (member->leave)
                return;

        (void) pthread_mutex_lock(&crew->lock);
        member->leave = true;
        (void) pthread_cond_broadcast(&crew->wake);
        (void) pthread_mutex_unlock(&crew->lock);
        (void) pthread_join(member->thread, NULL);
        /* The kernel wakes the joiner a moment before it takes the thread off the list. */
        while (syscall(SYS_tgkill, getpid(), member->tid, 0) == 0)
                (void) sched_yield();
}

static void crew_done(struct crew *crew) {
        for (unsigned i = 0; i < crew->n; i++)
                crew_dismiss(crew, i);
}

/* What was told of each thread. */
struct roll {
        struct crew *crew;
        pid_t tids[256];
        unsigned n;
        unsigned n_failed;
        unsigned n_to_add;      /* make one more at each call, so often */
        bool dismisses;         /* send the last one away at the first call */
};

static void on_thread(pid_t tid, int result, const struct rtgrant_answer *answer, void *userdata) {
        struct roll *roll = userdata;

        CHECK(answer->size == sizeof(*answer));
        roll->tids[roll->n++ % 256] = tid;
        roll->n_failed += result < 0;
        if (roll->n_to_add > 0) {
                roll->n_to_add--;
                crew_add(roll->crew);
        }
        if (roll->dismisses) {
                roll->dismisses = false;
                crew_dismiss(roll->crew, roll->crew->n - 1);
        }
}

static bool is_fifo(pid_t tid) {
        struct test_sched now = test_sched_get(tid);

        return now.policy == SCHED_FIFO && now.priority == 5 && now.reset_on_fork;
}

static void CHECK_all_fifo(const struct crew *crew) {
        for (unsigned i = 0; i < crew->n; i++)
                CHECK(crew->members[i].leave || is_fifo(crew->members[i].tid));
        CHECK(is_fifo(0));
}

/* I04: main and its threads, directly. Those that are born meanwhile too. */
static void all_directly(void *userdata) {
        struct rtgrant_request request = { FIFO_5, .flags = RTGRANT_DIRECT };
        struct crew crew;
        struct roll roll = { .crew = &crew, .n_to_add = 10 };

        crew_init(&crew, 3);
        CHECK(rtgrant_acquire_all(NULL, &request, on_thread, &roll) == 14);
        CHECK(roll.n == 14);
        CHECK(crew.n == 13);
        CHECK_all_fifo(&crew);
        crew_done(&crew);
}

static void test_I04_all_threads_and_the_new_born(void **state) {
        test_need_root();
        test_in_child(0, all_directly, NULL);
}

static void some_leave(void *userdata) {
        struct rtgrant_request request = { FIFO_5, .flags = RTGRANT_DIRECT };
        struct crew crew;
        struct roll roll = { .crew = &crew, .dismisses = true };

        crew_init(&crew, 6);
        CHECK(rtgrant_acquire_all(NULL, &request, on_thread, &roll) == 6);
        CHECK(roll.n == 6);
        CHECK(roll.n_failed == 0);
        for (unsigned i = 0; i < roll.n; i++)
                CHECK(roll.tids[i] != crew.members[5].tid);
        CHECK_all_fifo(&crew);
        crew_done(&crew);
}

static void test_threads_that_ended_are_not_told_of(void **state) {
        test_need_root();
        test_in_child(0, some_leave, NULL);
}

static void endless(void *userdata) {
        struct rtgrant_request request = { FIFO_5, .flags = RTGRANT_DIRECT };
        struct crew crew;
        struct roll roll = { .crew = &crew, .n_to_add = 100 };

        crew_init(&crew, 0);
        CHECK(rtgrant_acquire_all(NULL, &request, on_thread, &roll) == -EAGAIN);
        CHECK(roll.n_to_add > 0);
        crew_done(&crew);
}

static void test_faster_than_they_can_be_served(void **state) {
        test_need_root();
        test_in_child(0, endless, NULL);
}

/* ---- by the broker ---- */

struct visit {
        const char *path;
        pid_t pid;              /* of which process */
        int expected;
        unsigned n_expected;    /* that are told of */
        unsigned n_failed;
        uint64_t took_ms_min;
        uint64_t took_ms_max;
};

static void visit_all(void *userdata) {
        const struct visit *visit = userdata;
        struct rtgrant_request request = { FIFO_5, .pid = visit->pid };
        struct roll roll = {};
        struct rtgrant *handle = NULL;
        struct crew crew;
        uint64_t begin_ms;

        crew_init(&crew, 3);
        roll.crew = &crew;
        CHECK(rtgrant_open(&handle, visit->path, 0) == 0);
        begin_ms = test_now_ms();
        CHECK(rtgrant_acquire_all(handle, &request, on_thread, &roll) == visit->expected);
        begin_ms = test_now_ms() - begin_ms;
        CHECK(begin_ms >= visit->took_ms_min && begin_ms <= visit->took_ms_max);
        CHECK(roll.n == visit->n_expected);
        CHECK(roll.n_failed == visit->n_failed);
        (void) rtgrant_close(handle);
        crew_done(&crew);
}

static void visit(uid_t uid, fake_script script, void *script_data, struct visit visit) {
        struct fake_broker broker;

        fake_start(&broker, script, script_data);
        visit.path = broker.path;
        if (visit.took_ms_max == 0)
                visit.took_ms_max = 2000;
        test_in_child(uid, visit_all, &visit);
        fake_stop(&broker);
}

static void test_by_the_broker(void **state) {
        test_need_root();
        visit(UID_NOBODY, script_grant, NULL, (struct visit) { .expected = 4, .n_expected = 4 });
}

static void test_each_refused(void **state) {
        visit(0, script_refuse, NULL,
              (struct visit) { .expected = -EPERM, .n_expected = 4, .n_failed = 4 });
}

static void test_no_such_process(void **state) {
        visit(0, script_refuse, NULL, (struct visit) { .pid = INT32_MAX, .expected = -ESRCH });
}

/* Gone in the middle: there is no sense in asking for the others. */
static void script_two_then_gone(struct fake_broker *broker) {
        for (int i = 0; i < 2; i++) {
                (void) fake_receive(broker);
                fake_grant(broker);
        }
        (void) fake_receive(broker);
}

static void test_broker_goes_in_the_middle(void **state) {
        test_need_root();
        visit(0, script_two_then_gone, NULL,
              (struct visit) { .expected = RTGRANT_ABSENT, .n_expected = 2 });
}

/* The first grants of a burst, then one every so often. */
struct rate {
        unsigned burst;
        uint32_t retry_after_ms;
        unsigned n_refused;
        bool for_ever;          /* waiting does not help */
};

static void script_rate(struct fake_broker *broker) {
        struct rate *rate = broker->userdata;
        bool waited = false;

        while (fake_receive(broker) > 0) {
                if (rate->burst == 0 && !waited) {
                        struct wire_answer reply = {
                                .reason = RTGRANT_REASON_RATE,
                                .explanation.retry_after_ms = rate->retry_after_ms,
                        };

                        rate->n_refused++;
                        waited = !rate->for_ever;
                        fake_reply(broker, &reply, sizeof(reply));
                        continue;
                }
                if (rate->burst > 0)
                        rate->burst--;
                waited = false;
                fake_grant(broker);
        }
}

static void test_rate_is_waited_out(void **state) {
        struct rate rate = { .burst = 2, .retry_after_ms = 60 };

        test_need_root();
        visit(UID_NOBODY, script_rate, &rate,
              (struct visit) { .expected = 4, .n_expected = 4, .took_ms_min = 120 });
        assert_int_equal(rate.n_refused, 2);
}

static void test_rate_that_takes_too_long(void **state) {
        struct rate rate = { .burst = 2, .retry_after_ms = 6000 };

        test_need_root();
        visit(UID_NOBODY, script_rate, &rate,
              (struct visit) { .expected = 3, .n_expected = 4, .n_failed = 1 });
}

/* Each time a little longer: the waits add up. */
static void test_rate_that_never_ends(void **state) {
        struct rate rate = { .retry_after_ms = 900, .for_ever = true };

        visit(0, script_rate, &rate,
              (struct visit) { .expected = -EPERM, .n_expected = 4, .n_failed = 4,
                               .took_ms_min = 4500, .took_ms_max = 5400 });
        /* Five waits, and one more try for each of the four threads. */
        assert_int_equal(rate.n_refused, 5 + 4);
}

/* The whole of another process, which is a child. */
static void test_another_process(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct fake_broker broker;
        struct rtgrant *handle;
        int ready[2], go[2], r;
        struct crew crew;
        pid_t pid;
        char byte;

        test_need_root();
        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(go), 0);
        pid = fork();
        if (pid == 0) {
                (void) close(go[1]);
                crew_init(&crew, 5);
                CHECK(write(ready[1], "r", 1) == 1);
                CHECK(read(go[0], &byte, 1) == 0);
                CHECK_all_fifo(&crew);
                _exit(0);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);

        fake_start(&broker, script_grant, NULL);
        assert_int_equal(rtgrant_open(&handle, broker.path, 0), 0);
        request.pid = pid;
        r = rtgrant_acquire_all(handle, &request, NULL, NULL);
        assert_null(rtgrant_close(handle));
        fake_stop(&broker);
        (void) close(go[1]);
        (void) close(go[0]);
        (void) close(ready[0]);
        (void) close(ready[1]);
        test_reap(pid);
        assert_int_equal(r, 6);
}

static void test_arguments(void **state) {
        struct rtgrant_request none = { .size = sizeof(none), .flags = RTGRANT_DIRECT };
        struct rtgrant_request pidfd = { FIFO_5, .flags = RTGRANT_DIRECT, .pidfd_plus_one = 1 };
        struct rtgrant_request no_handle = { FIFO_5 };

        assert_int_equal(rtgrant_acquire_all(NULL, &none, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire_all(NULL, &pidfd, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire_all(NULL, &no_handle, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire_all(NULL, NULL, NULL, NULL), -EINVAL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_I04_all_threads_and_the_new_born),
                cmocka_unit_test(test_threads_that_ended_are_not_told_of),
                cmocka_unit_test(test_faster_than_they_can_be_served),
                cmocka_unit_test(test_by_the_broker),
                cmocka_unit_test(test_each_refused),
                cmocka_unit_test(test_no_such_process),
                cmocka_unit_test(test_broker_goes_in_the_middle),
                cmocka_unit_test(test_rate_is_waited_out),
                cmocka_unit_test(test_rate_that_takes_too_long),
                cmocka_unit_test(test_rate_that_never_ends),
                cmocka_unit_test(test_another_process),
                cmocka_unit_test(test_arguments),
        };

        return cmocka_run_group_tests_name("lib-all", tests, NULL, NULL);
}
