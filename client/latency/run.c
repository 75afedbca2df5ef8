/* SPDX-License-Identifier: MIT */

#include "client/latency/run.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/latency/variants.h"

#define SLICE_NS    1000000000ULL
#define INJECT_EACH 100

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

        *run = (struct run){ .options = o, .max_sectors_kb = -1 };
        run->period_ns = (uint64_t) o->frames * 1000000000ULL / o->rate;
        run->deadline_ns = run->period_ns * (o->periods - 1);
        run->work_ns = run->period_ns * o->load_percent / 100;
        if (load_max_sectors_kb(o->directory, &kb) >= 0)
                run->max_sectors_kb = (int) kb;
        return 0;
}

void run_done(struct run *run) {
        watch_done(&run->watch);
        for (size_t i = 0; i < run->n_rows; i++)
                free(run->rows[i].samples);
        free(run->rows);
        run->rows = NULL;
}

/* A calibrated amount of work, and as much of a slice's cycles as fit in @duration_ns. */
static int prepare(struct run *run, struct loop *loop, const struct variant *variant,
                   uint64_t duration_ns) {
        size_t n = (size_t) (duration_ns / run->period_ns);
        int r;

        r = loop_init(loop, n > 0 ? n : 1);
        if (r < 0)
                return r;
        loop->period_ns = run->period_ns;
        loop->deadline_ns = run->deadline_ns;
        loop->work_ns = run->work_ns;
        loop->units = run->units;
        loop->cpu = run->options->cpu;
        loop->inject_ns = run->options->inject_us * 1000ULL;
        loop->inject_each = loop->inject_ns > 0 ? INJECT_EACH : 0;
        loop->grant = variant->granted ? &variant->grant : NULL;
        return 0;
}

static void note(struct run *run, struct row *row, const struct loop *loop,
                 const struct overrun *overrun) {
        struct noted *noted;

        if (row->n_noted == NOTED_MAX)
                return;
        noted = &row->noted[row->n_noted++];
        noted->overrun = *overrun;
        noted->cause = overrun_split(overrun, run->work_ns, &noted->split);
        noted->n_culprits = watch_culprits(&run->watch, overrun->cpu, overrun->due, overrun->done,
                                           loop->tid, LOOP_COMM, noted->culprits,
                                           &noted->incomplete);
}

static void collect(struct run *run, struct row *row, const struct loop *loop) {
        size_t n = loop->n < row->n_max - row->n ? loop->n : row->n_max - row->n;

        memcpy(row->samples + row->n, loop->samples, n * sizeof(*row->samples));
        row->n += n;
        for (size_t i = 0; i < n; i++)
                histogram_add(&row->histogram, loop->samples[i].late_ns);
        for (size_t i = 0; i < loop->n_overruns && i < OVERRUNS_MAX; i++)
                note(run, row, loop, &loop->overruns[i]);
        row->minor_faults += loop->minor_faults;
        row->major_faults += loop->major_faults;
        row->preempted += loop->preempted;
        row->injected += loop->n_injected;
        row->policy = loop->policy_after;
        row->priority = loop->priority_after;
        run->locked = loop->locked;
}

static int run_slice(struct run *run, struct row *row, struct variant *variant,
                     uint64_t duration_ns) {
        _cleanup_free_ struct counters *before = calloc(2, sizeof(*before));
        _cleanup_free_ struct loop *loop = calloc(1, sizeof(*loop));
        int r;

        if (!before || !loop)
                return -ENOMEM;
        r = prepare(run, loop, variant, duration_ns);
        if (r < 0)
                return r;

        watch_begin(&run->watch);
        counters_read(&before[0], run->options->cpu);
        r = loop_start(loop);
        if (r < 0) {
                loop_done(loop);
                return r;
        }
        while (!atomic_load(&loop->ended)) {
                sleep_ms(10);
                watch_read(&run->watch);
        }
        loop_join(loop);
        if (loop->n_overruns > 0)
                watch_end(&run->watch, loop->end_ns);
        counters_read(&before[1], run->options->cpu);
        if (loop->granted.error < 0)
                variant_refused(variant, &loop->granted);
        else {
                counters_add_difference(&row->counters, &before[0], &before[1]);
                collect(run, row, loop);
        }
        loop_done(loop);
        return 0;
}

static void show_progress(const struct run *run, const struct row *row, size_t done, size_t all) {
        uint32_t worst = 0;
        uint64_t overruns = 0;

        if (!isatty(STDERR_FILENO))
                return;
        for (size_t i = 0; i < row->n; i++) {
                worst = row->samples[i].late_ns > worst ? row->samples[i].late_ns : worst;
                overruns += row->samples[i].done_ns > run->deadline_ns;
        }
        fprintf(stderr, "\r\033[K%3zu %%  %-10s %-24s worst %u µs, %lu overruns", done * 100 / all,
                row->load->name, row->variant->name, worst / 1000, (unsigned long) overruns);
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
                        show_progress(run, &rows[which],
                                      index * n_slices * run->n_variants + i * run->n_variants + j,
                                      n_loads * n_slices * run->n_variants);
                        r = run_slice(run, &rows[which], &run->variants[which], slice);
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
        variants_make(run);
        run->units = loop_calibrate(run->work_ns);
        r = make_rows(run);
        for (size_t i = 0; i < o->n_loads && r >= 0 && !interrupted; i++) {
                watch_ask_broker(&run->watch, o->grant.socket, o->cpu, o->ask);
                r = run_load(run, &run->rows[i * run->n_variants], i, o->n_loads);
        }
        if (isatty(STDERR_FILENO))
                fputs("\r\033[K", stderr);
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
