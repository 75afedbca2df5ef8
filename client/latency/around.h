/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_AROUND_H
#define RTGRANT_LATENCY_AROUND_H

/*
 * What happened on a CPU around a moment: interrupts, soft interrupts and sleep states, from
 * snapshots of the kernel's counters that are taken beside the measured thread, never by it. They
 * tell of the time between two snapshots, which is longer than the moment, and say how long.
 */

#include "client/latency/counters.h"

#define SNAPSHOTS_MAX 64
#define SNAPSHOT_NS   20000000ULL
#define AROUND_MAX    8

/* Between the snapshots next to it; both times 0 if there are none. */
struct surroundings {
        uint64_t from_ns, to_ns;
        size_t n;
        struct counter counts[AROUND_MAX]; /* the most frequent first */
        char idle[24];                     /* the deepest state that the CPU slept in; "" none */
        uint64_t idle_exits, idle_us;      /* how often it woke up from that, and slept in all */
        unsigned exit_latency_us;          /* that waking up takes, says the driver */
};

struct snapshots {
        size_t n; /* ever taken */
        struct snapshot {
                uint64_t time_ns;
                struct counters counters;
        } ring[SNAPSHOTS_MAX];
};

/* Takes one of @cpu if the last is SNAPSHOT_NS old; @cpu -1: of all together. */
void snapshots_take(struct snapshots *snapshots, int cpu, uint64_t now_ns);

/* The same at once, as before and after a measurement. */
void snapshots_take_now(struct snapshots *snapshots, int cpu, uint64_t now_ns);

void snapshots_find(const struct snapshots *snapshots, int cpu, uint64_t from_ns, uint64_t to_ns,
                    struct surroundings *ret);

/*
 * The kernel's stack of a thread as it is now, innermost first: "a < b < c". Errors: -EACCES or
 * -EPERM without CAP_SYS_ADMIN, -ESRCH, -ENOENT (gone, or a kernel without it), -ENODATA (it runs).
 */
int kernel_stack_read(int tid, char *buffer, size_t size);

/* Its parser, for a file as /proc/TID/stack is. */
int kernel_stack_parse(FILE *file, char *buffer, size_t size);

#endif
