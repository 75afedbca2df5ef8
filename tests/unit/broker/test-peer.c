/* SPDX-License-Identifier: MIT */

/* Who is asking, from real sockets. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "broker/peer.h"
#include "tests/unit/broker/broker-test.h"

/* A child that connected: it makes the pair, hands us one end and sleeps. */
struct client {
        pid_t pid;
        int fd;
        struct peer peer;
};

struct client_case {
        const char *name;
        struct test_ids ids;
        int clone_flags;
        unsigned n_gids;
        bool in_user_namespace;
        unsigned ns_depth;
        bool admin;
        uid_t quota_uid;
};

static void send_fd(int to, int fd) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        struct iovec iov = { (void *) "x", 1 };
        struct msghdr header = { .msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control) };
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        CHECK(sendmsg(to, &header, 0) == 1);
}

static int receive_fd(int from) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        char byte;
        struct iovec iov = { &byte, 1 };
        struct msghdr header = { .msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control) };
        int fd;

        if (recvmsg(from, &header, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&header))
                return -1;
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(fd));
        return fd;
}

static void run_client(int to, const struct client_case *c) {
        gid_t gids[400];
        int pair[2];

        for (unsigned i = 0; i < c->n_gids; i++)
                gids[i] = 70000 + i;
        CHECK(setgroups(c->n_gids, gids) == 0);
        CHECK(setresgid(c->ids.rgid, c->ids.egid, c->ids.sgid) == 0);
        CHECK(setresuid(c->ids.ruid, c->ids.euid, c->ids.suid) == 0);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if ((c->clone_flags & CLONE_NEWUSER) && unshare(CLONE_NEWUSER) < 0)
                _exit(EXIT_SKIP);

        /* as connect(2) does, this notes who it is */
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        send_fd(to, pair[1]);
        (void) pause();
}

static struct client make_client(const struct client_case *c) {
        struct client client = { .peer = PEER_NONE };
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        client.pid = (pid_t) syscall(SYS_clone, (c->clone_flags & CLONE_NEWPID) | SIGCHLD, NULL,
                                     NULL, NULL, NULL);
        assert_true(client.pid >= 0);
        if (client.pid == 0) {
                (void) close(pair[0]);
                run_client(pair[1], c);
        }

        (void) close(pair[1]);
        client.fd = receive_fd(pair[0]);
        (void) close(pair[0]);
        if (client.fd < 0)
                test_skip("no user namespaces can be made here");
        return client;
}

static void kill_client(struct client *client) {
        assert_int_equal(kill(client->pid, SIGKILL), 0);
        assert_int_equal(waitpid(client->pid, NULL, 0), client->pid);
}

static void end_client(struct client *client) {
        (void) close(client->fd);
        peer_done(&client->peer);
        assert_int_equal(client->peer.pidfd, -1);
        assert_null(client->peer.gids);
}

#define N UID_NOBODY

static const struct client_case cases[] = {
        { "a user", { N, N, N, N, N, N, false }, .quota_uid = N },
        { "a user of three groups", { N, N, N, N, N, N, false }, .n_gids = 3, .quota_uid = N },
        { "a user of 32 groups", { N, N, N, N, N, N, false }, .n_gids = 32, .quota_uid = N },
        { "a user of 33 groups", { N, N, N, N, N, N, false }, .n_gids = 33, .quota_uid = N },
        { "a user of 400 groups", { N, N, N, N, N, N, false }, .n_gids = 400, .quota_uid = N },
        { "another group", { N, N, N, 4, 4, 4, false }, .quota_uid = N },
        { "the effective ids count", { UID_OTHER, N, N, 5, 4, 4, false }, .quota_uid = N },
        { "root", { 0, 0, 0, 0, 0, 0, false }, .admin = true, .quota_uid = 0 },
        { "S23: root of a pid namespace", { 0, 0, 0, 0, 0, 0, false }, .clone_flags = CLONE_NEWPID,
          .ns_depth = 1, .quota_uid = 0 },
        { "a user of a pid namespace", { N, N, N, N, N, N, false }, .clone_flags = CLONE_NEWPID,
          .ns_depth = 1, .quota_uid = N },
        { "a user's own user namespace", { N, N, N, N, N, N, false }, .clone_flags = CLONE_NEWUSER,
          .in_user_namespace = true, .quota_uid = N },
        { "root in a user namespace", { 0, 0, 0, 0, 0, 0, false }, .clone_flags = CLONE_NEWUSER,
          .in_user_namespace = true, .quota_uid = 0 },
};

struct peer_row {
        const struct client_case *c;
        const struct test_kernel *kernel;
};

