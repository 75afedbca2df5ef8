/* SPDX-License-Identifier: MIT */

/*
 * The picture: for each load a strip of time, with each cycle's wake-up and completion and the
 * line of the deadline; below, the histograms of the variants.
 */

#include <cairo-svg.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/latency/report.h"

#define WIDTH      1200.0
#define STRIP      150.0
#define LEFT       70.0
#define RIGHT      20.0
#define TOP        50.0
#define GAP        34.0
#define HISTOGRAM  260.0
#define POINTS_MAX 1000 /* of a strip; of more cycles the worst of each few is drawn */

static const double colours[][3] = {
        { 0.80, 0.25, 0.20 }, { 0.15, 0.45, 0.75 }, { 0.20, 0.60, 0.30 },
        { 0.60, 0.35, 0.70 }, { 0.85, 0.55, 0.10 },
};
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))

static void set_colour(cairo_t *c, size_t variant, double alpha) {
        const double *rgb = colours[variant % N_COLOURS];

        cairo_set_source_rgba(c, rgb[0], rgb[1], rgb[2], alpha);
}

static void text(cairo_t *c, double x, double y, const char *string) {
        cairo_set_source_rgb(c, 0.15, 0.15, 0.15);
        cairo_move_to(c, x, y);
        cairo_show_text(c, string);
}

static void line(cairo_t *c, double x0, double y0, double x1, double y1) {
        cairo_move_to(c, x0, y0);
        cairo_line_to(c, x1, y1);
        cairo_stroke(c);
}

/* What a strip shows at the top: one and a half deadlines. */
static double scale_ns(const struct run *run) {
        return (double) run->deadline_ns * 1.5;
}

static double height_of(const struct run *run, double ns) {
        double part = ns / scale_ns(run);

        return STRIP * (part > 1 ? 1 : part);
}

static void draw_deadlines(cairo_t *c, const struct run *run, double x, double y, double width) {
        const double dash[] = { 6, 4 };
        char label[32];

        cairo_set_line_width(c, 1);
        cairo_set_source_rgb(c, 0.9, 0.1, 0.1);
        line(c, x, y - height_of(run, (double) run->deadline_ns), x + width,
             y - height_of(run, (double) run->deadline_ns));
        cairo_set_dash(c, dash, 2, 0);
        cairo_set_source_rgb(c, 0.6, 0.6, 0.6);
        line(c, x, y - height_of(run, (double) run->period_ns / 2), x + width,
             y - height_of(run, (double) run->period_ns / 2));
        cairo_set_dash(c, NULL, 0, 0);
        cairo_set_source_rgb(c, 0.5, 0.5, 0.5);
        cairo_rectangle(c, x, y - STRIP, width, STRIP);
        cairo_stroke(c);
        (void) snprintf(label, sizeof(label), "%.2f ms", (double) run->deadline_ns / 1e6);
        text(c, 8, y - height_of(run, (double) run->deadline_ns) + 4, label);
        text(c, 8, y + 4, "0");
}

/* One path for all of a strip's lines of a kind: a stroke for each would make huge files. */
static void draw_cycles(cairo_t *c, const struct run *run, const struct row *row, double x,
                        double y, double width, bool work) {
        size_t step = row->n / POINTS_MAX + 1;
        struct sample worst;
        double at;

        for (size_t i = 0; i < row->n; i += step) {
                worst = row->samples[i];
                for (size_t j = i; j < i + step && j < row->n; j++)
                        if (row->samples[j].done_ns > worst.done_ns)
                                worst = row->samples[j];
                at = x + width * (double) i / (double) row->n;
                cairo_move_to(c, at, y - (work ? height_of(run, worst.late_ns) : 0));
                cairo_line_to(c, at,
                              y - (work ? height_of(run, worst.done_ns)
                                        : height_of(run, worst.late_ns) + 0.5));
        }
        cairo_stroke(c);
}

static void draw_strip(cairo_t *c, const struct run *run, const struct row *row, size_t variant,
                       double x, double y, double width) {
        char title[128];

        cairo_set_line_width(c, 0.5);
        set_colour(c, variant, 0.25); /* from the wake-up to the end of the work, pale */
        draw_cycles(c, run, row, x, y, width, true);
        set_colour(c, variant, 1); /* and until the wake-up, dark */
        draw_cycles(c, run, row, x, y, width, false);
        draw_deadlines(c, run, x, y, width);
        (void) snprintf(title, sizeof(title), "%s, %s: max %.2f ms, %lu overruns", row->load->name,
                        row->variant->name, row->stats.max_ns / 1e6,
                        (unsigned long) row->stats.overruns);
        text(c, x, y - STRIP - 6, title);
}

