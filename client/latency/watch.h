/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_WATCH_H
#define RTGRANT_LATENCY_WATCH_H

/*
 * Who had the measured CPU: from the kernel's own records where we may read them, else from the
 * broker, where the policy or polkit allows it; then by name only.
 */

#include <stdbool.h>

#include "client/rtgrant.h"
#include "perf/switches.h"

#define WATCHED_MAX 64 /* CPUs whose switches are recorded */

struct watch {
        struct switches all[WATCHED_MAX];
        size_t n;
        struct rtgrant *handle; /* owned; that observes for us; NULL: none */
        int cpu;                /* that it observes */
        bool known;             /* somebody can be named */
        char why[700];          /* not */
};

/* By our own right, to be called before that is dropped. @cpu -1: all that we may run on. */
void watch_open(struct watch *watch, int cpu);
void watch_done(struct watch *watch);

/*
 * By the broker's, if our own did not suffice: for one CPU. Again, it lasts longer. @may_ask: the
 * user may be asked for a password. Nothing is done while nothing is measured but this.
 */
void watch_ask_broker(struct watch *watch, const char *socket, int cpu, bool may_ask);

/* Forgets what was, and from then on is to be read every few milliseconds. */
void watch_begin(struct watch *watch);
void watch_read(struct watch *watch);

/* All until @end_ns is in. Waits for the broker, which reads every 20 ms, for a second at most. */
void watch_end(struct watch *watch, uint64_t end_ns);

/*
 * As switches_culprits(). From the broker without thread ids: those named @self_comm are left out
 * instead. *ret_incomplete: something of that time may be missing.
 */
size_t watch_culprits(struct watch *watch, int cpu, uint64_t from_ns, uint64_t to_ns, pid_t self,
                      const char *self_comm, struct culprit culprits[CULPRITS_MAX],
                      bool *ret_incomplete);

#endif
