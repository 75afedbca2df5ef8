/* SPDX-License-Identifier: MIT */

#include "client/rtgrantctl-irq.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/text.h"

#define CARDS_MAX       64
#define INTERVAL_MS     1000
#define INTERVAL_MS_MAX 60000

enum {
        OPTION_JSON = 256,
        OPTION_ALL,
        OPTION_INTERVAL,
        OPTION_SYSROOT,
        OPTION_IMPORT_RTIRQ,
};

static const struct option long_options[] = {
        { "help", no_argument, NULL, 'h' },
        { "json", no_argument, NULL, OPTION_JSON },
        { "all", no_argument, NULL, OPTION_ALL },
        { "interval", required_argument, NULL, OPTION_INTERVAL },
        { "sysroot", required_argument, NULL, OPTION_SYSROOT },
        { "import-rtirq", required_argument, NULL, OPTION_IMPORT_RTIRQ },
        { 0 },
};

struct irq_options {
        bool json;
        bool all;
        unsigned interval_ms; /* 0: counts per second are not measured */
        const char *sysroot;  /* borrowed; NULL: this machine */
        const char *rtirq;    /* borrowed; a configuration of rtirq to be imported */
};

double irq_rate(const struct irq_view *view, unsigned line) {
        const struct irq_line *before = irq_snapshot_find(&view->before, line);
        const struct irq_line *after = irq_snapshot_find(&view->after, line);

        if (view->seconds <= 0 || !before || !after || after->count < before->count)
                return -1;
        return (double) (after->count - before->count) / view->seconds;
}

void irq_cpus(const struct irq_view *view, unsigned line, char *buffer, size_t size) {
        if (irq_read(buffer, size, "%s/irq/%u/effective_affinity_list", view->roots.proc, line) > 0)
                return;
        if (irq_read(buffer, size, "%s/irq/%u/smp_affinity_list", view->roots.proc, line) <= 0)
                buffer[0] = '\0';
}

static int help(void) {
        fputs("Usage: rtgrantctl irq [OPTION…] [DEVICE…]\n"
              "\n"
              "Sound cards, or the given devices: their interrupts, the kernel threads that "
              "handle\n"
              "them, their priority, CPU, interrupts per second, and who else is on the same "
              "line.\n"
              "DEVICE is " IRQ_NAME_FORMS ".\n"
              "\n"
              "      --all            all interrupt threads, and the kernel's other threads that\n"
              "                       matter to real-time, and what each is for\n"
              "      --interval SECONDS\n"
              "                       how long interrupts are counted (default: 1; 0: not at all)\n"
              "      --sysroot DIR    look at DIR/sys and DIR/proc\n"
              "      --import-rtirq FILE\n"
              "                       print rules for the policy that do what this configuration "
              "of\n"
              "                       rtirq does, and what would be otherwise\n"
              "      --json           for scripts\n"
              "  -h, --help           this help\n"
              "\n"
              "It needs neither the broker nor root.\n",
              stdout);
        return STATUS_DONE;
}

static int parse_interval(const char *text, unsigned *ret_ms) {
        double seconds;
        char *end;

        seconds = strtod(text, &end);
        if (end == text || *end != '\0' || !(seconds >= 0 && seconds <= INTERVAL_MS_MAX / 1000.0))
                return ctl_misuse("--interval is 0 to %d seconds, not '%s'", INTERVAL_MS_MAX / 1000,
                                  text);
        *ret_ms = (unsigned) (seconds * 1000 + 0.5);
        return 0;
}

