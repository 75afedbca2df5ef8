/* SPDX-License-Identifier: MIT */

/* rtgrant_open(): who is there, who is not, and how long it takes to find out. */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

#define ABSENT_MS_MAX 50

static void assert_open_fails(const char *path, int timeout_ms, int expected) {
        struct rtgrant *handle = NULL;

        assert_int_equal(rtgrant_open(&handle, path, timeout_ms), expected);
        assert_null(handle);
}

static void assert_absent(const char *path) {
        uint64_t begin_ms = test_now_ms();

        assert_open_fails(path, 5000, RTGRANT_ABSENT);
        assert_in_range(test_now_ms() - begin_ms, 0, ABSENT_MS_MAX);
}

static void script_nothing(struct fake_broker *broker) {
}

static void test_absent_without_a_socket(void **state) {
        assert_absent("/tmp/test-lib-there-is-no-such-directory/socket");
        assert_absent("/dev/null/socket");
}

static void test_absent_with_a_stale_socket(void **state) {
        struct fake_broker broker;

        fake_listen(&broker, SOCK_SEQPACKET, 1);
        (void) close(broker.listener);
        broker.listener = -1;
        assert_absent(broker.path);
        fake_stop(&broker);
}

static void test_absent_with_a_file_that_is_no_socket(void **state) {
        struct fake_broker broker;
        int fd;

        fake_listen(&broker, SOCK_SEQPACKET, 1);
        assert_int_equal(unlink(broker.path), 0);
        fd = open(broker.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void) close(fd);
        assert_absent(broker.path);
        fake_stop(&broker);
}

static void open_closed_socket(void *userdata) {
        struct rtgrant *handle;

        CHECK(rtgrant_open(&handle, userdata, 0) == -EACCES);
}

static void test_a_closed_socket_is_no_absence(void **state) {
        struct fake_broker broker;

        test_need_root();
        fake_listen(&broker, SOCK_SEQPACKET, 1);
        assert_int_equal(chmod(broker.path, 0600), 0);
        test_in_child(UID_NOBODY, open_closed_socket, broker.path);
        fake_stop(&broker);
}

static void test_another_kind_of_socket(void **state) {
        struct fake_broker broker;

        fake_listen(&broker, SOCK_STREAM, 1);
        assert_open_fails(broker.path, 0, -EPROTO);
        fake_stop(&broker);
}

static void test_arguments(void **state) {
        char path[200];

        memset(path, 'x', sizeof(path));
        path[sizeof(path) - 1] = '\0';
        assert_open_fails(path, 0, -ENAMETOOLONG);
        assert_open_fails("", 0, -EINVAL);
        assert_open_fails("/tmp/socket", -1, -EINVAL);
        assert_int_equal(rtgrant_open(NULL, NULL, 0), -EINVAL);
        assert_null(rtgrant_close(NULL));
}

static void test_path_from_the_environment(void **state) {
        struct fake_broker broker;
        struct rtgrant *handle;

        fake_start(&broker, script_silent, NULL);
        assert_int_equal(setenv("RTGRANT_SOCKET", broker.path, true), 0);
        assert_int_equal(rtgrant_open(&handle, NULL, 0), 0);
        assert_null(rtgrant_close(handle));
        fake_stop(&broker);

        assert_absent(NULL);
        (void) unsetenv("RTGRANT_SOCKET");
}

/* Connects until one more would have to wait. */
static size_t fill_backlog(const struct fake_broker *broker, int fds[], size_t n_fds) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t n;

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", broker->path);
        for (n = 0; n < n_fds; n++) {
                fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                assert_true(fds[n] >= 0);
                if (connect(fds[n], (struct sockaddr *) &address, sizeof(address)) < 0) {
                        assert_int_equal(errno, EAGAIN);
                        (void) close(fds[n]);
                        return n;
                }
        }

        fail_msg("the backlog has no end");
        return n;
}

static void on_alarm(int number) {
}

