/* SPDX-License-Identifier: MIT */

#include "broker/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/closer.h"
#include "broker/connection.h"
#include "broker/explain.h"
#include "broker/listener.h"
#include "broker/wire.h"

#define ACCEPTS_AT_ONCE 16
#define CONNECT_TOKENS 4        /* messages that a connection counts for: it costs about as much */
#define HELLO_US (10U * 1000 * 1000)
#define NO_DESCRIPTORS_US (100U * 1000)

struct server {
        struct broker *broker;          /* borrowed; outlives the server */
        struct listener listener;       /* owned */
        int spare_fd; /* owned; given up to accept and turn away when none is left */
        sd_event_source *accept;        /* owned */
        sd_event_source *retry;         /* owned; runs while no descriptor is left */
        sd_event_source *hello;         /* owned; runs while somebody has not said anything yet */
        char **names;                   /* owned; of what was handed over, until it is taken over */
        unsigned n_silent;              /* connections that have not said anything yet */
        GQueue connections; /* of struct connection, embedded links, in order of arrival */
};

static void turn_away(struct broker *broker, int fd, uid_t uid, enum reason reason,
                      unsigned retry_after_ms) {
        const struct wire_header request = { .verb = WIRE_HELLO };
        struct wire_answer answer = { .reason = reason };
        size_t size;

        explain_wire(&answer.explanation, reason);
        answer.explanation.retry_after_ms = retry_after_ms;
        size = wire_finish_answer(&answer, &request);
        (void) send(fd, &answer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        closer_drop(broker->closer, fd, uid);
}

static enum reason admit(struct broker *broker, const struct user *user) {
        const struct policy *policy = broker_policy(broker);

        if (server_n_connections(broker->server) >= policy->connections_max)
                return REASON_CONNECTIONS_TOTAL;
        if (user->n_connections >= policy->connections_per_user_max)
                return REASON_CONNECTIONS_PER_USER;

        return REASON_NONE;
}

static int on_hello_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        struct server *server = userdata;
        uint64_t now_us = broker_now_us(server->broker), next_us = 0;

        for (GList *link = server->connections.head, *next; link; link = next) {
                struct connection *c = link->data;
                uint64_t deadline_us = connection_hello_deadline_us(c);

                next = link->next;
                if (deadline_us == 0)
                        continue;
                if (deadline_us <= now_us)
                        (void) connection_free(c);
                else if (next_us == 0 || deadline_us < next_us)
                        next_us = deadline_us;
        }

        if (next_us != 0) {
                (void) sd_event_source_set_time(source, next_us);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

static void expect_hello(struct server *server, struct connection *c, uint64_t now_us) {
        int enabled = SD_EVENT_OFF;

        connection_set_hello_deadline_us(c, now_us + HELLO_US);

        if (!server->hello) {
                (void) sd_event_add_time(server->broker->event, &server->hello, CLOCK_MONOTONIC,
                                         now_us + HELLO_US, HELLO_US / 10, on_hello_timeout,
                                         server);
                return;
        }
        (void) sd_event_source_get_enabled(server->hello, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        (void) sd_event_source_set_time(server->hello, now_us + HELLO_US);
        (void) sd_event_source_set_enabled(server->hello, SD_EVENT_ONESHOT);
}

/* Who it is, in two steps: the cheap one decides whether the other is worth it. */
static enum reason identify(struct broker *broker, int fd, uint64_t now_us, struct peer *ret_peer,
                            struct user **ret_user, uid_t *ret_uid, unsigned *ret_wait_ms) {
        enum reason reason;
        struct ucred cred;
        socklen_t length = sizeof(cred);
        struct user *user;
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) < 0)
                return REASON_RESOURCES;
        *ret_uid = cred.uid;
        if (cred.pid <= 0)
                return REASON_NAMESPACE;

        user = user_get(&broker->users, broker_policy(broker), cred.uid, now_us);
        if (!user)
                return REASON_RESOURCES;
        *ret_wait_ms =
                (unsigned) ((bucket_wait_us(&user->messages, CONNECT_TOKENS, now_us) + 999) / 1000);
        if (*ret_wait_ms > 0)
                return REASON_RATE;
        for (unsigned i = 0; i < CONNECT_TOKENS; i++)
                (void) bucket_take(&user->messages, now_us);
        reason = admit(broker, user);
        if (reason != REASON_NONE)
                return reason;

        r = peer_init_from_socket(&broker->kernel, fd, ret_peer);
        if (r < 0)
                return r == -ESRCH || r == -EINVAL ? REASON_NO_SUCH_THREAD : REASON_RESOURCES;
        reason = peer_complete(ret_peer);
        if (reason != REASON_NONE)
                return reason;

        /* In a user namespace somebody else may answer for all its users. */
        *ret_user = user_get(&broker->users, broker_policy(broker), ret_peer->quota_uid, now_us);
        if (!*ret_user)
                return REASON_RESOURCES;
        return admit(broker, *ret_user);
}

static void accept_one(struct server *server, int fd) {
        struct broker *broker = server->broker;
        struct peer peer = PEER_NONE;
        struct user *user = NULL;
        struct connection *c;
        uid_t uid = (uid_t) -1;
        unsigned wait_ms = 0;
        uint64_t now_us = broker_now_us(broker);
        enum reason reason;
        int yes = 1;

        self_charge(&broker->self, now_us);
        (void) setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes));

        reason = identify(broker, fd, now_us, &peer, &user, &uid, &wait_ms);
        if (reason == REASON_NONE && connection_new(broker, fd, &peer, user, &c) < 0)
                reason = REASON_RESOURCES;
        if (reason != REASON_NONE) {
                peer_done(&peer);
                turn_away(broker, fd, uid, reason, wait_ms);
                return;
        }

        g_queue_push_tail_link(&server->connections, connection_server_link(c));
        expect_hello(server, c, now_us);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct server *server = userdata;

        if (server->spare_fd < 0)
                server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void) sd_event_source_set_enabled(server->accept, SD_EVENT_ON);
        return 0;
}

