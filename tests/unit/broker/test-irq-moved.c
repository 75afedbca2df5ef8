/* SPDX-License-Identifier: MIT */

/* Interrupts that are delivered to other CPUs, on machines that are files. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/sysfs.h"
#include "tests/unit/broker/irq-world.h"

/* Of card:0, which FIRST serves, and of card:1 and SECOND. */
#define LINE 31
#define OTHER_LINE 40

static const char owners[3];
static uint64_t slept;

static uint64_t slept_for(void) {
        return slept;
}

static void path_of(const struct irq_world *w, unsigned line, char path[PATH_MAX]) {
        (void) snprintf(path, PATH_MAX, "%s/irq/%u/smp_affinity_list",
                        tree_roots(&w->tree).proc, line);
}

static void put(struct irq_world *w, unsigned line, const char *cpus) {
        char path[64];

        (void) snprintf(path, sizeof(path), "proc/irq/%u/smp_affinity_list", line);
        tree_file(&w->tree, path, "%s\n", cpus);
}

static void assert_cpus(const struct irq_world *w, unsigned line, const char *expected) {
        char path[PATH_MAX], text[64];

        path_of(w, line, path);
        assert_int_equal(sysfs_read(path, text, sizeof(text)), 0);
        assert_string_equal(text, expected);
}

static void begin(struct irq_world *w) {
        irq_world_four_cards(w);
        put(w, LINE, "0-3");
        put(w, OTHER_LINE, "0-3");
        slept = 0;
        w->table = irq_table_free(w->table);
        w->options.slept_us = slept_for;
        irq_world_open_table(w);
}

static void claim(struct irq_world *w, unsigned owner, const char *device, int priority,
                  const char *affinity) {
        struct cpus cpus;

        assert_int_equal(cpus_parse(affinity, &cpus), 0);
        assert_int_equal(irq_table_claim(w->table, &owners[owner], device, priority, &cpus), 0);
}

static void assert_said(const struct irq_world *w, const char *device, const char *expected) {
        char text[200];

        irq_table_explain(w->table, device, text, sizeof(text));
        assert_string_equal(text, expected);
}

static void a_claim_moves_and_dropping_it_puts_back(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "2-3");
        assert_cpus(&w, LINE, "2-3");
        assert_cpus(&w, OTHER_LINE, "0-3");
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        assert_said(&w, "card:0", "");
        claim(&w, 0, "card:0", 90, "1");
        assert_cpus(&w, LINE, "1");
        claim(&w, 0, "card:0", 90, "");
        assert_cpus(&w, LINE, "0-3");
        claim(&w, 0, "card:0", 90, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "0-3");
        irq_world_end(&w);
}

static void the_highest_priority_counts(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 88, "1");
        claim(&w, 1, "irq:31", 90, "2");
        claim(&w, 2, "pci:0000:00:1b.0", 92, ""); /* says nothing of it */
        assert_cpus(&w, LINE, "2");
        irq_table_drop(w.table, &owners[1]);
        assert_cpus(&w, LINE, "1");
        claim(&w, 1, "irq:31", 88, "3"); /* as high: what is in force stays */
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "3");
        irq_world_end(&w);
}

static void freeing_the_table_puts_all_back(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        claim(&w, 1, "card:1", 90, "2");
        w.table = irq_table_free(w.table);
        assert_cpus(&w, LINE, "0-3");
        assert_cpus(&w, OTHER_LINE, "0-3");
        irq_world_end(&w);
}

static void what_others_set_is_left_and_told(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        put(&w, LINE, "3");
        usleep(250 * 1000);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 0);
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "3");
        assert_said(&w, "card:0", "interrupt 31 was moved by others and is left there");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "3");
        irq_world_end(&w);
}

/* A new claim, or the same one again, is a new will. */
static void a_new_claim_moves_it_again(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        put(&w, LINE, "3");
        irq_table_refresh(w.table);
        claim(&w, 0, "card:0", 90, "1");
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "3"); /* what others had made of it */
        irq_world_end(&w);
}

/* Going to sleep the kernel takes CPUs down, and moves what is delivered to them. */
static void after_a_suspend_it_is_moved_again(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        put(&w, LINE, "0");
        slept = 5 * 1000 * 1000;
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "0-3");

        claim(&w, 0, "card:0", 90, "1");
        put(&w, LINE, "0"); /* not by sleeping this time */
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "0");
        irq_world_end(&w);
}

/* The driver was loaded again: the interrupt is another one of the same number. */
static void a_new_interrupt_of_the_same_number(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        irq_world_drop_thread(&w.tree, FIRST);
        irq_world_stand_in(&w, FIRST, irq_world_thread(&w, 4));
        put(&w, LINE, "0-2"); /* as the kernel gives it anew */
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "0-2");
        irq_world_end(&w);
}

/* Legacy interrupts keep their CPUs meanwhile: what was there at first still counts. */
static void a_new_interrupt_that_kept_its_CPUs(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        irq_world_drop_thread(&w.tree, FIRST);
        irq_world_stand_in(&w, FIRST, irq_world_thread(&w, 4));
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "0-3");
        irq_world_end(&w);
}

