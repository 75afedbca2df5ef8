/* SPDX-License-Identifier: MIT */

/* Shows and directs the broker: see rtgrantctl(1). */

#include "client/rtgrantctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"

enum {
        OPTION_JSON = 256,
        OPTION_SOCKET,
        OPTION_ALL,
        OPTION_USER,
        OPTION_PID,
        OPTION_ROOT,
        OPTION_ONCE,
        OPTION_CHECK,
        OPTION_ASK,
};

static const struct option long_options[] = {
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { "json", no_argument, NULL, OPTION_JSON },
        { "socket", required_argument, NULL, OPTION_SOCKET },
        { "all", no_argument, NULL, OPTION_ALL },
        { "user", required_argument, NULL, OPTION_USER },
        { "pid", required_argument, NULL, OPTION_PID },
        { "check", required_argument, NULL, OPTION_CHECK },
        { "sysroot", required_argument, NULL, OPTION_ROOT },
        { "once", no_argument, NULL, OPTION_ONCE },
        { "ask", no_argument, NULL, OPTION_ASK },
        { 0 },
};

struct command {
        const char *name;
        int (*run)(struct ctl *ctl, char **argv);
        bool takes_all;
        bool takes_user;
        bool takes_once;
        bool takes_ask;         /* can be about what is others' */
        bool takes_machine;     /* --pid, --sysroot */
        bool takes_operands;
        bool parses;            /* its own command line */
};

static const struct command commands[] = {
        { "status", ctl_status },
        { "list", ctl_list, .takes_all = true, .takes_ask = true },
        { "monitor", ctl_monitor, .takes_all = true, .takes_ask = true },
        { "top", ctl_top, .takes_all = true, .takes_once = true, .takes_ask = true },
        { "why", ctl_why, .parses = true },
        { "revoke", ctl_revoke, .takes_all = true, .takes_user = true, .takes_operands = true,
          .takes_ask = true },
        { "reload", ctl_reload, .takes_ask = true },
        { "policy", ctl_policy },
        { "irq", ctl_irq, .parses = true },
        { "doctor", ctl_doctor, .takes_all = true, .takes_machine = true },
};

int ctl_help(void) {
        fputs("Usage: rtgrantctl [OPTION…] COMMAND [ARGUMENT…]\n"
              "\n"
              "Shows who has which real-time priority by the broker rtgrantd, why or why not, and\n"
              "takes it back.\n"
              "\n"
              "  status               the broker, its roles, and what they give you (default)\n"
              "  list                 your leases\n"
              "  list --all           everybody's (administrator)\n"
              "  monitor              what happens to your leases (administrator: everybody's)\n"
              "  top                  CPU use of your leases, each second (--once: one table)\n"
              "  why REQUEST          whether a request would be granted, and why or why not;\n"
              "                       REQUEST is as for rtgrant: -f, -r, -o, --nice, --role, …\n"
              "  revoke ID…           end leases, by their ID or its first digits\n"
              "  revoke --user USER   all leases of a user (administrator)\n"
              "  revoke --all         all leases (administrator)\n"
              "  reload               read the policy again (administrator)\n"
              "  policy               the policy in force, and where each line of it was set\n"
              "  policy --check FILE  what the broker would say of that file, all faults at once\n"
              "  irq [DEVICE…]        sound cards, their interrupts, and the kernel's threads for them\n"
              "  irq --all            and all other kernel threads that matter, and what each is for\n"
              "  doctor               is this machine fit for low latency? what to do if not\n"
              "  doctor --pid PID     and that process?\n"
              "  doctor --sysroot DIR the machine whose /proc, /sys, /etc were copied there\n"
              "\n"
              "      --ask            for an administrator's commands polkit may ask for a password\n"
              "      --json           for scripts\n"
              "      --socket PATH    where the broker listens (default: $RTGRANT_SOCKET, or\n"
              "                       /run/rtgrant/socket)\n"
              "  -h, --help           this help\n"
              "  -V, --version        the version\n"
              "\n"
              "Examples:\n"
              "  rtgrantctl                       is it running, and what may I have?\n"
              "  rtgrantctl why -f 80             why do I not get SCHED_FIFO 80?\n"
              "  rtgrantctl why -r 20 -p 1234     and for process 1234?\n"
              "  rtgrantctl list --json | jq '.[].comm'\n"
              "  rtgrantctl revoke 3f2a           end the lease whose ID begins so\n"
              "\n"
              "Exit status: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 no broker to ask,\n"
              "5 not fit (doctor).\n"
              "See rtgrantctl(1), rtgrant-reasons(7), rtgrant(1).\n",
              stdout);
        return STATUS_DONE;
}

int ctl_misuse(const char *format, ...) {
        char message[512], printable[1024];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        text_printable(printable, sizeof(printable), message);
        fprintf(stderr, CTL_PROGRAM ": %s\nTry '" CTL_PROGRAM " --help'.\n", printable);
        return STATUS_USAGE;
}

/* Who cannot find out is none: then there is little that can go wrong. */
bool ctl_is_admin(const struct ctl *ctl) {
        return rtgrant_is_admin(ctl->broker.handle) > 0;
}

