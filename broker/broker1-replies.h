/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BROKER1_REPLIES_H
#define RTGRANT_BROKER_BROKER1_REPLIES_H

/*
 * Records from the broker as dictionaries of the bus.
 */

#include <systemd/sd-bus.h>

#include "broker/wire.h"

/* Appends the reply to @verb, in the form that Broker1 gives it. Errors: sd_bus_message_append(3).
 */
int values_append_reply(sd_bus_message *message, enum wire_verb verb,
                        const union wire_response *response);

/* Appends the lease that an event is about, as a{sv}. Errors: likewise. */
int values_append_event(sd_bus_message *message, const struct wire_event *event);

#endif