/* A signal every millisecond, without SA_RESTART: each sleep is cut short. */
static void signals_begin(struct sigaction *ret_old) {
        struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
        struct sigaction action = { .sa_handler = on_alarm };

        assert_int_equal(sigaction(SIGALRM, &action, ret_old), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void signals_end(const struct sigaction *old) {
        struct itimerval never = {};

        (void) setitimer(ITIMER_REAL, &never, NULL);
        (void) sigaction(SIGALRM, old, NULL);
}

static void assert_full_backlog_ends(bool with_signals) {
        struct sigaction old;
        struct fake_broker broker;
        uint64_t begin_ms;
        int fds[16];
        size_t n;

        fake_listen(&broker, SOCK_SEQPACKET, 1);
        n = fill_backlog(&broker, fds, N_ELEMENTS(fds));

        if (with_signals)
                signals_begin(&old);
        begin_ms = test_now_ms();
        assert_open_fails(broker.path, 200, -ETIMEDOUT);
        assert_in_range(test_now_ms() - begin_ms, 199, 600);
        if (with_signals)
                signals_end(&old);

        while (n > 0)
                (void) close(fds[--n]);
        fake_stop(&broker);
}

static void test_full_backlog_ends_at_the_time_out(void **state) {
        assert_full_backlog_ends(false);
}

static void test_full_backlog_among_signals(void **state) {
        assert_full_backlog_ends(true);
}

struct opener {
        const char *path;
        _Atomic pid_t tid;
        int result;
};

static void *run_opener(void *userdata) {
        struct opener *opener = userdata;
        struct rtgrant *handle;

        opener->tid = (pid_t) syscall(SYS_gettid);
        opener->result = rtgrant_open(&handle, opener->path, 10000);
        if (opener->result == 0)
                (void) rtgrant_close(handle);
        return NULL;
}

static void test_full_backlog_is_waited_for(void **state) {
        struct fake_broker broker;
        struct opener opener = {};
        pthread_t thread;
        int fds[16];
        size_t n;

        fake_listen(&broker, SOCK_SEQPACKET, 1);
        n = fill_backlog(&broker, fds, N_ELEMENTS(fds));

        opener.path = broker.path;
        assert_int_equal(pthread_create(&thread, NULL, run_opener, &opener), 0);
        while (opener.tid == 0)
                ;
        test_await_sleep(opener.tid);

        for (size_t i = 0; i < n; i++) {
                (void) close(accept(broker.listener, NULL, NULL));
                (void) close(fds[i]);
        }
        broker.fd = accept(broker.listener, NULL, NULL);
        assert_true(fake_receive(&broker) > 0);
        fake_reply(&broker, &(struct wire_hello_reply) {}, sizeof(struct wire_hello_reply));

        (void) pthread_join(thread, NULL);
        assert_int_equal(opener.result, 0);
        (void) close(broker.fd);
        fake_stop(&broker);
}

static void assert_times_out(const char *path) {
        uint64_t begin_ms = test_now_ms();

        assert_open_fails(path, 150, -ETIMEDOUT);
        assert_in_range(test_now_ms() - begin_ms, 149, 500);
}

static void test_silent_broker(void **state) {
        struct fake_broker broker;

        fake_listen(&broker, SOCK_SEQPACKET, 8);
        assert_times_out(broker.path);
        fake_stop(&broker);
}

static void test_silent_broker_among_signals(void **state) {
        struct fake_broker broker;
        struct sigaction old;

        fake_listen(&broker, SOCK_SEQPACKET, 8);
        signals_begin(&old);
        assert_times_out(broker.path);
        signals_end(&old);
        fake_stop(&broker);
}

static void test_broker_closes_before_hello(void **state) {
        struct fake_broker broker;

        fake_listen(&broker, SOCK_SEQPACKET, 8);
        (void) shutdown(broker.listener, SHUT_RDWR);
        assert_absent(broker.path);
        fake_stop(&broker);
}

struct turned_away {
        uint32_t reason;
        int expected;
};

/* @answered: as a reply to the hello; else at once, without having read it. */
static int open_turned_away(uint32_t reason, bool answered) {
        struct wire_hello_reply reply = { .reason = reason };
        struct opener opener = {};
        struct fake_broker broker;
        pthread_t thread;

        fake_listen(&broker, SOCK_SEQPACKET, 8);
        opener.path = broker.path;
        assert_int_equal(pthread_create(&thread, NULL, run_opener, &opener), 0);
        broker.fd = accept(broker.listener, NULL, NULL);
        while (opener.tid == 0)
                ;
        if (answered)
                assert_true(fake_receive(&broker) > 0);
        else {
                /* The hello is there but unread: the client sees ECONNRESET before the answer. */
                test_await_sleep(opener.tid);
                broker.request.header.verb = WIRE_HELLO;
        }
        fake_reply(&broker, &reply, sizeof(reply));
        (void) close(broker.fd);
        (void) pthread_join(thread, NULL);
        fake_stop(&broker);
        return opener.result;
}

static void test_turned_away(void **state) {
        static const struct turned_away cases[] = {
                { RTGRANT_REASON_CONNECTIONS_PER_USER, -EUSERS },
                { RTGRANT_REASON_CONNECTIONS_TOTAL, -EUSERS },
                { RTGRANT_REASON_RESOURCES, -ENOBUFS },
                { RTGRANT_REASON_VERSION, -EPROTO },
                { RTGRANT_REASON_MALFORMED, -EPROTO },
                { RTGRANT_REASON_USER_NAMESPACE, -EACCES },
                { 12345, -EACCES },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                assert_int_equal(open_turned_away(cases[i].reason, true), cases[i].expected);
                assert_int_equal(open_turned_away(cases[i].reason, false), cases[i].expected);
        }
}

static void test_descriptors_are_closed_and_never_inherited(void **state) {
        struct fake_broker broker;
        struct rtgrant *handle;
        unsigned n_fds;

        fake_start(&broker, script_silent, NULL);
        n_fds = test_count_fds();
        for (int i = 0; i < 100; i++) {
                assert_int_equal(rtgrant_open(&handle, broker.path, 0), 0);
                assert_true(fcntl(rtgrant_get_fd(handle), F_GETFD) & FD_CLOEXEC);
                assert_null(rtgrant_close(handle));
                assert_open_fails("/tmp/test-lib-there-is-no-such-directory/socket", 0,
                                  RTGRANT_ABSENT);
        }
        /* The broker's side of the last one may be on its way to be closed. */
        fake_stop(&broker);
        assert_int_equal(test_count_fds(), n_fds - 1);
}

static void test_broker_that_closes_after_hello(void **state) {
        struct fake_broker broker;
        struct rtgrant_id id = {};
        struct rtgrant *handle;

        /* SIGPIPE would end this test. */
        (void) signal(SIGPIPE, SIG_DFL);
        fake_start(&broker, script_nothing, NULL);
        assert_int_equal(rtgrant_open(&handle, broker.path, 0), 0);
        assert_int_equal(poll(&(struct pollfd) { .fd = rtgrant_get_fd(handle) }, 1, 5000), 1);
        for (int i = 0; i < 3; i++)
                assert_int_equal(rtgrant_release(handle, &id, NULL), RTGRANT_ABSENT);
        assert_null(rtgrant_close(handle));
        fake_stop(&broker);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_absent_without_a_socket),
                cmocka_unit_test(test_absent_with_a_stale_socket),
                cmocka_unit_test(test_absent_with_a_file_that_is_no_socket),
                cmocka_unit_test(test_a_closed_socket_is_no_absence),
                cmocka_unit_test(test_another_kind_of_socket),
                cmocka_unit_test(test_arguments),
                cmocka_unit_test(test_path_from_the_environment),
                cmocka_unit_test(test_full_backlog_ends_at_the_time_out),
                cmocka_unit_test(test_full_backlog_among_signals),
                cmocka_unit_test(test_full_backlog_is_waited_for),
                cmocka_unit_test(test_silent_broker),
                cmocka_unit_test(test_silent_broker_among_signals),
                cmocka_unit_test(test_broker_closes_before_hello),
                cmocka_unit_test(test_turned_away),
                cmocka_unit_test(test_descriptors_are_closed_and_never_inherited),
                cmocka_unit_test(test_broker_that_closes_after_hello),
        };

        return cmocka_run_group_tests_name("lib-open", tests, NULL, NULL);
}