/* Returns 0, the exit status, or -1 if there is nothing more to do. */
static int parse_options(struct irq_options *options, int argc, char **argv) {
        int c, status = 0;

        optind = 0;
        argv[0] = (char *) CTL_PROGRAM;
        while (status == 0 && (c = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
                switch (c) {
                case 'h':
                        (void) help();
                        return -1;
                case OPTION_JSON:
                        options->json = true;
                        break;
                case OPTION_ALL:
                        options->all = true;
                        break;
                case OPTION_INTERVAL:
                        status = parse_interval(optarg, &options->interval_ms);
                        break;
                case OPTION_SYSROOT:
                        options->sysroot = optarg;
                        break;
                case OPTION_IMPORT_RTIRQ:
                        options->rtirq = optarg;
                        break;
                default: /* getopt has said what is wrong */
                        fprintf(stderr, "Try '" CTL_PROGRAM " irq --help'.\n");
                        return STATUS_USAGE;
                }
        }
        return status;
}

/* ---- looking ---- */

static double now(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static int take_snapshots(struct irq_view *view, unsigned interval_ms) {
        struct timespec pause = { .tv_sec = interval_ms / 1000,
                                  .tv_nsec = (long) (interval_ms % 1000) * 1000000 };
        double began;
        int r;

        r = irq_snapshot_take(&view->roots, &view->before);
        if (r < 0)
                return r;
        began = now();
        if (interval_ms > 0)
                (void) nanosleep(&pause, NULL);
        r = irq_snapshot_take(&view->roots, &view->after);
        view->seconds = interval_ms > 0 ? now() - began : 0;
        return r;
}

static int add_row(struct irq_view *view, const char *name) {
        struct irq_row *rows = reallocarray(view->rows, view->n_rows + 1, sizeof(*rows)), *row;

        if (!rows)
                return -ENOMEM;
        view->rows = rows;
        row = &rows[view->n_rows++];
        *row = (struct irq_row){};
        irq_copy(row->name, sizeof(row->name), name);
        irq_resolve(&view->roots, &view->after, name, &row->resolution);
        if (view->seconds > 0)
                (void) irq_choose_moving(&row->resolution, &view->before, &view->after);
        irq_find_sharers(view, &row->resolution.device, row->sharers, sizeof(row->sharers));
        return 0;
}

static int add_cards(struct irq_view *view) {
        unsigned cards[CARDS_MAX], n = irq_list_cards(&view->roots, cards, CARDS_MAX);
        char name[IRQ_NAME_SIZE];
        int r = 0;

        for (unsigned i = 0; i < n && r >= 0; i++) {
                (void) snprintf(name, sizeof(name), "card:%u", cards[i]);
                r = add_row(view, name);
        }
        return r;
}

static int look(struct irq_view *view, unsigned interval_ms, char **names) {
        int r;

        r = take_snapshots(view, interval_ms);
        if (r < 0) {
                fprintf(stderr, CTL_PROGRAM ": cannot read %s/interrupts: %s\n", view->roots.proc,
                        strerror(-r));
                return STATUS_FAILED;
        }
        for (; *names && r >= 0; names++)
                r = add_row(view, *names);
        if (r >= 0 && view->n_rows == 0)
                r = add_cards(view);
        if (r < 0) {
                fprintf(stderr, CTL_PROGRAM ": out of memory\n");
                return STATUS_FAILED;
        }
        return 0;
}

/* A name that is none is the caller's mistake, and said before anything is measured. */
static int check_names(char **names) {
        struct irq_name parsed;

        for (; *names; names++)
                if (irq_name_parse(*names, &parsed) < 0)
                        return ctl_misuse("'%s' does not name a device: name it as %s", *names,
                                          IRQ_NAME_FORMS);
        return 0;
}

static bool is_device_missing(const struct irq_view *view) {
        for (size_t i = 0; i < view->n_rows; i++)
                if (view->rows[i].resolution.status == IRQ_NO_DEVICE)
                        return true;
        return false;
}

int ctl_irq(struct ctl *ctl, char **argv) {
        struct irq_options options = { .json = ctl->json, .interval_ms = INTERVAL_MS };
        char sys[PATH_MAX], proc[PATH_MAX];
        struct irq_view view = { .roots = irq_roots_system };
        int argc = 0, status;

        while (argv[argc])
                argc++;
        status = parse_options(&options, argc, argv);
        if (status == 0)
                status = check_names(argv + optind);
        if (status != 0)
                return status < 0 ? STATUS_DONE : status;

        if (options.sysroot) {
                (void) snprintf(sys, sizeof(sys), "%s/sys", options.sysroot);
                (void) snprintf(proc, sizeof(proc), "%s/proc", options.sysroot);
                view.roots = (struct irq_roots){ .sys = sys, .proc = proc };
        }
        view.all = options.all;
        if (options.rtirq && argv[optind])
                return ctl_misuse("--import-rtirq takes no '%s'", argv[optind]);
        status = look(&view, options.rtirq ? 0 : options.interval_ms, argv + optind);
        if (status == 0 && options.rtirq) {
                status = irq_import(&view, options.rtirq, options.json);
        } else if (status == 0) {
                if (options.json)
                        irq_print_json(&view);
                else
                        irq_print(ctl, &view);
                if (is_device_missing(&view))
                        status = STATUS_FAILED;
        }

        irq_snapshot_done(&view.before);
        irq_snapshot_done(&view.after);
        free(view.rows);
        return status;
}
