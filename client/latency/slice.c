/* SPDX-License-Identifier: MIT */

#include "client/latency/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/cleanup.h"
#include "client/latency/variants.h"

#define LOOK_NS     10000000L
#define INJECT_EACH 100

/* Of the first overruns of a slice, as soon as they were seen. */
struct stack {
        int error;
        uint64_t time_ns;
        char text[STACK_SIZE];
};

struct slice {
        struct run *run;         /* borrowed, as all */
        struct row *row;
        struct variant *variant;
        struct loop loop;
        struct snapshots snapshots;
        struct counters before; /* the slice */
        struct stack stacks[NOTED_MAX];
        size_t n_stacks;
        struct surroundings around[NOTED_MAX];
        size_t n_around;
};

/* A calibrated amount of work, and as much of a slice's cycles as fit in @duration_ns. */
static int prepare(struct slice *s, uint64_t duration_ns) {
        const struct run *run = s->run;
        struct loop *loop = &s->loop;
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
        loop->grant = s->variant->granted ? &s->variant->grant : NULL;
        return 0;
}

static size_t find_culprits(struct slice *s, const struct overrun *overrun,
                            struct culprit culprits[CULPRITS_MAX], bool *ret_incomplete) {
        return watch_culprits(&s->run->watch, overrun->cpu, overrun->due, overrun->done,
                              s->loop.tid, LOOP_COMM, culprits, ret_incomplete);
}

/* Only of a thread whose number is known, which the broker does not tell. */
static void read_stack(struct slice *s, const struct overrun *overrun, struct stack *stack) {
        struct culprit culprits[CULPRITS_MAX];
        bool incomplete;

        stack->error = -EPERM;
        if (s->run->watch.n == 0)
                return;
        stack->error = -ENODATA;
        if (find_culprits(s, overrun, culprits, &incomplete) == 0 || culprits[0].tid == 0)
                return;
        stack->error = kernel_stack_read(culprits[0].tid, stack->text, sizeof(stack->text));
        stack->time_ns = monotonic_ns();
}

/* As soon as there is a snapshot after it: older ones are overwritten. */
static void look_around(struct slice *s, size_t n) {
        const struct snapshots *all = &s->snapshots;
        const struct overrun *overrun;

        for (; s->n_around < n; s->n_around++) {
                overrun = &s->loop.overruns[s->n_around];
                if (all->ring[(all->n - 1) % SNAPSHOTS_MAX].time_ns < overrun->done)
                        return;
                snapshots_find(all, s->run->options->cpu, overrun->due, overrun->done,
                               &s->around[s->n_around]);
        }
}

static size_t n_noteworthy(const struct slice *s) {
        size_t n = s->loop.n_overruns;

        return n < NOTED_MAX ? n : NOTED_MAX;
}

static void look(struct slice *s) {
        size_t n = n_noteworthy(s);

        watch_read(&s->run->watch);
        snapshots_take(&s->snapshots, s->run->options->cpu, monotonic_ns());
        look_around(s, n);
        for (; s->n_stacks < n; s->n_stacks++)
                read_stack(s, &s->loop.overruns[s->n_stacks], &s->stacks[s->n_stacks]);
}

static void note(struct slice *s, size_t index) {
        const struct overrun *overrun = &s->loop.overruns[index];
        struct noted *noted;

        if (s->row->n_noted == NOTED_MAX)
                return;
        noted = &s->row->noted[s->row->n_noted++];
        noted->overrun = *overrun;
        noted->cause = overrun_split(overrun, s->run->work_ns, &noted->split);
        noted->n_culprits = find_culprits(s, overrun, noted->culprits, &noted->incomplete);
        if (index < s->n_around)
                noted->around = s->around[index];
        if (index >= s->n_stacks)
                return;
        noted->stack_error = s->stacks[index].error;
        memcpy(noted->stack, s->stacks[index].text, sizeof(noted->stack));
        if (s->stacks[index].error >= 0)
                noted->stack_after_ns = s->stacks[index].time_ns - overrun->done;
}

static void collect(struct slice *s) {
        const struct loop *loop = &s->loop;
        struct row *row = s->row;
        size_t n = loop->n < row->n_max - row->n ? loop->n : row->n_max - row->n;

        memcpy(row->samples + row->n, loop->samples, n * sizeof(*row->samples));
        row->n += n;
        for (size_t i = 0; i < n; i++)
                histogram_add(&row->histogram, loop->samples[i].late_ns);
        for (size_t i = 0; i < loop->n_overruns && i < OVERRUNS_MAX; i++)
                note(s, i);
        row->minor_faults += loop->minor_faults;
        row->major_faults += loop->major_faults;
        row->preempted += loop->preempted;
        row->injected += loop->n_injected;
        row->policy = loop->policy_after;
        row->priority = loop->priority_after;
        s->run->locked = loop->locked;
}

static int measure(struct slice *s, size_t done, size_t all) {
        const struct timespec moment = { 0, LOOK_NS };
        struct run *run = s->run;
        int r;

        watch_begin(&run->watch);
        snapshots_take_now(&s->snapshots, run->options->cpu, monotonic_ns());
        s->before = s->snapshots.ring[0].counters;
        r = loop_start(&s->loop);
        if (r < 0)
                return r;
        while (!atomic_load(&s->loop.ended)) {
                (void) nanosleep(&moment, NULL);
                look(s);
                live_draw(&run->live, s->row, &s->loop, done, all);
        }
        loop_join(&s->loop);
        look(s);
        snapshots_take_now(&s->snapshots, run->options->cpu, monotonic_ns());
        look_around(s, n_noteworthy(s));
        if (s->loop.n_overruns > 0)
                watch_end(&run->watch, s->loop.end_ns);
        if (s->loop.granted.error < 0) {
                variant_refused(s->variant, &s->loop.granted);
                return 0;
        }
        counters_add_difference(&s->row->counters, &s->before,
                                &s->snapshots.ring[(s->snapshots.n - 1) % SNAPSHOTS_MAX].counters);
        collect(s);
        return 0;
}

int slice_run(struct run *run, struct row *row, struct variant *variant, uint64_t duration_ns,
              size_t done, size_t all) {
        _cleanup_free_ struct slice *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->run = run;
        s->row = row;
        s->variant = variant;
        r = prepare(s, duration_ns);
        if (r < 0)
                return r;
        if (variant->governor)
                r = governor_raise(&run->governor);
        if (r >= 0)
                r = measure(s, done, all);
        governor_restore(&run->governor);
        loop_done(&s->loop);
        return r;
}
