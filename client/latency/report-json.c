/* SPDX-License-Identifier: MIT */

#include "client/latency/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/cli/json.h"

static void add_double(json_object *object, const char *key, double value) {
        char digits[48];

        (void) snprintf(digits, sizeof(digits), "%.3f", value);
        (void) json_object_object_add(object, key, json_object_new_double_s(value, digits));
}

static void add_us(json_object *object, const char *key, uint64_t ns) {
        add_double(object, key, (double) ns / 1e3);
}

static void add_around(json_object *object, const struct surroundings *s) {
        json_object *around = json_object_new_object(), *counts = json_object_new_object();
        json_object *idle = json_object_new_object();

        if (s->to_ns == 0) {
                json_add_null(object, "around");
                (void) json_object_put(around);
                (void) json_object_put(counts);
                (void) json_object_put(idle);
                return;
        }
        add_us(around, "us", s->to_ns - s->from_ns);
        for (size_t i = 0; i < s->n; i++)
                json_add_int(counts, s->counts[i].name, (int64_t) s->counts[i].count);
        (void) json_object_object_add(around, "interrupts", counts);
        json_add_text(idle, "state", s->idle);
        json_add_int(idle, "exits", (int64_t) s->idle_exits);
        json_add_int(idle, "slept_us", (int64_t) s->idle_us);
        json_add_int(idle, "exit_latency_us", s->exit_latency_us);
        (void) json_object_object_add(around, "idle", idle);
        (void) json_object_object_add(object, "around", around);
}

static json_object *make_overrun(const struct run *run, const struct noted *n) {
        json_object *object = json_object_new_object(), *culprits = json_object_new_array(), *one;

        json_add_int(object, "time_ns", (int64_t) n->overrun.due);
        add_us(object, "too_late_us", n->overrun.done - n->overrun.due - run->deadline_ns);
        json_add_string(object, "cause", cause_to_string(n->cause));
        json_add_int(object, "cpu", n->overrun.cpu);
        add_us(object, "timer_us", n->split.timer);
        add_us(object, "waiting_us", n->split.waiting);
        add_us(object, "work_us", n->split.work);
        add_us(object, "blocked_us", n->split.fault);
        json_add_int(object, "minor_faults", n->overrun.minor_faults);
        json_add_int(object, "major_faults", n->overrun.major_faults);
        for (size_t i = 0; i < n->n_culprits; i++) {
                one = json_object_new_object();
                json_add_string(one, "comm", n->culprits[i].comm);
                json_add_int(one, "tid", n->culprits[i].tid);
                add_us(one, "us", n->culprits[i].ns);
                (void) json_object_array_add(culprits, one);
        }
        (void) json_object_object_add(object, "culprits", culprits);
        json_add_bool(object, "incomplete", n->incomplete);
        add_around(object, &n->around);
        json_add_text(object, "kernel_stack", n->stack);
        json_add_text(object, "kernel_stack_why", noted_why_no_stack(n));
        return object;
}

static void add_lists(json_object *object, const struct run *run, const struct row *row) {
        json_object *overruns = json_object_new_array(), *counters = json_object_new_object();
        json_object *histogram = json_object_new_array(), *pair;

        for (size_t i = 0; i < row->n_noted; i++)
                (void) json_object_array_add(overruns, make_overrun(run, &row->noted[i]));
        (void) json_object_object_add(object, "overrun_list", overruns);
        for (size_t i = 0; i < row->counters.n; i++)
                json_add_int(counters, row->counters.all[i].name,
                             (int64_t) row->counters.all[i].count);
        (void) json_object_object_add(object, "interrupts", counters);
        for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
                if (row->histogram.counts[b] == 0)
                        continue;
                pair = json_object_new_object();
                add_us(pair, "from_us", histogram_floor_ns(b));
                json_add_int(pair, "count", (int64_t) row->histogram.counts[b]);
                (void) json_object_array_add(histogram, pair);
        }
        (void) json_object_object_add(object, "histogram", histogram);
}

static json_object *make_row(const struct run *run, const struct row *row) {
        static const char *const bands[WITHIN_BANDS] = { "within_100us", "within_200us",
                                                         "within_1000us", "within_2000us" };
        json_object *object = json_object_new_object();
        const struct stats *s = &row->stats;

        json_add_string(object, "load", row->load->name);
        json_add_string(object, "variant", row->variant->name);
        json_add_policy(object, "policy", row->policy);
        json_add_int(object, "priority", row->priority);
        json_add_int(object, "cycles", (int64_t) s->n);
        add_us(object, "min_us", s->min_ns);
        add_us(object, "p50_us", s->p50_ns);
        add_us(object, "p99_us", s->p99_ns);
        add_us(object, "p999_us", s->p999_ns);
        add_us(object, "max_us", s->max_ns);
        add_us(object, "done_max_us", s->done_max_ns);
        json_add_int(object, "overruns", (int64_t) s->overruns);
        json_add_int(object, "late_half", (int64_t) s->late_half);
        for (size_t i = 0; i < WITHIN_BANDS; i++)
                json_add_int(object, bands[i], (int64_t) s->within[i]);
        json_add_int(object, "minor_faults", (int64_t) row->minor_faults);
        json_add_int(object, "major_faults", (int64_t) row->major_faults);
        json_add_int(object, "preempted", (int64_t) row->preempted);
        json_add_int(object, "injected", (int64_t) row->injected);
        add_lists(object, run, row);
        return object;
}

