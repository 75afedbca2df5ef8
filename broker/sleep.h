/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SLEEP_H
#define RTGRANT_BROKER_SLEEP_H

/*
 * systemd-logind(8) says when the machine wakes up. The guard sees that too, from its clocks, but
 * only while it watches real-time threads.
 */

#include <systemd/sd-bus.h>

struct broker;
struct bus;

struct sleep_watch {
        struct broker *broker;          /* borrowed */
        char *logind;                   /* owned; its unique name; NULL: it does not run */
};

/* Listens on the bus, which is to be connected. Errors: sd_bus_match_signal_async(3). */
int sleep_watch_add(struct bus *bus, struct sleep_watch *watch);

/* The connection is no more. */
void sleep_watch_clear(struct sleep_watch *watch);

#endif
