/* SPDX-License-Identifier: MIT */

#include "client/latency/options.h"

#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/text.h"

enum {
        OPTION_JSON = 256,
        OPTION_CSV,
        OPTION_SOCKET,
        OPTION_ROLE,
        OPTION_PRIORITY,
        OPTION_DIRECT,
        OPTION_RATE,
        OPTION_FRAMES,
        OPTION_PERIODS,
        OPTION_LOAD,
        OPTION_CPU,
        OPTION_DURATION,
        OPTION_LOADS,
        OPTION_WITH,
        OPTION_DIRECTORY,
        OPTION_STREAM,
        OPTION_SYSROOT,
        OPTION_COMPARE,
        OPTION_SWEEP,
        OPTION_PLOT,
        OPTION_FAIL_ON,
        OPTION_CYCLICTEST,
        OPTION_INJECT,
        OPTION_IRQ,
        OPTION_AS_USER,
        OPTION_ASK,
};

static const struct option long_options[] = {
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { "json", no_argument, NULL, OPTION_JSON },
        { "csv", no_argument, NULL, OPTION_CSV },
        { "socket", required_argument, NULL, OPTION_SOCKET },
        { "role", required_argument, NULL, OPTION_ROLE },
        { "priority", required_argument, NULL, OPTION_PRIORITY },
        { "direct", no_argument, NULL, OPTION_DIRECT },
        { "rate", required_argument, NULL, OPTION_RATE },
        { "frames", required_argument, NULL, OPTION_FRAMES },
        { "periods", required_argument, NULL, OPTION_PERIODS },
        { "load", required_argument, NULL, OPTION_LOAD },
        { "cpu", required_argument, NULL, OPTION_CPU },
        { "duration", required_argument, NULL, OPTION_DURATION },
        { "loads", required_argument, NULL, OPTION_LOADS },
        { "with", required_argument, NULL, OPTION_WITH },
        { "directory", required_argument, NULL, OPTION_DIRECTORY },
        { "stream", required_argument, NULL, OPTION_STREAM },
        { "sysroot", required_argument, NULL, OPTION_SYSROOT },
        { "compare", required_argument, NULL, OPTION_COMPARE },
        { "sweep", required_argument, NULL, OPTION_SWEEP },
        { "plot", required_argument, NULL, OPTION_PLOT },
        { "fail-on", required_argument, NULL, OPTION_FAIL_ON },
        { "cyclictest", no_argument, NULL, OPTION_CYCLICTEST },
        { "inject", required_argument, NULL, OPTION_INJECT },
        { "irq", required_argument, NULL, OPTION_IRQ },
        { "as-user", required_argument, NULL, OPTION_AS_USER },
        { "ask", no_argument, NULL, OPTION_ASK },
        { 0 },
};

__attribute__((format(printf, 1, 2))) static int complain(const char *format, ...) {
        char message[512], printable[1024];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        text_printable(printable, sizeof(printable), message);
        fprintf(stderr, LATENCY_PROGRAM ": %s\nTry '" LATENCY_PROGRAM " --help'.\n", printable);
        return STATUS_USAGE;
}

static int parse_number(const char *name, const char *text, int64_t min, int64_t max,
                        unsigned *ret) {
        int64_t number;

        if (text_parse_number(text, min, max, &number) < 0)
                return complain("--%s: '%s' is no number from %d to %d", name, text, (int) min,
                                (int) max);
        *ret = (unsigned) number;
        return 0;
}

/* Bits of the words of a list, which are in the order of the bits. */
static int parse_words(const char *name, const char *text, const char *const *words,
                       unsigned *ret) {
        char copy[256], *save = NULL;
        size_t i;

        if (snprintf(copy, sizeof(copy), "%s", text) >= (int) sizeof(copy))
                return complain("--%s: '%s' is too long", name, text);
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                for (i = 0; words[i] && strcmp(words[i], word) != 0; i++)
                        ;
                if (!words[i])
                        return complain("--%s: '%s' is not known; is '%s' meant?", name, word,
                                        text_nearest(word, words) ?: words[0]);
                *ret |= 1U << i;
        }
        return *ret ? 0 : complain("--%s: nothing is named", name);
}

static int parse_loads(struct latency_options *o, const char *text) {
        char copy[256], *save = NULL;
        const struct load *load;

        o->n_loads = 0;
        if (snprintf(copy, sizeof(copy), "%s", text) >= (int) sizeof(copy))
                return complain("--loads: '%s' is too long", text);
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                load = load_by_name(word);
                if (!load)
                        return complain("--loads: there is no load '%s'", word);
                if (o->n_loads == LOADS_MAX - 1)
                        return complain("--loads: too many");
                o->loads[o->n_loads++] = load;
        }
        return o->n_loads > 0 ? 0 : complain("--loads: nothing is named");
}

