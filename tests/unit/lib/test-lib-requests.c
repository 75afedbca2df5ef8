/* SPDX-License-Identifier: MIT */

/* What goes out, and what does not. */

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/lib/fake-broker.h"
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/unit/lib/lib-test.h"

#define REQUEST .size = sizeof(struct rtgrant_request)
#define WANTS_FIFO_5 .wants_sched = true, .policy = SCHED_FIFO, .priority = 5
#define FIFO_5 REQUEST, WANTS_FIFO_5

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
                .is_relative = true,
                .relative = -2,
                .feeds_tid = 77,
                .feeds = "card:1",
                .period_ns = 3,
                .computation_ns = 1,
                .deadline_ns = 2,
        };
        struct wire_acquire *sent;
        struct session f;

        session_start(&f, script_refuse, NULL, 0);
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        sent = &f.broker.acquired;
        assert_int_equal(sent->header.size, sizeof(*sent));
        assert_int_equal(sent->header.version, WIRE_VERSION);
        assert_int_equal(sent->flags, WIRE_ACQUIRE_DRY_RUN | WIRE_ACQUIRE_CLAMP |
                                              WIRE_ACQUIRE_MAY_ASK | WIRE_ACQUIRE_RELATIVE);
        assert_int_equal(sent->relative, -2);
        assert_int_equal(sent->feeds_tid, 77);
        assert_string_equal(sent->feeds, "card:1");
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
        session_stop(&f);
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
        struct session f;

        session_start(&f, script_refuse, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct rtgrant_request request = {
                        FIFO_5,
                        .pid = cases[i].pid,
                        .tid = cases[i].tid,
                };

                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
                assert_int_equal(f.broker.acquired.pid, cases[i].pid);
                assert_int_equal(f.broker.acquired.tid, cases[i].sent_tid);
        }
        session_stop(&f);
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
        struct session f;

        session_start(&f, script_refuse, NULL, 0);
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
        session_stop(&f);
}

/* A path is looked up here, with the caller's rights; a name is the broker's to find. */
static void test_resources_on_the_wire(void **state) {
        struct rtgrant_request request = {
                REQUEST,
                .memlock_bytes = UINT64_C(5) << 32,
                .cpu_latency_us = 7,
                .block = "sda1",
                .block_max_sectors_kb = 64,
                .irq = "card:0",
                .irq_priority = 90,
        };
        char expected[WIRE_DEVICE_SIZE];
        struct wire_acquire *sent;
        struct session f;
        struct stat st;

        session_start(&f, script_refuse, NULL, 0);
        sent = &f.broker.acquired;
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_int_equal(sent->want, WIRE_WANT_MEMLOCK | WIRE_WANT_CPU_LATENCY |
                                             WIRE_WANT_BLOCK_QUEUE | WIRE_WANT_IRQ);
        assert_true(sent->memlock_bytes == UINT64_C(5) << 32);
        assert_int_equal(sent->cpu_latency_us, 7);
        assert_string_equal(sent->block, "sda1");
        assert_int_equal(sent->block_max_sectors_kb, 64);
        assert_string_equal(sent->irq, "card:0");
        assert_int_equal(sent->irq_priority, 90);

        request.block = "/proc";        /* on no disk */
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -ENODEV);
        request.block = "/nonexistent/file";
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -ENOENT);
        assert_int_equal(f.broker.n_requests, 1);

        request.block = "/dev/loop0";
        if (stat(request.block, &st) >= 0 && S_ISBLK(st.st_mode)) {
                (void) snprintf(expected, sizeof(expected), "%u:%u", major(st.st_rdev),
                                minor(st.st_rdev));
                assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
                assert_string_equal(sent->block, expected);
        }
        session_stop(&f);
}

