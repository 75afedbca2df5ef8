/* SPDX-License-Identifier: MIT */

#include "client/latency/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/cli/cleanup.h"
#include "client/cli/scheduling.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

#define CELL    24
#define BAR     40
#define DETAILS 3 /* overruns of a row that are told of one by one */

static void number(char cell[CELL], double value) {
        (void) snprintf(cell, CELL, value < 100 ? "%.1f" : "%.0f", value);
}

static void percent(char cell[CELL], uint64_t part, size_t all) {
        (void) snprintf(cell, CELL, "%.2f", all ? 100.0 * (double) part / (double) all : 0.0);
}

static void add_row(struct table *table, const struct row *row) {
        const struct stats *s = &row->stats;
        char cells[14][CELL];
        const char *pointers[16] = { row->load->name, row->variant->name };

        (void) snprintf(cells[0], CELL, "%zu", s->n);
        number(cells[1], s->min_ns / 1e3);
        number(cells[2], s->p50_ns / 1e3);
        number(cells[3], s->p99_ns / 1e3);
        number(cells[4], s->p999_ns / 1e3);
        number(cells[5], s->max_ns / 1e3);
        (void) snprintf(cells[6], CELL, "%" PRIu64, s->overruns);
        (void) snprintf(cells[7], CELL, "%" PRIu64, s->late_half);
        for (size_t i = 0; i < WITHIN_BANDS; i++)
                percent(cells[8 + i], s->within[i], s->n);
        (void) snprintf(cells[12], CELL, "%" PRIu64, row->minor_faults + row->major_faults);
        (void) snprintf(cells[13], CELL, "%" PRIu64, row->preempted);
        for (size_t i = 0; i < ELEMENTS(cells); i++)
                pointers[2 + i] = cells[i];
        table_add(table,
                  s->overruns    ? STYLE_BAD
                  : s->late_half ? STYLE_WARNING
                                 : STYLE_PLAIN,
                  pointers);
}

static void print_settings(const struct run *run) {
        const struct latency_options *o = run->options;
        const struct variant *with = run_granted_variant(run);
        struct utsname kernel = { 0 };

        (void) uname(&kernel);
        printf("%u frames at %u Hz: a period is %.3f ms; %u periods; work %u %% of it; ", o->frames,
               o->rate, (double) run->period_ns / 1e6, o->periods, o->load_percent);
        if (o->cpu >= 0)
                printf("CPU %d; ", o->cpu);
        printf("Linux %s", kernel.release);
        if (run->max_sectors_kb >= 0)
                printf("; max_sectors_kb %d", run->max_sectors_kb);
        printf("\n");
        if (with)
                printf("with: %s %d%s%s\n", policy_name(with->grant.policy) ?: "?",
                       with->grant.priority, with->grant.role ? ", role " : "",
                       with->grant.role ?: "");
        if (!run->locked)
                printf("the measurements' memory could not be locked\n");
}

static void print_unusable(const struct run *run) {
        for (size_t i = 0; i < run->n_variants; i++)
                if (run->variants[i].unusable)
                        printf("%s: %s\n", run->variants[i].name, run->variants[i].why);
}

static void print_culprits(const struct noted *noted) {
        for (size_t i = 0; i < noted->n_culprits; i++) {
                char comm[COMM_SIZE * 4];

                text_printable(comm, sizeof(comm), noted->culprits[i].comm);
                printf("%s %s", i ? "," : "; the CPU had:", comm);
                if (noted->culprits[i].tid > 0)
                        printf("[%d]", (int) noted->culprits[i].tid);
                printf(" %.0f µs", (double) noted->culprits[i].ns / 1e3);
        }
        if (noted->incomplete)
                printf(" (records were lost)");
}

