/* SPDX-License-Identifier: MIT */

/*
 * Runs a command on what looks like another kernel: a seccomp filter makes chosen system calls
 * fail as they would there.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Not in the headers of Debian 12. */
#define SOCKET_OPTION_PEERPIDFD 77
#define SOCKET_OPTION_PASSRIGHTS 83
#define PIDFD_IOCTL_TYPE 0xFF00

/* The kernel takes an int, and passes over what is above it in the register. */
#define INT_IS(argument, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, 0xffffffff, (value))
#define BITS_ARE(argument, mask, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, (mask), (value))

struct choice {
        bool no_rt_rlimits;
        bool old_kernel;
        bool no_sched;
};

static int deny(scmp_filter_ctx filter, int error, int call) {
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 0);
}

/* A kernel that does not know the limits of real-time scheduling. */
static int deny_rt_rlimits(scmp_filter_ctx filter) {
        static const int limits[] = { RLIMIT_NICE, RLIMIT_RTPRIO, RLIMIT_RTTIME };

        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
                int r;

                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(getrlimit), 1,
                                     INT_IS(0, limits[i]));
                if (r < 0)
                        return r;

                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(setrlimit), 1,
                                     INT_IS(0, limits[i]));
                if (r < 0)
                        return r;

                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prlimit64), 1,
                                     INT_IS(1, limits[i]));
                if (r < 0)
                        return r;
        }

        return 0;
}

/* Linux 6.1, as far as a broker can tell: what pidfds and sockets learnt since then is missing. */
static int deny_new_calls(scmp_filter_ctx filter) {
        int r;

        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(pidfd_open), 1,
                             BITS_ARE(1, O_EXCL, O_EXCL)); /* PIDFD_THREAD, Linux 6.9 */
        if (r < 0)
                return r;

        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 1,
                             BITS_ARE(1, PIDFD_IOCTL_TYPE, PIDFD_IOCTL_TYPE)); /* 6.11, 6.13 */
        if (r < 0)
                return r;

        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(getsockopt), 2,
                             INT_IS(1, SOL_SOCKET), INT_IS(2, SOCKET_OPTION_PEERPIDFD)); /* 6.5 */
        if (r < 0)
                return r;

        r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt), 2,
                             INT_IS(1, SOL_SOCKET), INT_IS(2, SOCKET_OPTION_PASSRIGHTS)); /* 6.16 */
        if (r < 0)
                return r;

        /* A filter cannot change the type of a file system: so that pidfs (6.9) is not seen. */
        return deny(filter, ENOSYS, SCMP_SYS(fstatfs));
}

/* A sandbox that forbids scheduling, as RestrictRealtime= and ~@resources of a unit file do. */
static int deny_sched(scmp_filter_ctx filter) {
        static const int calls[] = {
                SCMP_SYS(sched_setattr),
                SCMP_SYS(sched_setscheduler),
                SCMP_SYS(sched_setparam),
                SCMP_SYS(setpriority),
        };

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
                int r;

                r = deny(filter, EPERM, calls[i]);
                if (r < 0)
                        return r;
        }

        return 0;
}

static int install(const struct choice *choice) {
        scmp_filter_ctx filter;
        int r;

        filter = seccomp_init(SCMP_ACT_ALLOW);
        if (!filter)
                return -ENOMEM;

        /* As root the command keeps what it has: no_new_privs would change more than was asked. */
        r = geteuid() == 0 ? seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) : 0;
        if (r >= 0 && choice->no_rt_rlimits)
                r = deny_rt_rlimits(filter);
        if (r >= 0 && choice->old_kernel)
                r = deny_new_calls(filter);
        if (r >= 0 && choice->no_sched)
                r = deny_sched(filter);
        if (r >= 0)
                r = seccomp_load(filter);

        seccomp_release(filter);
        return r;
}

static int usage(void) {
        fprintf(stderr,
                "Usage: with-filter [--no-rt-rlimits] [--old-kernel] [--no-sched] -- COMMAND…\n");
        return 2;
}

static int run(int argc, char *argv[]) {
        static const struct option options[] = {
                { "no-rt-rlimits", no_argument, NULL, 'l' },
                { "old-kernel", no_argument, NULL, 'o' },
                { "no-sched", no_argument, NULL, 's' },
                { NULL },
        };
        struct choice choice = { 0 };
        int c, r;

        while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0)
                switch (c) {
                case 'l':
                        choice.no_rt_rlimits = true;
                        break;
                case 'o':
                        choice.old_kernel = true;
                        break;
                case 's':
                        choice.no_sched = true;
                        break;
                default:
                        return usage();
                }
        if (optind >= argc)
                return usage();

        r = install(&choice);
        if (r < 0) {
                fprintf(stderr, "with-filter: cannot install the filter: %s\n", strerror(-r));
                return 125;
        }

        execvp(argv[optind], argv + optind);
        fprintf(stderr, "with-filter: cannot run %s: %m\n", argv[optind]);
        return 127;
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