static void sum_histogram(const struct run *run, const struct variant *variant,
                          struct histogram *ret) {
        *ret = (struct histogram){ 0 };
        for (size_t i = 0; i < run->n_rows; i++)
                for (size_t b = 0; run->rows[i].variant == variant && b < HISTOGRAM_BUCKETS; b++)
                        ret->counts[b] += run->rows[i].histogram.counts[b];
}

/* Both axes logarithmic: what matters is the one cycle in ten thousand. */
static void draw_histogram(cairo_t *c, const struct run *run, double y) {
        const double width = WIDTH - LEFT - RIGHT;
        double top = 1;
        struct histogram sum;
        char label[64];
        size_t shown = 0;

        for (size_t v = 0; v < run->n_variants; v++) {
                sum_histogram(run, &run->variants[v], &sum);
                for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++)
                        if (sum.counts[b] > 0)
                                top = fmax(top, log10((double) sum.counts[b]) + 0.3);
        }

        cairo_set_line_width(c, 1);
        cairo_set_source_rgb(c, 0.5, 0.5, 0.5);
        cairo_rectangle(c, LEFT, y - HISTOGRAM, width, HISTOGRAM);
        cairo_stroke(c);
        for (size_t b = 1; b < HISTOGRAM_BUCKETS; b += 12) {
                (void) snprintf(label, sizeof(label), "%.0f µs",
                                (double) histogram_floor_ns(b) / 1e3);
                text(c, LEFT + width * (double) b / HISTOGRAM_BUCKETS, y + 14, label);
        }
        for (size_t v = 0; v < run->n_variants; v++) {
                double bar = width / HISTOGRAM_BUCKETS;
                bool any = false;

                sum_histogram(run, &run->variants[v], &sum);
                set_colour(c, v, 0.55);
                for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
                        double height = sum.counts[b] == 0
                                                ? 0
                                                : HISTOGRAM * 0.95 *
                                                          (log10((double) sum.counts[b]) + 0.3) /
                                                          top;

                        any = any || height > 0;
                        cairo_rectangle(c, LEFT + bar * (double) b, y - height, bar, height);
                        cairo_fill(c);
                }
                if (!any)
                        continue;
                cairo_rectangle(c, LEFT + 10, y - HISTOGRAM + 12 + 18.0 * (double) shown, 12, 12);
                cairo_fill(c);
                text(c, LEFT + 28, y - HISTOGRAM + 22 + 18.0 * (double) shown,
                     run->variants[v].name);
                shown++;
        }
        text(c, LEFT, y - HISTOGRAM - 6, "wake-up latency, all loads: cycles (logarithmic)");
}

static double page_height(const struct run *run) {
        size_t loads = run->options->n_loads * ((run->n_variants + 1) / 2);

        return TOP + (double) loads * (STRIP + GAP) + GAP + HISTOGRAM + 40;
}

static void draw(cairo_t *c, const struct run *run) {
        const double half = (WIDTH - LEFT - RIGHT - GAP) / 2;
        double y = TOP + STRIP;
        char title[160];

        cairo_set_source_rgb(c, 1, 1, 1);
        cairo_paint(c);
        cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
        cairo_set_font_size(c, 12);
        (void) snprintf(title, sizeof(title),
                        "%u frames at %u Hz, %u periods, %u %% work. Dark: until it woke up; pale: "
                        "until its work was done; red: deadline",
                        run->options->frames, run->options->rate, run->options->periods,
                        run->options->load_percent);
        text(c, LEFT, 18, title);
        for (size_t i = 0; i < run->n_rows; i++) {
                size_t variant = i % run->n_variants;

                if (run->rows[i].n > 0)
                        draw_strip(c, run, &run->rows[i], variant,
                                   LEFT + (variant % 2 ? half + GAP : 0), y, half);
                if (variant % 2 == 1 || variant == run->n_variants - 1)
                        y += STRIP + GAP;
        }
        draw_histogram(c, run, y - STRIP + HISTOGRAM);
}

int report_plot(const struct run *run, const char *path) {
        bool svg = strcmp(path + strlen(path) - 4, ".svg") == 0;
        cairo_surface_t *surface;
        cairo_status_t status;
        cairo_t *c;

        surface = svg ? cairo_svg_surface_create(path, WIDTH, page_height(run))
                      : cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int) WIDTH,
                                                   (int) page_height(run));
        c = cairo_create(surface);
        draw(c, run);
        status = cairo_status(c);
        cairo_destroy(c);
        if (status == CAIRO_STATUS_SUCCESS && !svg)
                status = cairo_surface_write_to_png(surface, path);
        cairo_surface_finish(surface);
        if (status == CAIRO_STATUS_SUCCESS)
                status = cairo_surface_status(surface);
        cairo_surface_destroy(surface);
        return status == CAIRO_STATUS_SUCCESS     ? 0
               : status == CAIRO_STATUS_NO_MEMORY ? -ENOMEM
                                                  : -EIO;
}
