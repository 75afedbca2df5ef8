/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_BROKER_IRQ_WORLD_H
#define RTGRANT_TESTS_UNIT_BROKER_IRQ_WORLD_H

/*
 * A table of raised interrupt threads and its machine. The machine is files; the threads that these
 * call kernel threads are those of a child of the test, with real scheduling.
 */

#include "broker/irq/table.h"
#include "broker/log.h"
#include "tests/tools/irq-tree.h"
#include "tests/unit/broker/broker-test.h"

/* Threads of the fixtures that stand for real ones. */
#define FIRST  "irq/31-snd_hda_intel:card0"
#define SECOND "irq/40-xhci_hcd"
#define THIRD  "irq/41-xhci_hcd"

struct irq_world {
        struct test_child child;
        struct irq_tree tree;
        char state_dir[64];
        struct kernel kernel;
        struct log *log;
        sd_event *event;
        struct irq_table *table;
        struct irq_table_options options;
};

/* The machine of that name of tests/tools/irq-machines.c, and an open table. */
void irq_world_begin(struct irq_world *w, const char *machine);

/* Closes the table and removes all that there is on file. */
void irq_world_end(struct irq_world *w);

/* "four-cards", of which FIRST, SECOND and THIRD are the threads 1, 2 and 3 of the child. */
void irq_world_four_cards(struct irq_world *w);

void irq_world_open_table(struct irq_world *w);
pid_t irq_world_thread(const struct irq_world *w, unsigned i);

/* That kernel thread has ended. */
void irq_world_drop_thread(struct irq_tree *tree, const char *name);

/* From now on that kernel thread is @tid. */
void irq_world_stand_in(struct irq_world *w, const char *name, pid_t tid);

void irq_world_assert_before(const struct irq_world *w, unsigned i);
void irq_world_assert_raised(const struct irq_world *w, unsigned i, int priority);

#endif