static int parse_compare(struct latency_options *o, const char *text) {
        static const char *const words[] = { "priority", "cpu-latency", "irq", "governor", NULL };
        size_t n = strlen(text);

        if (strchr(text, '/') || (n > 5 && strcmp(text + n - 5, ".json") == 0)) {
                o->old_run = text;
                return 0;
        }
        return parse_words("compare", text, words, &o->compare);
}

static int parse_duration(struct latency_options *o, const char *text) {
        char *end;

        o->duration_s = strtod(text, &end);
        if (end == text || *end || !(o->duration_s >= 0.1) || !(o->duration_s <= 3600))
                return complain("--duration: '%s' is not 0.1 to 3600 seconds", text);
        return 0;
}

static int parse_plot(struct latency_options *o, const char *path) {
        size_t n = strlen(path);

        if (n < 5 || (strcmp(path + n - 4, ".svg") != 0 && strcmp(path + n - 4, ".png") != 0))
                return complain("--plot: '%s' ends neither in .svg nor in .png", path);
#ifndef HAVE_CAIRO
        return complain("--plot: this was built without cairo");
#endif
        o->plot = path;
        return 0;
}

static int parse_measure(struct latency_options *o, int c, const char *argument) {
        unsigned number = 0;
        int status;

        switch (c) {
        case OPTION_RATE:
                return parse_number("rate", argument, 8000, 768000, &o->rate);
        case OPTION_FRAMES:
                return parse_number("frames", argument, 16, 16384, &o->frames);
        case OPTION_PERIODS:
                return parse_number("periods", argument, 2, 16, &o->periods);
        case OPTION_LOAD:
                return parse_number("load", argument, 0, 95, &o->load_percent);
        case OPTION_CPU:
                if (strcmp(argument, "any") == 0) {
                        o->cpu = -1;
                        return 0;
                }
                status = parse_number("cpu", argument, 0, CPU_SETSIZE - 1, &number);
                o->cpu = (int) number;
                return status;
        case OPTION_DURATION:
                return parse_duration(o, argument);
        case OPTION_INJECT:
                return parse_number("inject", argument, 1, 1000000, &o->inject_us);
        default:
                return -1;
        }
}

static int parse_grant(struct latency_options *o, int c, const char *argument) {
        unsigned number = 0;
        int status;

        switch (c) {
        case OPTION_SOCKET:
                o->grant.socket = argument;
                return 0;
        case OPTION_ROLE:
                o->grant.role = argument;
                return 0;
        case OPTION_PRIORITY:
                status = parse_number("priority", argument, 1, 99, &number);
                o->grant.priority = (int) number;
                return status;
        case OPTION_DIRECT:
                o->grant.direct = true;
                return 0;
        case OPTION_IRQ:
                o->grant.irq = argument;
                return 0;
        case OPTION_AS_USER:
                o->as_user = argument;
                return 0;
        case OPTION_ASK:
                o->ask = true;
                return 0;
        default:
                return -1;
        }
}

static int parse_other(struct latency_options *o, int c, const char *argument) {
        static const char *const fail_words[] = { "overruns", "late", "worse", NULL };

        switch (c) {
        case OPTION_JSON:
                o->json = true;
                return 0;
        case OPTION_CSV:
                o->csv = true;
                return 0;
        case OPTION_LOADS:
                return parse_loads(o, argument);
        case OPTION_WITH:
                o->command = argument;
                return 0;
        case OPTION_DIRECTORY:
                o->directory = argument;
                return 0;
        case OPTION_STREAM:
                o->stream = argument;
                return 0;
        case OPTION_SYSROOT:
                o->sysroot = argument;
                return 0;
        case OPTION_COMPARE:
                return parse_compare(o, argument);
        case OPTION_SWEEP:
                o->sweep_max_sectors = true;
                return strcmp(argument, "max_sectors_kb") == 0
                               ? 0
                               : complain("--sweep: '%s' is not max_sectors_kb", argument);
        case OPTION_PLOT:
                return parse_plot(o, argument);
        case OPTION_FAIL_ON:
                return parse_words("fail-on", argument, fail_words, &o->fail_on);
        case OPTION_CYCLICTEST:
                o->cyclictest = true;
                return 0;
        default:
                return -1;
        }
}

static int parse_one(struct latency_options *o, int c, const char *argument) {
        int status;

        if (c == 'h' || c == 'V') {
                *(c == 'h' ? &o->help : &o->version) = true;
                return 0;
        }
        status = parse_measure(o, c, argument);
        if (status < 0)
                status = parse_grant(o, c, argument);
        if (status < 0)
                status = parse_other(o, c, argument);
        if (status >= 0)
                return status;
        fprintf(stderr, "Try '" LATENCY_PROGRAM " --help'.\n"); /* getopt has said what is wrong */
        return STATUS_USAGE;
}

/* The last CPU that we may use: the first has most of the interrupts. */
static int choose_cpu(void) {
        cpu_set_t set;
        int last = -1;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return -1;
        for (int i = 0; i < CPU_SETSIZE; i++)
                if (CPU_ISSET((size_t) i, &set))
                        last = i;
        return last;
}

