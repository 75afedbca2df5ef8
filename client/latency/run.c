/* SPDX-License-Identifier: MIT */

#include "client/latency/run.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/latency/slice.h"
#include "client/latency/variants.h"

#define SLICE_NS 1000000000ULL

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
        interrupted = 1;
}

static void sleep_ms(long ms) {
        struct timespec duration = { ms / 1000, ms % 1000 * 1000000 };

        (void) nanosleep(&duration, NULL);
}

int run_init(struct run *run, const struct latency_options *o) {
        unsigned kb;

        *run = (struct run){ .options = o, .governor.fd = -1, .max_sectors_kb = -1 };
        run->period_ns = (uint64_t) o->frames * 1000000000ULL / o->rate;
        run->deadline_ns = run->period_ns * (o->periods - 1);
        run->work_ns = run->period_ns * o->load_percent / 100;
        if (load_max_sectors_kb(o->directory, &kb) >= 0)
                run->max_sectors_kb = (int) kb;
        return 0;
}

void run_done(struct run *run) {
        watch_done(&run->watch);
        governor_done(&run->governor);
        for (size_t i = 0; i < run->n_rows; i++)
                free(run->rows[i].samples);
        free(run->rows);
        run->rows = NULL;
}

static int run_load(struct run *run, struct row *rows, size_t index, size_t n_loads) {
        const struct latency_options *o = run->options;
        uint64_t whole = (uint64_t) (o->duration_s * 1e9), slice = SLICE_NS;
        size_t n_slices, which;
        pid_t group;
        int r = 0;

        if (whole < 2 * slice)
                slice = whole / 2;
        n_slices = (size_t) (whole / slice);
        group = load_start(rows->load, o->directory, o->command);
        if (group < 0)
                return (int) group;
        if (group > 0)
                sleep_ms(200);
        for (size_t i = 0; i < n_slices && r >= 0 && !interrupted; i++)
                for (size_t j = 0; j < run->n_variants && r >= 0 && !interrupted; j++) {
                        which = i % 2 == 0 ? j : run->n_variants - 1 - j;
                        if (run->variants[which].unusable)
                                continue;
                        r = slice_run(run, &rows[which], &run->variants[which], slice,
                                      (index * n_slices + i) * run->n_variants + j,
                                      n_loads * n_slices * run->n_variants);
                }
        load_stop(group);
        return r;
}

static int make_rows(struct run *run) {
        const struct latency_options *o = run->options;
        struct row *row;

        run->rows = calloc(o->n_loads * run->n_variants, sizeof(*run->rows));
        if (!run->rows)
                return -ENOMEM;
        for (size_t i = 0; i < o->n_loads; i++)
                for (size_t j = 0; j < run->n_variants; j++) {
                        row = &run->rows[run->n_rows];
                        row->load = o->loads[i];
                        row->variant = &run->variants[j];
                        row->n_max = (size_t) (o->duration_s * 1e9 / (double) run->period_ns) + 2;
                        row->samples = calloc(row->n_max, sizeof(*row->samples));
                        if (!row->samples)
                                return -ENOMEM;
                        run->n_rows++;
                }
        return 0;
}

int run_all(struct run *run) {
        struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int) SA_RESETHAND };
        const struct latency_options *o = run->options;
        struct row *row;
        int r;

        (void) sigaction(SIGINT, &action, NULL);
        (void) sigaction(SIGTERM, &action, NULL);
        (void) sigaction(SIGHUP, &action, NULL);
        variants_make(run);
        run->units = loop_calibrate(run->work_ns);
        r = make_rows(run);
        live_init(&run->live, STDERR_FILENO, run->deadline_ns);
        for (size_t i = 0; i < o->n_loads && r >= 0 && !interrupted; i++) {
                watch_ask_broker(&run->watch, o->grant.socket, o->cpu, o->ask);
                r = run_load(run, &run->rows[i * run->n_variants], i, o->n_loads);
        }
        live_end(&run->live);
        run->interrupted = interrupted;
        for (size_t i = 0; i < run->n_rows && r >= 0; i++) {
                row = &run->rows[i];
                r = stats_compute(row->samples, row->n, run->period_ns, run->deadline_ns,
                                  &row->stats);
                counters_sort(&row->counters);
        }
        if (r >= 0 && o->cyclictest && !interrupted)
                crosscheck_run(run);
        return r;
}

const char *noted_why_no_stack(const struct noted *noted) {
        if (noted->stack[0] != '\0')
                return "";
        switch (-noted->stack_error) {
        case 0:
                return "more overruns than are looked at one by one";
        case ENODATA:
                return "nobody else had the CPU, or he runs outside of the kernel";
        case ESRCH:
        case ENOENT:
                return "gone since, or a kernel without /proc/PID/stack";
        default:
                return "only root may see that";
        }
}

const struct variant *run_granted_variant(const struct run *run) {
        for (size_t i = run->n_variants; i > 0; i--)
                if (run->variants[i - 1].granted && !run->variants[i - 1].unusable)
                        return &run->variants[i - 1];
        return NULL;
}

uint64_t run_extra_ns(const struct run *run, const struct variant *variant) {
        uint64_t longest = 0;

        for (size_t i = 0; i < run->n_rows; i++) {
                if (run->rows[i].variant != variant)
                        continue;
                if (run->rows[i].stats.done_max_ns > run->work_ns + longest)
                        longest = run->rows[i].stats.done_max_ns - run->work_ns;
                if (run->rows[i].stats.max_ns > longest)
                        longest = run->rows[i].stats.max_ns;
        }
        return longest;
}

uint64_t run_overruns(const struct run *run, const struct variant *variant) {
        uint64_t n = 0;

        for (size_t i = 0; i < run->n_rows; i++)
                if (run->rows[i].variant == variant)
                        n += run->rows[i].stats.overruns;
        return n;
}
