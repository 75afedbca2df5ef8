/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BROKER1_H
#define RTGRANT_BROKER_BROKER1_H

/*
 * The broker's own interface on the bus: the verbs of the socket, with dictionaries in place of
 * records. It is described in dbus/org.rtgrant.Broker1.xml, which a test compares with this.
 */

#include "broker/bus.h"
#include "client/protocol.h"

#define BROKER1_NAME "org.rtgrant.Broker1"
#define BROKER1_PATH "/org/rtgrant/Broker1"

struct broker1;

/* Errors: -ENOMEM. */
int broker1_new(struct bus *bus, struct broker1 **ret);

/* Ends what lives as long as names on the bus. May be NULL. Returns NULL. */
struct broker1 *broker1_free(struct broker1 *broker1);

/* Puts the object on the present connection; again on each new one. Errors:
 * sd_bus_add_object_vtable(3). */
int broker1_add(struct broker1 *broker1);

/* The bus is gone, and with it all names: their leases end, and nobody watches any more. */
void broker1_clear(struct broker1 *broker1);

/* Sends it to those who watch, and to who holds the lease by a name on the bus. */
void broker1_tell(struct broker1 *broker1, const struct wire_event *event);

#endif
