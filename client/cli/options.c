/* SPDX-License-Identifier: MIT */

#include "client/cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/option-values.h"
#include "client/cli/text.h"

#define OPERANDS_MAX 2 /* PRIORITY and PID */

enum {
        OPTION_ROLE = 256,
        OPTION_REASON,
        OPTION_SOCKET,
        OPTION_NICE,
        OPTION_CLAMP,
        OPTION_DRY_RUN,
        OPTION_ASK,
        OPTION_LIFETIME,
        OPTION_JSON,
        OPTION_OR_LESS,
        OPTION_RELATIVE,
        OPTION_FEEDS,
        OPTION_RATE,
        OPTION_FRAMES,
        OPTION_LOAD,
        OPTION_MEMLOCK,
        OPTION_CPU_LATENCY,
        OPTION_BLOCK_QUEUE,
        OPTION_IRQ,
};

/* "+": the end of the options is found here, not by getopt. */
static const char short_options[] = "+abdfhimoprRvVT:P:D:";

static const struct option long_options[] = {
        { "all-tasks", no_argument, NULL, 'a' },
        { "batch", no_argument, NULL, 'b' },
        { "deadline", no_argument, NULL, 'd' },
        { "fifo", no_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        { "idle", no_argument, NULL, 'i' },
        { "max", no_argument, NULL, 'm' },
        { "other", no_argument, NULL, 'o' },
        { "pid", no_argument, NULL, 'p' },
        { "rr", no_argument, NULL, 'r' },
        { "reset-on-fork", no_argument, NULL, 'R' },
        { "verbose", no_argument, NULL, 'v' },
        { "version", no_argument, NULL, 'V' },
        { "sched-runtime", required_argument, NULL, 'T' },
        { "sched-period", required_argument, NULL, 'P' },
        { "sched-deadline", required_argument, NULL, 'D' },
        { "role", required_argument, NULL, OPTION_ROLE },
        { "reason", required_argument, NULL, OPTION_REASON },
        { "socket", required_argument, NULL, OPTION_SOCKET },
        { "nice", required_argument, NULL, OPTION_NICE },
        { "clamp", no_argument, NULL, OPTION_CLAMP },
        { "dry-run", no_argument, NULL, OPTION_DRY_RUN },
        { "ask", no_argument, NULL, OPTION_ASK },
        { "lifetime", required_argument, NULL, OPTION_LIFETIME },
        { "json", no_argument, NULL, OPTION_JSON },
        { "or-less", no_argument, NULL, OPTION_OR_LESS },
        { "relative", required_argument, NULL, OPTION_RELATIVE },
        { "feeds", required_argument, NULL, OPTION_FEEDS },
        { "rate", required_argument, NULL, OPTION_RATE },
        { "frames", required_argument, NULL, OPTION_FRAMES },
        { "load", required_argument, NULL, OPTION_LOAD },
        { "memlock", required_argument, NULL, OPTION_MEMLOCK },
        { "cpu-latency", required_argument, NULL, OPTION_CPU_LATENCY },
        { "block-queue", required_argument, NULL, OPTION_BLOCK_QUEUE },
        { "irq", required_argument, NULL, OPTION_IRQ },
        { 0 },
};

/* What is gathered on the way and means something only at the end. */
struct parse {
        struct options *options;
        char *operands[OPERANDS_MAX];
        size_t n_operands;
        bool only_operands;     /* after "--" */
        bool ended;             /* by COMMAND, --help or --version */
};

static void set_policy(struct options *o, int policy) {
        o->scheduling.policy = policy;
        o->policy_given = true;
}

/* The options of chrt that stand alone. Returns false if @c is none of them. */
static bool take_switch(struct parse *parse, int c) {
        struct options *o = parse->options;

        switch (c) {
        case 'a':
                o->all_threads = true;
                return true;
        case 'b':
                set_policy(o, SCHED_BATCH);
                return true;
        case 'd':
                set_policy(o, POLICY_DEADLINE);
                return true;
        case 'f':
                set_policy(o, SCHED_FIFO);
                return true;
        case 'i':
                set_policy(o, SCHED_IDLE);
                return true;
        case 'o':
                set_policy(o, SCHED_OTHER);
                return true;
        case 'r':
                set_policy(o, SCHED_RR);
                return true;
        case 'R':
                o->scheduling.reset_on_fork = true;
                return true;
        case 'p':
                o->pid_given = true;
                return true;
        case 'v':
                o->verbose = true;
                return true;
        case 'm':
                o->action = ACTION_RANGES;
                return true;
        case 'h':
        case 'V':
                o->action = c == 'h' ? ACTION_HELP : ACTION_VERSION;
                parse->ended = true;
                return true;
        default:
                return false;
        }
}

/* What goes beyond the scheduling of threads. Returns 0, or the exit status. */
static int take_resource(struct options *o, int c) {
        struct resources *r = &o->resources;
        int64_t number;
        int status;

        switch (c) {
        case OPTION_MEMLOCK:
                return option_parse_memlock(o, optarg);
        case OPTION_CPU_LATENCY:
                status = option_parse_number(o, "--cpu-latency", optarg, 1, INT32_MAX, &number);
                if (status == 0)
                        r->cpu_latency_us = (unsigned) number;
                return status;
        case OPTION_BLOCK_QUEUE:
                r->block = optarg;
                status = option_parse_device(o, "--block-queue", optarg, INT32_MAX, &number);
                if (status == 0 && number == 0)
                        return option_complain(o, STATUS_FAILED,
                                               "--block-queue: PATH=KIB is meant, as in /srv=64");
                r->block_max_sectors_kb = (unsigned) number;
                return status;
        default:
                r->irq = optarg;
                status = option_parse_device(o, "--irq", optarg, 99, &number);
                r->irq_priority = (int) number;
                return status;
        }
}

/* Timing, and a place among others. Returns 0, or the exit status. */
static int take_timing(struct options *o, int c) {
        int64_t number = 0;
        int status = 0;

        switch (c) {
        case OPTION_RELATIVE:
                status = option_parse_number(
                        o, "--relative", optarg[0] == '+' ? optarg + 1 : optarg, -2, 2, &number);
                o->is_relative = true;
                o->relative = (int) number;
                return status;
        case OPTION_FEEDS:
                if (optarg[strspn(optarg, "0123456789")] != '\0') {
                        o->feeds = optarg;
                        return 0;
                }
                status = option_parse_number(o, "--feeds", optarg, 1, INT32_MAX, &number);
                o->feeds_tid = (pid_t) number;
                return status;
        case OPTION_RATE:
                status = option_parse_number(o, "--rate", optarg, 1, 10000000, &number);
                o->rate = (unsigned) number;
                return status;
        case OPTION_FRAMES:
                status = option_parse_number(o, "--frames", optarg, 1, 1000000, &number);
                o->frames = (unsigned) number;
                return status;
        default:
                return option_parse_load(o, optarg);
        }
}

static int check_timing(const struct options *o) {
        if ((o->rate > 0) != (o->frames > 0) || (o->rate > 0) != (o->load_percent > 0))
                return option_complain(
                        o, STATUS_FAILED,
                        "--rate, --frames and --load go together, as in --rate 48000 "
                        "--frames 128 --load 50%%");
        if (o->is_relative && o->priority_operand)
                return option_complain(
                        o, STATUS_FAILED,
                        "--relative is a place in the role's band, instead of PRIORITY %s",
                        o->priority_operand);
        return 0;
}

void options_timing(const struct options *o, uint64_t *ret_period_ns,
                    uint64_t *ret_computation_ns) {
        uint64_t period_ns = 0;

        if (o->rate > 0)
                period_ns = o->frames * UINT64_C(1000000000) / o->rate;
        *ret_period_ns = period_ns;
        *ret_computation_ns = period_ns * o->load_percent / 100;
}

/* The other options. Returns 0, or the exit status. */
static int take_option(struct options *o, int c) {
        int64_t number = 0;
        int status = 0;

        switch (c) {
        case 'T':
                status = option_parse_number(o, "--sched-runtime", optarg, 0, INT64_MAX, &number);
                o->scheduling.runtime_ns = (uint64_t) number;
                return status;
        case 'P':
                status = option_parse_number(o, "--sched-period", optarg, 0, INT64_MAX, &number);
                o->scheduling.period_ns = (uint64_t) number;
                return status;
        case 'D':
                status = option_parse_number(o, "--sched-deadline", optarg, 0, INT64_MAX, &number);
                o->scheduling.deadline_ns = (uint64_t) number;
                return status;
        case OPTION_ROLE:
                return option_parse_role(o, optarg);
        case OPTION_REASON:
                o->reason = optarg;
                return 0;
        case OPTION_SOCKET:
                o->socket = optarg;
                return 0;
        case OPTION_NICE:
                status = option_parse_number(o, "--nice", optarg, -20, 19, &number);
                o->nice = (int) number;
                o->nice_wanted = true;
                return status;
        case OPTION_CLAMP:
                o->clamp = true;
                return 0;
        case OPTION_DRY_RUN:
                o->dry_run = true;
                return 0;
        case OPTION_ASK:
                o->ask = true;
                return 0;
        case OPTION_LIFETIME:
                status = option_parse_number(o, "--lifetime", optarg, 1, UINT32_MAX, &number);
                o->lifetime_s = (unsigned) number;
                return status;
        case OPTION_JSON:
                o->json = true;
                return 0;
        case OPTION_OR_LESS:
                o->or_less = true;
                return 0;
        case OPTION_RELATIVE:
        case OPTION_FEEDS:
        case OPTION_RATE:
        case OPTION_FRAMES:
        case OPTION_LOAD:
                return take_timing(o, c);
        case OPTION_MEMLOCK:
        case OPTION_CPU_LATENCY:
        case OPTION_BLOCK_QUEUE:
        case OPTION_IRQ:
                return take_resource(o, c);
        default: /* getopt has said what is wrong */
                fprintf(stderr, "Try '%s --help'.\n", o->program);
                return STATUS_FAILED;
        }
}

/* At optind there is PRIORITY, PID, or where COMMAND begins. Returns 0, or the exit status. */
static int take_operand(struct parse *parse, char **argv) {
        struct options *o = parse->options;

        if (!o->pid_given && (parse->n_operands > 0 || !text_is_number(argv[optind]))) {
                o->command = argv + optind;
                parse->ended = true;
                return 0;
        }
        if (parse->n_operands == OPERANDS_MAX)
                return option_complain(o, STATUS_FAILED, "'%s' is one operand too many",
                                       argv[optind]);

        parse->operands[parse->n_operands++] = argv[optind++];
        return 0;
}

static int parse_all(struct parse *parse, int argc, char **argv) {
        int status = 0;

        while (status == 0 && !parse->ended) {
                int before = optind;
                int c = -1;

                if (!parse->only_operands)
                        c = getopt_long(argc, argv, short_options, long_options, NULL);
                if (c >= 0) {
                        if (!take_switch(parse, c))
                                status = take_option(parse->options, c);
                        continue;
                }
                if (optind == before + 1 && strcmp(argv[before], "--") == 0)
                        parse->only_operands = true;
                if (optind >= argc)
                        break;
                status = take_operand(parse, argv);
        }
        return status;
}

/* What -p and its operands mean. */
static int settle_pid(struct parse *parse) {
        struct options *o = parse->options;
        int status;

        if (parse->n_operands == 0)
                return option_complain(o, STATUS_FAILED, "-p needs the id of a process or thread");
        status = option_parse_pid(o, parse->operands[parse->n_operands - 1]);
        if (status != 0)
                return status;
        if (parse->n_operands == 1 && !o->policy_given && !o->nice_wanted && !o->role &&
            !resources_are_wanted(&o->resources)) {
                o->action = ACTION_SHOW;
                return 0;
        }

        o->action = ACTION_CHANGE;
        if (parse->n_operands == 2)
                o->priority_operand = parse->operands[0];
        if (o->pid == 0)
                return option_complain(o, STATUS_FAILED,
                                       "-p 0 is %s itself, which would gain nothing by it",
                                       o->program);
        return 0;
}

static int settle_command(struct parse *parse, bool needs_command) {
        struct options *o = parse->options;

        o->action = ACTION_RUN;
        o->priority_operand = parse->operands[0];
        if (needs_command && o->all_threads)
                return option_complain(o, STATUS_FAILED,
                                       "-a is for the threads of a running process: it needs -p");
        if (!needs_command || o->command)
                return 0;
        if (!o->priority_operand)
                return option_complain(o, STATUS_FAILED, "PRIORITY and COMMAND are missing");
        return option_complain(o, STATUS_FAILED, "a COMMAND is missing (or -p, if %s is a process)",
                               o->priority_operand);
}

struct values options_values(const struct options *o) {
        return (struct values) {
                .has_policy = o->sched_wanted,
                .policy = o->scheduling.policy,
                .priority = o->scheduling.priority,
                .has_nice = o->nice_wanted,
                .nice = o->nice,
                .resources = o->resources,
        };
}

bool options_lack_priority(const struct options *o) {
        return o->sched_wanted && policy_is_realtime(o->scheduling.policy) &&
               !o->priority_operand && !o->is_relative;
}

int options_parse(struct options *ret, const char *program, bool needs_command, int argc,
                  char **argv) {
        struct options options = {
                .program = program,
                .scheduling.policy = SCHED_RR, /* chrt's default */
        };
        struct parse parse = { .options = &options };
        int status;

        optind = 1;
        argv[0] = (char *) program; /* getopt's messages begin with it */
        status = parse_all(&parse, argc, argv);
        if (status != 0)
                return status;

        if (options.action == ACTION_RUN) {
                status = options.pid_given ? settle_pid(&parse)
                                           : settle_command(&parse, needs_command);
                if (status == 0)
                        status = check_timing(&options);
                if (status != 0)
                        return status;
        }
        options.sched_wanted =
                options.policy_given || options.priority_operand || options.is_relative ||
                (!options.nice_wanted &&
                 (options.role || !resources_are_wanted(&options.resources)));

        *ret = options;
        return 0;
}

static int complain_of_priority(const struct options *o, int min, int max) {
        const char *name = policy_name(o->scheduling.policy);

        if (!o->priority_operand)
                return option_complain(
                        o, o->pid_given ? STATUS_USAGE : STATUS_FAILED,
                        "%s needs a priority from %d to %d before %s; -o, -b, -i need none", name,
                        min, max, o->pid_given ? "PID" : "COMMAND");
        if (max == 0)
                return option_complain(
                        o, STATUS_FAILED,
                        "%s has no priority, so '%s' cannot be it; SCHED_FIFO (-f) and "
                        "SCHED_RR (-r) have 1 to 99",
                        name, o->priority_operand);
        return option_complain(o, STATUS_FAILED,
                               "%s has priorities from %d to %d, '%s' is none of them", name, min,
                               max, o->priority_operand);
}

int options_complete(struct options *o) {
        struct scheduling *s = &o->scheduling;
        int64_t number = s->priority;
        int min, max;

        if (!o->sched_wanted)
                return 0;
        policy_range(s->policy, &min, &max);
        if (o->priority_operand &&
            text_parse_number(o->priority_operand, INT32_MIN, INT32_MAX, &number) < 0)
                return complain_of_priority(o, min, max);
        if (s->policy != POLICY_DEADLINE && (s->runtime_ns || s->deadline_ns || s->period_ns))
                return option_complain(o, STATUS_FAILED,
                                       "-T, -P and -D belong to SCHED_DEADLINE (-d)");
        if (o->is_relative && policy_is_realtime(s->policy))
                min = 0; /* the broker knows the band */
        if (number < min || number > max)
                return complain_of_priority(o, min, max);
        s->priority = (int) number;

        /* As chrt fills them in: a deadline is the period, a runtime the deadline. */
        if (s->policy == POLICY_DEADLINE) {
                if (s->deadline_ns == 0)
                        s->deadline_ns = s->period_ns;
                if (s->runtime_ns == 0)
                        s->runtime_ns = s->deadline_ns;
        }
        return 0;
}
