/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BUS_H
#define RTGRANT_BROKER_BUS_H

/*
 * The system bus: our connection to it, our names and objects on it. Built only with D-Bus.
 *
 * Nothing here waits for the bus, and a bus that goes away takes nothing along but what was asked
 * over it: grants do not depend on it.
 */

#include <systemd/sd-bus.h>

struct broker;
struct bus;
struct bus_peers;
struct wire_event;

/*
 * Connects to the system bus and takes the names; if they are somebody else's still, as soon as
 * they are free. A bus that goes away, or cannot be reached yet, is tried again at growing
 * intervals; what goes wrong is logged.
 * Errors: -ENOENT (there is none: no $DBUS_SYSTEM_BUS_ADDRESS, no socket), -ENOMEM.
 */
int bus_new(struct broker *broker, struct bus **ret);

/* Lets go of the names and disconnects. May be NULL. Returns NULL. */
struct bus *bus_free(struct bus *bus);

/* Tells those on the bus who watch. */
void bus_tell(struct bus *bus, const struct wire_event *event);

struct broker *bus_broker(const struct bus *bus);
sd_bus *bus_connection(const struct bus *bus); /* borrowed; NULL while there is none */
struct bus_peers *bus_peers(const struct bus *bus);

#endif
