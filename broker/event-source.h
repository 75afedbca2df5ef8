/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_EVENT_SOURCE_H
#define RTGRANT_BROKER_EVENT_SOURCE_H

/*
 * One thread, two libraries with a loop of their own: libpolkit wants GLib's, sd-bus and the socket
 * want sd-event's. GLib's runs, and sd-event's is a source in it.
 */

#include <systemd/sd-event.h>

struct event_source;

/* Makes @event part of GLib's default loop. Takes a reference on it. */
struct event_source *event_source_new(sd_event *event);

/* May be NULL. Returns NULL. */
struct event_source *event_source_free(struct event_source *source);

/* Runs until sd_event_exit(3). Returns what was given there, or a negative errno. */
int event_source_loop(sd_event *event);

#endif
