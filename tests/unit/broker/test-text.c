/* SPDX-License-Identifier: MIT */

/* S31, S33: what a user wrote, on its way to somebody's terminal. */

#include <glib.h>
#include <string.h>

#include "broker/text.h"
#include "tests/unit/broker/broker-test.h"

#define ALL SIZE_MAX
#define ASCII                                                                                     \
        " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`"                       \
        "abcdefghijklmnopqrstuvwxyz{|}~"

struct escape_case {
        const char *name;
        const char *string;
        size_t length;
        size_t size;
        const char *expected;
};

static const struct escape_case cases[] = {
        { "plain", "jackd -R", ALL, 64, "jackd -R" },
        { "nothing", "", ALL, 64, "" },
        { "all that ASCII can print but the backslash",
          ASCII,
          ALL, 128,
          ASCII },
        { "newline", "a\nroot: granted", ALL, 64, "a\\x0aroot: granted" },
        { "carriage return and tab", "a\r\tb", ALL, 64, "a\\x0d\\x09b" },
        { "ESC", "\x1b[31mred", ALL, 64, "\\x1b[31mred" },
        { "BEL and backspace", "\a\b", ALL, 64, "\\x07\\x08" },
        { "the first control", "\x01", ALL, 64, "\\x01" },
        { "the last control, and blank", "\x1f ", ALL, 64, "\\x1f " },
        { "DEL", "\x7f", ALL, 64, "\\x7f" },
        { "a backslash cannot pretend", "\\x0a", ALL, 64, "\\x5cx0a" },

        { "two bytes", "gr\xc3\xbcn", ALL, 64, "gr\xc3\xbcn" },
        { "three bytes", "\xe2\x82\xac", ALL, 64, "\xe2\x82\xac" },
        { "four bytes", "\xf0\x9f\x8e\xb5", ALL, 64, "\xf0\x9f\x8e\xb5" },
        { "the first of two bytes that is no control", "\xc2\xa0", ALL, 64, "\xc2\xa0" },
        { "the last of two bytes", "\xdf\xbf", ALL, 64, "\xdf\xbf" },
        { "the first of three bytes", "\xe0\xa0\x80", ALL, 64, "\xe0\xa0\x80" },
        { "before the surrogates", "\xed\x9f\xbf", ALL, 64, "\xed\x9f\xbf" },
        { "behind the surrogates", "\xee\x80\x80", ALL, 64, "\xee\x80\x80" },
        { "the first of four bytes", "\xf0\x90\x80\x80", ALL, 64, "\xf0\x90\x80\x80" },
        { "the last of all", "\xf4\x8f\xbf\xbf", ALL, 64, "\xf4\x8f\xbf\xbf" },

        { "a lone continuation", "\x80x\xbf", ALL, 64, "\\x80x\\xbf" },
        { "a lead without its continuation", "\xc3x", ALL, 64, "\\xc3x" },
        { "a lead at the end", "x\xe2\x82", ALL, 64, "x\\xe2\\x82" },
        { "a lead at the length", "x\xe2\x82\xac", 3, 64, "x\\xe2\\x82" },
        { "latin-1", "gr\xfcn", ALL, 64, "gr\\xfcn" },
        { "NUL in two bytes", "\xc0\x80", ALL, 64, "\\xc0\\x80" },
        { "newline in two bytes", "\xc0\x8a", ALL, 64, "\\xc0\\x8a" },
        { "the last overlong of two bytes", "\xc1\xbf", ALL, 64, "\\xc1\\xbf" },
        { "newline in three bytes", "\xe0\x80\x8a", ALL, 64, "\\xe0\\x80\\x8a" },
        { "the last overlong of three bytes", "\xe0\x9f\xbf", ALL, 64, "\\xe0\\x9f\\xbf" },
        { "the last overlong of four bytes", "\xf0\x8f\xbf\xbf", ALL, 64, "\\xf0\\x8f\\xbf\\xbf" },
        { "the first surrogate", "\xed\xa0\x80", ALL, 64, "\\xed\\xa0\\x80" },
        { "the last surrogate", "\xed\xbf\xbf", ALL, 64, "\\xed\\xbf\\xbf" },
        { "above Unicode", "\xf4\x90\x80\x80", ALL, 64, "\\xf4\\x90\\x80\\x80" },
        { "five bytes", "\xf8\x88\x80\x80\x80", ALL, 64, "\\xf8\\x88\\x80\\x80\\x80" },
        { "bytes that are never UTF-8", "\xfe\xff", ALL, 64, "\\xfe\\xff" },

        { "the first C1 control", "\xc2\x80", ALL, 64, "\\xc2\\x80" },
        { "C1 control sequence introducer", "\xc2\x9b" "31m", ALL, 64, "\\xc2\\x9b31m" },
        { "the last C1 control", "\xc2\x9f", ALL, 64, "\\xc2\\x9f" },
        { "zero width space", "\xe2\x80\x8b", ALL, 64, "\\xe2\\x80\\x8b" },
        { "left-to-right mark", "\xe2\x80\x8e", ALL, 64, "\\xe2\\x80\\x8e" },
        { "right-to-left mark", "\xe2\x80\x8f", ALL, 64, "\\xe2\\x80\\x8f" },
        { "hyphen, next to that", "\xe2\x80\x90", ALL, 64, "\xe2\x80\x90" },
        { "line separator", "\xe2\x80\xa8", ALL, 64, "\\xe2\\x80\\xa8" },
        { "paragraph separator", "\xe2\x80\xa9", ALL, 64, "\\xe2\\x80\\xa9" },
        { "right-to-left override", "a\xe2\x80\xae" "b", ALL, 64, "a\\xe2\\x80\\xaeb" },
        { "left-to-right isolate", "\xe2\x81\xa6", ALL, 64, "\\xe2\\x81\\xa6" },
        { "pop directional isolate", "\xe2\x81\xa9", ALL, 64, "\\xe2\\x81\\xa9" },
        { "arabic letter mark", "\xd8\x9c", ALL, 64, "\\xd8\\x9c" },

        { "a NUL before the length", "abc\0def", 7, 64, "abc" },
        { "no NUL within the length", "abcdef", 3, 64, "abc" },
        { "length 0", "abc", 0, 64, "" },

        { "just fits", "abcde", ALL, 6, "abcde" },
        { "one too many", "abcdef", ALL, 6, "abcde" },
        { "room for nothing but the end", "abc", ALL, 1, "" },
        { "cut before two bytes", "abc\xc3\xbc", ALL, 5, "abc" },
        { "two bytes just fit", "abc\xc3\xbc", ALL, 6, "abc\xc3\xbc" },
        { "cut before three bytes", "abc\xe2\x82\xac", ALL, 6, "abc" },
        { "cut before four bytes", "abc\xf0\x9f\x8e\xb5", ALL, 7, "abc" },
        { "cut before an escape", "abc\n", ALL, 7, "abc" },
        { "an escape just fits", "abc\n", ALL, 8, "abc\\x0a" },
        { "what comes behind a cut is not taken instead", "ab\xe2\x82\xac" "c", ALL, 5, "ab" },
};

