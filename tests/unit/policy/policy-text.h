/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_POLICY_TEXT_H
#define RTGRANT_TESTS_POLICY_TEXT_H

/* Texts of policies, and rows of them: one row, one test. */

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <cmocka.h>

#include "policy/policy-file.h"

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* A role to go with what is about [Broker]; one line. */
#define R "[Role r]\n"
#define DOTTED_12 "org.example."
#define DOTTED_120                                                                                \
        DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 \
        "org.example2"
#define NAME_31 "abcdefghijklmnopqrstuvwxyz01_-Z"

static inline struct policy_store *parse(const char *text) {
        struct policy_store *store = NULL;
        char *messages = NULL;
        int r;

        r = policy_store_parse("p", text, strlen(text), &store, &messages);
        if (r < 0)
                print_error("%s", messages);
        assert_int_equal(r, 0);
        assert_string_equal(messages, "");
        free(messages);
        return store;
}

static inline struct CMUnitTest row(const char *name, CMUnitTestFunction function, const void *state) {
        return (struct CMUnitTest) {
                .name = name,
                .test_func = function,
                .initial_state = (void *) state,
        };
}

#endif
