/* SPDX-License-Identifier: MIT */

/* S6: numbers that the kernel takes for "myself" or "everybody", or that cut off become others. */

#include <errno.h>

#include "broker/ids.h"
#include "tests/unit/broker/broker-test.h"

struct id_case {
        const char *name;
        uint64_t number;
        pid_t id;               /* 0: refused */
};

static const struct id_case cases[] = {
        { "0: myself", 0, 0 },
        { "1", 1, 1 },
        { "an ordinary one", 27942, 27942 },
        { "the highest of the kernel", ID_MAX, 4194304 },
        { "one above that", ID_MAX + UINT64_C(1), 0 },
        { "2^31 - 1", INT32_MAX, 0 },
        { "2^31", UINT64_C(1) << 31, 0 },
        { "-1 in 32 bits", UINT32_MAX, 0 },
        { "2^32: cut off 0", UINT64_C(1) << 32, 0 },
        { "2^32 + 1: cut off 1", (UINT64_C(1) << 32) + 1, 0 },
        { "2^63", UINT64_C(1) << 63, 0 },
        { "2^63 + 1", (UINT64_C(1) << 63) + 1, 0 },
        { "-1", UINT64_MAX, 0 },
};

static void test_id(void **state) {
        const struct id_case *c = *state;
        pid_t id = -7;
        int r;

        r = id_parse(c->number, &id);

        assert_int_equal(r, c->id > 0 ? 0 : -EINVAL);
        assert_int_equal(id, c->id > 0 ? c->id : -7);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases)];

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[i] = test_row(cases[i].name, test_id, &cases[i]);

        return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
