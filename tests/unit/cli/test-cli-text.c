/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/explain.h"
#include "client/cli/scheduling.h"
#include "client/cli/text.h"

struct printable_case {
        const char *string;
        const char *expected;
};

static const struct printable_case printables[] = {
        { "", "" },
        { "jackd", "jackd" },
        { "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
        { "\033[31mred\033[0m", "\\x1b[31mred\\x1b[0m" },
        { "del\x7f", "del\\x7f" },
        { "back\\slash", "back\\slash" },
        { "\\x1b of the broker", "\\x1b of the broker" },
        { "Jürgen’s 鼓 𝄞", "Jürgen’s 鼓 𝄞" },
        { "C1 \xc2\x9b", "C1 \\xc2\\x9b" },
        { "no-break\xc2\xa0", "no-break\xc2\xa0" },
        { "turned \xe2\x80\xae", "turned \\xe2\\x80\\xae" },
        { "isolated \xe2\x81\xa6", "isolated \\xe2\\x81\\xa6" },
        { "line\xe2\x80\xa8", "line\\xe2\\x80\\xa8" },
        { "no utf-8 \xff\xfe", "no utf-8 \\xff\\xfe" },
        { "cut \xc3", "cut \\xc3" },
        { "cut \xe2\x82", "cut \\xe2\\x82" },
        { "overlong \xc0\x80", "overlong \\xc0\\x80" },
        { "overlong \xe0\x80\x80", "overlong \\xe0\\x80\\x80" },
        { "surrogate \xed\xa0\x80", "surrogate \\xed\\xa0\\x80" },
        { "too high \xf4\x90\x80\x80", "too high \\xf4\\x90\\x80\\x80" },
        { "alone \x80", "alone \\x80" },
};

static void test_printable(void **state) {
        for (size_t i = 0; i < ELEMENTS(printables); i++) {
                char buffer[128];

                text_printable(buffer, sizeof(buffer), printables[i].string);
                assert_string_equal(buffer, printables[i].expected);
        }
}

/* Whatever the size, the result ends between characters and escapes. */
static void test_printable_is_cut_whole(void **state) {
        static const char *const by_size[] = {
                [1] = "", [2] = "a", [3] = "a", [4] = "aü", [5] = "aü", [6] = "aü", [7] = "aü",
                [8] = "aü\\x0a", [9] = "aü\\x0ab", [10] = "aü\\x0ab",
        };

        for (size_t size = 1; size < ELEMENTS(by_size); size++) {
                char buffer[16];

                memset(buffer, 'x', sizeof(buffer));
                text_printable(buffer, size, "aü\nb");
                assert_string_equal(buffer, by_size[size]);
                for (size_t i = size; i < sizeof(buffer); i++)
                        assert_int_equal(buffer[i], 'x');
        }
}

static void test_width(void **state) {
        assert_int_equal(text_width(""), 0);
        assert_int_equal(text_width("jackd"), 5);
        assert_int_equal(text_width("Jürgen"), 6);
        assert_int_equal(text_width("𝄞"), 1);
}

static void test_duration(void **state) {
        static const struct {
                uint64_t ms;
                const char *expected;
        } cases[] = {
                { 0, "0 s" },
                { 999, "0 s" },
                { 59999, "59 s" },
                { 60000, "1 min" },
                { 3599999, "59 min" },
                { 3600000, "1 h" },
                { 86399999, "23 h" },
                { 86400000, "1 d" },
                { UINT64_MAX, "213503982334 d" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char buffer[TEXT_DURATION_SIZE];

                text_duration(buffer, sizeof(buffer), cases[i].ms);
                assert_string_equal(buffer, cases[i].expected);
        }
}

static void test_user(void **state) {
        char buffer[TEXT_USER_SIZE];

        text_user(buffer, sizeof(buffer), 0);
        assert_string_equal(buffer, "root");
        text_user(buffer, sizeof(buffer), 4294967000U);
        assert_string_equal(buffer, "4294967000");
}

static void test_number(void **state) {
        static const struct {
                const char *string;
                int result;
                int64_t number;
        } cases[] = {
                { "0", 0, 0 },
                { "99", 0, 99 },
                { "+5", 0, 5 },
                { "-5", 0, -5 },
                { " 7", 0, 7 },
                { "007", 0, 7 },
                { "100", -ERANGE, 0 },
                { "-21", -ERANGE, 0 },
                { "4294967301", -ERANGE, 0 },
                { "18446744073709551621", -ERANGE, 0 },
                { "99999999999999999999999999", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { " ", -EINVAL, 0 },
                { "-", -EINVAL, 0 },
                { "+-5", -EINVAL, 0 },
                { "5 ", -EINVAL, 0 },
                { "5x", -EINVAL, 0 },
                { "0x5", -EINVAL, 0 },
                { "1.5", -EINVAL, 0 },
                { "five", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int64_t number = 12345;

                assert_int_equal(text_parse_number(cases[i].string, -20, 99, &number),
                                 cases[i].result);
                assert_int_equal(number, cases[i].result < 0 ? 12345 : cases[i].number);
                assert_int_equal(text_is_number(cases[i].string), cases[i].result != -EINVAL);
        }
}

static void test_nearest(void **state) {
        static const char *const words[] = { "status", "list", "monitor", "why", "revoke", NULL };
        static const struct {
                const char *string;
                const char *expected;
        } cases[] = {
                { "stat", "status" },
                { "statsu", "status" },
                { "lsit", "list" },
                { "lst", "list" },
                { "monitro", "monitor" },
                { "wyh", "why" },
                { "revok", "revoke" },
                { "frobnicate", NULL },
                { "", NULL },
                { "a-word-that-is-longer-than-any-command-that-there-is", NULL },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const char *nearest = text_nearest(cases[i].string, words);

                if (cases[i].expected)
                        assert_string_equal(nearest, cases[i].expected);
                else
                        assert_null(nearest);
        }
}

static void test_values(void **state) {
        static const struct {
                struct values values;
                const char *expected;
        } cases[] = {
                { { .has_policy = true, .policy = SCHED_RR, .priority = 20 }, "SCHED_RR 20" },
                { { .has_policy = true, .policy = SCHED_OTHER }, "SCHED_OTHER" },
                { { .has_nice = true, .nice = -5 }, "nice -5" },
                { { .has_policy = true,
                    .policy = SCHED_FIFO,
                    .priority = 99,
                    .has_nice = true,
                    .nice = -20 },
                  "SCHED_FIFO 99, nice -20" },
                { { .has_policy = true, .policy = 4711 }, "another policy" },
                { { 0 }, "" },
        };

        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char buffer[EXPLAIN_VALUES_SIZE];

                explain_values(buffer, &cases[i].values);
                assert_string_equal(buffer, cases[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_printable),
                cmocka_unit_test(test_printable_is_cut_whole),
                cmocka_unit_test(test_width),
                cmocka_unit_test(test_duration),
                cmocka_unit_test(test_user),
                cmocka_unit_test(test_number),
                cmocka_unit_test(test_nearest),
                cmocka_unit_test(test_values),
        };

        return cmocka_run_group_tests_name("cli-text", tests, NULL, NULL);
}
