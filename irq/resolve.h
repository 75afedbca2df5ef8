/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_RESOLVE_H
#define RTGRANT_IRQ_RESOLVE_H

/* Which threads are to be raised for a device, or why there are none. */

#include "irq/device.h"

#define IRQ_THREADS_MAX 32

enum irq_status {
        IRQ_RESOLVED,
        IRQ_BAD_NAME, /* not one of IRQ_NAME_FORMS */
        IRQ_NO_DEVICE,
        IRQ_NO_LINE,      /* a device that does not interrupt, or not handled now */
        IRQ_HIDDEN,       /* kernel threads cannot be seen from here */
        IRQ_NOT_FORCED,   /* not threaded: boot with threadirqs */
        IRQ_NOT_THREADED, /* with threadirqs neither: this handler may not be threaded */
        IRQ_AMBIGUOUS,    /* shared, and no handler's name tells which is the device's */
        IRQ_TOO_MANY,     /* threads: one is to be named exactly */
};

struct irq_resolution {
        enum irq_status status;
        struct irq_device device;                   /* unless IRQ_BAD_NAME, IRQ_NO_DEVICE */
        struct irq_thread threads[IRQ_THREADS_MAX]; /* exactly the device's own */
        unsigned n_threads;
};

/*
 * Of several vectors of one device that have threads, those are taken that have ever fired; all if
 * none has. irq_choose_moving() tells better, after a while.
 */
void irq_resolve(const struct irq_roots *roots, const struct irq_snapshot *snapshot,
                 const char *name, struct irq_resolution *ret);

/*
 * Leaves only those threads whose line fired between the two snapshots, if there is one at all.
 * Returns whether there is.
 */
bool irq_choose_moving(struct irq_resolution *resolution, const struct irq_snapshot *before,
                       const struct irq_snapshot *after);

/* Whether the handler of that name belongs to the device; shared lines have several. */
bool irq_is_handler_of(const struct irq_device *device, const struct irq_line *line,
                       const char *action);

/* "not-threaded"; a word for scripts */
const char *irq_status_to_string(enum irq_status status);

/* Why there is no thread, in one sentence, and what helps ("" if nothing does). */
void irq_status_explain(const struct irq_resolution *resolution, const char *name, char *text,
                        size_t text_size, char *help, size_t help_size);

#endif
