/* SPDX-License-Identifier: MIT */

/* One call and its answer: what goes out, what comes back, and what is not believed. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define REQUEST .size = sizeof(struct rtgrant_request)
#define WANTS_FIFO_5 .wants_sched = true, .policy = SCHED_FIFO, .priority = 5
#define FIFO_5 REQUEST, WANTS_FIFO_5

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

/* ---- what goes out ---- */

static void test_request_on_the_wire(void **state) {
        struct rtgrant_request request = {
                FIFO_5,
                .flags = RTGRANT_DRY_RUN | RTGRANT_CLAMP | RTGRANT_MAY_ASK,
                .role = "audio-client",
                .reason = "a synthesiser",
                .pid = 1234,
                .tid = 1235,
                .wants_nice = true,
                .nice = -7,
                .lifetime = RTGRANT_LIFETIME_SECONDS,
                .lifetime_s = 60,
                .period_ns = 3,
                .computation_ns = 1,
                .deadline_ns = 2,
        };
        struct wire_acquire *sent;
        struct fixture f;

        setup(&f, script_refuse, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        sent = &f.broker.acquired;
        assert_int_equal(sent->header.size, sizeof(*sent));
        assert_int_equal(sent->header.version, WIRE_VERSION);
        assert_int_equal(sent->flags, WIRE_ACQUIRE_DRY_RUN | WIRE_ACQUIRE_CLAMP |
                                              WIRE_ACQUIRE_MAY_ASK);
        assert_string_equal(sent->role, "audio-client");
        assert_string_equal(sent->reason, "a synthesiser");
        assert_int_equal(sent->pid, 1234);
        assert_int_equal(sent->tid, 1235);
        assert_int_equal(sent->want, WIRE_WANT_SCHED | WIRE_WANT_NICE);
        assert_int_equal(sent->policy, SCHED_FIFO);
        assert_int_equal(sent->priority, 5);
        assert_int_equal(sent->nice, -7);
        assert_int_equal(sent->lifetime, WIRE_LIFETIME_SECONDS);
        assert_int_equal(sent->lifetime_s, 60);
        assert_int_equal(sent->period_ns, 3);
        assert_int_equal(sent->computation_ns, 1);
        assert_int_equal(sent->deadline_ns, 2);
        teardown(&f);
}

struct target_case {
        pid_t pid;
        pid_t tid;
        uint64_t sent_tid;
};

/* 0 is the calling thread only in the own process. */
static void test_targets_on_the_wire(void **state) {
        pid_t own_pid = getpid(), own_tid = (pid_t) syscall(SYS_gettid);
        const struct target_case cases[] = {
                { 0, 0, (uint64_t) own_tid },
                { own_pid, 0, (uint64_t) own_tid },
                { 0, 77, 77 },
                { 1234, 0, 0 },
                { 1234, 1235, 1235 },
        };
        struct fixture f;

        setup(&f, script_refuse, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct rtgrant_request request = { FIFO_5, .pid = cases[i].pid, .tid = cases[i].tid };

                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
                assert_int_equal(f.broker.acquired.pid, cases[i].pid);
                assert_int_equal(f.broker.acquired.tid, cases[i].sent_tid);
        }
        teardown(&f);
}

static void test_lifetimes_on_the_wire(void **state) {
        static const struct {
                enum rtgrant_lifetime lifetime;
                enum wire_lifetime sent;
        } cases[] = {
                { RTGRANT_LIFETIME_CONNECTION, WIRE_LIFETIME_CONNECTION },
                { RTGRANT_LIFETIME_THREAD, WIRE_LIFETIME_THREAD },
                { RTGRANT_LIFETIME_SECONDS, WIRE_LIFETIME_SECONDS },
        };
        struct fixture f;

        setup(&f, script_refuse, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct rtgrant_request request = {
                        FIFO_5,
                        .lifetime = cases[i].lifetime,
                        .lifetime_s = 9,
                };

                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
                assert_int_equal(f.broker.acquired.lifetime, cases[i].sent);
                assert_int_equal(f.broker.acquired.lifetime_s,
                                 cases[i].lifetime == RTGRANT_LIFETIME_SECONDS ? 9 : 0);
        }
        teardown(&f);
}

/* 62 letters and a character of two bytes: it would be cut in half at 63. */
static void test_long_reason_is_cut_between_characters(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        char reason[100], expected[64] = "";
        struct fixture f;

        memset(reason, 'x', sizeof(reason));
        memcpy(&reason[62], "\xc3\xa4", 2);
        reason[sizeof(reason) - 1] = '\0';
        memset(expected, 'x', 62);

        setup(&f, script_refuse, NULL, 0);
        request.reason = reason;
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_string_equal(f.broker.acquired.reason, expected);

        reason[62] = 'y';
        reason[63] = 'z';
        expected[62] = 'y';
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_string_equal(f.broker.acquired.reason, expected);
        teardown(&f);
}

static void test_malformed_requests_are_not_sent(void **state) {
        const struct rtgrant_request cases[] = {
                { WANTS_FIFO_5, .size = 0 },
                { WANTS_FIFO_5, .size = sizeof(struct rtgrant_request) - 1 },
                { WANTS_FIFO_5, .size = SIZE_MAX },
                { FIFO_5, .flags = 1 << 4 },
                { FIFO_5, .role = "a-role-name-of-thirty-two-bytes-" },
                { FIFO_5, .pid = -1 },
                { FIFO_5, .tid = -1 },
                { FIFO_5, .pidfd_plus_one = -1 },
                { FIFO_5, .lifetime = (enum rtgrant_lifetime) 3 },
                { FIFO_5, .lifetime = RTGRANT_LIFETIME_SECONDS, .lifetime_s = 0 },
                { REQUEST },
        };
        struct rtgrant_request good = { FIFO_5 };
        struct fixture f;

        setup(&f, script_refuse, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                assert_int_equal(rtgrant_acquire(f.handle, &cases[i], NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire(f.handle, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire(NULL, &good, NULL), -EINVAL);
        assert_int_equal(f.broker.n_requests, 0);

        assert_int_equal(rtgrant_acquire(f.handle, &good, NULL), -EPERM);
        assert_int_equal(f.broker.n_requests, 1);
        teardown(&f);
}

/* A request as a newer header has it. */
struct newer_request {
        struct rtgrant_request request;
        uint64_t new_field;
};

static void test_request_of_a_newer_program(void **state) {
        struct newer_request newer = { .request = { FIFO_5 } };
        struct fixture f;

        setup(&f, script_refuse, NULL, 0);
        newer.request.size = sizeof(newer);
        assert_int_equal(rtgrant_acquire(f.handle, &newer.request, NULL), -EPERM);
        newer.new_field = 1;
        assert_int_equal(rtgrant_acquire(f.handle, &newer.request, NULL), -E2BIG);
        assert_int_equal(f.broker.n_requests, 1);
        teardown(&f);
}

static void script_take_pidfd(struct fake_broker *broker) {
        struct stat *ret_stat = broker->userdata;

        while (fake_receive(broker) > 0) {
                (void) fstat(broker->pidfd, ret_stat);
                fake_reply(broker, &(struct wire_answer) { .reason = 24 },
                           sizeof(struct wire_answer));
        }
}

static void test_pidfd_goes_along(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct stat mine, taken = {};
        struct fixture f;
        unsigned n_fds;
        int fd;

        fd = memfd_create("any descriptor will do", MFD_CLOEXEC);
        assert_int_equal(fstat(fd, &mine), 0);
        request.pidfd_plus_one = fd + 1;

        setup(&f, script_take_pidfd, &taken, 0);
        n_fds = test_count_fds();
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_int_equal(taken.st_ino, mine.st_ino);
        assert_int_equal(f.broker.acquired.flags, WIRE_ACQUIRE_PIDFD);
        assert_int_equal(f.broker.acquired.pid, 0);
        assert_int_equal(f.broker.acquired.tid, 0);
        /* The broker in this process holds one more; ours is still open and no copy was left. */
        assert_int_equal(test_count_fds(), n_fds + 1);
        assert_int_equal(close(fd), 0);

        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EBADF);
        request.pidfd_plus_one = 0;
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        teardown(&f);
}

/* ---- what comes back ---- */

static void script_explain(struct fake_broker *broker) {
        struct wire_answer reply = {
                .reason = RTGRANT_REASON_PRIORITY_LIMIT,
                .flags = WIRE_ANSWER_CLAMPED | WIRE_ANSWER_UPDATED,
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
        struct fixture f;

        setup(&f, script_explain, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &request, &answer), -EPERM);
        assert_int_equal(answer.size, sizeof(answer));
        assert_int_equal(answer.reason, RTGRANT_REASON_PRIORITY_LIMIT);
        assert_int_equal(answer.route, RTGRANT_ROUTE_BROKER);
        assert_true(answer.clamped);
        assert_true(answer.updated);
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
        teardown(&f);
}

/* An answer as a newer header has it. */
struct newer_answer {
        struct rtgrant_answer answer;
        uint64_t new_field;
};

static void test_sizes_of_the_answer(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct newer_answer newer;
        struct fixture f;

        setup(&f, script_explain, NULL, 0);
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
        newer.answer.size = sizeof(newer.answer) - 1;
        assert_int_equal(rtgrant_release(f.handle, &newer.answer.id, &newer.answer), -EINVAL);
        newer.answer.size = SIZE_MAX;
        assert_int_equal(rtgrant_reload(f.handle, &newer.answer), -EINVAL);
        assert_int_equal(f.broker.n_requests, 2);
        teardown(&f);
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
        struct fixture f;

        setup(&f, script_sized, &sized, 0);

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
        teardown(&f);
}

struct verb_case {
        enum wire_verb verb;
        int (*call)(struct rtgrant *handle, struct rtgrant_answer *ret);
};

static const struct rtgrant_id lease_id = { { 9, 8, 7 } };

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
        struct fixture f;

        setup(&f, script_count, NULL, 0);
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
        teardown(&f);
}

/* ---- who may not be believed (P03) ---- */

static void script_pretend(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_pretend(broker);
}

static void test_a_grant_is_verified(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_request request = { FIFO_5, .wants_nice = true, .nice = 3 };
        struct test_sched now;
        struct fixture f;

        test_need_root();
        setup(&f, script_grant, NULL, 0);
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
        teardown(&f);
}

/* The answer then says what is in force indeed, and the id to release. */
static void test_a_grant_that_is_none(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct rtgrant_request sched = { FIFO_5 };
        struct rtgrant_request nice = { REQUEST, .wants_nice = true, .nice = -11 };
        struct fixture f;

        setup(&f, script_pretend, NULL, 0);
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
        teardown(&f);
}

struct lie {
        const char *what;
        unsigned flags;         /* of the request */
        struct wire_answer answer;
        int expected;
};

static void script_lie(struct fake_broker *broker) {
        struct lie *lie = broker->userdata;

        while (fake_receive(broker) > 0)
                fake_reply(broker, &lie->answer, sizeof(lie->answer));
}

static void test_answers_to_another_question(void **state) {
        static const struct lie cases[] = {
                { "nothing but yes", 0, {}, -EPROTO },
                { "another policy", 0, { .policy = SCHED_RR, .priority = 5 }, -EPROTO },
                { "another priority", 0, { .policy = SCHED_FIFO, .priority = 4 }, -EPROTO },
                { "clamped unasked", 0,
                  { .policy = SCHED_FIFO, .priority = 4, .flags = WIRE_ANSWER_CLAMPED }, -EPROTO },
                { "clamped", RTGRANT_CLAMP,
                  { .policy = SCHED_FIFO, .priority = 4, .flags = WIRE_ANSWER_CLAMPED }, 0 },
                { "exact", 0, { .policy = SCHED_FIFO, .priority = 5 }, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                /* Of another process, so that only the words count. */
                struct rtgrant_request request = { FIFO_5, .flags = cases[i].flags, .pid = 1 };
                struct lie lie = cases[i];
                struct fixture f;

                setup(&f, script_lie, &lie, 0);
                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), cases[i].expected);
                assert_int_equal(rtgrant_update(f.handle, &lease_id, &request, NULL),
                                 cases[i].expected);
                teardown(&f);
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
        struct fixture f;
        int r;

        test_need_root();
        setup(&f, script_grant_without_reset, NULL, 0);
        r = rtgrant_acquire(f.handle, &request, NULL);
        assert_int_equal(test_sched_set(0, SCHED_OTHER, 0, 0, false), 0);
        assert_int_equal(r, -EPROTO);
        teardown(&f);
}

/* ---- fork ---- */

static void child_of_fork(void *userdata) {
        struct rtgrant *handle = userdata;
        struct rtgrant_request request = { FIFO_5 };
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
        struct fixture f;

        setup(&f, script_count, NULL, 0);
        test_in_child(0, child_of_fork, f.handle);
        assert_int_equal(f.broker.n_requests, 0);
        assert_int_equal(rtgrant_reload(f.handle, &answer), 0);
        assert_int_equal(answer.count, 42);
        teardown(&f);
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
        struct fixture f;

        setup(&f, script_backwards, NULL, 5000);
        for (unsigned i = 0; i < THREADS; i++) {
                callers[i] = (struct caller) { .handle = f.handle, .number = i };
                assert_int_equal(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
                (void) pthread_join(threads[i], NULL);
                assert_int_equal(callers[i].n_right, CALLS_PER_THREAD);
        }
        teardown(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_request_on_the_wire),
                cmocka_unit_test(test_targets_on_the_wire),
                cmocka_unit_test(test_lifetimes_on_the_wire),
                cmocka_unit_test(test_long_reason_is_cut_between_characters),
                cmocka_unit_test(test_malformed_requests_are_not_sent),
                cmocka_unit_test(test_request_of_a_newer_program),
                cmocka_unit_test(test_pidfd_goes_along),
                cmocka_unit_test(test_refusal_with_everything),
                cmocka_unit_test(test_sizes_of_the_answer),
                cmocka_unit_test(test_longer_and_shorter_replies),
                cmocka_unit_test(test_every_verb),
                cmocka_unit_test(test_a_grant_is_verified),
                cmocka_unit_test(test_a_grant_that_is_none),
                cmocka_unit_test(test_answers_to_another_question),
                cmocka_unit_test(test_a_grant_that_would_be_inherited),
                cmocka_unit_test(test_fork),
                cmocka_unit_test(test_four_threads_at_once),
        };

        return cmocka_run_group_tests_name("lib-calls", tests, NULL, NULL);
}
