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

/* What WORDs may be, up to one without; those of lifetimes in the order of enum wire_lifetime. */
struct word {
        const char *word;
        uint32_t number;
};

extern const struct word values_policies[];
extern const struct word values_lifetimes[];

#endif
