/* SPDX-License-Identifier: MIT */

/* A broker that is slow, goes away in the middle, or is no broker at all. */

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

static const struct rtgrant_id lease_id = { { 1 } };

static void script_close(struct fake_broker *broker) {
        (void) fake_receive(broker);
}

static void test_broker_closes_in_the_middle(void **state) {
        struct session f;

        session_start(&f, script_close, NULL, 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), RTGRANT_ABSENT);
        session_stop(&f);
}

struct garbage {
        const char *what;
        struct wire_answer record;
        size_t size;            /* that is sent */
        bool own_serial;        /* put in the call's own serial, and its verb */
        int expected;
};

static void script_garbage(struct fake_broker *broker) {
        const struct garbage *garbage = broker->userdata;
        uint8_t bytes[2 * WIRE_RECORD_MAX] = {};
        struct wire_header header = garbage->record.header;

        (void) fake_receive(broker);
        if (garbage->own_serial) {
                header.serial = broker->request.header.serial;
                header.verb = header.verb ?: broker->request.header.verb | WIRE_REPLY;
        }
        memcpy(bytes, &garbage->record, sizeof(garbage->record));
        memcpy(bytes, &header, sizeof(header));
        fake_send(broker, bytes, garbage->size);
        /* Stays, so that it is not the end of the connection that is seen. */
        (void) fake_receive(broker);
}

#define HEADER(length, number)                                                                    \
        .size = (length), .record.header = { .size = (length), .version = (number) }

static void test_garbage(void **state) {
        static const struct garbage cases[] = {
                { "an empty record", .size = 0, .expected = RTGRANT_ABSENT },
                { "one byte", .size = 1, .expected = -EPROTO },
                { "half a header", HEADER(8, 1), .own_serial = true, .expected = -EPROTO },
                { "a header alone", HEADER(16, 1), .own_serial = true, .expected = -EPROTO },
                { "half a reason", HEADER(18, 1), .own_serial = true, .expected = -EPROTO },
                { "says it is longer", .size = 64, .own_serial = true,
                  .record.header = { .size = 65, .version = 1 }, .expected = -EPROTO },
                { "says it is shorter", .size = 64, .own_serial = true,
                  .record.header = { .size = 63, .version = 1 }, .expected = -EPROTO },
                { "version 0", HEADER(64, 0), .own_serial = true, .expected = -EPROTO },
                { "version 2", HEADER(64, 2), .own_serial = true, .expected = -EPROTO },
                { "longer than a record", HEADER(WIRE_RECORD_MAX + 1, 1), .own_serial = true,
                  .expected = -EPROTO },
                { "a reply to another verb", .size = 64, .own_serial = true,
                  .record.header = { .size = 64, .version = 1, .verb = WIRE_REPLY | WIRE_LIST },
                  .expected = -EPROTO },
                { "a request", .size = 64, .own_serial = true,
                  .record.header = { .size = 64, .version = 1, .verb = WIRE_RELEASE },
                  .expected = -EPROTO },
                { "a reply to the next call", .size = 64,
                  .record.header = { .size = 64, .version = 1, .serial = 3,
                                     .verb = WIRE_REPLY | WIRE_RELEASE },
                  .expected = -EPROTO },
                { "a good-bye: malformed", .size = 64,
                  .record = { .header = { .size = 64, .version = 1, .verb = WIRE_REPLY },
                              .reason = RTGRANT_REASON_MALFORMED },
                  .expected = -EPROTO },
                { "a good-bye: out of memory", .size = 64,
                  .record = { .header = { .size = 64, .version = 1, .verb = WIRE_REPLY },
                              .reason = RTGRANT_REASON_RESOURCES },
                  .expected = -ENOBUFS },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct garbage garbage = cases[i];
                struct session f;
                int r;

                session_start(&f, script_garbage, &garbage, 5000);
                r = rtgrant_release(f.handle, &lease_id, NULL);
                if (r != cases[i].expected)
                        print_error("%s: %d\n", cases[i].what, r);
                assert_int_equal(r, cases[i].expected);
                /* For good: what follows on such a connection cannot be trusted. */
                assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), cases[i].expected);
                session_stop(&f);
        }
}

/* Says why and is gone, with the request unread: the socket then reports ECONNRESET first. */
static void script_last_words(struct fake_broker *broker) {
        struct wire_answer reply = {
                .header = { .size = sizeof(reply), .version = 1, .verb = WIRE_REPLY },
                .reason = RTGRANT_REASON_RESOURCES,
        };

        while (!fake_has_request(broker))
                ;
        fake_send(broker, &reply, sizeof(reply));
        (void) close(broker->fd);
        broker->fd = -1;
        (void) pthread_barrier_wait(broker->userdata);
}

