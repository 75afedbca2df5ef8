/* SPDX-License-Identifier: MIT */

/* For event loops: what is sent without waiting, what comes unasked, and in which order. */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define FIFO_5 .size = sizeof(struct rtgrant_request), .wants_sched = true,                        \
               .policy = SCHED_FIFO, .priority = 5
#define IN_FLIGHT_MAX 16

static const struct rtgrant_id lease_id = { { 1 } };

/* One turn of an event loop. */
static int turn(struct rtgrant *handle) {
        struct pollfd poll_fd = {
                .fd = rtgrant_get_fd(handle),
                .events = rtgrant_get_events(handle),
        };

        assert_int_equal(poll(&poll_fd, 1, 5000), 1);
        return rtgrant_process(handle);
}

/* ---- events ---- */

static void send_event(struct fake_broker *broker, uint32_t kind) {
        struct wire_event event = {
                .header = { .size = sizeof(event), .version = 1, .verb = WIRE_EVENT },
                .kind = kind,
                .reason = RTGRANT_REASON_EXPIRED,
                .n_lost = 3,
                .lease = { .id = { 0xcc }, .tid = 55, .comm = "jackd" },
        };

        memset(event.text, 't', sizeof(event.text));
        fake_send(broker, &event, sizeof(event));
}

/* A WATCH, then a RELEASE with events before and behind its answer, then one event alone. */
static void script_events(struct fake_broker *broker) {
        struct wire_answer reply = {};

        (void) fake_receive(broker);
        send_event(broker, RTGRANT_EVENT_GRANTED);
        fake_reply(broker, &reply, sizeof(reply));

        (void) fake_receive(broker);
        send_event(broker, RTGRANT_EVENT_CHANGED);
        send_event(broker, RTGRANT_EVENT_LOWERED);
        reply.count = 77;
        fake_reply(broker, &reply, sizeof(reply));
        send_event(broker, RTGRANT_EVENT_REVOKED);

        while (fake_receive(broker) > 0)
                fake_reply(broker, &reply, sizeof(reply));
}

struct watcher {
        struct rtgrant *handle;
        const struct rtgrant_answer *answer;    /* of the call during which events come */
        enum rtgrant_event_kind kinds[16];
        unsigned n;
        unsigned count_seen;    /* answer->count when the second event was told */
        bool calls_again;
        unsigned depth;         /* callbacks that run at the moment */
        bool nested;            /* there were more than one */
        int nested_result;
        bool right;
};

static void on_event(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                     const char *text, uint64_t n_lost, void *userdata) {
        struct watcher *watcher = userdata;

        watcher->kinds[watcher->n++ % 16] = kind;
        if (watcher->n == 2 && watcher->answer)
                watcher->count_seen = watcher->answer->count;
        watcher->right = reason == RTGRANT_REASON_EXPIRED && lease->id.bytes[0] == 0xcc &&
                         lease->tid == 55 && strcmp(lease->comm, "jackd") == 0 &&
                         strlen(text) == 255 && n_lost == 3;
        watcher->nested = watcher->nested || watcher->depth++ > 0;
        if (watcher->calls_again)
                watcher->nested_result = rtgrant_release(watcher->handle, &lease_id, NULL);
        watcher->depth--;
}

static void test_events_during_and_between_calls(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct watcher watcher = { .answer = &answer };
        struct session f;

        session_start(&f, script_events, NULL, 5000);
        assert_int_equal(rtgrant_watch(f.handle, false, on_event, &watcher), 0);
        assert_int_equal(watcher.n, 1);
        assert_int_equal(watcher.kinds[0], RTGRANT_EVENT_GRANTED);

        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), 0);
        assert_int_equal(watcher.n, 3);
        assert_int_equal(watcher.kinds[1], RTGRANT_EVENT_CHANGED);
        assert_int_equal(watcher.kinds[2], RTGRANT_EVENT_LOWERED);
        /* The call's own answer was complete before anybody was told anything. */
        assert_int_equal(watcher.count_seen, 77);

        assert_int_equal(turn(f.handle), 1);
        assert_int_equal(watcher.n, 4);
        assert_int_equal(watcher.kinds[3], RTGRANT_EVENT_REVOKED);
        assert_true(watcher.right);
        assert_int_equal(rtgrant_process(f.handle), 0);
        session_stop(&f);
}

