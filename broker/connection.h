/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_CONNECTION_H
#define RTGRANT_BROKER_CONNECTION_H

/*
 * One client on the socket. At most one reply waits to be sent, and nothing is read while it does:
 * a client that does not read holds up nobody but itself. Events it is too slow for are counted.
 */

#include <glib.h>

#include "broker/lease.h"
#include "broker/peer.h"
#include "client/protocol.h"

struct broker;
struct connection;

/*
 * Takes the connected socket @fd and @peer, on success only. @user (borrowed) is counted for it.
 * Errors: -ENOMEM.
 */
int connection_new(struct broker *broker, int fd, struct peer *peer, struct user *user,
                   struct connection **ret);

/* Disconnects; ends the leases that live no longer than this. May be NULL. Returns NULL. */
struct connection *connection_free(struct connection *connection);

/*
 * Whether it can go on with a successor of this broker, and as what: @name, which
 * connection_adopt() reads. False if it owes an answer.
 */
#define CONNECTION_NAME_SIZE 48
bool connection_hand_over(struct connection *connection, char name[CONNECTION_NAME_SIZE]);

/* What is bound to it stays in force when it ends: for a successor, see lease_orphan(). */
void connection_leave_leases(struct connection *connection);

/* Goes on with what a predecessor handed over. False if @name does not say so, or not of its peer. */
bool connection_is_handed_over(const char *name);
bool connection_adopt(struct connection *connection, const char *name);

int connection_fd(const struct connection *connection);

/* Of the socket: the kernel's number for it, never used again before a reboot. 0: not known. */
uint64_t connection_cookie(const struct connection *connection);

const struct peer *connection_peer(const struct connection *connection);
GQueue *connection_leases(struct connection *connection);

/* From now on it is told of events: of its user's leases, or of all. */
void connection_watch(struct connection *connection, bool all);

/* Sends or counts as lost. */
void connection_tell(struct connection *connection, const struct wire_event *event);

bool connection_is_watching_any(const struct connection *connection);

/* The number of observe_start() that ends with it; -1: none. Setting it ends the one before. */
int connection_observed(const struct connection *connection);
void connection_set_observed(struct connection *connection, int number);

/* Whether it wants to be told about leases of @uid. */
bool connection_is_watching(const struct connection *connection, uid_t uid);

/* Reading stops while its user's bucket of messages is empty. */
void connection_set_throttled(struct connection *connection, bool throttled);

/* Its link in the server's list. */
GList *connection_server_link(struct connection *connection);

/* When it must have said something sensible, µs of CLOCK_MONOTONIC; 0 once it has. */
uint64_t connection_hello_deadline_us(const struct connection *connection);
void connection_set_hello_deadline_us(struct connection *connection, uint64_t deadline_us);

#endif
