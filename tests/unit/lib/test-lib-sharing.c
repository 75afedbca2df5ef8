/* SPDX-License-Identifier: MIT */

/* A handle in several threads, and in a child that inherited it. */

#include <poll.h>
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

/* Keeps the first request to itself, and answers the second when it is told to. */
static void script_second_only(struct fake_broker *broker) {
        (void) fake_receive(broker);
        (void) fake_receive(broker);
        (void) pthread_barrier_wait(broker->userdata);
        fake_reply(broker, &(struct wire_answer) { .count = 2 }, sizeof(struct wire_answer));
        (void) fake_receive(broker);
}

struct waiter {
        struct rtgrant *handle;
        _Atomic pid_t tid;
        int result;
};

static void *run_waiter(void *userdata) {
        struct waiter *waiter = userdata;

        waiter->tid = gettid();
        waiter->result = rtgrant_release(waiter->handle, &lease_id, NULL);
        return NULL;
}

/* The thread that reads for both gives up; the other has to read for itself from then on. */
static void test_reader_times_out(void **state) {
        struct waiter first = {}, second = {};
        pthread_t first_thread, second_thread;
        pthread_barrier_t barrier;
        struct session f;

        (void) pthread_barrier_init(&barrier, NULL, 2);
        session_start(&f, script_second_only, &barrier, 600);
        first.handle = second.handle = f.handle;
        assert_int_equal(pthread_create(&first_thread, NULL, run_waiter, &first), 0);
        /* So much later will the second one give up. */
        (void) poll(NULL, 0, 300);
        assert_int_equal(pthread_create(&second_thread, NULL, run_waiter, &second), 0);

        (void) pthread_join(first_thread, NULL);
        assert_int_equal(first.result, -ETIMEDOUT);
        (void) pthread_barrier_wait(&barrier);
        (void) pthread_join(second_thread, NULL);
        assert_int_equal(second.result, 0);
        session_stop(&f);
        (void) pthread_barrier_destroy(&barrier);
}

/* ---- a loop in one thread and calls in another ---- */

#define CALLS 2000

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

        for (unsigned i = 0; i < CALLS; i++)
                if (rtgrant_renew(loop->handle, &lease_id, i + 1, &answer) == 0 &&
                    answer.count == i + 1)
                        loop->n_calls_right++;
        loop->stop = true;
        return NULL;
}

/* What a call waits for is not taken away from under it: it would wait to its time-out. */
static void test_loop_takes_nothing_from_calls(void **state) {
        struct loop loop = {};
        uint64_t begin_ms;
        pthread_t thread;
        struct session f;

        session_start(&f, script_echo, NULL, 5000);
        loop.handle = f.handle;
        begin_ms = test_now_ms();
        assert_int_equal(pthread_create(&thread, NULL, run_calls, &loop), 0);
        while (!loop.stop)
                assert_true(rtgrant_process(f.handle) >= 0);
        (void) pthread_join(thread, NULL);
        assert_in_range(test_now_ms() - begin_ms, 0, 4000);
        assert_int_equal(loop.n_calls_right, CALLS);
        session_stop(&f);
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
        assert_int_equal(loop.n_calls_right, CALLS);
        assert_int_equal(n_done, n_sent);
        assert_true(n_sent > 0);
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fork),
                cmocka_unit_test(test_four_threads_at_once),
                cmocka_unit_test(test_reader_times_out),
                cmocka_unit_test(test_loop_takes_nothing_from_calls),
                cmocka_unit_test(test_loop_beside_calls),
        };

        return cmocka_run_group_tests_name("lib-sharing", tests, NULL, NULL);
}