static void test_callback_calls_again(void **state) {
        struct watcher watcher = { .calls_again = true, .nested_result = -1 };
        struct session f;

        session_start(&f, script_events, NULL, 5000);
        watcher.handle = f.handle;
        assert_int_equal(rtgrant_watch(f.handle, true, on_event, &watcher), 0);
        /* The first event was told, its callback released, and during that two more came. */
        while (watcher.n < 4)
                assert_true(turn(f.handle) > 0);
        assert_int_equal(watcher.kinds[0], RTGRANT_EVENT_GRANTED);
        assert_int_equal(watcher.kinds[1], RTGRANT_EVENT_CHANGED);
        assert_int_equal(watcher.kinds[2], RTGRANT_EVENT_LOWERED);
        assert_int_equal(watcher.kinds[3], RTGRANT_EVENT_REVOKED);
        assert_int_equal(watcher.nested_result, 0);
        assert_false(watcher.nested);
        session_stop(&f);
}

static void on_event_close(enum rtgrant_event_kind kind, int reason,
                           const struct rtgrant_lease *lease, const char *text, uint64_t n_lost,
                           void *userdata) {
        struct watcher *watcher = userdata;

        watcher->n++;
        if (watcher->handle)
                watcher->handle = rtgrant_close(watcher->handle);
}

/* Three events are there; the first one's callback closes, and no more are told. */
static void test_callback_closes(void **state) {
        struct watcher watcher = {};
        struct session f;
        unsigned n_fds;

        n_fds = test_count_fds();
        session_start(&f, script_events, NULL, 5000);
        assert_int_equal(rtgrant_watch(f.handle, false, on_event_close, &watcher), 0);
        assert_int_equal(watcher.n, 1);
        watcher.handle = f.handle;
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), 0);
        assert_int_equal(watcher.n, 2);
        assert_null(watcher.handle);
        f.handle = NULL;
        session_stop(&f);
        assert_int_equal(test_count_fds(), n_fds);
}

static void script_refuse_watch(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_reply(broker, &(struct wire_answer) { .reason = RTGRANT_REASON_ADMIN_ONLY },
                           sizeof(struct wire_answer));
}

static void test_watch_refused(void **state) {
        struct session f;

        session_start(&f, script_refuse_watch, NULL, 5000);
        assert_int_equal(rtgrant_watch(f.handle, true, on_event, NULL), -EPERM);
        assert_int_equal(rtgrant_watch(f.handle, true, NULL, NULL), -EINVAL);
        session_stop(&f);
}

/* More events in one call than are kept: the rest is counted, none is waited for. */
#define FLOOD 1000

static void script_flood(struct fake_broker *broker) {
        struct wire_answer reply = {};

        (void) fake_receive(broker);
        fake_reply(broker, &reply, sizeof(reply));
        while (fake_receive(broker) > 0) {
                for (int i = 0; i < FLOOD; i++)
                        send_event(broker, RTGRANT_EVENT_CHANGED);
                fake_reply(broker, &reply, sizeof(reply));
        }
}

struct flood {
        unsigned n_told;
        uint64_t n_lost;
};

static void on_flood(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                     const char *text, uint64_t n_lost, void *userdata) {
        struct flood *flood = userdata;

        flood->n_told++;
        flood->n_lost = n_lost;
}

static void test_flood_of_events(void **state) {
        struct flood flood = {};
        struct session f;
        unsigned n_told;

        session_start(&f, script_flood, NULL, 5000);
        assert_int_equal(rtgrant_watch(f.handle, false, on_flood, &flood), 0);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), 0);
        assert_in_range(flood.n_told, 1, FLOOD - 1);
        assert_int_equal(flood.n_told + flood.n_lost, FLOOD + 3);

        /* The next time there is as much room again. */
        n_told = flood.n_told;
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), 0);
        assert_int_equal(flood.n_told, 2 * n_told);
        session_stop(&f);
}

