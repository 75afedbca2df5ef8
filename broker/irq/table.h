/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_TABLE_H
#define RTGRANT_BROKER_IRQ_TABLE_H

/*
 * Raised interrupt threads. Leases and rules of the policy claim a priority for a device; which
 * threads that means is found out anew whenever devices come, go or wake up. A thread runs at the
 * highest priority that anybody claims for it, and gets back what it had when nobody does.
 * Of a device with several interrupts, all that have fired ever are raised, until it shows which fire
 * while it is claimed.
 */

#include <systemd/sd-event.h>

#include "broker/irq/store.h"
#include "broker/kernel.h"
#include "irq/resolve.h"
#include "policy/policy.h"

struct irq_table;
struct log;

struct irq_table_options {
        sd_event *event; /* borrowed, as all; they outlive the table */
        struct log *log;
        const struct kernel *kernel;
        const char *state_dir;
        struct irq_roots roots;
        const char *balance_dir;    /* where irqbalance listens; NULL: where it always does */
        uint64_t (*slept_us)(void); /* how long the machine has been suspended; NULL: as it was */
};

/*
 * What a predecessor raised is taken over, and restored by the first irq_table_refresh() or
 * irq_table_set_rules() unless it is claimed by then. Errors: -ENOMEM.
 */
int irq_table_new(const struct irq_table_options *options, struct irq_table **ret);

/* Restores everything. May be NULL. Returns NULL. */
struct irq_table *irq_table_free(struct irq_table *table);

/*
 * What there is to be raised for @device, or why not. It may be a fraction of a second old.
 * Errors: -ENOMEM, open(2) of /proc/interrupts.
 */
int irq_table_look(struct irq_table *table, const char *device, struct irq_resolution *ret);

/*
 * Whether all threads of @device are also those of a device on the list, where "sound" stands for
 * every sound card with the controller that it hangs on. What cannot be found is not.
 */
bool irq_table_is_within(struct irq_table *table, const char *device, const char *const *list,
                         size_t n_list);

/*
 * Claims @priority (1..99) for @device, or changes the claim that @owner has.
 * The threads have it on return; which they are is kept up to date.
 *
 * @owner               any address but NULL; identifies the claim
 * @affinity            CPUs to deliver the interrupts to, as far as that can be had, see
 *                      irq_table_explain(); NULL or none: as it is
 *
 * Errors: -ENODEV if there is no such thread (now), -ENOSPC if too many are raised, -EILSEQ if the
 * kernel agreed and reads back otherwise; sched_setattr(2). Then it is as before.
 */
int irq_table_claim(struct irq_table *table, const void *owner, const char *device, int priority,
                    const struct cpus *affinity);

/*
 * The rules of the policy, instead of those before. A device that is not there gets its priority
 * when it comes. What keeps a rule from having an effect now is logged.
 */
void irq_table_set_rules(struct irq_table *table, const struct irq_rule *rules, size_t n_rules);

/* What of the affinity that is claimed for @device could not be had, in a sentence; else "". */
void irq_table_explain(struct irq_table *table, const char *device, char *text, size_t size);

/* Gives it up. What nobody else claims gets back what it had, where what was set is in force. */
void irq_table_drop(struct irq_table *table, const void *owner);

/*
 * 1 if all threads of the claim have at least its priority, and its interrupts are where they were
 * moved to; 0 if not, as of a fraction of a second ago. Threads that are new are raised. Errors: -ENOENT (no claim), -ENODEV (no thread now).
 */
int irq_table_verify(struct irq_table *table, const void *owner);

/* Finds all devices anew, and sets and restores what follows from that. After a suspend, also what
 * the kernel moved away from CPUs that were down. */
void irq_table_refresh(struct irq_table *table);

/* Threads that are raised, or were changed by others meanwhile. */
unsigned irq_table_n_raised(const struct irq_table *table);

#endif