static void print_around(const struct noted *noted) {
        const struct surroundings *s = &noted->around;

        if (s->to_ns == 0)
                return;
        printf("    in the %.0f ms around it:", (double) (s->to_ns - s->from_ns) / 1e6);
        for (size_t i = 0; i < s->n && i < 5; i++)
                printf(" %s %" PRIu64, s->counts[i].name, s->counts[i].count);
        if (s->idle[0])
                printf("; woke up %" PRIu64 " times from %s, which takes %u µs", s->idle_exits,
                       s->idle, s->exit_latency_us);
        printf("\n");
}

static void print_stack(const struct noted *noted) {
        char text[STACK_SIZE * 4];

        if (noted->n_culprits == 0)
                return;
        text_printable(text, sizeof(text), noted->stack);
        if (text[0])
                printf("    its kernel stack %.0f ms later: %s\n",
                       (double) noted->stack_after_ns / 1e6, text);
        else
                printf("    its kernel stack: cannot tell: %s\n", noted_why_no_stack(noted));
}

static void print_overruns(const struct run *run, const struct row *row) {
        size_t by_cause[4] = { 0 };

        for (size_t i = 0; i < row->n_noted; i++)
                by_cause[row->noted[i].cause]++;
        printf("\n%s, %s: %" PRIu64 " overruns", row->load->name, row->variant->name,
               row->stats.overruns);
        for (size_t i = 0; i < ELEMENTS(by_cause); i++)
                if (by_cause[i] > 0)
                        printf(", %zu %s", by_cause[i], cause_to_string((enum cause) i));
        printf("\n");
        for (size_t i = 0; i < row->n_noted && i < DETAILS; i++) {
                const struct noted *n = &row->noted[i];

                printf("  %.0f µs too late: %s (timer %.0f, waiting %.0f, own work %.0f beyond "
                       "plan, blocked %.0f µs)",
                       (double) (n->overrun.done - n->overrun.due - run->deadline_ns) / 1e3,
                       cause_to_string(n->cause), (double) n->split.timer / 1e3,
                       (double) n->split.waiting / 1e3, (double) n->split.work / 1e3,
                       (double) n->split.fault / 1e3);
                print_culprits(n);
                printf("\n");
                print_around(n);
                print_stack(n);
        }
        if (row->counters.n > 0)
                printf("  interrupts meanwhile:");
        for (size_t i = 0; i < row->counters.n && i < 6; i++)
                printf(" %s %" PRIu64, row->counters.all[i].name, row->counters.all[i].count);
        if (row->counters.n > 0)
                printf("\n");
}

static void print_histogram(const struct run *run, const struct variant *variant) {
        struct histogram sum = { 0 };
        uint64_t most = 0;
        size_t first = HISTOGRAM_BUCKETS, last = 0;

        for (size_t i = 0; i < run->n_rows; i++)
                if (run->rows[i].variant == variant)
                        for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++)
                                sum.counts[b] += run->rows[i].histogram.counts[b];
        for (size_t b = 2; b < HISTOGRAM_BUCKETS; b += 2) { /* two to the octave are enough here */
                sum.counts[b - 1] += sum.counts[b];
                sum.counts[b] = 0;
        }
        for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
                if (sum.counts[b] == 0)
                        continue;
                most = sum.counts[b] > most ? sum.counts[b] : most;
                first = b < first ? b : first;
                last = b;
        }
        if (first == HISTOGRAM_BUCKETS)
                return;
        printf("\nwake-up latency %s, all loads\n", variant->name);
        for (size_t b = first; b <= last; b++) {
                int width = (int) (sum.counts[b] * BAR / most);

                if (b > 0 && (b % 2 == 0 || (b < 5 && sum.counts[b] == 0)))
                        continue; /* added to its neighbour; or below 2 µs, and no whole number */
                printf("%9.0f µs %8" PRIu64 " %.*s%s\n", (double) histogram_floor_ns(b) / 1e3,
                       sum.counts[b], width, "########################################",
                       sum.counts[b] > 0 && width == 0 ? "." : "");
        }
}

