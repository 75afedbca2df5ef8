/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_IRQ_TREE_H
#define RTGRANT_TESTS_IRQ_TREE_H

/*
 * Makes /sys and /proc of machines that are not at hand, as far as interrupts go: what the code
 * under test reads, in files. Aborts on any error.
 */

#include <limits.h>
#include <sys/types.h>

#include "irq/files.h"

struct irq_tree {
        char directory[256];
        char sys[272];
        char proc[272];
        char children[16384]; /* of kthreadd */
        int next_tid;
};

void tree_init(struct irq_tree *tree, const char *directory);
struct irq_roots tree_roots(const struct irq_tree *tree);
void tree_remove(struct irq_tree *tree);

void tree_file(struct irq_tree *tree, const char *path, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void tree_link(struct irq_tree *tree, const char *path, const char *target);

/* A device of PCI below @parent ("pci0000:00", "pci0000:00/0000:00:1c.0"); @irq 0: none. */
void tree_pci(struct irq_tree *tree, const char *parent, const char *address, const char *driver,
              unsigned irq);
void tree_msi(struct irq_tree *tree, const char *pci_path, unsigned irq);
/* A root hub ("usb1"), hub or device below @parent ("…/usb1/1-4"), which ends in its name. */
void tree_usb(struct irq_tree *tree, const char *path, const char *product);
/* card@index below @parent. */
void tree_card(struct irq_tree *tree, const char *parent, unsigned index, const char *id);
void tree_card_remove(struct irq_tree *tree, const char *parent, unsigned index);

/* /proc/interrupts: two CPUs; @actions with ", " between them. @sysfs: also in /sys/kernel/irq. */
void tree_interrupts_begin(struct irq_tree *tree);
void tree_interrupt(struct irq_tree *tree, unsigned irq, unsigned long count, const char *chip,
                    const char *actions);

/* A thread with a number of its own, or with @tid. Returns the number. */
pid_t tree_kthread(struct irq_tree *tree, const char *name);
void tree_kthread_numbered(struct irq_tree *tree, pid_t tid, const char *name);
void tree_kthread_remove(struct irq_tree *tree, pid_t tid);
/* A process that calls itself so. */
pid_t tree_process(struct irq_tree *tree, const char *name);

/* The machines by name; 0 if there is none of that name. */
int tree_build(struct irq_tree *tree, const char *machine);

#endif
