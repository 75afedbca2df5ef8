/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_LOOP_H
#define RTGRANT_LATENCY_LOOP_H

/*
 * The measured thread: wakes up each period, works for a part of it, as a sound program does, and
 * notes when. In its loop nothing is allocated, locked or printed; what it writes to was touched
 * and locked before.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "client/latency/grant.h"
#include "client/latency/stats.h"

/* Why a cycle was not done in time: what took most of it. */
enum cause {
        CAUSE_TIMER,       /* the timer or an interrupt came late, or the CPU slept deep */
        CAUSE_NOT_RUNNING, /* runnable, but others had the CPU */
        CAUSE_WORK,        /* it ran all the time, and longer than planned */
        CAUSE_PAGE_FAULT,  /* neither ran nor could: waited for memory */
};

const char *cause_to_string(enum cause cause);

/* All times in nanoseconds. */
struct overrun {
        uint64_t due, woke, done; /* CLOCK_MONOTONIC */
        uint64_t wake_wait;       /* runnable but not running, until it woke up */
        uint64_t work_wait;       /* the same, at work */
        uint64_t work_cpu;        /* CPU time of the work */
        uint32_t minor_faults, major_faults;
        int cpu;
};

/* The parts of the time from due to done: late interrupt, waiting, work beyond plan, blocked. */
struct split {
        uint64_t timer, waiting, work, fault;
};

/* @work_ns is what the work was planned to take. */
enum cause overrun_split(const struct overrun *overrun, uint64_t work_ns, struct split *ret);

#define OVERRUNS_MAX 256 /* of one slice that are looked into; more are only counted */

#define LOOP_COMM "rtgrant-measure" /* the name of its thread */

struct loop {
        /* what to do */
        uint64_t period_ns, deadline_ns, work_ns;
        uint64_t units;       /* of work in a cycle, see loop_calibrate() */
        int cpu;              /* -1: any */
        unsigned inject_each; /* a cycle in so many is delayed by inject_ns; 0: none */
        uint64_t inject_ns;
        const struct grant_request *grant; /* borrowed; NULL: as the thread is */

        /* what came of it */
        struct sample *samples; /* owned, locked if the limit allows it */
        atomic_size_t n; /* looked at while it runs; so are: */
        size_t n_max;
        struct overrun overruns[OVERRUNS_MAX];
        atomic_size_t n_overruns;
        size_t n_injected;
        uint64_t minor_faults, major_faults, preempted;
        struct grant_result granted;
        int policy_after, priority_after;
        bool locked;
        int error; /* negative errno if it could not run at all */
        atomic_bool ended;
        pid_t tid;
        pthread_t thread;
        uint64_t begin_ns, end_ns;
};

/* Units of work that take @work_ns of CPU time on this machine, as it is now. */
uint64_t loop_calibrate(uint64_t work_ns);

/* Errors: -ENOMEM. */
int loop_init(struct loop *loop, size_t n_max);
void loop_done(struct loop *loop);

/* Runs loop->n_max cycles in a thread of its own. Errors: pthread_create(3). */
int loop_start(struct loop *loop);
void loop_join(struct loop *loop);

uint64_t monotonic_ns(void);

#endif