static void test_peer(void **state) {
        const struct peer_row *row = *state;
        const struct client_case *c = row->c;
        const struct kernel kernel = row->kernel->get();
        struct client client;
        struct peer *peer = &client.peer;

        test_need_root();
        client = make_client(c);
        assert_int_equal(peer_init_from_socket(&kernel, client.fd, peer), 0);
        assert_int_equal(peer->uid, c->ids.euid);
        assert_int_equal(peer->pid, client.pid);
        assert_true(peer->pidfd >= 0);
        assert_int_equal(fcntl(peer->pidfd, F_GETFD), FD_CLOEXEC);
        assert_false(peer->complete);
        assert_false(peer->admin);
        assert_int_equal(peer->n_gids, c->n_gids + 1);
        assert_int_equal(peer->gids[0], c->ids.egid);
        for (unsigned i = 0; i < c->n_gids; i++)
                assert_int_equal(peer->gids[i + 1], 70000 + i);

        assert_int_equal(peer_complete(peer), REASON_NONE);
        assert_true(peer->complete);
        assert_int_equal(peer->in_user_namespace, c->in_user_namespace);
        assert_int_equal(peer->ns_depth, c->ns_depth);
        assert_int_equal(peer->ns_pid, c->ns_depth > 0 ? 1 : client.pid);
        assert_int_equal(peer->admin, c->admin);
        assert_int_equal(peer->quota_uid, c->quota_uid);
        if (c->ids.euid != 0 && !c->in_user_namespace)
                assert_int_equal(peer->cap_permitted, 0);

        kill_client(&client);
        assert_int_equal(peer_complete(peer), REASON_NONE); /* known is known */
        end_client(&client);
}

/* What is in the place of one that is gone is not it. */
static void test_gone_before_it_is_complete(void **state) {
        const struct peer_row *row = *state;
        const struct kernel kernel = row->kernel->get();
        struct client client;
        siginfo_t info;

        test_need_root();
        client = make_client(row->c);
        assert_int_equal(peer_init_from_socket(&kernel, client.fd, &client.peer), 0);
        assert_int_equal(kill(client.pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t) client.pid, &info, WEXITED | WNOWAIT), 0);
        assert_int_equal(peer_complete(&client.peer),
                         REASON_NO_SUCH_THREAD); /* its files are still there */
        assert_false(client.peer.complete);
        kill_client(&client);
        assert_int_equal(peer_complete(&client.peer), REASON_NO_SUCH_THREAD);
        assert_false(client.peer.complete);
        end_client(&client);
}

/* S26: it disconnected and died before it was accepted. */
static void test_gone_before_it_is_known(void **state) {
        const struct peer_row *row = *state;
        const struct kernel kernel = row->kernel->get();
        struct client client;
        int r;

        test_need_root();
        client = make_client(row->c);
        kill_client(&client);
        r = peer_init_from_socket(&kernel, client.fd, &client.peer);
        if (r == 0)
                assert_int_equal(peer_complete(&client.peer), REASON_NO_SUCH_THREAD);
        else
                assert_int_equal(r, kernel.peer_pidfd ? -EINVAL : -ESRCH);
        end_client(&client);
}

static void test_not_a_socket(void **state) {
        const struct kernel kernel = test_kernels[0].get();
        struct peer peer = PEER_NONE;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_int_equal(peer_init_from_socket(&kernel, fd, &peer), -ENOTSOCK);
        assert_int_equal(peer_init_from_socket(&kernel, -1, &peer), -EBADF);
        assert_null(peer.gids);
        (void) close(fd);
}

int main(void) {
        static const struct {
                const char *name;
                CMUnitTestFunction test;
        } gone[] = {
                { "gone before it is complete", test_gone_before_it_is_complete },
                { "S26: gone before it is known", test_gone_before_it_is_known },
        };
        struct CMUnitTest tests[TEST_KERNELS * (ELEMENTS(cases) + ELEMENTS(gone)) + 1];
        struct peer_row rows[ELEMENTS(tests)];
        char names[ELEMENTS(tests)][80];
        size_t n = 0;

        for (size_t i = 0; i < TEST_KERNELS; i++) {
                for (size_t j = 0; j < ELEMENTS(cases); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", test_kernels[i].name,
                                        cases[j].name);
                        rows[n] = (struct peer_row) { &cases[j], &test_kernels[i] };
                        tests[n] = test_row(names[n], test_peer, &rows[n]);
                }
                for (size_t j = 0; j < ELEMENTS(gone); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", test_kernels[i].name,
                                        gone[j].name);
                        rows[n] = (struct peer_row) { &cases[0], &test_kernels[i] };
                        tests[n] = test_row(names[n], gone[j].test, &rows[n]);
                }
        }
        tests[n++] = (struct CMUnitTest) cmocka_unit_test(test_not_a_socket);

        return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
