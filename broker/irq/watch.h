/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_WATCH_H
#define RTGRANT_BROKER_IRQ_WATCH_H

/*
 * Tells when interrupt threads may be others than before: a device came or went, a driver was
 * loaded, the machine woke up. Without any of that it never wakes the broker.
 */

#include <stddef.h>
#include <systemd/sd-event.h>

struct irq_watch;

/* Calls @changed some time after it happened, once for many. Errors: socket(2), bind(2), -ENOMEM.
 */
int irq_watch_new(sd_event *event, void (*changed)(void *userdata), void *userdata,
                  struct irq_watch **ret);

/* May be NULL. Returns NULL. */
struct irq_watch *irq_watch_free(struct irq_watch *watch);

/* Whether the kernel's message (strings with their NULs) may be about a device that interrupts. */
int irq_watch_is_of_interest(const char *message, size_t length);

#endif
