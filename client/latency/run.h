/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_RUN_H
#define RTGRANT_LATENCY_RUN_H

/*
 * One run: loads one after the other, and under each the variants (without the grant, with it) in
 * turns of a second, so that a machine that drifts does so for all of them.
 */

#include "client/latency/around.h"
#include "client/latency/counters.h"
#include "client/latency/governor.h"
#include "client/latency/live.h"
#include "client/latency/loop.h"
#include "client/latency/options.h"
#include "client/latency/watch.h"

#define VARIANTS_MAX 16
#define NOTED_MAX    64 /* overruns of a row that are told of */
#define STACK_SIZE   200

struct variant {
        char name[32];
        bool granted;
        struct grant_request grant;
        bool governor; /* with that raised */
        bool unusable; /* refused or not to be had; then: */
        int error;
        char why[700];
};

struct noted {
        struct overrun overrun;
        struct split split;
        enum cause cause;
        size_t n_culprits;
        struct culprit culprits[CULPRITS_MAX];
        bool incomplete; /* records were lost */
        struct surroundings around;
        char stack[STACK_SIZE]; /* the kernel's, of the first culprit; "": cannot tell, and why: */
        int stack_error;         /* 0 with neither: it was not looked for */
        uint64_t stack_after_ns; /* how long after the overrun it was read */
};

/* Why the kernel's stack of the culprit cannot be told; "" if it is. */
const char *noted_why_no_stack(const struct noted *noted);

/* A load under a variant. */
struct row {
        const struct load *load;
        const struct variant *variant;
        struct sample *samples; /* owned */
        size_t n, n_max;
        struct stats stats;
        struct histogram histogram;
        uint64_t minor_faults, major_faults, preempted, injected;
        struct noted noted[NOTED_MAX];
        size_t n_noted;
        struct counters counters;
        int policy, priority; /* in force at the end */
};

struct crosscheck {
        bool done;
        int policy;
        uint32_t own_p50_us, own_p99_us, other_p50_us, other_p99_us;
        uint64_t own_n, other_n;
        char why[128]; /* not done */
};

struct run {
        const struct latency_options *options;
        uint64_t period_ns, deadline_ns, work_ns, units;
        struct variant variants[VARIANTS_MAX];
        size_t n_variants;
        struct row *rows; /* owned; load by load */
        size_t n_rows;
        struct watch watch; /* who had the CPU */
        struct live live;
        struct governor governor;
        bool locked;
        bool interrupted;
        int max_sectors_kb; /* of the disk; -1: none */
        struct crosscheck crosscheck;
        char role[32];
};

int run_init(struct run *run, const struct latency_options *options);
void run_done(struct run *run);

/* Errors: -ENOMEM, those of fork(2). */
int run_all(struct run *run);

/* The variant that the verdict is about: the last with the grant, or NULL. */
const struct variant *run_granted_variant(const struct run *run);

/* The longest delay of a variant under all loads, in ns. */
uint64_t run_extra_ns(const struct run *run, const struct variant *variant);
uint64_t run_overruns(const struct run *run, const struct variant *variant);

/* cyclictest beside our own loop without work. */
void crosscheck_run(struct run *run);

/* The percentiles of "cyclictest --histogram": lines of µs and count. Returns the number of
 * samples. */
uint64_t crosscheck_parse(FILE *file, uint32_t *ret_p50_us, uint32_t *ret_p99_us);

#endif
