/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/latency/counters.h"
#include "client/latency/loop.h"
#include "client/latency/run.h"
#include "client/latency/stats.h"

#define US     1000U
#define PERIOD (1000U * US)

static void test_figures(void **state) {
        struct sample samples[1000];
        struct stats s;

        for (uint32_t i = 0; i < 1000; i++) /* 1 to 1000 µs, not in order */
                samples[i] = (struct sample){ (i * 7 % 1000 + 1) * US, (i * 7 % 1000 + 301) * US };

        assert_int_equal(stats_compute(samples, 1000, PERIOD, PERIOD, &s), 0);

        assert_int_equal(s.n, 1000);
        assert_int_equal(s.min_ns, 1 * US);
        assert_int_equal(s.p50_ns, 500 * US);
        assert_int_equal(s.p99_ns, 990 * US);
        assert_int_equal(s.p999_ns, 999 * US);
        assert_int_equal(s.max_ns, 1000 * US);
        assert_int_equal(s.done_max_ns, 1300 * US);
        assert_int_equal(s.overruns, 300);
        assert_int_equal(s.late_half, 500);
        assert_int_equal(s.within[0], 100);
        assert_int_equal(s.within[1], 200);
        assert_int_equal(s.within[2], 1000);
}

static void test_the_deadline_itself_is_in_time(void **state) {
        struct sample samples[] = { { 0, PERIOD }, { 0, PERIOD + 1 }, { PERIOD / 2, PERIOD } };
        struct stats s;

        assert_int_equal(stats_compute(samples, 3, PERIOD, PERIOD, &s), 0);
        assert_int_equal(s.overruns, 1);
        assert_int_equal(s.late_half, 0);
}

static void test_few_or_none(void **state) {
        struct sample one = { 5 * US, 6 * US };
        struct stats s;

        assert_int_equal(stats_compute(NULL, 0, PERIOD, PERIOD, &s), 0);
        assert_int_equal(s.n, 0);
        assert_int_equal(s.max_ns, 0);
        assert_int_equal(stats_compute(&one, 1, PERIOD, PERIOD, &s), 0);
        assert_int_equal(s.p50_ns, 5 * US);
        assert_int_equal(s.p999_ns, 5 * US);
}

/* Each value falls between its bucket's floor and the next bucket's. */
static void test_buckets_hold_their_values(void **state) {
        for (uint64_t ns = 0; ns <= UINT32_MAX; ns = ns + ns / 50 + 1) {
                size_t bucket = histogram_bucket((uint32_t) ns);

                assert_true(bucket < HISTOGRAM_BUCKETS);
                assert_true(histogram_floor_ns(bucket) <= ns);
                if (ns >= 4000)
                        assert_true(ns / US * US < histogram_floor_ns(bucket + 1));
        }
        assert_int_equal(histogram_bucket(UINT32_MAX), HISTOGRAM_BUCKETS - 1);
        assert_int_equal(histogram_bucket(999), 0);
}

static void test_smallest_buffer(void **state) {
        /* at 48000 Hz 48 frames are 1 ms; a fifth of a period is left for delays */
        assert_int_equal(stats_smallest_buffer(1, 48000, 2, 0.8), 16);
        assert_int_equal(stats_smallest_buffer(530 * US, 48000, 2, 0.8), 128);
        assert_int_equal(stats_smallest_buffer(540 * US, 48000, 2, 0.8), 256);
        assert_int_equal(stats_smallest_buffer(540 * US, 48000, 3, 0.8), 32);
        assert_int_equal(stats_smallest_buffer(4000000000U, 48000, 2, 0.8), 0);
}

struct split_case {
        const char *name;
        struct overrun overrun;
        enum cause cause;
        struct split split;
};

