/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_PERF_SWITCHES_H
#define RTGRANT_PERF_SWITCHES_H

/*
 * Who had a CPU, and when: from the kernel's records of context switches (perf_event_open(2), one
 * ring for each CPU). Names and times only. The parser is apart from the kernel, to be tested.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COMM_SIZE    16
#define CULPRITS_MAX 5

/* How much is kept. */
struct switches_room {
        size_t ring_bytes; /* of the kernel, a power of two of pages */
        size_t n_switches; /* at least 2; when they are used up, the older half goes */
        uint32_t n_names;  /* threads whose name is known */
        uint32_t n_texts;  /* different names; at least 3 */
};

/* From @time_ns on, the thread @tid had the CPU. tid 0: nobody. */
struct switch_in {
        uint64_t time_ns; /* CLOCK_MONOTONIC */
        int32_t tid;
        uint32_t name; /* index of its name then */
};

/* Of one CPU. */
struct switches {
        int cpu;
        int fd;                 /* -1: none */
        struct switches_room room;
        void *ring;             /* owned; the kernel's pages */
        uint64_t lost;          /* records that came too fast */
        uint64_t since_ns;      /* all switches from then on are kept */
        struct switch_in *list; /* owned */
        size_t n;
        struct name {
                int32_t tid;
                uint32_t text;
        } * names;                /* owned; slots by tid, a newer one takes an older one's */
        char (*texts)[COMM_SIZE]; /* owned; the different names seen */
        uint32_t n_texts;
};

/* Who had the CPU for how long. */
struct culprit {
        char comm[COMM_SIZE];
        int32_t tid;
        uint64_t ns;
};

/* For records from elsewhere than the kernel. Errors: -ENOMEM. */
int switches_init(struct switches *switches, int cpu, const struct switches_room *room);
void switches_done(struct switches *switches);

/* Errors: those of perf_event_open(2): -EACCES or -EPERM where this user may not. -ENOMEM. */
int switches_open(struct switches *switches, int cpu, const struct switches_room *room);

/*
 * Takes what the kernel has written since, @max records at the most; to be called before its ring
 * is full. Returns whether there is more.
 */
bool switches_read(struct switches *switches, size_t max);

/* Forgets what was recorded, but not the names and who has the CPU now. */
void switches_clear(struct switches *switches);

/* Adds one record; the bytes are not trusted. False if it is none that can be understood. */
bool switches_add_record(struct switches *switches, const void *record, size_t size);

/*
 * Who but @self had the CPU from @from_ns to @to_ns, the longest first. Returns how many were
 * written, at most CULPRITS_MAX; the idle CPU counts as one, by the name of "idle". @self -1:
 * everybody, and all of a name as one.
 */
size_t switches_culprits(const struct switches *switches, uint64_t from_ns, uint64_t to_ns,
                         pid_t self, struct culprit culprits[CULPRITS_MAX]);

/* Whether something of that time may be missing. */
bool switches_are_incomplete(const struct switches *switches, uint64_t from_ns);

#endif
