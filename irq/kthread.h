/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_KTHREAD_H
#define RTGRANT_IRQ_KTHREAD_H

/*
 * Kernel threads. That it is one is what the kernel says of it (PF_KTHREAD, and kthreadd for a
 * parent), never its name: a process may give itself any.
 */

#include <stdint.h>
#include <sys/types.h>

#include "irq/files.h"

struct irq_kthread {
        pid_t tid;
        uint64_t start_time; /* clock ticks since boot: tells it from a later one */
        int policy;          /* SCHED_FIFO … of sched.h */
        int priority;        /* 1..99 with FIFO and RR, else 0 */
        int nice;
        int cpu;       /* where it ran last */
        char name[72]; /* cut to 15 bytes before Linux 5.17 */
};

/* Errors: -ESRCH if there is none of that number, or it is a process. */
int irq_kthread_read(const struct irq_roots *roots, pid_t tid, struct irq_kthread *ret);

/* Whether there is a kthreadd: not in another pid namespace, nor where /proc hides processes. */
int irq_kthreads_are_visible(const struct irq_roots *roots);

/*
 * Calls @each for every kernel thread until it returns below 0. How many there are is up to the
 * kernel, not to users: kthreadd is asked for its children. Errors: what @each returned, open(2).
 */
int irq_kthread_for_each(const struct irq_roots *roots,
                         int (*each)(const struct irq_kthread *thread, void *userdata),
                         void *userdata);

#endif
