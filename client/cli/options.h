/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_OPTIONS_H
#define RTGRANT_CLI_OPTIONS_H

/*
 * The command line of rtgrant, which is chrt's with more liberty in the order: with -p, options may
 * stand anywhere; else they end where COMMAND begins. `rtgrantctl why` understands the same.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/cli/explain.h"
#include "client/cli/scheduling.h"

enum options_action {
        ACTION_RUN,             /* a command, with other scheduling */
        ACTION_SHOW,            /* the scheduling of a running thread */
        ACTION_CHANGE,          /* and change it */
        ACTION_HELP,
        ACTION_VERSION,
        ACTION_RANGES,          /* -m */
};

struct options {
        const char *program;            /* for messages; borrowed */
        enum options_action action;
        struct scheduling scheduling; /* what is asked; the priority once options_complete() ran */
        bool policy_given;
        bool sched_wanted;              /* false: nice alone is asked for */
        const char *priority_operand;   /* borrowed from argv, as all strings here; NULL if none */
        bool pid_given;                 /* -p */
        pid_t pid;                      /* 0: own */
        uint64_t inode;                 /* in pidfs, of PID:INODE; 0 if none was given */
        char **command;                 /* ends with NULL; NULL if none was given */
        bool all_threads;
        bool verbose;
        bool json;
        /* meant for the broker */
        const char *role;
        const char *reason;
        const char *socket;
        bool nice_wanted;
        int nice;
        bool clamp;
        bool dry_run;
        bool ask;                       /* polkit may ask for a password */
        unsigned lifetime_s;            /* 0: as long as the thread */
        bool or_less;
        bool is_relative;               /* --relative; there is no PRIORITY then */
        int relative;
        pid_t feeds_tid;                /* --feeds: this, or a device */
        const char *feeds;
        unsigned rate;                  /* --rate, --frames, --load: all three or none are given */
        unsigned frames;
        unsigned load_percent;
        struct resources resources;
};

/*
 * Reads the command line. What is wrong with it is said on stderr. Returns 0, or the exit status.
 *
 * @program             for messages
 * @needs_command       false: neither COMMAND nor PID is needed
 */
int options_parse(struct options *ret, const char *program, bool needs_command, int argc,
                  char **argv);

/* The timing that --rate, --frames and --load declare; both 0 if they do not. */
void options_timing(const struct options *options, uint64_t *ret_period_ns,
                    uint64_t *ret_computation_ns);

/* What is asked for, to be put in words. */
struct values options_values(const struct options *options);

/*
 * Whether a priority must still be found by the role asked for: there is neither PRIORITY nor a
 * policy that needs none.
 */
bool options_lack_priority(const struct options *options);

/*
 * Reads PRIORITY and checks that it fits the policy: later than the rest, since chrt shows the
 * present scheduling before it complains. Says what is wrong. Returns 0, or the exit status.
 */
int options_complete(struct options *options);

#endif
