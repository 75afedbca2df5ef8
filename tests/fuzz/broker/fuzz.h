/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_FUZZ_BROKER_FUZZ_H
#define RTGRANT_TESTS_FUZZ_BROKER_FUZZ_H

/* What the fuzzers of the broker share: what must hold of whatever comes out. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                \
        do {                                                                              \
                if (!(condition)) {                                                       \
                        (void) fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, \
                                       #condition);                                       \
                        abort();                                                          \
                }                                                                         \
        } while (false)

/* A copy with a NUL behind it, in memory of its very size. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1);

        REQUIRE(text);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = '\0';
        return text;
}

/* @data between two texts of ours. */
static inline char *fuzz_between(const char *before, const uint8_t *data, size_t size,
                                 const char *behind, size_t *ret_length) {
        size_t n_before = strlen(before), n_behind = strlen(behind);
        char *text = malloc(n_before + size + n_behind + 1);

        REQUIRE(text);
        memcpy(text, before, n_before);
        if (size > 0)
                memcpy(text + n_before, data, size);
        memcpy(text + n_before + size, behind, n_behind + 1);
        *ret_length = n_before + size + n_behind;
        return text;
}

#endif
