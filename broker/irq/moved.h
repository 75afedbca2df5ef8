/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_MOVED_H
#define RTGRANT_BROKER_IRQ_MOVED_H

/*
 * The interrupts that are delivered to other CPUs than they were, one by one: what each had, and
 * what it was given. Their threads follow them by the kernel's own doing. What others set meanwhile
 * is theirs, and left alone.
 */

#include "broker/irq/ban-list.h"
#include "broker/irq/table.h"

struct moved {
        unsigned line;
        pid_t tid;           /* a thread that serves it: by that it is the same interrupt */
        uint64_t start_time; /* likewise */
        struct cpus saved;   /* what it had before */
        struct cpus set;     /* by us; none: nothing yet */
        struct cpus wanted;
        int priority; /* of the claim that wants it; 0: by nobody */
        bool changed; /* by others: left alone until nobody wants it */
        int error;    /* why it was not moved; 0: it was */
};

struct moved_set {
        const struct irq_table_options *options; /* borrowed */
        bool recovering;                         /* what a predecessor moved may yet be wanted */
        struct moved items[IRQ_RAISED_MAX];
        unsigned n;
};

void moved_init(struct moved_set *set, const struct irq_table_options *options);

/* Takes over what a predecessor moved and wrote down. */
void moved_recover(struct moved_set *set);

/* Nobody wants anything, for now. */
void moved_unwant(struct moved_set *set);

/*
 * Somebody of that priority wants the interrupt of @thread on these CPUs; the highest counts, and
 * of equal ones what is in force already.
 */
void moved_want(struct moved_set *set, const struct irq_thread *thread, const struct cpus *cpus,
                int priority);

/* What others changed is set again by the next moved_settle(), and put back to what they made. */
void moved_forgive(struct moved_set *set);

/* The same for one that nobody changed on purpose: it is put back to what it had at first. */
void moved_again(struct moved_set *set, unsigned line);
void moved_all_again(struct moved_set *set);

/* Moves what is wanted and puts back what is not, having written down first what that may change. */
void moved_settle(struct moved_set *set);

/* Whether others made something else of it. */
bool moved_is_changed(const struct moved_set *set, unsigned line);

/* The interrupts that were moved and are wanted where they are. */
void moved_list(const struct moved_set *set, struct ban_list *ret);

/* Why it is not where it is wanted, in a sentence; "" if it is, or not wanted anywhere. */
void moved_explain(const struct moved_set *set, unsigned line, char *text, size_t size);

#endif
