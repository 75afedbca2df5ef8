/* SPDX-License-Identifier: MIT */

#include "broker/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/closer.h"
#include "broker/explain.h"
#include "broker/inquiry.h"
#include "broker/observe.h"
#include "broker/proc.h"
#include "broker/server.h"
#include "broker/wire.h"

/* A sender may attach as many descriptors as SCM_MAX_FD of include/net/scm.h: room for all, so
 * that each is seen and closed. */
#define DESCRIPTORS_MAX 253

/* Tokens that return before a throttled user is read again: less waking up than one at a time. */
#define THROTTLE_TOKENS 16

struct connection {
        struct broker *broker;          /* borrowed; outlives the connection */
        struct user *user;              /* borrowed; counts the connection */
        struct peer peer;               /* owned */
        int fd;                         /* owned */
        uint64_t cookie;
        sd_event_source *io;            /* owned */
        GList in_server;
        GList in_user;
        GQueue leases;                  /* of struct lease, embedded links */
        uint64_t hello_deadline_us;
        uint64_t n_lost;
        bool watching;
        bool watching_all;
        bool throttled;
        bool closing;                   /* once the reply is sent */
        int observed;                   /* number of the CPU that it observes; -1: none */
        struct inquiry *inquiry;        /* owned; a request that waits for polkit; NULL if none */
        size_t n_pending;               /* bytes of a reply that could not be sent yet */
        uint8_t pending[WIRE_RECORD_MAX];
};

static void update_io(struct connection *c) {
        uint32_t events = c->n_pending > 0 ? EPOLLOUT : c->throttled || c->inquiry ? 0 : EPOLLIN;

        (void) sd_event_source_set_io_events(c->io, events);
}

static bool send_record(struct connection *c, const void *record, size_t size) {
        return send(c->fd, record, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) size;
}

/* False if the client is gone. */
static bool reply(struct connection *c, const void *record, size_t size) {
        if (send_record(c, record, size))
                return true;
        if (errno != EAGAIN)
                return false;

        memcpy(c->pending, record, size);
        c->n_pending = size;
        update_io(c);
        return true;
}

/* False if the client is gone. */
static bool send_pending(struct connection *c) {
        if (!send_record(c, c->pending, c->n_pending))
                return errno == EAGAIN;

        c->n_pending = 0;
        update_io(c);
        return !c->closing;
}

struct message {
        uint8_t data[WIRE_RECORD_MAX];
        size_t length;
        bool truncated;
        int fd;                         /* owned: the descriptor that came along; -1 */
        unsigned n_fds;
        pid_t pid;                      /* of the sender; 0 if the kernel did not say */
        uid_t uid;
};

/* Only of a pidfd is it known that closing it takes no time. */
static void close_received(struct connection *c, int fd) {
        if (kernel_is_pidfd(fd))
                (void) close(fd);
        else
                closer_close(c->broker->closer, fd, c->peer.uid);
}

static void take_control(struct connection *c, struct message *message, struct msghdr *header) {
        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(header); cmsg;
             cmsg = CMSG_NXTHDR(header, cmsg)) {
                if (cmsg->cmsg_level != SOL_SOCKET)
                        continue;

                if (cmsg->cmsg_type == SCM_CREDENTIALS) {
                        struct ucred cred;

                        memcpy(&cred, CMSG_DATA(cmsg), sizeof(cred));
                        message->pid = cred.pid;
                        message->uid = cred.uid;
                }
                if (cmsg->cmsg_type == SCM_RIGHTS) {
                        size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                        for (size_t i = 0; i < n; i++) {
                                int fd;

                                memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
                                if (message->n_fds++ == 0)
                                        message->fd = fd;
                                else
                                        close_received(c, fd);
                        }
                }
        }
}

/* 1: a message; 0: nothing there after all. Errors: the connection is over. */
static int receive(struct connection *c, struct message *message) {
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct ucred)) +
                                                 CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
        struct iovec iov = { message->data, sizeof(message->data) };
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        message->fd = -1;
        message->n_fds = 0;
        message->pid = 0;

        n = recvmsg(c->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;

        take_control(c, message, &header);
        message->length = (size_t) n;
        message->truncated = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);

        /* The end reads as nothing; so does an empty record, but that has a sender. */
        if (n == 0 && message->pid == 0)
                return -EPIPE;
        return 1;
}