/* due at 10 ms, planned work 800 µs */
static const struct split_case splits[] = {
        { "late timer",
          { .due = 10000 * US, .woke = 12000 * US, .done = 12800 * US, .work_cpu = 800 * US },
          CAUSE_TIMER,
          { .timer = 2000 * US } },
        { "others ran before it woke up",
          { .due = 10000 * US,
            .woke = 12000 * US,
            .done = 12800 * US,
            .wake_wait = 1900 * US,
            .work_cpu = 800 * US },
          CAUSE_NOT_RUNNING,
          { .timer = 100 * US, .waiting = 1900 * US } },
        { "preempted at work",
          { .due = 10000 * US,
            .woke = 10010 * US,
            .done = 15810 * US,
            .work_wait = 5000 * US,
            .work_cpu = 800 * US },
          CAUSE_NOT_RUNNING,
          { .timer = 10 * US, .waiting = 5000 * US } },
        { "longer work",
          { .due = 10000 * US, .woke = 10010 * US, .done = 13010 * US, .work_cpu = 3000 * US },
          CAUSE_WORK,
          { .timer = 10 * US, .work = 2200 * US } },
        { "page fault",
          { .due = 10000 * US,
            .woke = 10010 * US,
            .done = 13810 * US,
            .work_cpu = 800 * US,
            .major_faults = 1 },
          CAUSE_PAGE_FAULT,
          { .timer = 10 * US, .fault = 3000 * US } },
};

static void test_split(void **state) {
        const struct split_case *c = *state;
        struct split split;

        assert_int_equal(overrun_split(&c->overrun, 800 * US, &split), c->cause);
        assert_int_equal(split.timer, c->split.timer);
        assert_int_equal(split.waiting, c->split.waiting);
        assert_int_equal(split.work, c->split.work);
        if (c->cause == CAUSE_PAGE_FAULT)
                assert_int_equal(split.fault, c->split.fault);
}

static void test_counters(void **state) {
        char before_text[] = "           CPU0       CPU2       \n"
                             "  1:         10          7   IO-APIC   1-edge      i8042\n"
                             "LOC:        100        200   Local timer interrupts\n"
                             "ERR:          3\n";
        char after_text[] = "           CPU0       CPU2       \n"
                            "  1:         99          9   IO-APIC   1-edge      i8042\n"
                            "LOC:        999        205   Local timer interrupts\n"
                            "ERR:          3\n";
        static struct counters before, after, sum;
        FILE *file;

        file = fmemopen(before_text, strlen(before_text), "r");
        counters_parse(&before, file, 2);
        (void) fclose(file);
        file = fmemopen(after_text, strlen(after_text), "r");
        counters_parse(&after, file, 2);
        (void) fclose(file);
        counters_add_difference(&sum, &before, &after);
        counters_sort(&sum);

        assert_int_equal(sum.n, 2);
        assert_string_equal(sum.all[0].name, "LOC");
        assert_int_equal(sum.all[0].count, 5);
        assert_string_equal(sum.all[1].name, "irq 1 i8042");
        assert_int_equal(sum.all[1].count, 2);
}

static void test_output_of_cyclictest(void **state) {
        char text[] = "# /dev/cpu_dma_latency set to 0us\n"
                      "# Histogram\n"
                      "000002 000010\n"
                      "000005 000085\n"
                      "000040 000004\n"
                      "000900 000001\n"
                      "# Total: 000000100\n"
                      "# Max Latencies: 00900\n";
        FILE *file = fmemopen(text, strlen(text), "r");
        uint32_t p50, p99;

        assert_int_equal(crosscheck_parse(file, &p50, &p99), 100);
        (void) fclose(file);
        assert_int_equal(p50, 5);
        assert_int_equal(p99, 40);
}

int main(void) {
        struct CMUnitTest tests[7 + sizeof(splits) / sizeof(splits[0])] = {
                cmocka_unit_test(test_figures),
                cmocka_unit_test(test_the_deadline_itself_is_in_time),
                cmocka_unit_test(test_few_or_none),
                cmocka_unit_test(test_buckets_hold_their_values),
                cmocka_unit_test(test_smallest_buffer),
                cmocka_unit_test(test_counters),
                cmocka_unit_test(test_output_of_cyclictest),
        };

        for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++)
                tests[7 + i] = (struct CMUnitTest){
                        .name = splits[i].name,
                        .test_func = test_split,
                        .initial_state = (void *) (uintptr_t) &splits[i],
                };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
