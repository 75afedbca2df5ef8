/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "perf/switches.h"

#define SELF  4000001 /* beyond what the kernel numbers, so that /proc has none of them */
#define HOG   4000002
#define CHILD 4000003
#define ROOM  1000

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

        const struct switches_room room = { 0, ROOM, 64, 8 };

        assert_int_equal(switches_init(&s, 0, &room), 0);
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

static void test_who_follows(void **state) {
        struct switches *s = *state;
        struct culprit c[CULPRITS_MAX];
        uint32_t nobody[2] = { 0, 0 }, gone[2] = { UINT32_MAX, UINT32_MAX }, self[2] = { SELF, SELF };

        name(s, HOG, "the-hog");
        switch_to(s, HOG, 5);
        assert_true(add(s, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, nobody,
                        sizeof(nobody), HOG, 10));
        assert_int_equal(switches_culprits(s, 5, 100, SELF, c), 2);
        assert_string_equal(c[0].comm, "idle");
        assert_int_equal(c[0].ns, 90);
        assert_int_equal(c[1].ns, 5);
        assert_true(add(s, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, self,
                        sizeof(self), 0, 20));
        switch_to(s, SELF, 20); /* the same, from its own side */
        assert_int_equal(s->n, 3);
        assert_true(add(s, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, gone,
                        sizeof(gone), SELF, 30));
        assert_int_equal(s->list[3].tid, 0);
        assert_false(add(s, PERF_RECORD_SWITCH_CPU_WIDE, 0, NULL, 0, HOG, 40));
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

        assert_int_equal(switches_culprits(s, 10, 100, -1, c), 2);
        assert_string_equal(c[0].comm, "make"); /* both */
        assert_int_equal(c[0].ns, 50);
        assert_int_equal(c[0].tid, 0);
}

static void test_lost_records_are_counted(void **state) {
        struct switches *s = *state;
        uint64_t body[2] = { 1, 42 };

        assert_true(add(s, PERF_RECORD_LOST, 0, body, sizeof(body), 0, 99));
        assert_int_equal(s->lost, 42);
        assert_true(switches_are_incomplete(s, 98));
        assert_false(switches_are_incomplete(s, 99));
        switches_clear(s);
        assert_int_equal(s->lost, 0);
}

static void test_who_has_the_cpu_is_not_forgotten(void **state) {
        struct switches *s = *state;
        struct culprit c[CULPRITS_MAX];

        name(s, HOG, "the-hog");
        switch_to(s, SELF, 100);
        switch_to(s, HOG, 1000);
        switches_clear(s);
        assert_int_equal(s->n, 1);
        assert_int_equal(switches_culprits(s, 2000, 2500, SELF, c), 1);
        assert_string_equal(c[0].comm, "the-hog");
        assert_int_equal(c[0].ns, 500);
        assert_true(switches_are_incomplete(s, 999));
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

        assert_false(switches_are_incomplete(s, 0));
        for (uint64_t i = 0; i < ROOM + 10; i++)
                switch_to(s, i % 2 ? SELF : HOG, i);
        assert_int_equal(s->n, ROOM / 2 + 10);
        assert_int_equal(s->list[0].time_ns, ROOM / 2); /* the newest are kept */
        assert_true(switches_are_incomplete(s, ROOM / 2 - 1));
        assert_false(switches_are_incomplete(s, ROOM / 2));
}

static void test_so_are_its_names(void **state) {
        struct switches *s = *state;
        struct culprit c[CULPRITS_MAX];
        char text[16];

        for (uint32_t i = 0; i < 100; i++) {
                (void) snprintf(text, sizeof(text), "name %u", i);
                name(s, HOG + i, text);
        }
        switch_to(s, HOG + 99, 10);
        assert_int_equal(s->n_texts, 8);
        assert_int_equal(switches_culprits(s, 10, 20, SELF, c), 1);
        assert_string_equal(c[0].comm, "?");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_who_had_the_cpu),        TEST(test_who_follows),
                TEST(test_children_and_new_names), TEST(test_lost_records_are_counted),
                TEST(test_what_is_no_record),      TEST(test_it_is_bounded),
                TEST(test_so_are_its_names),       TEST(test_who_has_the_cpu_is_not_forgotten),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