/* ---- what is sent without waiting ---- */

struct asked {
        atomic_uint n_done;
        int result;
        unsigned count;
        bool has_answer;
        unsigned *order;        /* counts up over all */
        unsigned turn;
};

static void on_answer(int result, const struct rtgrant_answer *answer, void *userdata) {
        struct asked *asked = userdata;

        asked->n_done++;
        asked->result = result;
        asked->has_answer = answer != NULL;
        asked->count = answer ? answer->count : 0;
        if (asked->order)
                asked->turn = ++*asked->order;
}

static int ask(struct session *session, struct asked *asked) {
        return rtgrant_send_release(session->handle, &lease_id, on_answer, asked);
}

/* Takes sixteen requests and answers them backwards, each with its number. */
static void script_sixteen(struct fake_broker *broker) {
        struct wire_header requests[IN_FLIGHT_MAX];

        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) {
                (void) fake_receive(broker);
                requests[i] = broker->request.header;
        }
        for (unsigned i = IN_FLIGHT_MAX; i-- > 0;)
                fake_reply_to(broker, &requests[i], &(struct wire_answer) { .count = i },
                              sizeof(struct wire_answer));
        while (fake_receive(broker) > 0)
                fake_reply(broker, &(struct wire_answer) { .count = 99 },
                           sizeof(struct wire_answer));
}

static void test_sixteen_on_their_way(void **state) {
        struct asked asked[IN_FLIGHT_MAX + 1] = {};
        struct session f;
        unsigned order = 0;
        int n = 0;

        session_start(&f, script_sixteen, NULL, 5000);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) {
                asked[i].order = &order;
                assert_int_equal(ask(&f, &asked[i]), 0);
        }
        assert_int_equal(ask(&f, &asked[16]), -EBUSY);
        assert_int_equal(rtgrant_get_events(f.handle), POLLIN);

        while (n < IN_FLIGHT_MAX)
                n += turn(f.handle);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) {
                assert_int_equal(asked[i].n_done, 1);
                assert_int_equal(asked[i].result, 0);
                assert_int_equal(asked[i].count, i);
                assert_int_equal(asked[i].turn, IN_FLIGHT_MAX - i);
        }

        assert_int_equal(ask(&f, &asked[16]), 0);
        assert_int_equal(turn(f.handle), 1);
        assert_int_equal(asked[16].count, 99);
        session_stop(&f);
}

/* Their answers come while a call of the other kind waits for its own. */
static void test_answers_during_a_call(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct asked asked[IN_FLIGHT_MAX - 1] = {};
        struct session f;

        session_start(&f, script_sixteen, NULL, 5000);
        for (unsigned i = 0; i < IN_FLIGHT_MAX - 1; i++)
                assert_int_equal(ask(&f, &asked[i]), 0);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), 0);
        assert_int_equal(answer.count, IN_FLIGHT_MAX - 1);
        for (unsigned n = 0; n < IN_FLIGHT_MAX - 1;)
                n += (unsigned) turn(f.handle);
        for (unsigned i = 0; i < IN_FLIGHT_MAX - 1; i++)
                assert_int_equal(asked[i].count, i);
        session_stop(&f);
}

static void test_close_cancels_each_once(void **state) {
        struct asked asked[IN_FLIGHT_MAX] = {};
        struct session f;

        session_start(&f, script_silent, NULL, 5000);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                assert_int_equal(ask(&f, &asked[i]), 0);
        f.handle = rtgrant_close(f.handle);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++) {
                assert_int_equal(asked[i].n_done, 1);
                assert_int_equal(asked[i].result, -ECANCELED);
                assert_false(asked[i].has_answer);
        }
        session_stop(&f);
}

