/* SPDX-License-Identifier: MIT */

/* Words and digits. The words of reasons are the policy's own. */

#include <string.h>

#include "policy/reason.h"
#include "tests/unit/lib/lib-test.h"

static void test_reasons(void **state) {
#define X(symbol, number, word)                                                                   \
        assert_int_equal(RTGRANT_REASON_##symbol, number);                                        \
        assert_string_equal(rtgrant_reason_to_string(number), word);
        REASONS(X)
#undef X
        assert_string_equal(rtgrant_reason_to_string(99), "unknown");
        assert_string_equal(rtgrant_reason_to_string(-1), "unknown");
}

static void test_events(void **state) {
        for (int kind = RTGRANT_EVENT_GRANTED; kind <= RTGRANT_EVENT_RESTARTED; kind++) {
                assert_string_not_equal(rtgrant_event_to_string(kind), "unknown");
                for (int other = RTGRANT_EVENT_GRANTED; other < kind; other++)
                        assert_string_not_equal(rtgrant_event_to_string(kind),
                                                rtgrant_event_to_string(other));
        }
        assert_string_equal(rtgrant_event_to_string(RTGRANT_EVENT_REVOKED), "revoked");
        assert_string_equal(rtgrant_event_to_string(0), "unknown");
}

static void test_ids(void **state) {
        static const char digits[] = "00ff0123456789abcdef000000000080";
        static const char *const bad[] = {
                "", "00ff0123456789abcdef00000000008", "00ff0123456789abcdef0000000000800",
                "00ff0123456789abcdeg000000000080", " 0ff0123456789abcdef000000000080",
                "0xff0123456789abcdef000000000080",
        };
        char buffer[RTGRANT_ID_STRING_SIZE];
        struct rtgrant_id id, untouched = { { 1, 2, 3 } };

        assert_int_equal(rtgrant_id_from_string(digits, &id), 0);
        assert_int_equal(id.bytes[0], 0x00);
        assert_int_equal(id.bytes[1], 0xff);
        assert_int_equal(id.bytes[15], 0x80);
        rtgrant_id_to_string(&id, buffer);
        assert_string_equal(buffer, digits);
        assert_int_equal(rtgrant_id_from_string("00FF0123456789ABCDEF000000000080", &id), 0);
        rtgrant_id_to_string(&id, buffer);
        assert_string_equal(buffer, digits);

        id = untouched;
        for (size_t i = 0; i < N_ELEMENTS(bad); i++)
                assert_int_equal(rtgrant_id_from_string(bad[i], &id), -EINVAL);
        assert_int_equal(rtgrant_id_from_string(NULL, &id), -EINVAL);
        assert_int_equal(rtgrant_id_from_string(digits, NULL), -EINVAL);
        assert_memory_equal(&id, &untouched, sizeof(id));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reasons),
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_ids),
        };

        return cmocka_run_group_tests_name("lib-names", tests, NULL, NULL);
}
