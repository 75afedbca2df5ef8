/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_EXPLAIN_H
#define RTGRANT_CLI_EXPLAIN_H

/* What the broker answered, in words for people. Everything is made printable. */

#include <stdbool.h>
#include <stdio.h>

#include "client/rtgrant.h"

/*
 * Prints "PROGRAM: WHO: refused: why", and on lines of their own the rule and the help there is.
 * @who may be NULL.
 */
void explain_refusal(FILE *file, const char *program, const char *who,
                     const struct rtgrant_answer *answer);

/* Prints "  NAME: VALUE"; nothing if @value is "". */
void explain_line(FILE *file, const char *name, const char *value);

/* What is asked for, or given. */
struct values {
        bool has_policy;
        int policy;
        int priority;
        bool has_nice;
        int nice;
};

/* "SCHED_RR 20", "SCHED_OTHER", "nice -5", "SCHED_RR 20, nice -5" */
#define EXPLAIN_VALUES_SIZE 64
void explain_values(char buffer[EXPLAIN_VALUES_SIZE], const struct values *values);

/* The part of @answer that corresponds to what was @asked. */
struct values explain_given(const struct values *asked, const struct rtgrant_answer *answer);

#endif