/*
 * A listening socket that cannot be accepted from stays readable, and the loop would spin. The
 * first in the queue is turned away with the spare descriptor; then there is a pause.
 */
static void out_of_descriptors(struct server *server) {
        struct broker *broker = server->broker;
        int fd;

        server->spare_fd = close_fd(server->spare_fd);
        fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                turn_away(broker, fd, (uid_t) -1, REASON_RESOURCES, NO_DESCRIPTORS_US / 1000);
        server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        (void) sd_event_source_set_enabled(server->accept, SD_EVENT_OFF);
        if (!server->retry) {
                log_write(broker->log, LOG_WARNING,
                          &(struct log_fields) { .event = "no-descriptors" },
                          "out of file descriptors: new clients wait (said once)");
                (void) sd_event_add_time_relative(broker->event, &server->retry, CLOCK_MONOTONIC,
                                                  NO_DESCRIPTORS_US, 0, on_retry, server);
                return;
        }
        (void) sd_event_source_set_time_relative(server->retry, NO_DESCRIPTORS_US);
        (void) sd_event_source_set_enabled(server->retry, SD_EVENT_ONESHOT);
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct server *server = userdata;

        for (unsigned i = 0; i < ACCEPTS_AT_ONCE; i++) {
                int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (client >= 0) {
                        accept_one(server, client);
                        continue;
                }
                if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                        out_of_descriptors(server);
                if (errno != ECONNABORTED && errno != EINTR)
                        break;
        }

        return 0;
}

/* Clients of a predecessor aside, at most one: the listening socket. */
static int listen_on_handed(struct server *server, int n_handed) {
        for (int i = 0; i < n_handed; i++) {
                int r;

                if (connection_is_handed_over(server->names[i]))
                        continue;
                r = listener_take(&server->listener, SD_LISTEN_FDS_START + i);
                if (r < 0)
                        return r;
        }
        return server->listener.fd >= 0;
}

static void free_names(struct server *server) {
        for (char **name = server->names; name && *name; name++)
                free(*name);
        free(server->names);
        server->names = NULL;
}

unsigned server_hand_over(struct server *server) {
        GList *link = server->connections.head, *next;
        unsigned n = 0;

        for (; link; link = next) {
                struct connection *c = link->data;
                char name[CONNECTION_NAME_SIZE], state[CONNECTION_NAME_SIZE + 32];
                int fd = connection_fd(c);

                next = link->next;
                if (connection_hand_over(c, name)) {
                        (void) snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s", name);
                        if (sd_pid_notify_with_fds(0, /* unset_environment= */ false, state, &fd,
                                                   1) > 0) {
                                n++;
                                continue;
                        }
                }
                connection_leave_leases(c);
                (void) connection_free(c);
        }
        return n;
}

