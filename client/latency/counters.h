/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_COUNTERS_H
#define RTGRANT_LATENCY_COUNTERS_H

/* Interrupts, soft interrupts and sleep states of one CPU: which of them occurred how often. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define COUNTERS_MAX    192
#define IDLE_STATES_MAX 16
#define COUNTER_IDLE    "idle " /* what the name of a sleep state is put behind */

struct counters {
        size_t n;
        struct counter {
                char name[40];
                uint64_t count;
        } all[COUNTERS_MAX];
        uint64_t idle_us[IDLE_STATES_MAX]; /* slept in each state, the deepest last */
};

/* @cpu -1: the sum of all. What cannot be read is left out. */
void counters_read(struct counters *counters, int cpu);

/* A table as /proc/interrupts and /proc/softirqs are: a line of CPUs, then one for each source. */
void counters_parse(struct counters *counters, FILE *file, int cpu);

/* 0 if there is none of that name. */
uint64_t counters_get(const struct counters *counters, const char *name);

/* Of a sleep state; false if the CPU has no such. */
bool counters_idle_name(int cpu, int state, char *ret, size_t size);

/* That it takes to wake up from one, says the driver; 0 if it says nothing. */
unsigned counters_exit_latency_us(int cpu, int state);

/* Adds what was counted from @before to @after, to entries of the same name. */
void counters_add_difference(struct counters *sum, const struct counters *before,
                             const struct counters *after);

/* Leaves out those whose names begin with @prefix. */
void counters_drop(struct counters *counters, const char *prefix);

/* The most frequent first; those that did not occur are left out. */
void counters_sort(struct counters *counters);

#endif
