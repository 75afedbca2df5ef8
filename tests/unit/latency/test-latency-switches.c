/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <string.h>

#include "client/latency/switches.h"

#define SELF  4000001 /* beyond what the kernel numbers, so that /proc has none of them */
#define HOG   4000002
#define CHILD 4000003

static bool add(struct switches *s, uint32_t type, uint16_t misc, const void *body, size_t size,
                uint32_t tid, uint64_t time) {
        uint8_t record[256];
        struct perf_event_header header = { type, misc, (uint16_t) (sizeof(header) + size + 16) };
        uint32_t ids[2] = { tid, tid };

        memcpy(record, &header, sizeof(header));
        if (size > 0)
                memcpy(record + sizeof(header), body, size);
        memcpy(record + sizeof(header) + size, ids, sizeof(ids));
        memcpy(record + sizeof(header) + size + 8, &time, sizeof(time));
        return switches_add_record(s, record, header.size);
}

static void switch_to(struct switches *s, uint32_t tid, uint64_t time) {
        uint32_t other[2] = { 0 };

        assert_true(add(s, PERF_RECORD_SWITCH_CPU_WIDE, 0, other, sizeof(other), tid, time));
}

static void name(struct switches *s, uint32_t tid, const char *comm) {
        struct {
                uint32_t pid, tid;
                char comm[16];
        } body = { tid, tid, "" };

        memcpy(body.comm, comm, strlen(comm));
        assert_true(add(s, PERF_RECORD_COMM, 0, &body, sizeof(body), tid, 0));
}

static int setup(void **state) {
        static struct switches s;

        assert_int_equal(switches_init(&s, 0), 0);
        *state = &s;
        return 0;
}

static int teardown(void **state) {
        switches_done(*state);
        return 0;
}

static void test_who_had_the_cpu(void **state) {
        struct switches *s = *state;
        struct culprit c[CULPRITS_MAX];

        name(s, HOG, "the-hog");
        switch_to(s, SELF, 100);
        switch_to(s, HOG, 1000);
        switch_to(s, 0, 6000);
        switch_to(s, HOG, 6500);
        switch_to(s, SELF, 7000);

        assert_int_equal(switches_culprits(s, 2000, 8000, SELF, c), 2);
        assert_string_equal(c[0].comm, "the-hog");
        assert_int_equal(c[0].tid, HOG);
        assert_int_equal(c[0].ns, 4500); /* from the window's beginning, and both times */
        assert_string_equal(c[1].comm, "idle");
        assert_int_equal(c[1].ns, 500);
        assert_int_equal(switches_culprits(s, 7100, 8000, SELF, c), 0);
        assert_int_equal(switches_culprits(s, 6100, 6200, SELF, c), 1);
        assert_int_equal(c[0].ns, 100);
}

static void test_switching_out_says_nothing_new(void **state) {
        struct switches *s = *state;
        uint32_t other[2] = { 0 };

        assert_true(add(s, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, other,
                        sizeof(other), HOG, 5));
        assert_int_equal(s->n, 0);
}

static void test_children_and_new_names(void **state) {
        struct switches *s = *state;
        struct culprit c[CULPRITS_MAX];
        struct {
                uint32_t pid, ppid, tid, ptid;
                uint64_t time;
        } fork = { CHILD, HOG, CHILD, HOG, 1 };

        name(s, HOG, "make");
        assert_true(add(s, PERF_RECORD_FORK, 0, &fork, sizeof(fork), HOG, 1));
        switch_to(s, CHILD, 10);
        name(s, CHILD, "cc1");
        switch_to(s, HOG, 30);
        switch_to(s, CHILD, 60);

        assert_int_equal(switches_culprits(s, 10, 100, SELF, c), 3);
        assert_string_equal(c[0].comm, "cc1"); /* each by the name it had then */
        assert_int_equal(c[0].ns, 40);
        assert_string_equal(c[1].comm, "make");
        assert_int_equal(c[1].tid, HOG);
        assert_string_equal(c[2].comm, "make");
        assert_int_equal(c[2].tid, CHILD);
}

static void test_lost_records_are_counted(void **state) {
        struct switches *s = *state;
        uint64_t body[2] = { 1, 42 };

        assert_true(add(s, PERF_RECORD_LOST, 0, body, sizeof(body), 0, 0));
        assert_int_equal(s->lost, 42);
        switches_clear(s);
        assert_int_equal(s->lost, 0);
}

static void test_what_is_no_record(void **state) {
        struct switches *s = *state;
        struct perf_event_header header = { PERF_RECORD_COMM, 0, 64 };
        uint32_t two[2] = { 1, 1 };
        uint8_t bytes[32] = { 0 };

        memcpy(bytes, &header, sizeof(header));
        assert_false(switches_add_record(s, bytes, 4));
        assert_false(switches_add_record(s, bytes, sizeof(bytes))); /* says it is longer */
        assert_false(add(s, PERF_RECORD_COMM, 0, two, sizeof(two), 1, 1));
        assert_false(add(s, PERF_RECORD_FORK, 0, two, sizeof(two), 1, 1));
        assert_false(add(s, PERF_RECORD_LOST, 0, two, sizeof(two), 1, 1));
        assert_true(add(s, 9999, 0, two, sizeof(two), 1, 1)); /* of a newer kernel */
        assert_int_equal(s->n, 0);
}

static void test_it_is_bounded(void **state) {
        struct switches *s = *state;

        for (uint64_t i = 0; i < SWITCHES_MAX + 10; i++)
                switch_to(s, 0, i);
        assert_int_equal(s->n, SWITCHES_MAX);
        assert_int_equal(s->lost, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_who_had_the_cpu),        TEST(test_switching_out_says_nothing_new),
                TEST(test_children_and_new_names), TEST(test_lost_records_are_counted),
                TEST(test_what_is_no_record),      TEST(test_it_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
