/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_GOVERNOR_H
#define RTGRANT_LATENCY_GOVERNOR_H

/*
 * The frequency governor of the measured CPU: set to "performance" for a variant, and put back after
 * each slice of it. By our own right, since the broker has no lease of it.
 */

#include <stdbool.h>

struct governor {
        int fd;         /* owned; -1: none that we may write */
        bool changed;   /* "performance" is there by us */
        char was[32];   /* before; "": there is no such thing here */
};

/* @sysroot: "" or where /sys is looked for. Before rights are dropped. @cpu -1: none. */
void governor_open(struct governor *governor, const char *sysroot, int cpu);

/* Why it cannot be compared; "" if it can. */
const char *governor_why_not(const struct governor *governor);

/* Errors: write(2). */
int governor_raise(struct governor *governor);
void governor_restore(struct governor *governor);

void governor_done(struct governor *governor);

#endif
