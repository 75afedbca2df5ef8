/* SPDX-License-Identifier: MIT */

/* What comes back, and what of it is not believed (P03). */

#include <sched.h>
#include <string.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define REQUEST .size = sizeof(struct rtgrant_request)
#define WANTS_FIFO_5 .wants_sched = true, .policy = SCHED_FIFO, .priority = 5
#define FIFO_5 REQUEST, WANTS_FIFO_5

static const struct rtgrant_id lease_id = { { 9, 8, 7 } };

static void script_explain(struct fake_broker *broker) {
        struct wire_answer reply = {
                .reason = RTGRANT_REASON_PRIORITY_LIMIT,
                .flags = WIRE_ANSWER_CLAMPED | WIRE_ANSWER_UPDATED | WIRE_ANSWER_NOTED,
                .id = { 1, 2, 3 },
                .pid = 11,
                .tid = UINT64_C(1) << 40,
                .policy = SCHED_RR,
                .priority = 3,
                .nice = -4,
                .reset_on_fork = 1,
                .previous_policy = SCHED_FIFO,
                .previous_priority = 2,
                .previous_nice = 19,
                .count = 7,
                .role = "desktop",
                .explanation = {
                        .asked = 80,
                        .limit = 20,
                        .retry_after_ms = 800,
                        .rule = "/etc/rtgrant/policy.conf:12",
                        .text = "Priority 80 is above 20.",
                },
        };

        /* Not ended: as from a broker whose string is as long as its array. */
        memset(reply.explanation.help, 'h', sizeof(reply.explanation.help));
        while (fake_receive(broker) > 0)
                fake_reply(broker, &reply, sizeof(reply));
}

static void test_refusal_with_everything(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_request request = { FIFO_5 };
        struct session f;

        session_start(&f, script_explain, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &answer), -EPERM);
        assert_int_equal(answer.size, sizeof(answer));
        assert_int_equal(answer.reason, RTGRANT_REASON_PRIORITY_LIMIT);
        assert_int_equal(answer.route, RTGRANT_ROUTE_BROKER);
        assert_true(answer.clamped);
        assert_true(answer.updated);
        assert_true(answer.noted);
        assert_memory_equal(answer.id.bytes, ((uint8_t[16]) { 1, 2, 3 }), 16);
        assert_int_equal(answer.pid, 11);
        assert_int_equal(answer.tid, 0);
        assert_int_equal(answer.policy, SCHED_RR);
        assert_int_equal(answer.priority, 3);
        assert_int_equal(answer.nice, -4);
        assert_true(answer.reset_on_fork);
        assert_int_equal(answer.previous_policy, SCHED_FIFO);
        assert_int_equal(answer.previous_priority, 2);
        assert_int_equal(answer.previous_nice, 19);
        assert_int_equal(answer.count, 7);
        assert_int_equal(answer.retry_after_ms, 800);
        assert_int_equal(answer.asked, 80);
        assert_int_equal(answer.limit, 20);
        assert_string_equal(answer.role, "desktop");
        assert_string_equal(answer.rule, "/etc/rtgrant/policy.conf:12");
        assert_string_equal(answer.text, "Priority 80 is above 20.");
        assert_int_equal(strlen(answer.help), sizeof(answer.help) - 1);
        session_stop(&f);
}

/* An answer as a newer header has it. */
struct newer_answer {
        struct rtgrant_answer answer;
        uint64_t new_field;
};

static void test_sizes_of_the_answer(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct newer_answer newer;
        struct session f;

        session_start(&f, script_explain, NULL, 0);
        memset(&newer, 0xff, sizeof(newer));
        newer.answer.size = sizeof(newer);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &newer.answer), -EPERM);
        assert_int_equal(newer.answer.size, sizeof(newer));
        assert_int_equal(newer.new_field, 0);
        assert_string_equal(newer.answer.role, "desktop");

        newer.new_field = 0x5a;
        newer.answer.size = sizeof(newer.answer);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &newer.answer), -EPERM);
        assert_int_equal(newer.new_field, 0x5a);
        assert_int_equal(f.broker.n_requests, 2);

        newer.answer.size = 0;
        assert_int_equal(rtgrant_acquire(f.handle, &request, &newer.answer), -EINVAL);
        newer.answer.size = offsetof(struct rtgrant_answer, granted) - 1;
        assert_int_equal(rtgrant_release(f.handle, &newer.answer.id, &newer.answer), -EINVAL);
        newer.answer.size = SIZE_MAX;
        assert_int_equal(rtgrant_reload(f.handle, &newer.answer), -EINVAL);
        assert_int_equal(f.broker.n_requests, 2);
        session_stop(&f);
}

