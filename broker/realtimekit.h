/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_REALTIMEKIT_H
#define RTGRANT_BROKER_REALTIMEKIT_H

/*
 * org.freedesktop.RealtimeKit1: the interface that PipeWire, PulseAudio, Firefox and others speak
 * already. It only translates: requests are those of the socket, in the role that the policy names.
 */

#include <stdbool.h>

#include <stdbool.h>

#include "broker/bus.h"

#define REALTIMEKIT_NAME "org.freedesktop.RealtimeKit1"
#define REALTIMEKIT_PATH "/org/freedesktop/RealtimeKit1"

struct realtimekit {
        struct bus *bus;                /* borrowed; outlives this */
        bool suspended;                 /* by an administrator: no grants over this interface */
};

/*
 * Puts the object on the present connection of @bus; again on each new one. @realtimekit lives as
 * long as @bus, zeroed at first. Errors: sd_bus_add_object_vtable(3).
 */
int realtimekit_add(struct bus *bus, struct realtimekit *realtimekit);

#endif