static void print_verdict(const struct run *run) {
        const struct latency_options *o = run->options;

        printf("\n");
        for (size_t i = 0; i < run->n_variants; i++) {
                const struct variant *v = &run->variants[i];
                uint64_t extra = run_extra_ns(run, v);
                unsigned frames;

                if (v->unusable || extra == 0)
                        continue;
                frames = stats_smallest_buffer(extra, o->rate, o->periods, o->load_percent / 100.0);
                printf("%s: %" PRIu64 " overruns; longest delay %.3f ms; ", v->name,
                       run_overruns(run, v), (double) extra / 1e6);
                if (frames == 0)
                        printf("no buffer up to 16384 frames would have been enough\n");
                else
                        printf("the smallest buffer without overrun: %u frames x %u (%.1f ms)\n",
                               frames, o->periods, 1e3 * frames * o->periods / o->rate);
        }
        if (!run->watch.known && (run_overruns(run, &run->variants[0]) > 0 ||
                                     run_overruns(run, run_granted_variant(run)) > 0))
                printf("Who had the CPU meanwhile cannot be told. The broker: %s. Or by root "
                       "(--as-user measures as somebody else), or with "
                       "kernel.perf_event_paranoid below 1.\n",
                       run->watch.why[0] ? run->watch.why : "not asked");
}

static void print_crosscheck(const struct crosscheck *c) {
        if (!c->done) {
                printf("cyclictest: %s\n", c->why);
                return;
        }
        printf("\n%s without work: p50 %u µs, p99 %u µs; cyclictest: p50 %u µs, p99 %u µs\n",
               policy_name(c->policy) ?: "?", c->own_p50_us, c->own_p99_us, c->other_p50_us,
               c->other_p99_us);
}

void report_text(const struct run *run) {
        static const char *const headers[] = { "LOAD",     "VARIANT",  "CYCLES",  "MIN µs",
                                               "P50",      "P99",      "P99.9",   "MAX",
                                               "OVERRUNS", "LATE>1/2", "%<0.1ms", "%<0.2",
                                               "%<1",      "%<2",      "FAULTS",  "PREEMPTED",
                                               NULL };
        _cleanup_(cleanup_table) struct table *table = table_new(headers);

        print_settings(run);
        print_unusable(run);
        printf("\n");
        for (size_t i = 0; table && i < run->n_rows; i++)
                if (run->rows[i].n > 0)
                        add_row(table, &run->rows[i]);
        if (table)
                table_print(table, style_wanted());
        for (size_t i = 0; i < run->n_rows; i++)
                if (run->rows[i].stats.overruns > 0)
                        print_overruns(run, &run->rows[i]);
        for (size_t i = 0; i < run->n_variants; i++)
                print_histogram(run, &run->variants[i]);
        print_verdict(run);
        if (run->options->cyclictest)
                print_crosscheck(&run->crosscheck);
        if (run->interrupted)
                printf("interrupted: figures are of what was measured until then\n");
}

void report_csv(const struct run *run) {
        printf("load,variant,cycles,min_us,p50_us,p99_us,p999_us,max_us,overruns,late_half,"
               "within_0.1ms,within_0.2ms,within_1ms,within_2ms,minor_faults,major_faults,"
               "preempted\n");
        for (size_t i = 0; i < run->n_rows; i++) {
                const struct row *row = &run->rows[i];
                const struct stats *s = &row->stats;

                if (row->n == 0)
                        continue;
                printf("%s,%s,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%" PRIu64 ",%" PRIu64, row->load->name,
                       row->variant->name, s->n, s->min_ns / 1e3, s->p50_ns / 1e3, s->p99_ns / 1e3,
                       s->p999_ns / 1e3, s->max_ns / 1e3, s->overruns, s->late_half);
                for (size_t band = 0; band < WITHIN_BANDS; band++)
                        printf(",%" PRIu64, s->within[band]);
                printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", row->minor_faults,
                       row->major_faults, row->preempted);
        }
}
