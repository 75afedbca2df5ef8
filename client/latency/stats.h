/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_STATS_H
#define RTGRANT_LATENCY_STATS_H

/* What became of the cycles of a periodic thread, in figures. Pure: no clock, no I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One cycle. 32 bits of nanoseconds are 4 s; what is longer is cut there. */
struct sample {
        uint32_t late_ns; /* from the time it should have woken up until it did */
        uint32_t done_ns; /* from the time it should have woken up until its work was done */
};

#define WITHIN_BANDS 4 /* 0.1, 0.2, 1, 2 ms */

struct stats {
        size_t n;
        uint32_t min_ns, p50_ns, p99_ns, p999_ns, max_ns; /* of late_ns; 0 if there is none */
        uint32_t done_max_ns;
        uint64_t overruns;  /* done later than the deadline */
        uint64_t late_half; /* woken up later than half a period: an error to jackd */
        uint64_t within[WITHIN_BANDS];
};

/* @deadline_ns from the time of the wake-up. Errors: -ENOMEM. */
int stats_compute(const struct sample *samples, size_t n, uint64_t period_ns, uint64_t deadline_ns,
                  struct stats *ret);

/*
 * Log-linear: four buckets for each doubling, so that none is wider than a quarter of its value.
 * Bucket 0 is all below 1 µs.
 */
#define HISTOGRAM_BUCKETS 90

struct histogram {
        uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint32_t late_ns);
size_t histogram_bucket(uint32_t late_ns);

/* The least value that falls into @bucket; of HISTOGRAM_BUCKETS, beyond all. */
uint64_t histogram_floor_ns(size_t bucket);

/*
 * The smallest power of two of frames, from 16 to 16384, with which a buffer of @periods periods
 * would never have run empty: if the longest delay seen, by waking up late or by work that took
 * longer than planned, fits into what the work leaves of it. 0 if none does.
 *
 * @extra_ns    the longest delay
 * @load        part of a period that is work, 0 to below 1
 */
unsigned stats_smallest_buffer(uint64_t extra_ns, unsigned rate, unsigned periods, double load);

#endif