static json_object *make_variant(const struct run *run, const struct variant *v) {
        json_object *object = json_object_new_object();
        uint64_t extra = run_extra_ns(run, v);
        unsigned frames;

        json_add_string(object, "name", v->name);
        json_add_bool(object, "granted", v->granted && !v->unusable);
        json_add_text(object, "why", v->why);
        json_add_text(object, "role", v->grant.role ?: "");
        json_add_int(object, "overruns", (int64_t) run_overruns(run, v));
        add_us(object, "longest_delay_us", extra);
        frames = v->unusable
                         ? 0
                         : stats_smallest_buffer(extra, run->options->rate, run->options->periods,
                                                 run->options->load_percent / 100.0);
        if (frames > 0)
                json_add_int(object, "smallest_frames", frames);
        else
                json_add_null(object, "smallest_frames");
        return object;
}

static void add_crosscheck(json_object *object, const struct crosscheck *c) {
        json_object *check = json_object_new_object();

        json_add_bool(check, "done", c->done);
        json_add_text(check, "why", c->why);
        json_add_policy(check, "policy", c->policy);
        json_add_int(check, "own_p50_us", c->own_p50_us);
        json_add_int(check, "own_p99_us", c->own_p99_us);
        json_add_int(check, "cyclictest_p50_us", c->other_p50_us);
        json_add_int(check, "cyclictest_p99_us", c->other_p99_us);
        (void) json_object_object_add(object, "cyclictest", check);
}

json_object *report_json(const struct run *run) {
        json_object *object = json_object_new_object(), *rows = json_object_new_array();
        json_object *variants = json_object_new_array();
        const struct latency_options *o = run->options;
        struct utsname kernel = { 0 };

        (void) uname(&kernel);
        json_add_string(object, "kernel", kernel.release);
        json_add_int(object, "rate", o->rate);
        json_add_int(object, "frames", o->frames);
        json_add_int(object, "periods", o->periods);
        json_add_int(object, "load_percent", o->load_percent);
        json_add_int(object, "cpu", o->cpu);
        add_us(object, "period_us", run->period_ns);
        add_us(object, "deadline_us", run->deadline_ns);
        json_add_bool(object, "locked", run->locked);
        json_add_bool(object, "interrupted", run->interrupted);
        json_add_bool(object, "culprits_known", run->watch.known);
        json_add_text(object, "culprits_from",
                      !run->watch.known ? "" : run->watch.handle ? "broker" : "kernel");
        json_add_text(object, "culprits_why", run->watch.known ? "" : run->watch.why);
        if (run->max_sectors_kb >= 0)
                json_add_int(object, "max_sectors_kb", run->max_sectors_kb);
        else
                json_add_null(object, "max_sectors_kb");
        for (size_t i = 0; i < run->n_variants; i++)
                (void) json_object_array_add(variants, make_variant(run, &run->variants[i]));
        (void) json_object_object_add(object, "variants", variants);
        for (size_t i = 0; i < run->n_rows; i++)
                if (run->rows[i].n > 0)
                        (void) json_object_array_add(rows, make_row(run, &run->rows[i]));
        (void) json_object_object_add(object, "rows", rows);
        if (o->cyclictest)
                add_crosscheck(object, &run->crosscheck);
        return object;
}

static const char *string_of(json_object *object, const char *key) {
        json_object *value;

        return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value)
                                                              : NULL;
}

static double number_of(json_object *object, const char *key) {
        json_object *value;

        return json_object_object_get_ex(object, key, &value) ? json_object_get_double(value) : 0;
}

static json_object *find_row(json_object *rows, const struct row *row) {
        json_object *one;
        const char *load, *variant;

        for (size_t i = 0; i < json_object_array_length(rows); i++) {
                one = json_object_array_get_idx(rows, i);
                load = string_of(one, "load");
                variant = string_of(one, "variant");
                if (load && variant && strcmp(load, row->load->name) == 0 &&
                    strcmp(variant, row->variant->name) == 0)
                        return one;
        }
        return NULL;
}

int64_t report_compare(const struct run *run, const char *path, FILE *out) {
        json_object *root, *rows, *old;
        int64_t more = 0;

        errno = 0;
        root = json_object_from_file(path);
        if (!root)
                return errno == ENOENT || errno == EACCES ? -errno : -EINVAL;
        if (!json_object_object_get_ex(root, "rows", &rows) ||
            !json_object_is_type(rows, json_type_array)) {
                (void) json_object_put(root);
                return -EINVAL;
        }
        if ((unsigned) number_of(root, "frames") != run->options->frames ||
            (unsigned) number_of(root, "rate") != run->options->rate)
                fprintf(out, "the older run had other periods: %.0f frames at %.0f Hz\n",
                        number_of(root, "frames"), number_of(root, "rate"));
        for (size_t i = 0; i < run->n_rows; i++) {
                const struct row *row = &run->rows[i];

                old = row->n > 0 ? find_row(rows, row) : NULL;
                if (!old)
                        continue;
                fprintf(out,
                        "%-10s %-24s p99 %.0f -> %.0f µs, max %.0f -> %.0f µs, overruns %.0f -> "
                        "%" PRIu64 "\n",
                        row->load->name, row->variant->name, number_of(old, "p99_us"),
                        row->stats.p99_ns / 1e3, number_of(old, "max_us"), row->stats.max_ns / 1e3,
                        number_of(old, "overruns"), row->stats.overruns);
                if (row->variant->granted &&
                    row->stats.overruns > (uint64_t) number_of(old, "overruns"))
                        more += (int64_t) (row->stats.overruns -
                                           (uint64_t) number_of(old, "overruns"));
        }
        (void) json_object_put(root);
        return more;
}
