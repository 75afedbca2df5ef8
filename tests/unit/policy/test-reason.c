/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/reason.h"

static const struct {
        int number;
        const char *word;
} reasons[] = {
#define X(symbol, number, word) { number, word },
        REASONS(X)
#undef X
};

#define N_REASONS (sizeof(reasons) / sizeof(reasons[0]))

static bool is_word(const char *s) {
        for (; *s; s++)
                if (!(*s >= 'a' && *s <= 'z') && *s != '-')
                        return false;

        return true;
}

static void test_every_reason_has_its_word(void **state) {
        for (size_t i = 0; i < N_REASONS; i++) {
                assert_string_equal(reason_to_string((enum reason) reasons[i].number),
                                    reasons[i].word);
                assert_string_not_equal(reasons[i].word, "unknown");
                assert_true(is_word(reasons[i].word));

                for (size_t j = 0; j < i; j++) {
                        assert_int_not_equal(reasons[i].number, reasons[j].number);
                        assert_string_not_equal(reasons[i].word, reasons[j].word);
                }
        }
}

static void test_other_numbers_have_none(void **state) {
        for (int number = -1; number <= 300; number++) {
                bool known = false;

                for (size_t i = 0; i < N_REASONS; i++)
                        known = known || reasons[i].number == number;
                if (!known)
                        assert_string_equal(reason_to_string((enum reason) number), "unknown");
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_reason_has_its_word),
                cmocka_unit_test(test_other_numbers_have_none),
        };

        return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
