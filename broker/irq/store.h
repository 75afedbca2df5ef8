/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_STORE_H
#define RTGRANT_BROKER_IRQ_STORE_H

/*
 * What interrupt threads and interrupts had before the broker changed them, on file, so that a
 * successor can put it back: DIR/irq-threads and the like, mode 0600. Each is replaced whole, and
 * before the kernel is asked.
 */

#include <stdint.h>
#include <sys/types.h>

#include "policy/cpus.h"

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
        int32_t priority; /* set by us; 0: nothing yet */
        int32_t next;     /* about to be set; 0: what was there before */
        char name[72];
};

/* An interrupt that is delivered to other CPUs than it was. */
struct irq_line_record {
        uint64_t start_time; /* of the thread below */
        int32_t tid;         /* that serves it: tells it from a later one of that number */
        uint32_t line;
        struct cpus saved;
        struct cpus set;  /* by us; none: nothing yet */
        struct cpus next; /* about to be set; or as above */
};

/* A list of irqbalance's that has interrupts of ours on it. */
struct irq_ban_record {
        uint64_t start_time; /* of that irqbalance */
        int32_t pid;
        uint32_t line;
};

/* Which file. */
enum irq_store {
        IRQ_STORE_THREADS, /* struct irq_record */
        IRQ_STORE_LINES,   /* struct irq_line_record */
        IRQ_STORE_BANS,    /* struct irq_ban_record */
        _IRQ_STORE_MAX,
};

/*
 * Replaces the file; without records removes it. Errors: open(2), write(2), rename(2).
 *
 * @records             of the struct that belongs to @which
 * @n                   at most IRQ_RAISED_MAX
 */
int irq_store_write(const char *directory, enum irq_store which, const void *records, unsigned n);

/*
 * Returns how many were read, 0 if there is no file, or one of before the last boot.
 * Errors: -EBADMSG if it is not what this broker wrote, and nobody else could; open(2).
 *
 * @records             has room for IRQ_RAISED_MAX
 */
int irq_store_read(const char *directory, enum irq_store which, void *records);

#endif