static void test_escape(void **state) {
        const struct escape_case *c = *state;
        char *buffer = malloc(c->size); /* of the very size, for the address sanitizer */

        assert_non_null(buffer);
        text_escape(buffer, c->size, c->string, c->length);
        assert_string_equal(buffer, c->expected);
        free(buffer);
}

/* The same numbers in every run. */
static unsigned next(uint32_t *seed) {
        *seed = *seed * 1664525 + 1013904223;
        return *seed >> 24;
}

static void test_whatever_comes_is_printable(void **state) {
        static const char *const bits[] = { "a",        "\\",           "\n",
                                            "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x8e\xb5",
                                            "\xc3",     "\x80",         "\xe2\x80\xae",
                                            "\xc2\x9b", "\xff",         "\xf4" };
        uint32_t seed = 1;

        for (unsigned round = 0; round < 20000; round++) {
                size_t size = 1 + next(&seed) % 40;
                char string[200] = "", *buffer = malloc(size);

                for (unsigned i = next(&seed) % 16; i > 0; i--)
                        strcat(string, bits[next(&seed) % ELEMENTS(bits)]);
                text_escape(buffer, size, string, sizeof(string));

                assert_true(g_utf8_validate(buffer, -1, NULL));
                for (const char *s = buffer; *s; s = g_utf8_next_char(s)) {
                        gunichar code = g_utf8_get_char(s);

                        assert_false(g_unichar_iscntrl(code));
                        assert_false(g_unichar_type(code) == G_UNICODE_FORMAT);
                }
                free(buffer);
        }
}

struct copy_case {
        const char *name;
        const char *string;
        size_t size;
        const char *expected;
};

static const struct copy_case copy_cases[] = {
        { "copy: fits", "abc", 8, "abc" },
        { "copy: just fits", "abc", 4, "abc" },
        { "copy: is cut", "abcd", 4, "abc" },
        { "copy: room for the end only", "abc", 1, "" },
};

static void test_copy(void **state) {
        const struct copy_case *c = *state;
        char *buffer = malloc(c->size);

        assert_non_null(buffer);
        text_copy(buffer, c->size, c->string);
        assert_string_equal(buffer, c->expected);
        free(buffer);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases) + ELEMENTS(copy_cases) + 1];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[n++] = test_row(cases[i].name, test_escape, &cases[i]);
        for (size_t i = 0; i < ELEMENTS(copy_cases); i++)
                tests[n++] = test_row(copy_cases[i].name, test_copy, &copy_cases[i]);
        tests[n++] = (struct CMUnitTest) cmocka_unit_test(test_whatever_comes_is_printable);

        return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
