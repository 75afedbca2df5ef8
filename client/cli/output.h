/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_OUTPUT_H
#define RTGRANT_CLI_OUTPUT_H

/* Standard output: in colour only on a terminal that wants it, and whole or not a success. */

#include <stdbool.h>

enum style {
        STYLE_PLAIN,
        STYLE_BOLD,
        STYLE_DIM,
        STYLE_GOOD,
        STYLE_WARNING,
        STYLE_BAD,
};

/* Whether stdout is a terminal that shows colours, and NO_COLOR is not set. */
bool style_wanted(void);

/* The escape sequences before and after text of that style; "" if colours are not @wanted. */
const char *style_begin(bool wanted, enum style style);
const char *style_end(bool wanted, enum style style);

/*
 * To be called last: writes what is still buffered. Returns @status, or says what is wrong and
 * returns STATUS_FAILED if some of the output was lost. A closed stdout is the caller's wish.
 */
int output_finish(const char *program, int status);

#endif