struct sized_reply {
        size_t size;    /* of the record */
        uint32_t reason;
};

static void script_sized(struct fake_broker *broker) {
        const struct sized_reply *sized = broker->userdata;
        struct {
                struct wire_answer answer;
                uint8_t newer[256];
        } reply;

        while (fake_receive(broker) > 0) {
                memset(&reply, 0x41, sizeof(reply));
                reply.answer.reason = sized->reason;
                reply.answer.id[0] = 1;
                fake_reply(broker, &reply, sized->size);
        }
}

static void test_longer_and_shorter_replies(void **state) {
        struct sized_reply sized = { .reason = 24 };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_id id = {};
        struct session f;

        session_start(&f, script_sized, &sized, 0);

        sized.size = sizeof(struct wire_answer) + 256;
        assert_int_equal(rtgrant_release(f.handle, &id, &answer), -EPERM);
        assert_int_equal(answer.reason, 24);
        assert_int_equal(strlen(answer.help), sizeof(answer.help) - 1);

        sized.size = offsetof(struct wire_answer, explanation);
        assert_int_equal(rtgrant_release(f.handle, &id, &answer), -EPERM);
        assert_int_equal(strlen(answer.role), sizeof(answer.role) - 1);
        assert_string_equal(answer.rule, "");
        assert_string_equal(answer.help, "");
        assert_int_equal(answer.retry_after_ms, 0);

        sized.size = offsetof(struct wire_answer, flags);
        assert_int_equal(rtgrant_release(f.handle, &id, &answer), -EPERM);
        assert_int_equal(answer.pid, 0);
        assert_string_equal(answer.role, "");
        session_stop(&f);
}

struct verb_case {
        enum wire_verb verb;
        int (*call)(struct rtgrant *handle, struct rtgrant_answer *ret);
};

static int do_update(struct rtgrant *handle, struct rtgrant_answer *ret) {
        struct rtgrant_request request = { FIFO_5, .flags = RTGRANT_DRY_RUN };

        return rtgrant_update(handle, &lease_id, &request, ret);
}

static int do_renew(struct rtgrant *handle, struct rtgrant_answer *ret) {
        return rtgrant_renew(handle, &lease_id, 33, ret);
}

static int do_release(struct rtgrant *handle, struct rtgrant_answer *ret) {
        return rtgrant_release(handle, &lease_id, ret);
}

static int do_revoke(struct rtgrant *handle, struct rtgrant_answer *ret) {
        return rtgrant_revoke(handle, &lease_id, ret);
}

static void script_count(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_reply(broker, &(struct wire_answer) { .count = 42 },
                           sizeof(struct wire_answer));
}

static void test_every_verb(void **state) {
        static const struct verb_case cases[] = {
                { WIRE_UPDATE, do_update },
                { WIRE_RENEW, do_renew },
                { WIRE_RELEASE, do_release },
                { WIRE_REVOKE, do_revoke },
                { WIRE_RELOAD, rtgrant_reload },
                { WIRE_RESTORE_ALL, rtgrant_restore_all },
        };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_count, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                assert_int_equal(cases[i].call(f.handle, &answer), 0);
                assert_int_equal(f.broker.request.header.verb, cases[i].verb);
                assert_int_equal(answer.count, 42);
                if (cases[i].verb == WIRE_RENEW)
                        assert_int_equal(f.broker.request.lease.lifetime_s, 33);
                if (cases[i].verb < WIRE_RELOAD)
                        assert_memory_equal(f.broker.request.lease.id, lease_id.bytes, 16);
        }

        assert_int_equal(rtgrant_renew(f.handle, NULL, 0, NULL), -EINVAL);
        assert_int_equal(rtgrant_update(f.handle, NULL, &(struct rtgrant_request) { FIFO_5 }, NULL),
                         -EINVAL);
        session_stop(&f);
}

/* ---- who may not be believed (P03) ---- */

static void test_a_grant_is_verified(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_request request = { FIFO_5, .wants_nice = true, .nice = 3 };
        struct test_sched now;
        struct session f;

        test_need_root();
        session_start(&f, script_grant, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &answer), 0);
        now = test_sched_get(0);
        assert_int_equal(test_sched_set(0, SCHED_OTHER, 0, 0, false), 0);
        assert_int_equal(now.policy, SCHED_FIFO);
        assert_int_equal(now.priority, 5);
        assert_int_equal(now.nice, 3);
        assert_true(now.reset_on_fork);
        assert_int_equal(answer.route, RTGRANT_ROUTE_BROKER);
        assert_int_equal(answer.policy, SCHED_FIFO);
        assert_int_equal(answer.priority, 5);
        assert_int_equal(answer.id.bytes[0], 0xab);
        session_stop(&f);
}

