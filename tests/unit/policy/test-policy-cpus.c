/* SPDX-License-Identifier: MIT */

/* Sets of CPUs, as text and back. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "policy/cpus.h"

static void test_texts(void **state) {
        static const struct {
                const char *text;
                int error;
                const char *again; /* NULL: the same */
        } rows[] = {
                { "0" },
                { "1023" },
                { "0-1" },
                { "0,2-3,63-64,900" },
                { "" },
                { "3,1", 0, "1,3" },
                { "1,2,3", 0, "1-3" },
                { "0-5,2-9", 0, "0-9" },
                { "007", 0, "7" },
                { "1024", -ERANGE },
                { "0-1024", -ERANGE },
                { "99999999999999999999", -ERANGE },
                { "3-1", -EINVAL },
                { "1,", -EINVAL },
                { ",1", -EINVAL },
                { "1,,2", -EINVAL },
                { "-1", -EINVAL },
                { "1-", -EINVAL },
                { "1-2-3", -EINVAL },
                { "0x1", -EINVAL },
                { " 1", -EINVAL },
                { "1 ", -EINVAL },
                { "all", -EINVAL },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct cpus cpus;
                char text[64];

                if (cpus_parse(rows[i].text, &cpus) != rows[i].error)
                        fail_msg("\"%s\" is not %d", rows[i].text, rows[i].error);
                if (rows[i].error != 0)
                        continue;
                cpus_format(&cpus, text, sizeof(text));
                assert_string_equal(text, rows[i].again ? rows[i].again : rows[i].text);
                assert_int_equal(cpus_is_empty(&cpus), rows[i].text[0] == '\0');
        }
}

/* Whatever the room, what is there is whole numbers and ends. */
static void test_what_does_not_fit(void **state) {
        struct cpus cpus;
        char text[80];

        assert_int_equal(cpus_parse("0,2,4,6,8,10,12,14,16,18", &cpus), 0);
        cpus_format(&cpus, text, sizeof(text));
        assert_string_equal(text, "0,2,4,6,8,10,12,14,16,18");
        cpus_format(&cpus, text, 20);
        assert_string_equal(text, "0,2,4,6...");
        cpus_format(&cpus, text, 1);
        assert_string_equal(text, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_what_does_not_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