/* True if it goes on. */
static bool take_over_one(struct server *server, int fd, const char *name) {
        struct broker *broker = server->broker;
        struct peer peer = PEER_NONE;
        struct connection *c;
        struct user *user;

        if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 0, NULL, 0) <= 0 ||
            peer_init_from_socket(&broker->kernel, fd, &peer) < 0 ||
            peer_complete(&peer) != REASON_NONE) {
                peer_done(&peer);
                closer_drop(broker->closer, fd, (uid_t) -1);
                return false;
        }
        user = user_get(&broker->users, broker_policy(broker), peer.quota_uid,
                        broker_now_us(broker));
        if (!user || connection_new(broker, fd, &peer, user, &c) < 0) {
                peer_done(&peer);
                closer_drop(broker->closer, fd, (uid_t) -1);
                return false;
        }

        g_queue_push_tail_link(&server->connections, connection_server_link(c));
        if (!connection_adopt(c, name)) {
                (void) connection_free(c);
                return false;
        }
        return true;
}

unsigned server_take_over(struct server *server) {
        unsigned n = 0;

        for (unsigned i = 0; server->names && server->names[i]; i++)
                if (connection_is_handed_over(server->names[i]))
                        n += take_over_one(server, SD_LISTEN_FDS_START + (int) i,
                                           server->names[i]);
        free_names(server);
        return n;
}

struct connection *server_find(const struct server *server, uint64_t cookie) {
        for (GList *link = server->connections.head; link; link = link->next)
                if (connection_cookie(link->data) == cookie)
                        return link->data;

        return NULL;
}

int server_new(struct broker *broker, struct server **ret) {
        struct server *server;
        int yes = 1, n_handed, r;

        server = calloc(1, sizeof(*server));
        if (!server)
                return -ENOMEM;
        server->broker = broker;
        server->listener = LISTENER_NONE;
        g_queue_init(&server->connections);
        server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        n_handed = sd_listen_fds_with_names(/* unset_environment= */ true, &server->names);
        r = listen_on_handed(server, n_handed);
        if (r == 0)
                r = listener_open(&server->listener, broker->options.socket_path);
        if (r >= 0 &&
            setsockopt(server->listener.fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
                r = -errno;
        if (r >= 0)
                r = sd_event_add_io(broker->event, &server->accept, server->listener.fd, EPOLLIN,
                                    on_accept, server);
        if (r < 0) {
                (void) server_free(server);
                return r;
        }

        *ret = server;
        return 0;
}

struct server *server_free(struct server *server) {
        if (!server)
                return NULL;

        while (!g_queue_is_empty(&server->connections))
                (void) connection_free(g_queue_peek_head(&server->connections));

        (void) sd_event_source_disable_unref(server->accept);
        (void) sd_event_source_disable_unref(server->retry);
        (void) sd_event_source_disable_unref(server->hello);
        listener_done(&server->listener);
        free_names(server);
        (void) close_fd(server->spare_fd);
        free(server);
        return NULL;
}

unsigned server_n_connections(const struct server *server) {
        return server->connections.length;
}

void server_expect(struct broker *broker, int by) {
        struct server *server = broker->server;

        server->n_silent = (unsigned) ((int) server->n_silent + by);
        if (server->n_silent == 0 && server->hello)
                (void) sd_event_source_set_enabled(server->hello, SD_EVENT_OFF);
}

void server_tell(struct server *server, const struct wire_event *event) {
        for (GList *link = server->connections.head; link; link = link->next)
                if (connection_is_watching(link->data, event->lease.uid))
                        connection_tell(link->data, event);
}

void server_tell_all(struct server *server, const struct wire_event *event) {
        for (GList *link = server->connections.head; link; link = link->next)
                if (connection_is_watching_any(link->data))
                        connection_tell(link->data, event);
}

void server_forget(struct broker *broker, struct connection *connection) {
        g_queue_unlink(&broker->server->connections, connection_server_link(connection));
}

static int on_unthrottle(sd_event_source *source, uint64_t usec, void *userdata) {
        struct user *user = userdata;

        user->throttle = sd_event_source_disable_unref(user->throttle);
        for (GList *link = user->connections.head; link; link = link->next)
                connection_set_throttled(link->data, false);
        return 0;
}

void server_throttle(struct broker *broker, struct user *user, uint64_t for_us) {
        if (user->throttle)
                return;
        if (sd_event_add_time_relative(broker->event, &user->throttle, CLOCK_MONOTONIC, for_us,
                                       1000, on_unthrottle, user) < 0)
                return;

        for (GList *link = user->connections.head; link; link = link->next)
                connection_set_throttled(link->data, true);
}
