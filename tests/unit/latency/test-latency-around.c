/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/latency/around.h"

static int setup(void **state) {
        *state = calloc(1, sizeof(struct snapshots));
        return *state ? 0 : -1;
}

static int teardown(void **state) {
        free(*state);
        return 0;
}

static void parse(struct counters *counters, const char *text, int cpu) {
        FILE *file = fmemopen((void *) text, strlen(text), "r");

        assert_non_null(file);
        *counters = (struct counters){ 0 };
        counters_parse(counters, file, cpu);
        (void) fclose(file);
}

/* As if taken at @time_ns: an interrupt that came so often, and a soft one. */
static void snapshot(struct snapshots *s, uint64_t time_ns, unsigned irq, unsigned timer) {
        struct snapshot *one = &s->ring[s->n++ % SNAPSHOTS_MAX];
        char text[256];

        (void) snprintf(text, sizeof(text),
                        "     CPU0 CPU1\n 16: 7 %u IO-APIC 16-fasteoi snd_hda_intel:card0\n"
                        "TIMER: 9 %u\n",
                        irq, timer);
        one->time_ns = time_ns;
        parse(&one->counters, text, 1);
}

static void test_between_the_snapshots_next_to_it(void **state) {
        struct snapshots *s = *state;
        struct surroundings around;

        snapshot(s, 100, 1, 10);
        snapshot(s, 200, 2, 20);
        snapshot(s, 300, 5, 21);
        snapshot(s, 400, 9, 99);

        snapshots_find(s, -1, 210, 290, &around);
        assert_int_equal(around.from_ns, 200);
        assert_int_equal(around.to_ns, 300);
        assert_int_equal(around.n, 2);
        assert_string_equal(around.counts[0].name, "irq 16 snd_hda_intel:card0");
        assert_int_equal(around.counts[0].count, 3);
        assert_string_equal(around.counts[1].name, "TIMER");
        assert_int_equal(around.counts[1].count, 1);

        snapshots_find(s, -1, 150, 310, &around);
        assert_int_equal(around.to_ns - around.from_ns, 300);
        assert_int_equal(around.counts[0].count, 89);
}

static void test_without_one_before_or_after_nothing_is_told(void **state) {
        struct snapshots *s = *state;
        struct surroundings around;

        snapshot(s, 100, 1, 10);
        snapshot(s, 200, 2, 20);
        snapshots_find(s, -1, 50, 150, &around);
        assert_int_equal(around.to_ns, 0);
        snapshots_find(s, -1, 150, 250, &around);
        assert_int_equal(around.to_ns, 0);
}

static void test_old_ones_are_forgotten(void **state) {
        struct snapshots *s = *state;
        struct surroundings around;

        for (unsigned i = 1; i <= SNAPSHOTS_MAX + 2; i++)
                snapshot(s, i * 100, i, i);
        snapshots_find(s, -1, 250, 350, &around);
        assert_int_equal(around.to_ns, 0);
        snapshots_find(s, -1, 350, 350, &around);
        assert_int_equal(around.from_ns, 300);
        assert_int_equal(around.to_ns, 400);
}

static void test_not_more_often_than_that(void **state) {
        struct snapshots *s = *state;

        snapshots_take(s, 0, 1000);
        snapshots_take(s, 0, 1000 + SNAPSHOT_NS - 1);
        assert_int_equal(s->n, 1);
        snapshots_take(s, 0, 1000 + SNAPSHOT_NS);
        assert_int_equal(s->n, 2);
        snapshots_take_now(s, 0, 1001 + SNAPSHOT_NS);
        assert_int_equal(s->n, 3);
        assert_true(s->ring[0].counters.n > 0); /* those of this machine */
}

static void test_states_of_sleep_are_told_apart(void **state) {
        struct counters c = { .n = 3, .all = { { "idle C1", 5 }, { "TIMER", 7 }, { "idle C6", 1 } } };

        assert_int_equal(counters_get(&c, "idle C6"), 1);
        assert_int_equal(counters_get(&c, "idle C7"), 0);
        counters_drop(&c, COUNTER_IDLE);
        assert_int_equal(c.n, 1);
        assert_string_equal(c.all[0].name, "TIMER");
}

static int parse_stack(const char *text, char *buffer, size_t size) {
        FILE *file = fmemopen((void *) text, strlen(text), "r");
        int r;

        assert_non_null(file);
        r = kernel_stack_parse(file, buffer, size);
        (void) fclose(file);
        return r;
}

static void test_kernel_stacks(void **state) {
        char buffer[200], small[24];

        assert_int_equal(parse_stack("[<0>] do_nanosleep+0x5c/0x180\n"
                                     "[<0>] snd_pcm_lib_read1+0x1/0x2 [snd_pcm]\n"
                                     "[<0>] do_syscall_64+0x71/0x280\n",
                                     buffer, sizeof(buffer)),
                         0);
        assert_string_equal(buffer, "do_nanosleep < snd_pcm_lib_read1 < do_syscall_64");
        assert_int_equal(parse_stack("[<0>] a_function+0x1/0x2\n[<0>] another_one_of_it+0x1/0x2\n",
                                     small, sizeof(small)),
                         0);
        assert_string_equal(small, "a_function"); /* whole names only */
        assert_int_equal(parse_stack("nonsense\n[<0>] \n", buffer, sizeof(buffer)), -ENODATA);
        assert_string_equal(buffer, "");
        assert_true(kernel_stack_read(4000001, buffer, sizeof(buffer)) < 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_between_the_snapshots_next_to_it),
                TEST(test_without_one_before_or_after_nothing_is_told),
                TEST(test_old_ones_are_forgotten),
                TEST(test_not_more_often_than_that),
                TEST(test_states_of_sleep_are_told_apart),
                TEST(test_kernel_stacks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
