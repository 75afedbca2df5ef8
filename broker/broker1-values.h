/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BROKER1_VALUES_H
#define RTGRANT_BROKER_BROKER1_VALUES_H

/*
 * Dictionaries of Broker1 from and to the records of the wire. A dictionary has no key twice and
 * none that is unknown, so that reading one ends after a few keys, however large it is.
 */

#include <systemd/sd-bus.h>

#include "broker/wire.h"

#define VALUES_ERROR_SIZE 200

/*
 * Reads the a{sv} that comes next into @request, whose header.verb says which keys there are; what
 * is left away stays as it is.
 * Errors: -EINVAL, and @error says what is wrong with which key; sd_bus_message_read(3).
 */
int values_read(sd_bus_message *message, union wire_request *request,
                char error[VALUES_ERROR_SIZE]);

/* Appends the reply to @verb, in the form that Broker1 gives it. Errors: sd_bus_message_append(3).
 */
int values_append_reply(sd_bus_message *message, enum wire_verb verb,
                        const union wire_response *response);

/* Appends a lease as a{sv}. Errors: likewise. */
int values_append_lease(sd_bus_message *message, const struct wire_lease *lease);

#endif
