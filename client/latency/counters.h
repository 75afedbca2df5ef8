/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_COUNTERS_H
#define RTGRANT_LATENCY_COUNTERS_H

/* Interrupts, soft interrupts and sleep states of one CPU: which of them occurred how often. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COUNTERS_MAX 192

struct counters {
        size_t n;
        struct counter {
                char name[40];
                uint64_t count;
        } all[COUNTERS_MAX];
};

/* @cpu -1: the sum of all. What cannot be read is left out. */
void counters_read(struct counters *counters, int cpu);

/* A table as /proc/interrupts and /proc/softirqs are: a line of CPUs, then one for each source. */
void counters_parse(struct counters *counters, FILE *file, int cpu);

/* Adds what was counted from @before to @after, to entries of the same name. */
void counters_add_difference(struct counters *sum, const struct counters *before,
                             const struct counters *after);

/* The most frequent first; those that did not occur are left out. */
void counters_sort(struct counters *counters);

#endif