static void script_take_three(struct fake_broker *broker) {
        for (int i = 0; i < 3; i++)
                (void) fake_receive(broker);
}

static void test_broker_goes_with_answers_due(void **state) {
        struct asked asked[3] = {};
        struct session f;

        session_start(&f, script_take_three, NULL, 5000);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(ask(&f, &asked[i]), 0);
        assert_int_equal(turn(f.handle), RTGRANT_ABSENT);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(asked[i].n_done, 1);
                assert_int_equal(asked[i].result, RTGRANT_ABSENT);
        }
        assert_int_equal(turn(f.handle), RTGRANT_ABSENT);
        assert_int_equal(ask(&f, &asked[0]), RTGRANT_ABSENT);
        assert_int_equal(asked[0].n_done, 1);
        session_stop(&f);
}

static void test_send_acquire(void **state) {
        struct rtgrant_request request = { FIFO_5, .role = "desktop" };
        struct asked asked = {};
        struct test_sched now;
        struct session f;

        test_need_root();
        session_start(&f, script_grant, NULL, 5000);
        assert_int_equal(rtgrant_send_acquire(f.handle, &request, on_answer, &asked), 0);
        (void) turn(f.handle);
        now = test_sched_get(0);
        assert_int_equal(test_sched_set(0, SCHED_OTHER, 0, 0, false), 0);
        assert_int_equal(asked.n_done, 1);
        assert_int_equal(asked.result, 0);
        assert_int_equal(now.policy, SCHED_FIFO);
        assert_int_equal(f.broker.acquired.tid, syscall(SYS_gettid));

        request.pidfd_plus_one = 9999;
        assert_int_equal(rtgrant_send_acquire(f.handle, &request, on_answer, &asked), -EBADF);
        request.pidfd_plus_one = 0;
        request.flags = RTGRANT_DIRECT;
        assert_int_equal(rtgrant_send_acquire(f.handle, &request, on_answer, &asked), -EINVAL);
        assert_int_equal(rtgrant_send_acquire(f.handle, &request, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_send_release(f.handle, NULL, on_answer, &asked), -EINVAL);
        assert_int_equal(rtgrant_get_events(NULL), 0);
        assert_int_equal(rtgrant_get_fd(NULL), -EINVAL);
        assert_int_equal(rtgrant_process(NULL), -EINVAL);
        assert_int_equal(asked.n_done, 1);
        session_stop(&f);
}

static void test_send_acquire_is_verified(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct asked asked = {};
        struct session f;

        session_start(&f, script_pretend, NULL, 5000);
        assert_int_equal(rtgrant_send_acquire(f.handle, &request, on_answer, &asked), 0);
        (void) turn(f.handle);
        assert_int_equal(asked.result, -EPROTO);
        assert_true(asked.has_answer);
        session_stop(&f);
}

/* Reads nothing until it is told to, then answers everything. */
static void script_wait_then_answer(struct fake_broker *broker) {
        pthread_barrier_t *barrier = broker->userdata;

        (void) pthread_barrier_wait(barrier);
        while (fake_receive(broker) > 0)
                fake_reply(broker, &(struct wire_answer) { .reason = broker->pidfd >= 0 ? 24 : 0 },
                           sizeof(struct wire_answer));
}

/* The socket is full: what does not fit waits, with its own copy of the descriptor. */
static void test_what_cannot_be_sent_yet(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct asked asked[IN_FLIGHT_MAX] = {};
        pthread_barrier_t barrier;
        struct session f;
        unsigned n_fds, n = 0;
        int size = 1, fd;

        (void) pthread_barrier_init(&barrier, NULL, 2);
        session_start(&f, script_wait_then_answer, &barrier, 5000);
        n_fds = test_count_fds();
        assert_int_equal(setsockopt(rtgrant_get_fd(f.handle), SOL_SOCKET, SO_SNDBUF, &size,
                                    sizeof(size)), 0);

        fd = memfd_create("any descriptor will do", MFD_CLOEXEC);
        request.pidfd_plus_one = fd + 1;
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                assert_int_equal(rtgrant_send_acquire(f.handle, &request, on_answer, &asked[i]), 0);
        (void) close(fd);
        assert_int_equal(rtgrant_get_events(f.handle), POLLIN | POLLOUT);
        assert_int_equal(rtgrant_process(f.handle), 0);

        (void) pthread_barrier_wait(&barrier);
        while (n < IN_FLIGHT_MAX) {
                assert_true(turn(f.handle) >= 0);
                n = 0;
                for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                        n += asked[i].n_done;
        }
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                assert_int_equal(asked[i].result, -EPERM);
        assert_int_equal(rtgrant_get_events(f.handle), POLLIN);
        /* All copies are gone; the broker, of this process too, keeps its last one. */
        assert_int_equal(test_count_fds(), n_fds + 1);
        session_stop(&f);
        (void) pthread_barrier_destroy(&barrier);
}

/* Takes in seventeen requests before it says anything. */
static void script_take_seventeen(struct fake_broker *broker) {
        struct wire_header requests[IN_FLIGHT_MAX + 1];
        pid_t *client_tid = broker->userdata;

        test_await_sleep(*client_tid);
        for (unsigned i = 0; i < N_ELEMENTS(requests); i++) {
                (void) fake_receive(broker);
                requests[i] = broker->request.header;
        }
        for (unsigned i = 0; i < N_ELEMENTS(requests); i++)
                fake_reply_to(broker, &requests[i], &(struct wire_answer) { .count = i },
                              sizeof(struct wire_answer));
        (void) fake_receive(broker);
}

/* A call that waits behind others for room in the socket. */
static void test_call_that_cannot_be_sent_yet(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct asked asked[IN_FLIGHT_MAX] = {};
        pid_t own_tid = (pid_t) syscall(SYS_gettid);
        struct session f;
        int size = 1;

        session_start(&f, script_take_seventeen, &own_tid, 5000);
        assert_int_equal(setsockopt(rtgrant_get_fd(f.handle), SOL_SOCKET, SO_SNDBUF, &size,
                                    sizeof(size)), 0);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                assert_int_equal(ask(&f, &asked[i]), 0);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), 0);
        assert_int_equal(answer.count, IN_FLIGHT_MAX);
        for (unsigned i = 0; i < IN_FLIGHT_MAX; i++)
                assert_int_equal(asked[i].n_done, 1);
        session_stop(&f);
}

