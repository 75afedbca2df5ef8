/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_BALANCE_H
#define RTGRANT_BROKER_IRQ_BALANCE_H

/*
 * irqbalance(1) moves interrupts between CPUs. Where one runs, those that the broker moved are put
 * on its list of interrupts to leave alone, and taken off it afterwards; what else is on the list
 * stays there. It is one list, replaced whole, and gone with that irqbalance: so it is read before
 * each change, read back, and seen to again when another irqbalance starts.
 *
 * It answers within ten seconds or so, since it sleeps in between: nothing here waits for it.
 */

#include "broker/irq/ban-list.h"
#include "broker/irq/table.h"

struct balance;

/*
 * What a predecessor had banned is taken over. Errors: -ENOMEM.
 *
 * @on_banned           it promised to leave @line alone; what it did to it until then was no
 *                      answer to us
 */
int balance_new(const struct irq_table_options *options,
                void (*on_banned)(unsigned line, void *userdata), void *userdata,
                struct balance **ret);

/* Takes all that is ours off its list. May be NULL. Returns NULL. */
struct balance *balance_free(struct balance *balance);

/* These are to be left alone, and no others for our sake. */
void balance_want(struct balance *balance, const struct ban_list *lines);

/* Why it may move @line all the same, in a sentence; "" if it does not, as far as is known. */
void balance_explain(const struct balance *balance, unsigned line, char *text, size_t size);

#endif
