/* SPDX-License-Identifier: MIT */

#include "tests/unit/lib/fake-broker.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/lib/lib-test.h"

/* A fault of the test itself: there is nobody to report it to but the developer. */
static void must(bool condition, const char *what) {
        if (!condition) {
                perror(what);
                abort();
        }
}

void fake_listen(struct fake_broker *broker, int type, int backlog) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        memset(broker, 0, sizeof(*broker));
        broker->fd = broker->pidfd = -1;
        (void) snprintf(broker->directory, sizeof(broker->directory), "/tmp/test-lib-XXXXXX");
        must(mkdtemp(broker->directory), "mkdtemp");
        must(chmod(broker->directory, 0755) == 0, "chmod");
        (void) snprintf(broker->path, sizeof(broker->path), "%s/socket", broker->directory);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", broker->path);

        broker->listener = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
        must(broker->listener >= 0, "socket");
        must(bind(broker->listener, (struct sockaddr *) &address, sizeof(address)) == 0, "bind");
        must(chmod(broker->path, 0666) == 0, "chmod");
        must(listen(broker->listener, backlog) == 0, "listen");
}

static void fake_greet(struct fake_broker *broker) {
        struct wire_hello_reply reply = { .kinds = WIRE_WANT_SCHED | WIRE_WANT_NICE };

        if (fake_receive(broker) == 0)
                return;

        broker->n_requests = 0;
        fake_reply(broker, &reply, sizeof(reply));
}

static void *fake_run(void *userdata) {
        struct fake_broker *broker = userdata;
        /* A client that waits for ever must not make the test do so. */
        struct timeval patience = { .tv_sec = 20 };

        for (;;) {
                broker->fd = accept4(broker->listener, NULL, NULL, SOCK_CLOEXEC);
                if (broker->fd < 0)
                        return NULL;

                (void) setsockopt(broker->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
                fake_greet(broker);
                broker->script(broker);
                (void) close(broker->fd);
                broker->fd = -1;
        }
}

void fake_start(struct fake_broker *broker, fake_script script, void *userdata) {
        fake_listen(broker, SOCK_SEQPACKET, 64);
        broker->script = script;
        broker->userdata = userdata;
        must(pthread_create(&broker->thread, NULL, fake_run, broker) == 0, "pthread_create");
}

void fake_stop(struct fake_broker *broker) {
        (void) shutdown(broker->listener, SHUT_RDWR);
        if (broker->script)
                (void) pthread_join(broker->thread, NULL);
        (void) close(broker->listener);
        if (broker->pidfd >= 0)
                (void) close(broker->pidfd);
        (void) unlink(broker->path);
        (void) rmdir(broker->directory);
}

void session_start(struct session *session, fake_script script, void *userdata, int timeout_ms) {
        fake_start(&session->broker, script, userdata);
        assert_int_equal(rtgrant_open(&session->handle, session->broker.path, timeout_ms), 0);
}

void session_stop(struct session *session) {
        if (session->handle)
                assert_null(rtgrant_close(session->handle));
        fake_stop(&session->broker);
}

static int take_pidfd(struct msghdr *message) {
        struct cmsghdr *control = CMSG_FIRSTHDR(message);
        int fd;

        if (!control || control->cmsg_type != SCM_RIGHTS)
                return -1;

        memcpy(&fd, CMSG_DATA(control), sizeof(fd));
        return fd;
}

size_t fake_receive(struct fake_broker *broker) {
        union {
                struct cmsghdr header;
                char buffer[CMSG_SPACE(sizeof(int))];
        } control;
        uint8_t record[WIRE_RECORD_MAX] = {};
        struct iovec iov = { .iov_base = record, .iov_len = sizeof(record) };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        n = recvmsg(broker->fd, &message, MSG_CMSG_CLOEXEC);
        if (n <= 0)
                return 0;

        memcpy(&broker->request, record, sizeof(record));
        if (broker->pidfd >= 0)
                (void) close(broker->pidfd);
        broker->pidfd = take_pidfd(&message);
        broker->n_requests++;
        if (broker->request.header.verb == WIRE_ACQUIRE)
                broker->acquired = broker->request.acquire;
        return (size_t) n;
}

bool fake_has_request(struct fake_broker *broker) {
        struct pollfd poll_fd = { .fd = broker->fd, .events = POLLIN };

        return poll(&poll_fd, 1, 0) > 0;
}

void fake_send(struct fake_broker *broker, const void *record, size_t size) {
        (void) send(broker->fd, record, size, MSG_NOSIGNAL);
}

void fake_reply_to(struct fake_broker *broker, const struct wire_header *request, void *reply,
                   size_t size) {
        struct wire_header *header = reply;

        header->size = (uint32_t) size;
        header->version = WIRE_VERSION;
        header->verb = request->verb | WIRE_REPLY;
        header->serial = request->serial;
        fake_send(broker, reply, size);
}

void fake_reply(struct fake_broker *broker, void *reply, size_t size) {
        fake_reply_to(broker, &broker->request.header, reply, size);
}

void fake_pretend(struct fake_broker *broker) {
        const struct wire_acquire *request = &broker->request.acquire;
        struct wire_answer reply = {
                .id = { 0xab, 1 },
                .pid = request->pid,
                .tid = request->tid,
                .policy = request->policy,
                .priority = request->priority,
                .nice = request->nice,
                .reset_on_fork = 1,
                .role = "desktop",
        };

        fake_reply(broker, &reply, sizeof(reply));
}

void fake_grant(struct fake_broker *broker) {
        const struct wire_acquire *request = &broker->request.acquire;

        if (request->want & WIRE_WANT_SCHED)
                must(test_sched_set((pid_t) request->tid, (int) request->policy, request->priority,
                                    request->nice, true) == 0,
                     "sched_setattr");
        if (request->want & WIRE_WANT_NICE)
                must(test_nice_set((pid_t) request->tid, request->nice) == 0, "setpriority");
        fake_pretend(broker);
}

void script_grant(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_grant(broker);
}

void script_refuse(struct fake_broker *broker) {
        struct wire_answer reply;

        while (fake_receive(broker) > 0) {
                reply = (struct wire_answer) { .reason = 24 };
                fake_reply(broker, &reply, sizeof(reply));
        }
}

void script_pretend(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_pretend(broker);
}

void script_echo(struct fake_broker *broker) {
        struct wire_answer reply;

        while (fake_receive(broker) > 0) {
                reply = (struct wire_answer) { .count = broker->request.lease.lifetime_s };
                fake_reply(broker, &reply, sizeof(reply));
        }
}

void script_silent(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                ;
}
