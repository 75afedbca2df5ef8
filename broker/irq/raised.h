/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_RAISED_H
#define RTGRANT_BROKER_IRQ_RAISED_H

/*
 * The interrupt threads that have other scheduling than they had, one by one: what each had, what
 * it was given, and the careful way from one to the other. Only kernel threads that serve an
 * interrupt get in here.
 */

#include "broker/irq/table.h"
#include "broker/sched-values.h"
#include "broker/thread.h"

struct raised {
        struct irq_thread thread;
        struct thread pin;         /* owned */
        sd_event_source *ended;    /* owned; NULL if that cannot be watched */
        struct sched_values saved; /* what it had before */
        int priority;              /* set by us; 0: nothing yet */
        int wanted;                /* 0: by nobody */
        bool changed;              /* by others: left alone until nobody wants it */
};

struct raised_set {
        const struct irq_table_options *options; /* borrowed */
        void (*on_ended)(void *userdata);
        void *userdata;
        bool recovering;                      /* what a predecessor raised may yet be wanted */
        struct raised *items[IRQ_RAISED_MAX]; /* owned */
        unsigned n;
};

void raised_init(struct raised_set *set, const struct irq_table_options *options,
                 void (*on_ended)(void *userdata), void *userdata);

/* Forgets them, without restoring. */
void raised_done(struct raised_set *set);

/* Takes over what a predecessor raised and wrote down. */
void raised_recover(struct raised_set *set);

/* Nobody wants anything, for now. */
void raised_unwant(struct raised_set *set);

/* Somebody wants that; the highest counts. Errors: -ENOSPC, -ENODEV (it just ended), -EMFILE. */
int raised_want(struct raised_set *set, const struct irq_thread *thread, int priority);

/* What others changed is set again by the next raised_settle(). */
void raised_forgive(struct raised_set *set);

/*
 * Sets what is wanted and restores what is not, having written down first what that may change.
 * Returns 0, or the first error: sched_setattr(2), -EILSEQ; the others are set all the same.
 */
int raised_settle(struct raised_set *set);

bool raised_knows(const struct raised_set *set, const struct irq_thread *thread);

/* Whether the thread has at least that priority now. */
bool raised_has(const struct raised_set *set, const struct irq_thread *thread, int priority);

#endif