/* The answer then says what is in force indeed, and the id to release. */
static void test_a_grant_that_is_none(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_request sched = { FIFO_5 };
        struct rtgrant_request nice = { REQUEST, .wants_nice = true, .nice = -11 };
        struct session f;

        session_start(&f, script_pretend, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &sched, &answer), -EPROTO);
        assert_int_equal(answer.policy, SCHED_OTHER);
        assert_int_equal(answer.priority, 0);
        assert_int_equal(answer.id.bytes[0], 0xab);
        assert_int_equal(rtgrant_acquire(f.handle, &nice, &answer), -EPROTO);
        assert_int_equal(answer.nice, 0);

        /* Somebody else's thread cannot be judged from here, nor what would be. */
        sched.pid = 1;
        assert_int_equal(rtgrant_acquire(f.handle, &sched, &answer), 0);
        sched.pid = 0;
        sched.flags = RTGRANT_DRY_RUN;
        assert_int_equal(rtgrant_acquire(f.handle, &sched, &answer), 0);
        session_stop(&f);
}

struct lie {
        const char *what;
        struct wire_answer answer;
        unsigned flags;         /* of the request, which is for FIFO 5 and nice 0 */
        int expected;
};

static void script_lie(struct fake_broker *broker) {
        struct lie *lie = broker->userdata;

        while (fake_receive(broker) > 0)
                fake_reply(broker, &lie->answer, sizeof(lie->answer));
}

static void test_answers_to_another_question(void **state) {
        static const struct lie cases[] = {
                { "nothing but yes", {}, 0, -EPROTO },
                { "another policy", { .policy = SCHED_RR, .priority = 5 }, 0, -EPROTO },
                { "another priority", { .policy = SCHED_FIFO, .priority = 4 }, 0, -EPROTO },
                { "clamped unasked",
                  { .policy = SCHED_FIFO, .priority = 4, .flags = WIRE_ANSWER_CLAMPED }, 0,
                  -EPROTO },
                { "clamped",
                  { .policy = SCHED_FIFO, .priority = 4, .flags = WIRE_ANSWER_CLAMPED },
                  RTGRANT_CLAMP, 0 },
                { "another nice", { .policy = SCHED_FIFO, .priority = 5, .nice = 1 }, 0, -EPROTO },
                { "exact", { .policy = SCHED_FIFO, .priority = 5 }, 0, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                /* Of another process, so that only the words count. */
                struct rtgrant_request request = {
                        FIFO_5,
                        .wants_nice = true,
                        .flags = cases[i].flags,
                        .pid = 1,
                };
                struct lie lie = cases[i];
                struct session f;

                session_start(&f, script_lie, &lie, 0);
                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), cases[i].expected);
                assert_int_equal(rtgrant_update(f.handle, &lease_id, &request, NULL),
                                 cases[i].expected);
                session_stop(&f);
        }
}

static void script_grant_without_reset(struct fake_broker *broker) {
        while (fake_receive(broker) > 0) {
                (void) test_sched_set((pid_t) broker->request.acquire.tid, SCHED_FIFO, 5, 0, false);
                fake_pretend(broker);
        }
}

static void test_a_grant_that_would_be_inherited(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct session f;
        int r;

        test_need_root();
        session_start(&f, script_grant_without_reset, NULL, 0);
        r = rtgrant_acquire(f.handle, &request, NULL);
        assert_int_equal(test_sched_set(0, SCHED_OTHER, 0, 0, false), 0);
        assert_int_equal(r, -EPROTO);
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_refusal_with_everything),
                cmocka_unit_test(test_sizes_of_the_answer),
                cmocka_unit_test(test_longer_and_shorter_replies),
                cmocka_unit_test(test_every_verb),
                cmocka_unit_test(test_a_grant_is_verified),
                cmocka_unit_test(test_a_grant_that_is_none),
                cmocka_unit_test(test_answers_to_another_question),
                cmocka_unit_test(test_a_grant_that_would_be_inherited),
        };

        return cmocka_run_group_tests_name("lib-answers", tests, NULL, NULL);
}
