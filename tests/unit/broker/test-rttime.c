/* SPDX-License-Identifier: MIT */

/* /proc/PID/limits as the kernel writes it, and damaged; and the rule, on real processes. */

#include "broker/rttime.h"

#include <errno.h>
#include <sys/resource.h>

#include "tests/unit/broker/broker-test.h"

#define U RTTIME_UNLIMITED
#define HEAD "Limit                     Soft Limit           Hard Limit           Units     \n"
#define PRIORITY "Max realtime priority     95                   95                             \n"
#define TIMEOUT "Max realtime timeout      "

struct parse_case {
        const char *name;
        const char *text;
        int r;
        uint64_t soft_us, hard_us;
};

static const struct parse_case parse_cases[] = {
        { "both", HEAD PRIORITY TIMEOUT "150000               200000               us        \n", 0,
          150000, 200000 },
        { "none", HEAD PRIORITY TIMEOUT "unlimited            unlimited            us        \n", 0,
          U, U },
        { "soft alone", HEAD TIMEOUT "150000               unlimited            us        \n", 0,
          150000, U },
        { "0", HEAD TIMEOUT "0                    0                    us        \n", 0, 0, 0 },
        { "as large as the kernel's", HEAD TIMEOUT "18446744073709551614 18446744073709551614 us\n",
          0, U - 1, U - 1 },
        { "too large", HEAD TIMEOUT "18446744073709551616 200000               us\n", -EBADMSG },
        { "negative", HEAD TIMEOUT "-1                   200000               us\n", -EBADMSG },
        { "a word", HEAD TIMEOUT "never                200000               us\n", -EBADMSG },
        { "cut after the name", HEAD TIMEOUT, -EBADMSG },
        { "cut after the first", HEAD TIMEOUT "150000", -EBADMSG },
        { "cut in the second", HEAD TIMEOUT "150000               2000", -EBADMSG },
        { "not there", HEAD PRIORITY, -EBADMSG },
        { "not at the start of a line", HEAD "x" TIMEOUT "1    2     us\n", -EBADMSG },
        { "empty", "", -EBADMSG },
};

static void test_parse(void **state) {
        const struct parse_case *c = *state;
        struct rttime rttime = { 1, 2 };

        assert_int_equal(rttime_parse(c->text, &rttime), c->r);
        assert_true(rttime.soft_us == (c->r < 0 ? 1 : c->soft_us));
        assert_true(rttime.hard_us == (c->r < 0 ? 2 : c->hard_us));
}

struct rule_case {
        const char *name;
        rlim_t soft_us, hard_us;
        bool unset_accepted;
        enum reason reason;
};

static const struct rule_case rule_cases[] = {
        { "unset", RLIM_INFINITY, RLIM_INFINITY, false, REASON_RTTIME },
        { "unset, accepted", RLIM_INFINITY, RLIM_INFINITY, true, REASON_NONE },
        { "soft alone", 100000, RLIM_INFINITY, false, REASON_RTTIME },
        { "the longest", 200000, 200000, false, REASON_NONE },
        { "too long", 100000, 200001, false, REASON_RTTIME },
        { "too long, and unset accepted", 100000, 200001, true, REASON_RTTIME },
        { "the shortest", 5000, 5000, false, REASON_NONE },
        { "lethal", 4999, 200000, false, REASON_RTTIME_LETHAL },
        { "lethal, and unset accepted", 0, RLIM_INFINITY, true, REASON_RTTIME_LETHAL },
        { "0", 0, 0, true, REASON_RTTIME_LETHAL },
};

static void check_rule(const void *userdata) {
        const struct rule_case *c = userdata;
        const struct rlimit limit = { c->soft_us, c->hard_us };
        const struct policy policy = {
                .realtimekit_rttime_us = 200000,
                .realtimekit_rttime_unset = c->unset_accepted,
        };
        struct rttime now;

        if (setrlimit(RLIMIT_RTTIME, &limit) < 0)
                _exit(EXIT_SKIP);
        CHECK(rttime_read(getpid(), &now) >= 0);
        CHECK(rttime_judge(&policy, &now, /* required= */ true) == c->reason);
        CHECK(rttime_judge(&policy, &now, /* required= */ false) ==
              (c->reason == REASON_RTTIME_LETHAL ? REASON_RTTIME_LETHAL : REASON_NONE));
}

static void test_rule(void **state) {
        test_in_child(check_rule, *state);
}

static void test_nobody(void **state) {
        struct rttime now;

        assert_int_equal(rttime_read(1 << 22, &now), -ESRCH);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(parse_cases) + ELEMENTS(rule_cases) + 1];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(parse_cases); i++)
                tests[n++] = test_row(parse_cases[i].name, test_parse, &parse_cases[i]);
        for (size_t i = 0; i < ELEMENTS(rule_cases); i++)
                tests[n++] = test_row(rule_cases[i].name, test_rule, &rule_cases[i]);
        tests[n++] = (struct CMUnitTest) cmocka_unit_test(test_nobody);

        return cmocka_run_group_tests_name("rttime", tests, NULL, NULL);
}
