/* SPDX-License-Identifier: MIT */

#include "tests/unit/broker/irq-world.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define N_THREADS 4

void irq_world_drop_thread(struct irq_tree *tree, const char *name) {
        struct irq_roots roots = tree_roots(tree);
        struct irq_snapshot snapshot;

        assert_int_equal(irq_snapshot_take(&roots, &snapshot), 0);
        for (size_t i = 0; i < snapshot.n_threads; i++)
                if (strcmp(snapshot.threads[i].task.name, name) == 0)
                        tree_kthread_remove(tree, snapshot.threads[i].task.tid);
        irq_snapshot_done(&snapshot);
}

/* From now on that kernel thread is @tid. */
void irq_world_stand_in(struct irq_world *w, const char *name, pid_t tid) {
        const struct sched_values fifo_50 = { .policy = SCHED_FIFO, .priority = 50 };

        irq_world_drop_thread(&w->tree, name);
        assert_int_equal(sched_write(tid, &fifo_50), 0);
        tree_kthread_numbered(&w->tree, tid, name);
}

void irq_world_open_table(struct irq_world *w) {
        assert_int_equal(irq_table_new(&w->options, &w->table), 0);
}

void irq_world_begin(struct irq_world *w, const char *machine) {
        char tree[] = "/tmp/rtgrant-irq-XXXXXX";

        test_need_root();
        *w = (struct irq_world){ .state_dir = "/tmp/rtgrant-state-XXXXXX" };
        assert_non_null(mkdtemp(tree));
        assert_non_null(mkdtemp(w->state_dir));
        tree_init(&w->tree, tree);
        assert_true(tree_build(&w->tree, machine));
        test_child_start(&w->child, NULL, N_THREADS, 0);
        kernel_probe(&w->kernel);
        assert_int_equal(log_new(&w->log, LOG_ERR), 0);
        assert_true(sd_event_new(&w->event) >= 0);
        w->options = (struct irq_table_options){
                .event = w->event,
                .log = w->log,
                .kernel = &w->kernel,
                .state_dir = w->state_dir,
                .roots = tree_roots(&w->tree),
        };
        irq_world_open_table(w);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        return remove(path);
}

void irq_world_end(struct irq_world *w) {
        w->table = irq_table_free(w->table);
        (void) sd_event_unref(w->event);
        w->log = log_free(w->log);
        test_child_end(&w->child);
        tree_remove(&w->tree);
        (void) nftw(w->state_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

pid_t irq_world_thread(const struct irq_world *w, unsigned i) {
        return w->child.tids[i];
}

void irq_world_four_cards(struct irq_world *w) {
        irq_world_begin(w, "four-cards");
        irq_world_stand_in(w, FIRST, irq_world_thread(w, 1));
        irq_world_stand_in(w, SECOND, irq_world_thread(w, 2));
        irq_world_stand_in(w, THIRD, irq_world_thread(w, 3));
}

void irq_world_assert_before(const struct irq_world *w, unsigned i) {
        assert_sched_is(irq_world_thread(w, i), SCHED_FIFO, 50, 0, false);
}

void irq_world_assert_raised(const struct irq_world *w, unsigned i, int priority) {
        assert_sched_is(irq_world_thread(w, i), SCHED_FIFO, priority, 0, true);
}