static int settle(struct latency_options *o) {
        if (o->cpu == -2)
                o->cpu = choose_cpu();
        if (o->command && o->n_loads == 0)
                o->loads[o->n_loads++] = load_by_name("none");
        if (o->n_loads == 0 && o->sweep_max_sectors)
                return parse_loads(o, "disk-write,disk-copy,disk-read");
        for (size_t i = 0; o->n_loads == i && !o->command && load_by_index(i); i++)
                o->loads[o->n_loads++] = load_by_index(i);
        if (o->command)
                o->loads[o->n_loads++] = &load_command;
        if (o->json && o->csv)
                return complain("--json and --csv exclude each other");
        if (o->fail_on & FAIL_ON_WORSE && !o->old_run)
                return complain("--fail-on worse needs --compare OLD.json");
        if (o->duration_s * o->rate / o->frames > 4e6)
                return complain("--duration: too long for periods that short");
        return 0;
}

int latency_options_parse(struct latency_options *o, int argc, char **argv) {
        int c, status;

        *o = (struct latency_options){
                .rate = 44100,
                .frames = 128,
                .periods = 2,
                .load_percent = 80,
                .cpu = -2,
                .duration_s = 5,
                .directory = "/var/tmp",
                .grant = { .policy = SCHED_FIFO },
        };
        while ((c = getopt_long(argc, argv, "hV", long_options, NULL)) >= 0) {
                status = parse_one(o, c, optarg);
                if (status != 0 || o->help || o->version)
                        return status;
        }
        if (optind < argc)
                return complain("what is '%s'?", argv[optind]);
        return settle(o);
}

void latency_help(void) {
        fputs("Usage: rtgrant-latency [OPTION…]\n"
              "\n"
              "Measures what real-time priority buys on this machine: a periodic thread, as of a "
              "sound\n"
              "program, with the broker's grant and without it, under one load after the other.\n"
              "\n"
              "The thread:\n"
              "      --rate HZ         frames per second (44100)\n"
              "      --frames N        frames of a period (128)\n"
              "      --periods N       periods of the buffer, 2 to 16 (2)\n"
              "      --load PERCENT    part of a period that it works (80)\n"
              "      --stream WHICH    rate, frames and periods of a running stream: alsa, jack,\n"
              "                        pipewire, or auto for the first of them\n"
              "      --sysroot DIR     look for the stream and the governor in DIR\n"
              "      --cpu N|any       where it runs (the last CPU)\n"
              "      --duration S      seconds for each load and variant (5)\n"
              "The loads:\n"
              "      --loads LIST      of "
              "none,cpu,proc,disk-write,disk-copy,disk-read,memory,fork,\n"
              "                        network (all)\n"
              "      --with COMMAND    a command of the shell as a load\n"
              "      --directory DIR   whose disk is used (/var/tmp)\n"
              "The grant:\n"
              "      --role ROLE       of the broker (the highest that you may have)\n"
              "      --priority N      (the lowest of the role)\n"
              "      --direct          by your own rights, if they suffice\n"
              "      --as-user USER    as root: be that user for all but watching who has the CPU\n"
              "      --ask             polkit may ask for a password, to name who has the CPU\n"
              "      --socket PATH     where the broker listens\n"
              "      --compare LIST    of priority,cpu-latency,irq,governor: with and without "
              "each\n"
              "      --irq DEVICE      whose interrupt is meant by it (card:0)\n"
              "      --sweep max_sectors_kb  with each power of two, under the disk's loads\n"
              "The result:\n"
              "      --json, --csv     for scripts\n"
              "      --plot FILE       time lines and histograms, .svg or .png\n"
              "      --compare OLD.json  with an older run\n"
              "      --fail-on LIST    of overruns,late,worse: exit with 5 if there were with the "
              "grant\n"
              "      --cyclictest      measure the same with cyclictest(8) and compare\n"
              "      --inject US       for testing: one cycle of 100 works so much longer\n"
              "  -h, --help            this help\n"
              "  -V, --version         the version\n"
              "\n"
              "Examples:\n"
              "  rtgrant-latency                                all loads, 90 seconds\n"
              "  rtgrant-latency --loads cpu,fork --duration 2  two of them, 8 seconds\n"
              "  rtgrant-latency --stream auto --plot out.svg   with the deadline of what plays "
              "now\n"
              "  rtgrant-latency --with 'make -j8' --cpu 0      while a program is compiled\n"
              "  rtgrant-latency --json >old.json; rtgrant-latency --compare old.json --fail-on "
              "worse\n"
              "\n"
              "Exit status: 0 done, 1 failed, 2 wrong usage, 3 the grant was refused, 4 no "
              "broker,\n"
              "5 what --fail-on named. See rtgrant-latency(1), rtgrant(1), rtgrantctl(1).\n",
              stdout);
}
