/* SPDX-License-Identifier: MIT */

/* A broker that went away and came back. */

#include <sched.h>
#include <string.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

/* FIFO for a thread of init's, of which the answer is not compared with the kernel. */
#define REQUEST .size = sizeof(struct rtgrant_request), .wants_sched = true, .pid = 1, .tid = 1,    \
                .policy = SCHED_FIFO, .priority = 5

struct story {
        unsigned n_connections;
        unsigned n_until_gone;          /* requests that the first connection answers */
        bool refuses;                   /* the second one does */
        uint16_t verbs[8];              /* that the second one got */
        uint8_t ids[8];                 /* and the first byte of the lease in each */
        bool watches_all;
        unsigned n;
};

/* Each ACQUIRE gets another lease. */
static void answer(struct fake_broker *broker, unsigned number, bool refuses) {
        struct wire_answer reply = {
                .reason = refuses ? RTGRANT_REASON_NO_SUCH_LEASE : RTGRANT_REASON_NONE,
                .id = { (uint8_t) (number + 1) },
                .policy = SCHED_FIFO,
                .priority = 5,
        };

        fake_reply(broker, &reply, sizeof(reply));
}

static void script_gone_and_back(struct fake_broker *broker) {
        struct story *story = broker->userdata;

        if (story->n_connections++ == 0) {
                for (unsigned i = 0; i < story->n_until_gone; i++) {
                        (void) fake_receive(broker);
                        answer(broker, i, false);
                }
                return;
        }

        while (fake_receive(broker) > 0) {
                unsigned i = story->n++ % N_ELEMENTS(story->verbs);

                story->verbs[i] = broker->request.header.verb;
                story->ids[i] = broker->request.header.verb == WIRE_RENEW
                                        ? broker->request.lease.id[0]
                                        : 0;
                if (broker->request.header.verb == WIRE_WATCH)
                        story->watches_all = broker->request.list.flags & WIRE_LIST_ALL;
                answer(broker, 100, story->refuses);
        }
}

static void ignore_event(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                         const char *text, uint64_t n_lost, void *userdata) {
}

static void start(struct session *session, struct story *story) {
        session_start(session, script_gone_and_back, story, 5000);
}

static int acquire(struct rtgrant *handle, enum rtgrant_lifetime lifetime,
                   struct rtgrant_answer *ret) {
        const struct rtgrant_request request = { REQUEST, .lifetime = lifetime };

        *ret = (struct rtgrant_answer) { .size = sizeof(*ret) };
        return rtgrant_acquire(handle, &request, ret);
}

static void await_end(struct rtgrant *handle) {
        struct rtgrant_answer ignored;

        assert_int_equal(acquire(handle, RTGRANT_LIFETIME_THREAD, &ignored), RTGRANT_ABSENT);
        assert_int_equal(rtgrant_process(handle), RTGRANT_ABSENT);
}

static void test_bound_leases_and_the_watch_go_on(void **state) {
        struct story story = { .n_until_gone = 3 };
        struct rtgrant_answer ignored;
        struct session f;
        int fd;

        start(&f, &story);
        fd = rtgrant_get_fd(f.handle);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);
        assert_int_equal(rtgrant_watch(f.handle, true, ignore_event, NULL), 0);
        await_end(f.handle);

        assert_int_equal(rtgrant_reconnect(f.handle), 2);

        assert_int_equal(story.n, 3);
        assert_int_equal(story.verbs[0], WIRE_RENEW);
        assert_int_equal(story.ids[0], 1);
        assert_int_equal(story.verbs[1], WIRE_RENEW);
        assert_int_equal(story.ids[1], 2);
        assert_int_equal(story.verbs[2], WIRE_WATCH);
        assert_true(story.watches_all);
        assert_int_equal(rtgrant_get_fd(f.handle), fd);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_THREAD, &ignored), 0);
        session_stop(&f);
}

static void test_what_was_released_or_outlives_the_connection_is_not_asked_for(void **state) {
        struct story story = { .n_until_gone = 3 };
        struct rtgrant_answer released, ignored;
        struct session f;

        start(&f, &story);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &released), 0);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_THREAD, &ignored), 0);
        assert_int_equal(rtgrant_release(f.handle, &released.id, NULL), 0);
        await_end(f.handle);

        assert_int_equal(rtgrant_reconnect(f.handle), 0);

        assert_int_equal(story.n, 0);
        session_stop(&f);
}

static void test_a_lease_that_is_no_more_is_not_counted(void **state) {
        struct story story = { .n_until_gone = 1, .refuses = true };
        struct rtgrant_answer ignored;
        struct session f;

        start(&f, &story);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);
        await_end(f.handle);

        assert_int_equal(rtgrant_reconnect(f.handle), 0);
        assert_int_equal(story.verbs[0], WIRE_RENEW);
        session_stop(&f);
}

static void test_a_watch_that_is_refused_now_is_said(void **state) {
        struct story story = { .n_until_gone = 1, .refuses = true };
        struct session f;

        start(&f, &story);
        assert_int_equal(rtgrant_watch(f.handle, true, ignore_event, NULL), 0);
        await_end(f.handle);

        assert_int_equal(rtgrant_reconnect(f.handle), -EPERM);
        session_stop(&f);
}

static void test_a_connection_that_is_there_is_left_alone(void **state) {
        struct rtgrant_answer ignored;
        struct session f;

        session_start(&f, script_pretend, NULL, 5000);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);

        assert_int_equal(rtgrant_reconnect(f.handle), 0);

        assert_int_equal(f.broker.n_requests, 1);
        session_stop(&f);
        assert_int_equal(rtgrant_reconnect(NULL), -EINVAL);
}

static void test_a_broker_that_is_not_back_yet(void **state) {
        struct story story = { .n_until_gone = 1 };
        struct rtgrant_answer ignored;
        struct session f;
        char elsewhere[80];

        start(&f, &story);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);
        await_end(f.handle);
        (void) snprintf(elsewhere, sizeof(elsewhere), "%s-", f.broker.path);
        assert_int_equal(rename(f.broker.path, elsewhere), 0);

        assert_int_equal(rtgrant_reconnect(f.handle), RTGRANT_ABSENT);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_THREAD, &ignored), RTGRANT_ABSENT);
        assert_int_equal(rename(elsewhere, f.broker.path), 0);
        assert_int_equal(rtgrant_reconnect(f.handle), 1);
        session_stop(&f);
}

static void test_no_descriptor_is_left(void **state) {
        struct story story = { .n_until_gone = 1 };
        unsigned before = test_count_fds();
        struct rtgrant_answer ignored;
        struct session f;

        start(&f, &story);
        assert_int_equal(acquire(f.handle, RTGRANT_LIFETIME_CONNECTION, &ignored), 0);
        await_end(f.handle);
        assert_int_equal(rtgrant_reconnect(f.handle), 1);
        session_stop(&f);
        assert_int_equal(test_count_fds(), before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bound_leases_and_the_watch_go_on),
                cmocka_unit_test(test_what_was_released_or_outlives_the_connection_is_not_asked_for),
                cmocka_unit_test(test_a_lease_that_is_no_more_is_not_counted),
                cmocka_unit_test(test_a_watch_that_is_refused_now_is_said),
                cmocka_unit_test(test_a_connection_that_is_there_is_left_alone),
                cmocka_unit_test(test_a_broker_that_is_not_back_yet),
                cmocka_unit_test(test_no_descriptor_is_left),
        };

        return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
