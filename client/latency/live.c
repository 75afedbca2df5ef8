/* SPDX-License-Identifier: MIT */

#include "client/latency/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/latency/run.h"

#define BINS 16 /* each twice as wide as the one before, the last without end */
#define BAR  40

void live_init(struct live *live, int fd, uint64_t deadline_ns) {
        const char *terminal = getenv("TERM");

        *live = (struct live){ .fd = isatty(fd) ? fd : -1, .deadline_ns = deadline_ns };
        live->plain = !terminal || strcmp(terminal, "dumb") == 0;
}

static void take_sample(struct live *live, const struct sample *sample) {
        live->n++;
        live->overruns += sample->done_ns > live->deadline_ns;
        live->worst_ns = sample->late_ns > live->worst_ns ? sample->late_ns : live->worst_ns;
}

/* What was measured of the row before, then what the loop has since. */
static void take(struct live *live, const struct row *row, const struct loop *loop, size_t slice) {
        size_t n = loop->n;

        if (live->slice != slice) {
                live->slice = slice;
                live->histogram = row->histogram;
                live->worst_ns = 0;
                live->n = live->n_seen = live->overruns = 0;
                for (size_t i = 0; i < row->n; i++)
                        take_sample(live, &row->samples[i]);
        }
        for (; live->n_seen < n; live->n_seen++) {
                take_sample(live, &loop->samples[live->n_seen]);
                histogram_add(&live->histogram, loop->samples[live->n_seen].late_ns);
        }
}

/* 0: below 1 µs, 1: below 2, 2: below 4, … */
static unsigned bin_of(size_t bucket) {
        uint64_t us = histogram_floor_ns(bucket) / 1000;
        unsigned bin = 0;

        for (; us > 0 && bin < BINS - 1; us /= 2)
                bin++;
        return bin;
}

static void draw_histogram(struct live *live, FILE *out, unsigned rows_max, int columns) {
        uint64_t bins[BINS] = { 0 }, most = 1;
        unsigned first = BINS, last = 0;
        int bar = columns - 24 < BAR ? columns - 24 : BAR;

        for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++)
                bins[bin_of(b)] += live->histogram.counts[b];
        for (unsigned i = 0; i < BINS; i++) {
                if (bins[i] == 0)
                        continue;
                most = bins[i] > most ? bins[i] : most;
                first = i < first ? i : first;
                last = i;
        }
        for (unsigned i = first; i <= last && first < BINS && live->rows < rows_max; i++) {
                int width = bar > 0 ? (int) (bins[i] * (uint64_t) bar / most) : 0;

                fprintf(out, "\n\033[K%8u µs %8" PRIu64 " %.*s%s", i > 0 ? 1U << (i - 1) : 0, bins[i],
                        width, "########################################",
                        bins[i] > 0 && width == 0 ? "." : "");
                live->rows++;
        }
}

void live_draw(struct live *live, const struct row *row, const struct loop *loop, size_t done,
               size_t all) {
        struct winsize size = { .ws_row = 24, .ws_col = 80 };
        uint64_t now_ns = monotonic_ns();
        char line[256], text[8192];
        FILE *out;

        if (live->fd < 0 || (live->drawn_ns > 0 && now_ns - live->drawn_ns < LIVE_NS))
                return;
        live->drawn_ns = now_ns;
        take(live, row, loop, done + 1);
        (void) ioctl(live->fd, TIOCGWINSZ, &size);
        if (size.ws_col == 0 || size.ws_row == 0)
                size = (struct winsize){ .ws_row = 24, .ws_col = 80 };

        out = fmemopen(text, sizeof(text), "w");
        if (!out)
                return;
        (void) snprintf(line, sizeof(line), "%3zu %%  %-10s %-16s %" PRIu64 " cycles, worst %u us, "
                        "%" PRIu64 " overruns", done * 100 / all, row->load->name,
                        row->variant->name, live->n, live->worst_ns / 1000, live->overruns);
        if (live->rows > 1)
                fprintf(out, "\033[%uA", live->rows - 1);
        /* spaces over what was there, where it cannot be cleared */
        fprintf(out, "\r%s%-*.*s", live->plain ? "" : "\033[J", live->plain ? size.ws_col - 1 : 0,
                size.ws_col - 1, line);
        live->rows = 1;
        if (!live->plain)
                draw_histogram(live, out, size.ws_row > 1 ? size.ws_row - 1U : 1, size.ws_col);
        if (fclose(out) == 0 && write(live->fd, text, strlen(text)) < 0)
                live->fd = -1; /* nobody looks any more */
}

void live_end(struct live *live) {
        char text[32];
        int n = 0;

        if (live->fd < 0 || live->rows == 0)
                return;
        if (live->plain)
                n = snprintf(text, sizeof(text), "\n");
        else if (live->rows > 1)
                n = snprintf(text, sizeof(text), "\033[%uA\r\033[J", live->rows - 1);
        else
                n = snprintf(text, sizeof(text), "\r\033[J");
        live->rows = 0;
        if (write(live->fd, text, (size_t) n) < 0)
                live->fd = -1;
}