int ctl_fail(const struct ctl *ctl, int error, const struct rtgrant_answer *answer) {
        char why[BROKER_ERROR_SIZE];

        if (error == -EPERM && answer) {
                explain_refusal(stderr, CTL_PROGRAM, NULL, answer);
                return STATUS_REFUSED;
        }
        if (error == -EPERM) {
                fprintf(stderr, CTL_PROGRAM ": refused: this is for administrators only\n"
                                            "  help: run it as root, with --ask and an administrator's password, or "
                                            "let polkit allow you org.rtgrant.manage\n");
                return STATUS_REFUSED;
        }

        broker_error_text(&ctl->broker, error, why, sizeof(why));
        fprintf(stderr, CTL_PROGRAM ": %s\n", why);
        if (error == RTGRANT_ABSENT)
                fprintf(stderr, "  help: start it: systemctl start rtgrantd\n");
        return broker_is_error(error) ? STATUS_NO_BROKER : STATUS_FAILED;
}

int ctl_connect(struct ctl *ctl) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        int r;

        r = broker_connect(&ctl->broker);
        if (r < 0)
                return ctl_fail(ctl, r, NULL);
        if (ctl->broker.may_ask)
                r = rtgrant_authenticate(ctl->broker.handle, &answer);
        agent_stop(&ctl->broker.agent);
        return r < 0 ? ctl_fail(ctl, r, &answer) : STATUS_DONE;
}

const char *ctl_lease_state(enum rtgrant_lease_state state) {
        switch (state) {
        case RTGRANT_LEASE_IN_FORCE:
                return "in force";
        case RTGRANT_LEASE_CHANGED:
                return "changed";
        case RTGRANT_LEASE_DEMOTED:
                return "demoted";
        }
        return "unknown";
}

static const struct command *find_command(const char *name) {
        for (size_t i = 0; i < ELEMENTS(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return &commands[i];

        return NULL;
}

static int complain_of_command(const char *name) {
        const char *names[ELEMENTS(commands) + 1] = { 0 };
        const char *nearest;

        for (size_t i = 0; i < ELEMENTS(commands); i++)
                names[i] = commands[i].name;
        nearest = text_nearest(name, names);
        if (nearest)
                return ctl_misuse("there is no command '%s': is '%s' meant?", name, nearest);
        return ctl_misuse("there is no command '%s'", name);
}

/*
 * Reads options; with @stop_at_operand only those in front of the command. Returns 0, the exit
 * status, or -1 if there is nothing more to do.
 */
static int parse_options(struct ctl *ctl, bool stop_at_operand, int argc, char **argv) {
        int c;

        optind = 0; /* begin anew, in glibc and musl */
        argv[0] = (char *) CTL_PROGRAM;
        while ((c = getopt_long(argc, argv, stop_at_operand ? "+hV" : "hV", long_options, NULL)) >=
               0) {
                switch (c) {
                case 'h':
                        (void) ctl_help();
                        return -1;
                case 'V':
                        printf(CTL_PROGRAM " %s\n", RTGRANT_VERSION);
                        return -1;
                case OPTION_JSON:
                        ctl->json = true;
                        break;
                case OPTION_SOCKET:
                        ctl->broker.socket = optarg;
                        break;
                case OPTION_ALL:
                        ctl->all = true;
                        break;
                case OPTION_USER:
                        ctl->user = optarg;
                        break;
                case OPTION_PID:
                        ctl->pid = optarg;
                        break;
                case OPTION_CHECK:
                        ctl->check = optarg;
                        break;
                case OPTION_ROOT:
                        ctl->root = optarg;
                        break;
                case OPTION_ONCE:
                        ctl->once = true;
                        break;
                case OPTION_ASK:
                        ctl->broker.may_ask = true;
                        break;
                default: /* getopt has said what is wrong */
                        fprintf(stderr, "Try '" CTL_PROGRAM " --help'.\n");
                        return STATUS_USAGE;
                }
        }
        return 0;
}

static int run_command(struct ctl *ctl, const struct command *command, int argc, char **argv) {
        int status;

        if (command->parses)
                return command->run(ctl, argv);

        status = parse_options(ctl, /* stop_at_operand= */ false, argc, argv);
        if (status != 0)
                return status < 0 ? STATUS_DONE : status;
        if (ctl->all && !command->takes_all)
                return ctl_misuse("--all is not for %s", command->name);
        if (ctl->once && !command->takes_once)
                return ctl_misuse("--once is not for %s", command->name);
        if (ctl->broker.may_ask && !command->takes_ask)
                return ctl_misuse("--ask is not for %s", command->name);
        if (ctl->user && !command->takes_user)
                return ctl_misuse("--user is not for %s", command->name);
        if ((ctl->pid || ctl->root) && !command->takes_machine)
                return ctl_misuse("%s is not for %s", ctl->pid ? "--pid" : "--sysroot", command->name);
        if (ctl->check && command->run != ctl_policy)
                return ctl_misuse("--check is not for %s", command->name);
        if (optind < argc && !command->takes_operands)
                return ctl_misuse("%s takes no '%s'", command->name, argv[optind]);

        return command->run(ctl, argv + optind);
}

static int dispatch(struct ctl *ctl, int argc, char **argv) {
        static char *default_argv[] = { NULL, NULL };
        const struct command *command;
        int status;

        status = parse_options(ctl, /* stop_at_operand= */ true, argc, argv);
        if (status != 0)
                return status < 0 ? STATUS_DONE : status;
        if (optind == argc)
                return run_command(ctl, &commands[0], 1, default_argv);

        command = find_command(argv[optind]);
        if (!command)
                return complain_of_command(argv[optind]);
        return run_command(ctl, command, argc - optind, argv + optind);
}

static int run(int argc, char **argv) {
        struct ctl ctl = { .colour = style_wanted() };
        int status;

        (void) setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what goes to stderr */
        status = dispatch(&ctl, argc, argv);
        broker_done(&ctl.broker);
        return output_finish(CTL_PROGRAM, status);
}

int main(int argc, char **argv) {
        return run(argc, argv);
}
