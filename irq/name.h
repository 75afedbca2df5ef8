/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_NAME_H
#define RTGRANT_IRQ_NAME_H

/* How people name a device whose interrupt they mean. Nothing is looked up here. */

#include <stdbool.h>

#define IRQ_NAME_SIZE 64 /* as on the wire */

enum irq_name_kind {
        IRQ_NAME_CARD,   /* card:0, card:USB */
        IRQ_NAME_PCI,    /* pci:0000:00:1b.0, pci:00:1b.0 */
        IRQ_NAME_USB,    /* usb:1-4, usb:1-4.2 */
        IRQ_NAME_NET,    /* net:enp3s0 */
        IRQ_NAME_LINE,   /* irq:16 */
        IRQ_NAME_THREAD, /* irq/130-enp14s0-TxRx-0, exactly */
};

struct irq_name {
        enum irq_name_kind kind;
        bool by_number;            /* a card by its index; lines and threads always */
        unsigned number;           /* of the card or line */
        char value[IRQ_NAME_SIZE]; /* what follows the colon, pci in full; threads: all of it */
};

#define IRQ_NAME_FORMS "card:0, card:ID, pci:0000:00:1b.0, usb:1-4, net:enp3s0, irq:16, irq/16-NAME"

/* Errors: -EINVAL. */
int irq_name_parse(const char *text, struct irq_name *ret);

#endif