/* Answers with a reason of its own and, unless the client may go on, ends the connection. */
static bool turn_away(struct connection *c, const struct wire_header *request, enum reason reason,
                      bool go_on) {
        struct wire_answer answer = { .reason = reason };

        explain_wire(&answer.explanation, reason);
        c->closing = !go_on;
        return reply(c, &answer, wire_finish_answer(&answer, request)) &&
               (go_on || c->n_pending > 0);
}

static void on_inquired(const union wire_response *response, size_t size, void *userdata) {
        struct connection *c = userdata;

        c->inquiry = NULL;
        update_io(c);
        if (!reply(c, response, size))
                (void) connection_free(c);
}

/* False if the connection is over. */
static bool dispatch(struct connection *c, struct message *message) {
        struct call call = {
                .broker = c->broker,
                .peer = &c->peer,
                .user = c->user,
                .connection = c,
                .transport = WIRE_TRANSPORT_SOCKET,
                .pidfd = message->fd,
        };
        union wire_request request;
        union wire_response response;
        enum reason reason;
        size_t size;

        reason = wire_decode(message->data, message->length, &request);
        if (reason == REASON_UNSUPPORTED)
                return turn_away(c, &request.header, reason, /* go_on= */ true);
        if (reason == REASON_NONE && (message->truncated || message->n_fds > 1))
                reason = REASON_MALFORMED;
        if (reason != REASON_NONE)
                return turn_away(c, &request.header, reason, /* go_on= */ false);

        /* Handed on or inherited sockets: who connected answers for them, but did not ask. */
        if (message->pid != c->peer.pid || message->uid != c->peer.uid)
                return turn_away(c, &request.header, REASON_NOT_CONNECTOR, /* go_on= */ true);

        connection_set_hello_deadline_us(c, 0);
        size = inquiry_call(&call, &request, &response, on_inquired, c, &c->inquiry);
        if (size > 0)
                return reply(c, &response, size);

        update_io(c); /* one request at a time, as without polkit */
        return true;
}

static bool take_token(struct connection *c, uint64_t now_us) {
        if (bucket_take(&c->user->messages, now_us))
                return true;

        server_throttle(c->broker, c->user,
                        bucket_wait_us(&c->user->messages, THROTTLE_TOKENS, now_us));
        return false;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct connection *c = userdata;
        struct message message;
        uint64_t now_us;
        bool alive;
        int r;

        if (c->n_pending > 0) {
                alive = (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) == 0 || send_pending(c);
                /* a peer that is gone does not read what waits for it either */
                if (!alive || (events & (EPOLLHUP | EPOLLERR)))
                        (void) connection_free(c);
                return 0;
        }
        if ((c->throttled || c->inquiry) && !(events & (EPOLLHUP | EPOLLERR)))
                return 0;
        if (c->inquiry) {
                (void) connection_free(c); /* nobody waits for the answer any more */
                return 0;
        }

        now_us = broker_now_us(c->broker);
        if (!(events & (EPOLLHUP | EPOLLERR)) && !take_token(c, now_us))
                return 0;
        self_charge(&c->broker->self, now_us);

        r = receive(c, &message);
        if (r < 0)
                alive = false;
        else if (r == 0)
                alive = !(events & (EPOLLHUP | EPOLLERR));
        else
                alive = dispatch(c, &message);
        if (r > 0 && message.fd >= 0)
                close_received(c, message.fd);
        if (!alive)
                (void) connection_free(c);

        return 0;
}

int connection_new(struct broker *broker, int fd, struct peer *peer, struct user *user,
                   struct connection **ret) {
        struct connection *c;
        socklen_t length = sizeof(c->cookie);
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;

        r = sd_event_add_io(broker->event, &c->io, fd, EPOLLIN, on_io, c);
        if (r < 0) {
                free(c);
                return r;
        }

        c->broker = broker;
        c->user = user;
        c->peer = *peer;
        c->fd = fd;
        if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &c->cookie, &length) < 0)
                c->cookie = 0;
        c->observed = -1;
        c->in_server.data = c;
        c->in_user.data = c;
        g_queue_init(&c->leases);
        *peer = PEER_NONE;

        user->n_connections++;
        g_queue_push_tail_link(&user->connections, &c->in_user);
        if (user->throttle)
                connection_set_throttled(c, true);

        *ret = c;
        return 0;
}

