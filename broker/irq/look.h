/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_LOOK_H
#define RTGRANT_BROKER_IRQ_LOOK_H

/*
 * The interrupts and their threads, as of a fraction of a second ago. Looking costs a millisecond
 * or so, and users decide how often: one look serves all in that time, and what was found for a
 * name is found once for each look.
 */

#include <glib.h>
#include <stdbool.h>

#include "irq/resolve.h"

struct irq_look {
        const struct irq_roots *roots; /* borrowed; outlive this */
        struct irq_snapshot snapshot;
        GHashTable *found; /* owned: name -> struct irq_resolution, by this snapshot */
        uint64_t taken_us; /* CLOCK_MONOTONIC; 0: there is none */
};

void irq_look_init(struct irq_look *look, const struct irq_roots *roots);
void irq_look_done(struct irq_look *look);

/* Looks anew, unless that was a moment ago. Errors: -ENOMEM, open(2) of /proc/interrupts. */
int irq_look_take(struct irq_look *look);

/* The next irq_look_take() looks anew, in any case. */
void irq_look_forget(struct irq_look *look);

/* What there is to be raised for @device, or why not. */
void irq_look_resolve(struct irq_look *look, const char *device, struct irq_resolution *ret);

/* How often that interrupt has fired; 0 if there is none. */
uint64_t irq_look_count(const struct irq_look *look, unsigned number);

/* As irq_table_is_within(). */
bool irq_look_is_within(struct irq_look *look, const char *device, const char *const *list,
                        size_t n_list);

#endif
