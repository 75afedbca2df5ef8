/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANTCTL_IRQ_H
#define RTGRANT_CLIENT_RTGRANTCTL_IRQ_H

/* What the parts of `rtgrantctl irq` share. It reads /sys and /proc itself: no broker, no root. */

#include "client/rtgrantctl.h"
#include "irq/resolve.h"

/* A device as shown: a sound card, or what was asked for. */
struct irq_row {
        char name[IRQ_NAME_SIZE]; /* "card:0" */
        struct irq_resolution resolution;
        char sharers[256]; /* who else uses the interrupt; "" nobody */
};

struct irq_view {
        struct irq_roots roots;
        struct irq_snapshot before; /* of this and the next the counts per second are made */
        struct irq_snapshot after;
        double seconds;       /* between them; 0: not measured */
        struct irq_row *rows; /* owned */
        size_t n_rows;
        bool all; /* all kernel threads that matter to real-time, too */
};

/* Interrupts of a line per second; below 0: not measured. */
double irq_rate(const struct irq_view *view, unsigned line);

/* The CPUs that line is delivered to: "0-3"; "" if that cannot be read. */
void irq_cpus(const struct irq_view *view, unsigned line, char *buffer, size_t size);

/* "FIFO 50", "OTHER" */
void irq_priority_text(const struct irq_kthread *task, char *buffer, size_t size);

/* Who else uses the interrupts of @device: other handlers, and other devices of a USB controller.
 */
void irq_find_sharers(const struct irq_view *view, const struct irq_device *device, char *buffer,
                      size_t size);

/* What a kernel thread is for, in a few words; NULL if it has nothing to do with real-time. */
const char *irq_purpose(const struct irq_kthread *task);

/* Turns a configuration of rtirq into rules of the policy, on standard output. The exit status. */
int irq_import(const struct irq_view *view, const char *file, bool json);

void irq_print(const struct ctl *ctl, const struct irq_view *view);
void irq_print_json(const struct irq_view *view);

#endif
