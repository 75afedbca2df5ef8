/* SPDX-License-Identifier: MIT */

#include "client/latency/stats.h"

#include <errno.h>
#include <stdlib.h>

#include "client/cli/cleanup.h"

static const uint32_t within_ns[WITHIN_BANDS] = { 100000, 200000, 1000000, 2000000 };

static int compare(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

/* The smallest of @sorted that at least @per_mille of 1000 are not above; 0 if @n is 0. */
static uint32_t stats_percentile(const uint32_t *sorted, size_t n, unsigned per_mille) {
        size_t rank = (n * per_mille + 999) / 1000;

        if (n == 0)
                return 0;
        return sorted[rank > 0 ? rank - 1 : 0];
}

int stats_compute(const struct sample *samples, size_t n, uint64_t period_ns, uint64_t deadline_ns,
                  struct stats *ret) {
        _cleanup_free_ uint32_t *sorted = NULL;
        struct stats stats = { .n = n };

        if (n == 0) {
                *ret = stats;
                return 0;
        }
        sorted = calloc(n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;

        for (size_t i = 0; i < n; i++) {
                sorted[i] = samples[i].late_ns;
                if (samples[i].done_ns > stats.done_max_ns)
                        stats.done_max_ns = samples[i].done_ns;
                stats.overruns += samples[i].done_ns > deadline_ns;
                stats.late_half += samples[i].late_ns > period_ns / 2;
                for (size_t band = 0; band < WITHIN_BANDS; band++)
                        stats.within[band] += samples[i].late_ns <= within_ns[band];
        }
        qsort(sorted, n, sizeof(*sorted), compare);
        stats.min_ns = sorted[0];
        stats.p50_ns = stats_percentile(sorted, n, 500);
        stats.p99_ns = stats_percentile(sorted, n, 990);
        stats.p999_ns = stats_percentile(sorted, n, 999);
        stats.max_ns = sorted[n - 1];
        *ret = stats;
        return 0;
}

size_t histogram_bucket(uint32_t late_ns) {
        uint32_t us = late_ns / 1000;
        size_t exponent;

        if (us == 0)
                return 0;
        exponent = 31 - (size_t) __builtin_clz(us);
        if (exponent < 2)
                return 1 + exponent * 4 + (exponent == 1 ? (us - 2) * 2 : 0);
        return 1 + exponent * 4 + ((us >> (exponent - 2)) & 3U);
}

uint64_t histogram_floor_ns(size_t bucket) {
        size_t exponent = (bucket - 1) / 4, quarter = (bucket - 1) % 4;

        if (bucket == 0)
                return 0;
        return (1000ULL << exponent) + ((1000ULL << exponent) / 4) * quarter;
}

void histogram_add(struct histogram *histogram, uint32_t late_ns) {
        histogram->counts[histogram_bucket(late_ns)]++;
}

unsigned stats_smallest_buffer(uint64_t extra_ns, unsigned rate, unsigned periods, double load) {
        double slack;

        for (unsigned frames = 16; frames <= 16384; frames *= 2) {
                slack = ((double) periods - 1 - load) * frames * 1e9 / rate;
                if (slack > (double) extra_ns)
                        return frames;
        }
        return 0;
}