struct connection *connection_free(struct connection *c) {
        if (!c)
                return NULL;

        while (!g_queue_is_empty(&c->leases))
                lease_end(c->broker, g_queue_peek_head(&c->leases), REASON_DISCONNECTED,
                          "its connection was closed");

        c->inquiry = inquiry_cancel(c->inquiry);
        connection_set_observed(c, -1);
        if (c->watching)
                c->broker->n_watchers--;
        connection_set_hello_deadline_us(c, 0);
        server_forget(c->broker, c);
        g_queue_unlink(&c->user->connections, &c->in_user);
        c->user->n_connections--;
        (void) sd_event_source_disable_unref(c->io);
        closer_drop(c->broker->closer, c->fd, c->peer.uid);
        c->fd = -1;
        peer_done(&c->peer);
        free(c);
        return NULL;
}

/* When the process started, as kernels without SO_PEERPIDFD would take its successor for it. */
static uint64_t peer_start_time(const struct peer *peer) {
        struct proc_stat stat;

        return proc_read_stat(peer->pid, peer->pid, &stat) < 0 ? 0 : stat.start_time;
}

#define NAME_PREFIX "client-"
#define NAME_FORMAT NAME_PREFIX "%c-%" SCNu64

void connection_leave_leases(struct connection *c) {
        while (c->leases.head)
                lease_bind(c->leases.head->data, NULL);
}

bool connection_hand_over(struct connection *c, char name[CONNECTION_NAME_SIZE]) {
        uint64_t start_time = peer_start_time(&c->peer);
        char watch = 'n';

        if (c->watching)
                watch = c->watching_all ? 'a' : 'w';
        if (c->inquiry || c->closing || c->cookie == 0 || start_time == 0)
                return false;
        if (c->n_pending > 0 && (!send_pending(c) || c->n_pending > 0))
                return false;

        (void) snprintf(name, CONNECTION_NAME_SIZE, NAME_PREFIX "%c-%" PRIu64, watch, start_time);
        return true;
}

bool connection_is_handed_over(const char *name) {
        return strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0;
}

bool connection_adopt(struct connection *c, const char *name) {
        uint64_t start_time;
        char watch;

        if (sscanf(name, NAME_FORMAT, &watch, &start_time) != 2 ||
            start_time != peer_start_time(&c->peer) || kernel_pidfd_is_dead(c->peer.pidfd))
                return false;
        if (watch == 'a' && !c->peer.admin)
                return false;

        if (watch != 'n')
                connection_watch(c, watch == 'a');
        return true;
}

int connection_fd(const struct connection *c) {
        return c->fd;
}

uint64_t connection_cookie(const struct connection *c) {
        return c->cookie;
}

const struct peer *connection_peer(const struct connection *c) {
        return &c->peer;
}

GQueue *connection_leases(struct connection *c) {
        return &c->leases;
}

void connection_watch(struct connection *c, bool all) {
        if (!c->watching)
                c->broker->n_watchers++;
        c->watching = true;
        c->watching_all = all;
}

bool connection_is_watching_any(const struct connection *c) {
        return c->watching;
}

bool connection_is_watching(const struct connection *c, uid_t uid) {
        return c->watching && (c->watching_all || c->peer.uid == uid);
}

int connection_observed(const struct connection *c) {
        return c->observed;
}

void connection_set_observed(struct connection *c, int number) {
        if (c->observed >= 0)
                observe_stop(c->broker->observe, c->observed);
        c->observed = number;
}

void connection_tell(struct connection *c, const struct wire_event *event) {
        struct wire_event copy = *event;

        copy.n_lost = c->n_lost;
        if (c->n_pending > 0 || !send_record(c, &copy, sizeof(copy)))
                c->n_lost++;
}

void connection_set_throttled(struct connection *c, bool throttled) {
        c->throttled = throttled;
        update_io(c);
}

GList *connection_server_link(struct connection *c) {
        return &c->in_server;
}

uint64_t connection_hello_deadline_us(const struct connection *c) {
        return c->hello_deadline_us;
}

void connection_set_hello_deadline_us(struct connection *c, uint64_t deadline_us) {
        if ((c->hello_deadline_us != 0) != (deadline_us != 0))
                server_expect(c->broker, deadline_us != 0 ? 1 : -1);
        c->hello_deadline_us = deadline_us;
}
