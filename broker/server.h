/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SERVER_H
#define RTGRANT_BROKER_SERVER_H

/*
 * Who is connected: how many may be, how long they may be silent, and what happens when descriptors
 * run out.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/protocol.h"

struct broker;
struct connection;
struct lease;
struct server;
struct user;

/*
 * Listens on broker->options.socket_path, or on the socket that systemd handed over.
 * Errors: -EPROTOTYPE (handed over, but not of our kind), listener_open().
 */
int server_new(struct broker *broker, struct server **ret);

/* Disconnects everybody. May be NULL. Returns NULL. */
struct server *server_free(struct server *server);

unsigned server_n_connections(const struct server *server);

/* Tells every connection that watches leases of event->lease.uid. */
void server_tell(struct server *server, const struct wire_event *event);

/* Tells every connection that watches anything. */
void server_tell_all(struct server *server, const struct wire_event *event);

/*
 * Gives what is connected into the service manager's care, for a successor, as sd_pid_notify(3)
 * says; who cannot be handed over is disconnected. Returns how many were.
 */
unsigned server_hand_over(struct server *server);

/* Goes on with whom a predecessor handed over. Before leases are recovered. Returns how many. */
unsigned server_take_over(struct server *server);

/* The connection with that cookie; NULL if there is none. */
struct connection *server_find(const struct server *server, uint64_t cookie);

/* Called by a connection that ends. */
void server_forget(struct broker *broker, struct connection *connection);

/* One connection more (1) or less (-1) that has not said anything yet. */
void server_expect(struct broker *broker, int by);

/* Does not read from any connection of @user for that long. */
void server_throttle(struct broker *broker, struct user *user, uint64_t for_us);

#endif