/* 62 letters and a character of two bytes: it would be cut in half at 63. */
static void test_long_reason_is_cut_between_characters(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        char reason[100], expected[64] = "";
        struct session f;

        memset(reason, 'x', sizeof(reason));
        memcpy(&reason[62], "\xc3\xa4", 2);
        reason[sizeof(reason) - 1] = '\0';
        memset(expected, 'x', 62);

        session_start(&f, script_refuse, NULL, 0);
        request.reason = reason;
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_string_equal(f.broker.acquired.reason, expected);

        reason[62] = 'y';
        reason[63] = 'z';
        expected[62] = 'y';
        assert_int_equal(rtgrant_acquire(f.handle, &request, NULL), -EPERM);
        assert_string_equal(f.broker.acquired.reason, expected);
        session_stop(&f);
}

static void test_malformed_requests_are_not_sent(void **state) {
        const struct rtgrant_request cases[] = {
                { WANTS_FIFO_5, .size = 0 },
                { WANTS_FIFO_5, .size = offsetof(struct rtgrant_request, memlock_bytes) - 1 },
                { WANTS_FIFO_5, .size = SIZE_MAX },
                { FIFO_5, .flags = 1 << 5 },
                { FIFO_5, .relative = 1 },
                { FIFO_5, .feeds_tid = -1 },
                { FIFO_5, .feeds = "" },
                { FIFO_5, .role = "a-role-name-of-thirty-two-bytes-" },
                { FIFO_5, .pid = -1 },
                { FIFO_5, .tid = -1 },
                { FIFO_5, .pidfd_plus_one = -1 },
                { FIFO_5, .lifetime = (enum rtgrant_lifetime) 3 },
                { FIFO_5, .lifetime = RTGRANT_LIFETIME_SECONDS, .lifetime_s = 0 },
                { FIFO_5, .block = "sda" },
                { FIFO_5, .block_max_sectors_kb = 64 },
                { FIFO_5, .block = "", .block_max_sectors_kb = 64 },
                { FIFO_5, .irq = "" },
                { FIFO_5, .irq_priority = 90 },
                { FIFO_5, .irq = "a-device-of-sixty-four-bytes-and-that-is-one-too-many-for-a-record" },
                { REQUEST },
        };
        struct rtgrant_request good = { FIFO_5 };
        struct session f;

        session_start(&f, script_refuse, NULL, 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                assert_int_equal(rtgrant_acquire(f.handle, &cases[i], NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire(f.handle, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_acquire(NULL, &good, NULL), -EINVAL);
        assert_int_equal(f.broker.n_requests, 0);

        assert_int_equal(rtgrant_acquire(f.handle, &good, NULL), -EPERM);
        assert_int_equal(f.broker.n_requests, 1);
        session_stop(&f);
}

/* A request as a newer header has it. */
struct newer_request {
        struct rtgrant_request request;
        uint64_t new_field;
};

static void test_request_of_a_newer_program(void **state) {
        struct newer_request newer = { .request = { FIFO_5 } };
        struct session f;

        session_start(&f, script_refuse, NULL, 0);
        newer.request.size = sizeof(newer);
        assert_int_equal(rtgrant_acquire(f.handle, &newer.request, NULL), -EPERM);
        newer.new_field = 1;
        assert_int_equal(rtgrant_acquire(f.handle, &newer.request, NULL), -E2BIG);
        assert_int_equal(f.broker.n_requests, 1);
        session_stop(&f);
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
        struct session f;
        unsigned n_fds;
        int fd;

        fd = memfd_create("any descriptor will do", MFD_CLOEXEC);
        assert_int_equal(fstat(fd, &mine), 0);
        request.pidfd_plus_one = fd + 1;

        session_start(&f, script_take_pidfd, &taken, 0);
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
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_request_on_the_wire),
                cmocka_unit_test(test_targets_on_the_wire),
                cmocka_unit_test(test_lifetimes_on_the_wire),
                cmocka_unit_test(test_long_reason_is_cut_between_characters),
                cmocka_unit_test(test_resources_on_the_wire),
                cmocka_unit_test(test_malformed_requests_are_not_sent),
                cmocka_unit_test(test_request_of_a_newer_program),
                cmocka_unit_test(test_pidfd_goes_along),
        };

        return cmocka_run_group_tests_name("lib-requests", tests, NULL, NULL);
}
