/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_DEVICE_H
#define RTGRANT_IRQ_DEVICE_H

/*
 * From the name of a device to what interrupts for it, by sysfs: a USB card interrupts through its
 * host controller, wherever that sits behind bridges.
 */

#include "irq/name.h"
#include "irq/snapshot.h"

#define IRQ_DEVICE_LINES_MAX 128

struct irq_device {
        struct irq_name name;
        char path[512];      /* in sysfs; "" for lines and threads */
        int card;            /* its index if it is a sound card; else -1 */
        char card_id[32];    /* likewise; else "" */
        char usb[32];        /* "1-4" if it hangs on USB; else "" */
        unsigned usb_bus;    /* likewise; else 0 */
        char net[32];        /* its interface, if named by that; else "" */
        char controller[64]; /* what interrupts: "0000:00:14.0", "fe980000.usb"; "" not known */
        char controller_path[512];
        char driver[64];                      /* of that; "" not known */
        unsigned lines[IRQ_DEVICE_LINES_MAX]; /* in rising order, nothing twice */
        unsigned n_lines;
        bool more_lines; /* than there is room for */
};

/*
 * Errors: -ENODEV if there is no such device. A device without an interrupt has no lines.
 *
 * @snapshot            for devices whose interrupts sysfs does not tell, outside of PCI
 */
int irq_device_find(const struct irq_roots *roots, const struct irq_snapshot *snapshot,
                    const struct irq_name *name, struct irq_device *ret);

/* Indices of the sound cards, in rising order. Returns how many; at most @n_max. */
unsigned irq_list_cards(const struct irq_roots *roots, unsigned *cards, unsigned n_max);

#endif
