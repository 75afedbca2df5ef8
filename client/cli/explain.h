/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_EXPLAIN_H
#define RTGRANT_CLI_EXPLAIN_H

/* What the broker answered, in words for people. Everything is made printable. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/json.h"
#include "client/rtgrant.h"

/*
 * Prints "PROGRAM: WHO: refused: why", and on lines of their own the rule and the help there is.
 * @who may be NULL.
 */
void explain_refusal(FILE *file, const char *program, const char *who,
                     const struct rtgrant_answer *answer);

/* Prints "  NAME: VALUE"; nothing if @value is "". */
void explain_line(FILE *file, const char *name, const char *value);

/* Besides the scheduling of a thread; 0 and NULL: not of interest. */
struct resources {
        uint64_t memlock_bytes;
        unsigned cpu_latency_us;
        unsigned block_max_sectors_kb;
        const char *block;      /* borrowed; a path or device */
        const char *irq;        /* borrowed; a device */
        int irq_priority;
};

bool resources_are_wanted(const struct resources *resources);

/* What is asked for, or given. */
struct values {
        bool has_policy;
        int policy;
        int priority;
        bool has_nice;
        int nice;
        struct resources resources;
};

/* "SCHED_RR 20", "SCHED_OTHER", "nice -5", "SCHED_RR 20, nice -5, memlock 512 MiB" */
#define EXPLAIN_VALUES_SIZE 320
void explain_values(char buffer[EXPLAIN_VALUES_SIZE], const struct values *values);

/* Adds "memlock_bytes", "cpu_latency_us" and so on; null what is not held. @answer may be NULL. */
void explain_resources_json(json_object *object, const struct rtgrant_answer *answer);

/* The part of @answer that corresponds to what was @asked. */
struct values explain_given(const struct values *asked, const struct rtgrant_answer *answer);

#endif
