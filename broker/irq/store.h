/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_STORE_H
#define RTGRANT_BROKER_IRQ_STORE_H

/*
 * What interrupt threads had before the broker raised them, on file, so that a successor can put it
 * back: DIR/irq-threads, mode 0600. It is replaced whole, and before the kernel is asked.
 */

#include <stdint.h>
#include <sys/types.h>

#define IRQ_RAISED_MAX 64U

/* Plain numbers of fixed size: the successor may be built by another compiler. */
struct irq_record {
        uint64_t start_time;
        int32_t tid;
        uint32_t line;
        int32_t saved_policy;
        int32_t saved_priority;
        int32_t saved_nice;
        uint32_t saved_reset_on_fork;
        int32_t priority; /* that was set, or is about to be */
        uint32_t padding;
        char name[72];
};

/* Replaces the file; without records removes it. Errors: open(2), write(2), rename(2). */
int irq_store_write(const char *directory, const struct irq_record *records, unsigned n);

/*
 * Returns how many were read, 0 if there is no file, or one of before the last boot.
 * Errors: -EBADMSG if it is not what this broker wrote, and nobody else could; open(2).
 */
int irq_store_read(const char *directory, struct irq_record records[IRQ_RAISED_MAX]);

#endif