static void a_rule_moves_too(void **state) {
        struct irq_rule rule = { .name = "a", .device = "card:0", .priority = 90 };
        struct irq_world w;

        begin(&w);
        assert_int_equal(cpus_parse("2", &rule.affinity), 0);
        irq_table_set_rules(w.table, &rule, 1);
        assert_cpus(&w, LINE, "2");
        irq_table_set_rules(w.table, NULL, 0);
        assert_cpus(&w, LINE, "0-3");
        irq_world_end(&w);
}

/* The grant stands, and says so. */
static void what_cannot_be_moved_says_so(void **state) {
        char path[PATH_MAX], text[200];
        struct irq_world w;

        begin(&w);
        path_of(&w, LINE, path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/dev/full", path), 0);
        claim(&w, 0, "card:0", 90, "1");
        irq_world_assert_raised(&w, 1, 90);
        assert_int_equal(irq_table_verify(w.table, &owners[0]), 1);
        assert_said(&w, "card:0",
                    "interrupt 31 stays where it is, not on CPUs 1: No space left on device");
        irq_table_drop(w.table, &owners[0]);

        /* an interrupt of this machine that the kernel manages by itself */
        for (unsigned line = 0; line < 1000; line++) {
                char real[64];
                struct stat st;

                (void) snprintf(real, sizeof(real), "/proc/irq/%u/smp_affinity_list", line);
                if (stat(real, &st) < 0 || (st.st_mode & 0222) != 0)
                        continue;
                assert_int_equal(unlink(path), 0);
                assert_int_equal(symlink(real, path), 0);
                claim(&w, 0, "card:0", 90, "0");
                irq_table_explain(w.table, "card:0", text, sizeof(text));
                assert_string_equal(
                        text, "interrupt 31 stays where it is: the kernel lets nobody move it");
                break;
        }
        irq_world_end(&w);
}

/* ---- after a crash ---- */

/* What a killed one leaves: the file, and the interrupt where it was moved to. */
static void crash(struct irq_world *w) {
        struct irq_line_record records[IRQ_RAISED_MAX];
        int n;

        n = irq_store_read(w->state_dir, IRQ_STORE_LINES, records);
        assert_int_equal(n, 1);
        w->table = irq_table_free(w->table);
        assert_int_equal(irq_store_write(w->state_dir, IRQ_STORE_LINES, records, (unsigned) n), 0);
}

static void a_successor_puts_back_what_nobody_claims(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        crash(&w);
        put(&w, LINE, "1");
        irq_world_open_table(&w);
        assert_cpus(&w, LINE, "1");
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "0-3");
        irq_world_end(&w);
}

static void a_successor_knows_what_was_there_at_first(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        crash(&w);
        put(&w, LINE, "1");
        irq_world_open_table(&w);
        claim(&w, 0, "card:0", 90, "1");
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "1");
        irq_table_drop(w.table, &owners[0]);
        assert_cpus(&w, LINE, "0-3");
        irq_world_end(&w);
}

static void a_successor_leaves_what_others_set(void **state) {
        struct irq_world w;

        begin(&w);
        claim(&w, 0, "card:0", 90, "1");
        crash(&w);
        put(&w, LINE, "2");
        irq_world_open_table(&w);
        irq_table_refresh(w.table);
        assert_cpus(&w, LINE, "2");
        irq_world_end(&w);
}

/* Killed while it moved it from one set to another: whichever it came to is known as its own. */
static void a_change_under_way_when_it_was_killed(void **state) {
        static const char *const came_to[] = { "1", "2" };

        for (unsigned i = 0; i < ELEMENTS(came_to); i++) {
                struct irq_line_record record;
                struct irq_world w;

                begin(&w);
                claim(&w, 0, "card:0", 90, "1");
                assert_int_equal(irq_store_read(w.state_dir, IRQ_STORE_LINES, &record), 1);
                assert_int_equal(cpus_parse("2", &record.next), 0);
                w.table = irq_table_free(w.table);
                assert_int_equal(irq_store_write(w.state_dir, IRQ_STORE_LINES, &record, 1), 0);
                put(&w, LINE, came_to[i]);
                irq_world_open_table(&w);
                irq_table_refresh(w.table);
                assert_cpus(&w, LINE, "0-3");
                irq_world_end(&w);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_claim_moves_and_dropping_it_puts_back),
                cmocka_unit_test(the_highest_priority_counts),
                cmocka_unit_test(freeing_the_table_puts_all_back),
                cmocka_unit_test(what_others_set_is_left_and_told),
                cmocka_unit_test(a_new_claim_moves_it_again),
                cmocka_unit_test(after_a_suspend_it_is_moved_again),
                cmocka_unit_test(a_new_interrupt_of_the_same_number),
                cmocka_unit_test(a_new_interrupt_that_kept_its_CPUs),
                cmocka_unit_test(a_rule_moves_too),
                cmocka_unit_test(what_cannot_be_moved_says_so),
                cmocka_unit_test(a_successor_puts_back_what_nobody_claims),
                cmocka_unit_test(a_successor_knows_what_was_there_at_first),
                cmocka_unit_test(a_successor_leaves_what_others_set),
                cmocka_unit_test(a_change_under_way_when_it_was_killed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
