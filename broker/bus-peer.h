/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BUS_PEER_H
#define RTGRANT_BROKER_BUS_PEER_H

/*
 * Who the senders on the system bus are, and what they have asked.
 *
 * A sender is known by what the bus daemon says of its unique name, asked for once and without
 * waiting. Its process is pinned by a pidfd and must run as the user that the bus daemon names,
 * since on D-Bus the pid is only a hint. Unique names are never used again, so what is known of one
 * stays true; those not heard of for longest make room for new ones.
 */

#include <systemd/sd-bus.h>

#include "broker/methods.h"
#include "broker/peer.h"

struct bus_peers;

/* A sender. */
struct bus_peer {
        struct bus_peers *all;          /* borrowed */
        char *name;                     /* owned; unique */
        bool known;                     /* who it is; else the bus daemon is being asked */
        struct peer peer;               /* owned */
        GQueue calls;                   /* of struct bus_call, embedded links */
        sd_bus_slot *identity;          /* owned; the question to the bus daemon */
        sd_bus_slot *gone;              /* owned; watches for its end */
        GList in_order;                 /* of use */
};

/* Serves a method call of a sender that is known by now. */
typedef void (*bus_serve_fn)(struct bus_peer *sender, sd_bus_message *message, void *userdata);

/* Answers a method call. */
typedef void (*bus_reply_fn)(struct bus_peer *sender, sd_bus_message *message,
                             const union wire_response *response, void *userdata);

int bus_peers_new(struct broker *broker, struct bus_peers **ret);

/* Forgets all of them and what they wait for. May be NULL. Returns NULL. */
struct bus_peers *bus_peers_free(struct bus_peers *peers);

/* The bus is gone: likewise. */
void bus_peers_clear(struct bus_peers *peers);

/*
 * To be called for each message that comes in, before it is served: accounts for it, and begins to
 * find out who sent it. What an sd-bus filter returns: above 0 if it was answered.
 */
int bus_peers_see(struct bus_peers *peers, sd_bus_message *message);

/*
 * From an sd-bus method handler: calls @serve, now or once the sender of @message is known. Who
 * cannot be identified gets an error. What sd-bus wants back.
 */
int bus_peers_dispatch(struct bus_peers *peers, sd_bus_message *message, bus_serve_fn serve,
                       void *userdata);

/*
 * Carries out @request for @sender as inquiry_call() does, and calls @reply, now or later; not at
 * all if the sender is gone by then. Of @call, action, transport, interactive and check_rttime
 * are looked at.
 */
void bus_peer_ask(struct bus_peer *sender, sd_bus_message *message, const struct call *call,
                  const union wire_request *request, bus_reply_fn reply, void *userdata);

/*
 * For a known sender: calls @serve with @message, from its beginning, after that time; not at all if
 * the sender is gone by then. False if it is not to be: too many wait, or one of this sender.
 */
bool bus_peer_delay(struct bus_peer *sender, sd_bus_message *message, uint64_t delay_us, bus_serve_fn serve,
                    void *userdata);

/* The call of @sender for methods_call(), with nothing asked for yet. NULL in .user: no memory. */
struct call bus_peer_call(struct bus_peer *sender);

#endif
