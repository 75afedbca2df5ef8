/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANTCTL_H
#define RTGRANT_CLIENT_RTGRANTCTL_H

/* What the commands of rtgrantctl share. Each returns the exit status. */

#include <stdbool.h>

#include "client/cli/broker.h"

#define CTL_PROGRAM "rtgrantctl"

struct ctl {
        struct broker broker;
        bool json;
        bool colour;
        bool all;               /* --all */
        const char *user;       /* --user; borrowed from argv */
        const char *pid;        /* --pid; borrowed from argv */
        const char *check;      /* --check; borrowed from argv */
        const char *root;       /* --sysroot; borrowed from argv */
        bool once;              /* --once */
};

/* @argv ends with NULL: the operands alone, but for `why` and `irq` everything from
 * its name on. */
int ctl_status(struct ctl *ctl, char **argv);
int ctl_list(struct ctl *ctl, char **argv);
int ctl_monitor(struct ctl *ctl, char **argv);
int ctl_top(struct ctl *ctl, char **argv);
int ctl_why(struct ctl *ctl, char **argv);
int ctl_revoke(struct ctl *ctl, char **argv);
int ctl_reload(struct ctl *ctl, char **argv);
int ctl_policy(struct ctl *ctl, char **argv);
/* `policy --check` */
int ctl_check_policy(struct ctl *ctl, const char *path);
int ctl_irq(struct ctl *ctl, char **argv);
int ctl_doctor(struct ctl *ctl, char **argv);

/* Connects, with --ask as an administrator, or says why not. Returns 0, or the exit status. */
int ctl_connect(struct ctl *ctl);

/* Whether the caller is an administrator: root, or as polkit says. */
bool ctl_is_admin(const struct ctl *ctl);

/* Says what a call with the broker failed of; @answer may be NULL. Returns the exit status. */
int ctl_fail(const struct ctl *ctl, int error, const struct rtgrant_answer *answer);

/* `rtgrantctl --help` */
int ctl_help(void);

/* Says what is wrong with the command line. Returns the exit status. */
int ctl_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "in force", "changed", "demoted" */
const char *ctl_lease_state(enum rtgrant_lease_state state);

/* The real-time threads of the machine between the bands of the roles, for `status`. */
void ctl_print_ladder(struct ctl *ctl, const struct rtgrant_status *status);
struct json_object *ctl_ladder_json(struct ctl *ctl, const struct rtgrant_status *status);

/* What the lease is for: "SCHED_RR 20" */
void ctl_describe_granted(char buffer[EXPLAIN_VALUES_SIZE], const struct rtgrant_lease *lease);

/* A lease as `list` and `monitor` show it to scripts; owned by the caller. */
struct json_object *ctl_lease_json(const struct rtgrant_lease *lease);

#endif