static void on_last_words(int result, const struct rtgrant_answer *answer, void *userdata) {
        *(int *) userdata = result;
}

static void test_last_words_are_heard(void **state) {
        pthread_barrier_t barrier;
        int result = 0;
        struct session f;

        (void) pthread_barrier_init(&barrier, NULL, 2);
        session_start(&f, script_last_words, &barrier, 0);
        assert_int_equal(rtgrant_send_release(f.handle, &lease_id, on_last_words, &result), 0);
        (void) pthread_barrier_wait(&barrier);
        assert_int_equal(rtgrant_process(f.handle), -ENOBUFS);
        assert_int_equal(result, -ENOBUFS);
        session_stop(&f);
        (void) pthread_barrier_destroy(&barrier);
}

static void test_time_out(void **state) {
        uint64_t begin_ms;
        struct session f;

        session_start(&f, script_silent, NULL, 150);
        begin_ms = test_now_ms();
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), -ETIMEDOUT);
        assert_in_range(test_now_ms() - begin_ms, 149, 500);
        session_stop(&f);
}

/* Answers the first call only when the second is there, and then both: the first one too late. */
/* As if the user were asked: longer than the time-out. */
static void script_asking(struct fake_broker *broker) {
        (void) fake_receive(broker);
        (void) usleep(900000);
        fake_reply(broker, &(struct wire_answer) { .reason = RTGRANT_REASON_NOT_AUTHORIZED },
                   sizeof(struct wire_answer));
        (void) fake_receive(broker);
}

static void test_asking_the_user_is_waited_for(void **state) {
        struct rtgrant_request request = {
                .size = sizeof(request),
                .wants_sched = true,
                .policy = SCHED_FIFO,
                .priority = 5,
                .flags = RTGRANT_MAY_ASK,
        };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_asking, NULL, 500);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &answer), -EPERM);
        session_stop(&f);

        session_start(&f, script_asking, NULL, 500);
        request.flags = 0;
        assert_int_equal(rtgrant_acquire(f.handle, &request, &answer), -ETIMEDOUT);
        session_stop(&f);
}

static void script_late(struct fake_broker *broker) {
        struct wire_header first;

        (void) fake_receive(broker);
        first = broker->request.header;
        (void) fake_receive(broker);
        fake_reply_to(broker, &first, &(struct wire_answer) { .count = 1 },
                      sizeof(struct wire_answer));
        fake_reply(broker, &(struct wire_answer) { .count = 2 }, sizeof(struct wire_answer));
        (void) fake_receive(broker);
}

static void test_late_reply_is_nobody_elses(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_late, NULL, 100);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), -ETIMEDOUT);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), 0);
        assert_int_equal(answer.count, 2);
        session_stop(&f);
}

/* Reads nothing until it is told to; counts what came until then. */
static void script_asleep(struct fake_broker *broker) {
        (void) pthread_barrier_wait(broker->userdata);
        while (fake_has_request(broker) && fake_receive(broker) > 0)
                ;
}

#define CALLS 40

/* The other end does not read and the socket is full: most requests never even leave. */
static void test_time_out_of_what_cannot_be_sent(void **state) {
        pthread_barrier_t barrier;
        struct session f;
        int size = 1;

        (void) pthread_barrier_init(&barrier, NULL, 2);
        session_start(&f, script_asleep, &barrier, 20);
        assert_int_equal(setsockopt(rtgrant_get_fd(f.handle), SOL_SOCKET, SO_SNDBUF, &size,
                                    sizeof(size)), 0);
        for (int i = 0; i < CALLS; i++) {
                uint64_t begin_ms = test_now_ms();

                assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), -ETIMEDOUT);
                assert_in_range(test_now_ms() - begin_ms, 19, 300);
        }

        (void) pthread_barrier_wait(&barrier);
        session_stop(&f);
        assert_in_range(f.broker.n_requests, 1, CALLS - 1);
        (void) pthread_barrier_destroy(&barrier);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_broker_closes_in_the_middle),
                cmocka_unit_test(test_garbage),
                cmocka_unit_test(test_last_words_are_heard),
                cmocka_unit_test(test_time_out),
                cmocka_unit_test(test_asking_the_user_is_waited_for),
                cmocka_unit_test(test_late_reply_is_nobody_elses),
                cmocka_unit_test(test_time_out_of_what_cannot_be_sent),
        };

        return cmocka_run_group_tests_name("lib-faults", tests, NULL, NULL);
}