/* A child closes what it inherited without calling anybody back. */
static void close_in_child(void *userdata) {
        CHECK(rtgrant_close(userdata) == NULL);
}

static void on_answer_never(int result, const struct rtgrant_answer *answer, void *userdata) {
        CHECK(getpid() == *(pid_t *) userdata);
}

static void test_child_of_fork_calls_nobody_back(void **state) {
        pid_t own_pid = getpid();
        struct session f;

        session_start(&f, script_silent, NULL, 5000);
        assert_int_equal(rtgrant_send_release(f.handle, &lease_id, on_answer_never, &own_pid), 0);
        test_in_child(0, close_in_child, f.handle);
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events_during_and_between_calls),
                cmocka_unit_test(test_callback_calls_again),
                cmocka_unit_test(test_callback_closes),
                cmocka_unit_test(test_watch_refused),
                cmocka_unit_test(test_flood_of_events),
                cmocka_unit_test(test_sixteen_on_their_way),
                cmocka_unit_test(test_answers_during_a_call),
                cmocka_unit_test(test_close_cancels_each_once),
                cmocka_unit_test(test_broker_goes_with_answers_due),
                cmocka_unit_test(test_send_acquire),
                cmocka_unit_test(test_send_acquire_is_verified),
                cmocka_unit_test(test_what_cannot_be_sent_yet),
                cmocka_unit_test(test_call_that_cannot_be_sent_yet),
                cmocka_unit_test(test_child_of_fork_calls_nobody_back),
        };

        return cmocka_run_group_tests_name("lib-events", tests, NULL, NULL);
}
