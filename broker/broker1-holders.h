/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BROKER1_HOLDERS_H
#define RTGRANT_BROKER_BROKER1_HOLDERS_H

/*
 * Names on the bus that something depends on: leases that live as long as the name, and watching.
 * Each costs a match at the bus daemon, so there are only so many, of all and of each user.
 */

#include "broker/broker.h"
#include <systemd/sd-bus.h>

struct holders;

/* False: it could not be sent. */
typedef bool (*holders_send_fn)(const char *name, const struct wire_event *event, void *userdata);

/* Errors: -ENOMEM. */
int holders_new(struct broker *broker, struct holders **ret);
struct holders *holders_free(struct holders *holders);

/* All names are gone. */
void holders_clear(struct holders *holders);

/*
 * Watches for the end of @name, if that is not done already, until holders_settle(). REASON_CONNECTIONS_TOTAL or
 * REASON_CONNECTIONS_PER_USER if there are too many, REASON_RESOURCES.
 */
enum reason holders_add(struct holders *holders, sd_bus *connection, const char *name, uid_t uid);

/* The lease @id was acquired by @name: if it lives as long as that, it is noted. */
void holders_take(struct holders *holders, const char *name,
                  const uint8_t id[WIRE_LEASE_ID_SIZE]);

/* From now on it is told of the leases of its user, or of all. */
void holders_watch(struct holders *holders, const char *name, bool all);

/* One call that holders_add() was for is answered. Forgets @name if nothing depends on it. */
void holders_settle(struct holders *holders, const char *name);

/*
 * Calls @send for each that is to know: that watches, or that the lease depends on. What is too much
 * for one, or cannot be sent, is lost, and counted in the next one's n_lost.
 */
void holders_tell(struct holders *holders, const struct wire_event *event, holders_send_fn send,
                  void *userdata);

#endif
