/* SPDX-License-Identifier: MIT */

/* A broker that is slow, goes away in the middle, or is no broker at all. */

#include <string.h>
#include <sys/socket.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

static const struct rtgrant_id lease_id = { { 1 } };

struct fixture {
        struct fake_broker broker;
        struct rtgrant *handle;
};

static void setup(struct fixture *f, fake_script script, void *userdata, int timeout_ms) {
        fake_start(&f->broker, script, userdata);
        assert_int_equal(rtgrant_open(&f->handle, f->broker.path, timeout_ms), 0);
}

static void teardown(struct fixture *f) {
        assert_null(rtgrant_close(f->handle));
        fake_stop(&f->broker);
}

static void script_close(struct fake_broker *broker) {
        (void) fake_receive(broker);
}

static void test_broker_closes_in_the_middle(void **state) {
        struct fixture f;

        setup(&f, script_close, NULL, 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), RTGRANT_ABSENT);
        teardown(&f);
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
                  .expected = -EUSERS },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct garbage garbage = cases[i];
                struct fixture f;
                int r;

                setup(&f, script_garbage, &garbage, 5000);
                r = rtgrant_release(f.handle, &lease_id, NULL);
                if (r != cases[i].expected)
                        print_error("%s: %d\n", cases[i].what, r);
                assert_int_equal(r, cases[i].expected);
                /* For good: what follows on such a connection cannot be trusted. */
                assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), cases[i].expected);
                teardown(&f);
        }
}

static void script_silent(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                ;
}

static void test_time_out(void **state) {
        uint64_t begin_ms;
        struct fixture f;

        setup(&f, script_silent, NULL, 150);
        begin_ms = test_now_ms();
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), -ETIMEDOUT);
        assert_in_range(test_now_ms() - begin_ms, 149, 500);
        teardown(&f);
}

/* Answers the first call only when the second is there, and then both: the first one too late. */
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
        struct fixture f;

        setup(&f, script_late, NULL, 100);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), -ETIMEDOUT);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, &answer), 0);
        assert_int_equal(answer.count, 2);
        teardown(&f);
}

/* The other end reads nothing and its buffer is full: the request never even leaves. */
static void test_time_out_of_what_cannot_be_sent(void **state) {
        struct fixture f;
        int size = 1;
        int r;

        setup(&f, script_silent, NULL, 20);
        /* Unread records of the past count against the buffer; the script reads none from now on. */
        (void) pthread_cancel(f.broker.thread);
        (void) pthread_join(f.broker.thread, NULL);
        f.broker.script = NULL;
        assert_int_equal(setsockopt(rtgrant_get_fd(f.handle), SOL_SOCKET, SO_SNDBUF, &size,
                                    sizeof(size)), 0);
        for (int i = 0; i < 40; i++) {
                uint64_t begin_ms = test_now_ms();

                r = rtgrant_release(f.handle, &lease_id, NULL);
                assert_int_equal(r, -ETIMEDOUT);
                assert_in_range(test_now_ms() - begin_ms, 19, 300);
        }
        assert_int_equal(rtgrant_get_events(f.handle), 1 /* POLLIN */);
        (void) close(f.broker.fd);
        assert_int_equal(rtgrant_release(f.handle, &lease_id, NULL), RTGRANT_ABSENT);
        teardown(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_broker_closes_in_the_middle),
                cmocka_unit_test(test_garbage),
                cmocka_unit_test(test_time_out),
                cmocka_unit_test(test_late_reply_is_nobody_elses),
                cmocka_unit_test(test_time_out_of_what_cannot_be_sent),
        };

        return cmocka_run_group_tests_name("lib-faults", tests, NULL, NULL);
}
