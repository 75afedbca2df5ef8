/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/harden.h"
#include "broker/reload.h"
#include "broker/config.h"
#include "broker/event-source.h"

#define EXIT_USAGE 2

static void print_help(FILE *file) {
        (void) fprintf(file,
                       "Usage: rtgrantd [OPTION]…\n"
                       "\n"
                       "Gives unprivileged programs real-time priority, as an administrator's "
                       "policy allows.\n"
                       "Stays in the foreground. SIGHUP reads the policy again; SIGTERM ends all "
                       "leases, which\n"
                       "restores what was there before, and stops; SIGUSR2 stops and leaves them to "
                       "a successor.\n"
                       "\n"
                       "      --socket PATH      listen there (default: " WIRE_SOCKET_PATH ")\n"
                       "      --policy PATH      read this file or directory instead of the "
                       "system's policy,\n"
                       "                         " POLICY_VENDOR_FILE " and /etc/rtgrant\n"
                       "      --state DIR        keep leases there for a successor (default: "
                       "/run/rtgrant)\n"
                       "      --log-level LEVEL  err, warning, notice, info or debug (default: "
                       "LogLevel= of the\n"
                       "                         policy, else notice)\n"
                       "  -h, --help             show this and exit\n"
                       "  -V, --version          show the version and exit\n"
                       "\n"
                       "Example, without installing anything:\n"
                       "  rtgrantd --socket /tmp/rtgrant/socket --state /tmp/rtgrant --policy "
                       "policy/policy.conf\n"
                       "  RTGRANT_SOCKET=/tmp/rtgrant/socket rtgrantctl status\n"
                       "\n"
                       "See rtgrantd(8).\n");
}

/* 1: go on; 0: all said; negative: usage. */
static int parse_options(int argc, char *argv[], struct broker_options *ret) {
        enum { OPT_SOCKET = 256, OPT_POLICY, OPT_STATE, OPT_LOG_LEVEL };
        static const struct option options[] = {
                { "socket", required_argument, NULL, OPT_SOCKET },
                { "policy", required_argument, NULL, OPT_POLICY },
                { "state", required_argument, NULL, OPT_STATE },
                { "log-level", required_argument, NULL, OPT_LOG_LEVEL },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                {},
        };
        int c;

        *ret = (struct broker_options) {
                .socket_path = WIRE_SOCKET_PATH,
                .state_dir = "/run/rtgrant",
                .log_level = -1,
        };

        while ((c = getopt_long(argc, argv, "hV", options, NULL)) >= 0)
                switch (c) {
                case OPT_SOCKET:
                        ret->socket_path = optarg;
                        break;
                case OPT_POLICY:
                        ret->policy_path = optarg;
                        break;
                case OPT_STATE:
                        ret->state_dir = optarg;
                        break;
                case OPT_LOG_LEVEL:
                        ret->log_level = log_level_from_string(optarg);
                        if (ret->log_level < 0) {
                                (void) fprintf(stderr,
                                               "rtgrantd: '%s' is no log level: "
                                               "err, warning, notice, info or debug\n",
                                               optarg);
                                return -EINVAL;
                        }
                        break;
                case 'h':
                        print_help(stdout);
                        return 0;
                case 'V':
                        (void) printf("rtgrantd %s\n", RTGRANT_VERSION);
                        return 0;
                default:
                        (void) fprintf(stderr, "Try 'rtgrantd --help'.\n");
                        return -EINVAL;
                }

        if (optind < argc) {
                (void) fprintf(stderr,
                               "rtgrantd: unexpected argument '%s'\nTry 'rtgrantd --help'.\n",
                               argv[optind]);
                return -EINVAL;
        }
        return 1;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        struct broker *broker = userdata;
        char state[64];

        (void) snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                        broker_now_us(broker));
        log_notify(broker->log, state);
        (void) broker_reload(broker, NULL);
        broker_notify(broker, "READY=1");
        return 0;
}

/* Not sd_event_set_watchdog(3), which waits for a service manager that does not read. */
static int on_watchdog(sd_event_source *source, uint64_t usec, void *userdata) {
        struct broker *broker = userdata;
        uint64_t watchdog_us = 0;

        if (sd_watchdog_enabled(/* unset_environment= */ false, &watchdog_us) <= 0)
                return 0;

        log_notify(broker->log, "WATCHDOG=1");
        (void) sd_event_source_set_time_relative(source, watchdog_us / 2);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Read before a SIGTERM that came along: of several signals the kernel gives the lowest first. */
static int on_hand_over(sd_event_source *source, const struct signalfd_siginfo *si,
                        void *userdata) {
        struct broker *broker = userdata;

        broker->handing_over = true;
        return sd_event_exit(broker->event, 0);
}

static int serve(struct broker *broker) {
        int r;

        r = sd_event_add_signal(broker->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(broker->event, NULL, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(broker->event, NULL, SIGHUP, on_reload, broker);
        if (r >= 0)
                r = sd_event_add_signal(broker->event, NULL, SIGUSR2, on_hand_over, broker);
        if (r >= 0)
                r = sd_event_add_time_relative(broker->event, NULL, CLOCK_MONOTONIC, 0, 0,
                                               on_watchdog, broker);
        if (r < 0)
                return r;

        broker_notify(broker, "READY=1");
#if HAVE_DBUS
        r = event_source_loop(broker->event);
#else
        r = sd_event_loop(broker->event);
#endif
        log_notify(broker->log, "STOPPING=1");
        return r;
}

static int run(int argc, char *argv[]) {
        struct broker_options options;
        struct broker *broker;
        struct log *log = NULL;
        char missing[200];
        sigset_t signals;
        int r;

        r = parse_options(argc, argv, &options);
        if (r <= 0)
                return r == 0 ? EXIT_SUCCESS : EXIT_USAGE;

        /* Before there are threads: all of them inherit the mask, and the loop reads the signals.
         */
        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGHUP);
        (void) sigaddset(&signals, SIGUSR2);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
        harden(missing, sizeof(missing));

        r = log_new(&log, options.log_level < 0 ? LOG_NOTICE : options.log_level);
        if (r < 0) {
                (void) fprintf(stderr, "rtgrantd: cannot start logging: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        if (missing[0] != '\0')
                log_write(log, LOG_ERR, NULL, "%s", missing);

        r = broker_new(&options, log, &broker);
        if (r >= 0) {
                log_write(log, LOG_NOTICE, &(struct log_fields) { .event = "started" },
                          "rtgrantd %s serves %s", RTGRANT_VERSION, options.socket_path);
                harden_memory();
                r = serve(broker);
                if (r < 0)
                        log_write(log, LOG_ERR, NULL, "the main loop failed: %s", strerror(-r));
                if (r >= 0 && broker->handing_over) {
                        (void) broker_hand_over(broker);
                        (void) log_free(log);
                        /* as if killed: what is not undone is what a successor finds */
                        _exit(EXIT_SUCCESS);
                }
                (void) broker_free(broker);
        }

        (void) log_free(log);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
