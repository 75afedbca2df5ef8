/* SPDX-License-Identifier: MIT */

/* A handle in several threads, and in a child that inherited it. */

#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

static const struct rtgrant_id lease_id = { { 9, 8, 7 } };

/* ---- fork ---- */

static void child_of_fork(void *userdata) {
        struct rtgrant *handle = userdata;
        struct rtgrant_request request = { .size = sizeof(request), .wants_sched = true };
        struct rtgrant_status status = { .size = sizeof(status) };
        unsigned n_fds = test_count_fds();

        CHECK(rtgrant_acquire(handle, &request, NULL) == -ECHILD);
        CHECK(rtgrant_release(handle, &lease_id, NULL) == -ECHILD);
        CHECK(rtgrant_get_status(handle, &status) == -ECHILD);
        CHECK(rtgrant_process(handle) == -ECHILD);
        CHECK(rtgrant_get_fd(handle) == -ECHILD);
        CHECK(rtgrant_close(handle) == NULL);
        CHECK(test_count_fds() == n_fds - 1);
}

static void test_fork(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_echo, NULL, 0);
        test_in_child(0, child_of_fork, f.handle);
        assert_int_equal(f.broker.n_requests, 0);
        assert_int_equal(rtgrant_renew(f.handle, &lease_id, 42, &answer), 0);
        assert_int_equal(answer.count, 42);
        session_stop(&f);
}

/* ---- several threads ---- */

#define THREADS 4
#define CALLS_PER_THREAD 500

/* Takes what is there and answers the last first. */
static void script_backwards(struct fake_broker *broker) {
        struct wire_lease_ref requests[THREADS];
        size_t n = 0;

        while (fake_receive(broker) > 0) {
                requests[n++] = broker->request.lease;
                if (n < THREADS && fake_has_request(broker))
                        continue;

                while (n > 0) {
                        struct wire_answer reply = { .count = requests[--n].lifetime_s };

                        fake_reply_to(broker, &requests[n].header, &reply, sizeof(reply));
                }
        }
}

struct caller {
        struct rtgrant *handle;
        unsigned number;
        unsigned n_right;
};

static void *run_caller(void *userdata) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct caller *caller = userdata;
        unsigned question;

        for (unsigned i = 0; i < CALLS_PER_THREAD; i++) {
                question = caller->number * CALLS_PER_THREAD + i;
                if (rtgrant_renew(caller->handle, &lease_id, question, &answer) == 0 &&
                    answer.count == question)
                        caller->n_right++;
        }

        return NULL;
}

static void test_four_threads_at_once(void **state) {
        struct caller callers[THREADS];
        pthread_t threads[THREADS];
        struct session f;

        session_start(&f, script_backwards, NULL, 5000);
        for (unsigned i = 0; i < THREADS; i++) {
                callers[i] = (struct caller) { .handle = f.handle, .number = i };
                assert_int_equal(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
                (void) pthread_join(threads[i], NULL);
                assert_int_equal(callers[i].n_right, CALLS_PER_THREAD);
        }
        session_stop(&f);
}

/* ---- a loop in one thread and calls in another ---- */

struct loop {
        struct rtgrant *handle;
        atomic_bool stop;
        unsigned n_calls_right;
};

static void on_answer(int result, const struct rtgrant_answer *answer, void *userdata) {
        atomic_uint *n_done = userdata;

        (*n_done)++;
}

static void *run_calls(void *userdata) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct loop *loop = userdata;

        for (unsigned i = 0; i < 500; i++)
                if (rtgrant_renew(loop->handle, &lease_id, i + 1, &answer) == 0 &&
                    answer.count == i + 1)
                        loop->n_calls_right++;
        loop->stop = true;
        return NULL;
}

static void test_loop_beside_calls(void **state) {
        struct loop loop = {};
        atomic_uint n_done = 0;
        pthread_t thread;
        struct session f;
        unsigned n_sent = 0;
        int r;

        session_start(&f, script_echo, NULL, 5000);
        loop.handle = f.handle;
        assert_int_equal(pthread_create(&thread, NULL, run_calls, &loop), 0);
        while (!loop.stop || n_done < n_sent) {
                if (!loop.stop) {
                        r = rtgrant_send_release(f.handle, &lease_id, on_answer, &n_done);
                        assert_true(r == 0 || r == -EBUSY);
                        n_sent += r == 0;
                }
                assert_true(rtgrant_process(f.handle) >= 0);
        }
        (void) pthread_join(thread, NULL);
        assert_int_equal(loop.n_calls_right, 500);
        assert_int_equal(n_done, n_sent);
        assert_true(n_sent > 0);
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fork),
                cmocka_unit_test(test_four_threads_at_once),
                cmocka_unit_test(test_loop_beside_calls),
        };

        return cmocka_run_group_tests_name("lib-sharing", tests, NULL, NULL);
}
