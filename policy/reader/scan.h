/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_SCAN_H
#define RTGRANT_POLICY_READER_SCAN_H

/*
 * Walks over a key file line by line: which line holds which section or key, and which lines are
 * neither. GKeyFile reads the values, but knows no line numbers and stops at the first fault.
 */

#include <stdbool.h>
#include <stddef.h>

enum scan_kind {
        SCAN_SECTION,
        SCAN_KEY,
        SCAN_FAULT,
};

struct scan_line {
        enum scan_kind kind;
        unsigned number;        /* from 1 */
        size_t offset;          /* of the line in the text */
        size_t length;          /* of the line without its end */
        const char *name;       /* of section or key; borrowed from the text */
        size_t name_length;
        const char *fault;      /* SCAN_FAULT: what is wrong; static */
};

struct scanner {
        const char *text;
        size_t length;
        size_t offset;
        unsigned number;
};

/* The next line that is not empty and not a comment; false past the last. */
bool scan_next(struct scanner *scanner, struct scan_line *ret_line);

#endif
