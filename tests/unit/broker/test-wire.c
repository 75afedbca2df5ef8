/* SPDX-License-Identifier: MIT */

/* S35: records as they should be, and as they should not. */

#include <string.h>

#include "broker/wire.h"
#include "client/rtgrant.h"
#include "policy/reason.h"
#include "tests/unit/broker/broker-test.h"

/* The numbers of the reasons are one contract in two headers: policy/ depends on nothing. */
#define X(symbol, number, word)                                                                   \
        static_assert((int) REASON_##symbol == (int) RTGRANT_REASON_##symbol, "same number");
REASONS(X)
#undef X

struct form {
        const char *name;
        uint16_t verb;
        size_t size;
};

static const struct form forms[] = {
        { "HELLO", WIRE_HELLO, sizeof(struct wire_hello) },
        { "ACQUIRE", WIRE_ACQUIRE, sizeof(struct wire_acquire) },
        { "UPDATE", WIRE_UPDATE, sizeof(struct wire_update) },
        { "RENEW", WIRE_RENEW, sizeof(struct wire_lease_ref) },
        { "RELEASE", WIRE_RELEASE, sizeof(struct wire_lease_ref) },
        { "LIST", WIRE_LIST, sizeof(struct wire_list) },
        { "WATCH", WIRE_WATCH, sizeof(struct wire_list) },
        { "REVOKE", WIRE_REVOKE, sizeof(struct wire_lease_ref) },
        { "RELOAD", WIRE_RELOAD, sizeof(struct wire_plain) },
        { "RESTORE_ALL", WIRE_RESTORE_ALL, sizeof(struct wire_plain) },
        { "POLICY", WIRE_POLICY, sizeof(struct wire_list) },
        { "WHY", WIRE_WHY, sizeof(struct wire_acquire) },
        { "OBSERVE", WIRE_OBSERVE, sizeof(struct wire_observe) },
        { "OCCUPANTS", WIRE_OCCUPANTS, sizeof(struct wire_occupants) },
};

/* A record in memory of its very size, for the address sanitizer; every byte of it is set. */
static uint8_t *make_record(const struct form *form, size_t length) {
        const struct wire_header header = {
                .size = (uint32_t) length,
                .version = WIRE_VERSION,
                .verb = form->verb,
                .serial = UINT64_C(0x1122334455667788),
        };
        uint8_t *record = calloc(1, length > 0 ? length : 1);

        assert_non_null(record);
        for (size_t i = sizeof(header); i < length && i < form->size; i++)
                record[i] = (uint8_t) (i % 251 + 1);
        memcpy(record, &header, length < sizeof(header) ? length : sizeof(header));
        if ((form->verb == WIRE_ACQUIRE || form->verb == WIRE_WHY) &&
            length >= sizeof(struct wire_acquire)) {
                struct wire_acquire *acquire = (struct wire_acquire *) record;

                acquire->role[WIRE_ROLE_SIZE - 1] = '\0';
                acquire->reason[WIRE_REASON_SIZE - 1] = '\0';
                acquire->irq[WIRE_DEVICE_SIZE - 1] = '\0';
                acquire->block[WIRE_DEVICE_SIZE - 1] = '\0';
                acquire->feeds[WIRE_DEVICE_SIZE - 1] = '\0';
        }
        return record;
}

/* What is behind the decoded record must be zero, whatever was there before. */
static enum reason decode(const uint8_t *record, size_t length, union wire_request *ret) {
        memset(ret, 0xaa, sizeof(*ret));
        return wire_decode(record, length, ret);
}

static void assert_is(const union wire_request *request, const uint8_t *record, size_t size) {
        assert_memory_equal(request, record, size);
        for (size_t i = size; i < sizeof(*request); i++)
                assert_int_equal(((const uint8_t *) request)[i], 0);
}

static void test_exact(void **state) {
        const struct form *form = *state;
        uint8_t *record = make_record(form, form->size);
        union wire_request request;

        assert_int_equal(decode(record, form->size, &request), REASON_NONE);
        assert_is(&request, record, form->size);
        free(record);
}

static void test_every_shorter_one(void **state) {
        const struct form *form = *state;

        for (size_t length = 0; length < form->size; length++) {
                uint8_t *record = make_record(form, length);
                union wire_request request;

                assert_int_equal(decode(record, length, &request), REASON_MALFORMED);
                /* the header comes back as far as it arrived, for the answer */
                assert_memory_equal(&request, record,
                                    length < sizeof(request.header) ? length
                                                                    : sizeof(request.header));
                free(record);
        }
}

static void test_longer_with_zeroes(void **state) {
        static const size_t more[] = { 1, 2, 7, 8, 64, 1000 };
        const struct form *form = *state;
        union wire_request request;

        for (size_t i = 0; i <= ELEMENTS(more); i++) {
                size_t length = i < ELEMENTS(more) ? form->size + more[i] : WIRE_RECORD_MAX;
                uint8_t *record = make_record(form, length);

                assert_int_equal(decode(record, length, &request), REASON_NONE);
                assert_is(&request, record, form->size);
                free(record);
        }
}

static void test_longer_with_something(void **state) {
        const struct form *form = *state;
        union wire_request request;

        for (size_t at = form->size; at < form->size + 40; at++) {
                uint8_t *record = make_record(form, form->size + 40);

                record[at] = 1;
                assert_int_equal(decode(record, form->size + 40, &request), REASON_MALFORMED);
                assert_int_equal(request.header.serial, UINT64_C(0x1122334455667788));
                free(record);
        }
}

static void test_oversize(void **state) {
        const struct form *form = *state;
        uint8_t *record = make_record(form, WIRE_RECORD_MAX + 1);
        union wire_request request;

        assert_int_equal(decode(record, WIRE_RECORD_MAX + 1, &request), REASON_MALFORMED);
        free(record);
}

static void test_lying_size(void **state) {
        const struct form *form = *state;
        const uint32_t lies[] = {
                0,
                1,
                sizeof(struct wire_header),
                (uint32_t) form->size - 1,
                (uint32_t) form->size + 1,
                WIRE_RECORD_MAX,
                UINT32_MAX,
                (uint32_t) form->size | 0x10000,
                (uint32_t) form->size | 0x80000000,
        };
        union wire_request request;

        for (size_t i = 0; i < ELEMENTS(lies); i++) {
                uint8_t *record = make_record(form, form->size);

                if (lies[i] != form->size) {
                        ((struct wire_header *) record)->size = lies[i];
                        assert_int_equal(decode(record, form->size, &request), REASON_MALFORMED);
                }
                free(record);
        }
}

static void test_version(void **state) {
        static const uint16_t versions[] = { 0, WIRE_VERSION + 1, 0x100 | WIRE_VERSION,
                                             0x8000 | WIRE_VERSION, UINT16_MAX };
        const struct form *form = *state;
        union wire_request request;

        for (size_t i = 0; i < ELEMENTS(versions); i++) {
                uint8_t *record = make_record(form, form->size);

                ((struct wire_header *) record)->version = versions[i];
                assert_int_equal(decode(record, form->size, &request), REASON_VERSION);
                assert_int_equal(request.header.serial, UINT64_C(0x1122334455667788));
                assert_int_equal(request.header.verb, form->verb);
                free(record);
        }
}

static const struct {
        const char *name;
        void (*test)(void **state);
} form_tests[] = {
        { "exact", test_exact },
        { "every shorter one", test_every_shorter_one },
        { "longer, with zeroes", test_longer_with_zeroes },
        { "longer, with something", test_longer_with_something },
        { "oversize", test_oversize },
        { "a size that lies", test_lying_size },
        { "another version", test_version },
};

/* ---- verbs that are none ---- */

struct verb_case {
        const char *name;
        uint16_t verb;
};

static const struct verb_case verb_cases[] = {
        { "verb 0", 0 },
        { "the verb behind the last", WIRE_OCCUPANTS + 1 },
        { "a verb of the far future", 0x3fff },
        { "a reply", WIRE_HELLO | WIRE_REPLY },
        { "an event", WIRE_EVENT },
        { "the last verb of all", UINT16_MAX },
};

static void test_verb(void **state) {
        const struct verb_case *c = *state;
        const struct form form = { "", c->verb, sizeof(struct wire_hello) };
        uint8_t *record = make_record(&form, form.size);
        union wire_request request;

        assert_int_equal(decode(record, form.size, &request), REASON_UNSUPPORTED);
        assert_int_equal(request.header.verb, c->verb);
        assert_int_equal(request.header.serial, UINT64_C(0x1122334455667788));
        free(record);
}

/* ---- strings ---- */

struct string_case {
        const char *name;
        size_t offset;
        size_t size;
};

#define STRING(member) \
        offsetof(struct wire_acquire, member), sizeof(((struct wire_acquire *) NULL)->member)

static const struct string_case string_cases[] = {
        { "role", STRING(role) },
        { "reason", STRING(reason) },
        { "irq", STRING(irq) },
        { "block", STRING(block) },
        { "feeds", STRING(feeds) },
};

static void test_string(void **state) {
        const struct string_case *c = *state;
        uint8_t *record = make_record(&forms[1], sizeof(struct wire_acquire));
        union wire_request request;

        /* full to the last byte but one */
        memset(record + c->offset, 'x', c->size - 1);
        record[c->offset + c->size - 1] = '\0';
        assert_int_equal(decode(record, sizeof(struct wire_acquire), &request), REASON_NONE);

        record[c->offset + c->size - 1] = 'x';
        assert_int_equal(decode(record, sizeof(struct wire_acquire), &request), REASON_MALFORMED);
        free(record);
}

/* ---- answers ---- */

static const struct wire_header asked = {
        .size = 40,
        .version = WIRE_VERSION,
        .verb = WIRE_RENEW,
        .serial = UINT64_MAX - 1,
};

static void assert_header(const struct wire_header *header, size_t size) {
        assert_int_equal(header->size, size);
        assert_int_equal(header->version, WIRE_VERSION);
        assert_int_equal(header->verb, WIRE_RENEW | WIRE_REPLY);
        assert_int_equal(header->serial, UINT64_MAX - 1);
}

static void test_success_ends_before_the_explanation(void **state) {
        struct wire_answer answer = { .reason = REASON_NONE, .flags = WIRE_ANSWER_CLAMPED };
        size_t size = wire_finish_answer(&answer, &asked);

        assert_int_equal(size, offsetof(struct wire_answer, explanation));
        assert_header(&answer.header, size);
        assert_int_equal(answer.flags, WIRE_ANSWER_CLAMPED);
}

static void test_refusal_is_whole(void **state) {
        struct wire_answer answer = { .reason = REASON_RATE };
        size_t size = wire_finish_answer(&answer, &asked);

        assert_int_equal(size, sizeof(answer));
        assert_header(&answer.header, size);
        assert_int_equal(answer.reason, REASON_RATE);
}

static void test_finish(void **state) {
        struct wire_hello_reply reply = { .uid = 7 };

        wire_finish(&reply.header, &asked, sizeof(reply));
        assert_header(&reply.header, sizeof(reply));
        assert_int_equal(reply.uid, 7);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_success_ends_before_the_explanation),
                cmocka_unit_test(test_refusal_is_whole),
                cmocka_unit_test(test_finish),
        };
        static char names[ELEMENTS(forms) * ELEMENTS(form_tests)][48];
        struct CMUnitTest tests[ELEMENTS(names) + ELEMENTS(verb_cases) + ELEMENTS(string_cases) +
                                ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(forms); i++)
                for (size_t j = 0; j < ELEMENTS(form_tests); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", forms[i].name,
                                        form_tests[j].name);
                        tests[n] = test_row(names[n], form_tests[j].test, &forms[i]);
                }
        for (size_t i = 0; i < ELEMENTS(verb_cases); i++)
                tests[n++] = test_row(verb_cases[i].name, test_verb, &verb_cases[i]);
        for (size_t i = 0; i < ELEMENTS(string_cases); i++)
                tests[n++] = test_row(string_cases[i].name, test_string, &string_cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
