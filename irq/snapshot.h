/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_SNAPSHOT_H
#define RTGRANT_IRQ_SNAPSHOT_H

/*
 * The interrupts of the machine and the kernel threads that serve them, at one moment. Its size is
 * up to the kernel, not to users.
 */

#include <stdbool.h>
#include <stdint.h>

#include "irq/kthread.h"

/* An interrupt that somebody handles. */
struct irq_line {
        unsigned number;
        uint64_t count; /* since boot, on all CPUs */
        char chip[40];  /* "IR-PCI-MSIX-0000:00:14.0"; "" if not known */
        char *actions;  /* owned: the names of its handlers, "," between them */
};

struct irq_thread {
        struct irq_kthread task; /* irq/16-snd_hda_intel:card0 */
        unsigned line;
        bool secondary; /* irq/N-s-NAME: the second half of a handler that has two */
};

struct irq_snapshot {
        struct irq_line *lines; /* owned; by number */
        size_t n_lines;
        struct irq_thread *threads; /* owned; by line, then by tid */
        size_t n_threads;
        bool threads_visible; /* false: another pid namespace, or hidden processes */
        bool forced;          /* all handlers that may be are threaded: threadirqs, PREEMPT_RT */
};

/* Errors: -ENOMEM, and errno of open(2) if there is no /proc/interrupts. */
int irq_snapshot_take(const struct irq_roots *roots, struct irq_snapshot *ret);
void irq_snapshot_done(struct irq_snapshot *snapshot);

/* NULL if nobody handles it. */
const struct irq_line *irq_snapshot_find(const struct irq_snapshot *snapshot, unsigned number);

/*
 * Reads thread @tid, if it is a kernel thread that serves an interrupt.
 * Errors: -ESRCH if there is none of that number, or another kind of thread.
 */
int irq_thread_read(const struct irq_roots *roots, pid_t tid, struct irq_thread *ret);

/* The handler's name within a thread's: "snd_hda_intel:card0" */
const char *irq_thread_handler(const struct irq_thread *thread);

/* Calls @each for each name in line->actions until it returns other than 0, and returns that. */
int irq_line_for_each_action(const struct irq_line *line,
                             int (*each)(const char *action, void *userdata), void *userdata);

#endif
