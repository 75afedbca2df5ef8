/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_OPTIONS_H
#define RTGRANT_LATENCY_OPTIONS_H

/* The command line of rtgrant-latency. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/latency/grant.h"
#include "client/latency/load.h"

#define LATENCY_PROGRAM "rtgrant-latency"
#define LOADS_MAX       16

enum fail_on {
        FAIL_ON_OVERRUNS = 1 << 0, /* with the grant */
        FAIL_ON_LATE = 1 << 1,     /* later than half a period, with the grant */
        FAIL_ON_WORSE = 1 << 2,    /* more overruns than in the older run */
};

/* What is tried with and without, beside the priority. */
enum compared {
        COMPARE_PRIORITY = 1 << 0,
        COMPARE_CPU_LATENCY = 1 << 1,
        COMPARE_IRQ = 1 << 2,
        COMPARE_GOVERNOR = 1 << 3,
};

/* Strings are borrowed from argv. */
struct latency_options {
        bool help, version;
        unsigned rate, frames, periods, load_percent;
        int cpu;           /* -1: any */
        double duration_s; /* of each load, with and without each */
        const struct load *loads[LOADS_MAX];
        size_t n_loads;
        const char *command;   /* of the load "with"; NULL if none */
        const char *directory; /* for the disk's loads */
        const char *stream;    /* NULL: rate and frames as given */
        const char *sysroot;   /* where /proc is looked for by stream */
        struct grant_request grant;
        unsigned compare; /* enum compared */
        bool sweep_max_sectors;
        const char *old_run; /* a file of --json */
        const char *plot;    /* a file, .svg or .png */
        bool json, csv, cyclictest;
        unsigned fail_on;   /* enum fail_on */
        unsigned inject_us; /* for testing: own work that takes longer by so much */
        const char *as_user;
        bool ask; /* the user may be asked for a password, to see who has the CPU */
};

/* What is wrong is said on stderr. Returns 0, or the exit status. */
int latency_options_parse(struct latency_options *ret, int argc, char **argv);

void latency_help(void);

#endif
