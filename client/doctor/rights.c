/* SPDX-License-Identifier: MIT */

/* What this process may have by itself, and where it could ask. */

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cleanup.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"

#define CAPABILITY_SYS_NICE 23

/* A period of 2048 frames at 44100 Hz: a limit below it ends an ordinary audio thread. */
#define RTTIME_SHORT_US 50000

static bool has_capability(const struct machine *machine, const char *set, int number) {
        char text[64];

        return machine_status(machine, machine->pid, set, text, sizeof(text)) == 0 &&
               strtoull(text, NULL, 16) >> number & 1;
}

/* What the kernel says when a child of ours, which ends at once, makes itself real-time. */
static int try_realtime(void) {
        int status;
        pid_t child;

        child = fork();
        if (child < 0)
                return -errno;
        if (child == 0)
                _exit(sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK,
                                         &(struct sched_param){ .sched_priority = 1 }) < 0
                              ? errno
                              : 0);
        if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
                return -ECHILD;
        return -WEXITSTATUS(status);
}

static void describe_own_right(const struct machine *machine, char *buffer, size_t size,
                               bool *ret_open) {
        uint64_t soft = 0, hard = 0;
        int r;

        (void) machine_limit(machine, machine->pid, "Max realtime priority", &soft, &hard);
        if (has_capability(machine, "CapEff", CAPABILITY_SYS_NICE)) {
                (void) snprintf(buffer, size, "open, by the capability CAP_SYS_NICE");
                *ret_open = true;
        } else if (soft > 0) {
                (void) snprintf(buffer, size, "open up to priority %" PRIu64, soft);
                *ret_open = true;
        } else {
                (void) snprintf(buffer, size, "closed: RLIMIT_RTPRIO is 0");
                *ret_open = false;
        }
        if (!*ret_open || !machine_is_live(machine) || machine->other)
                return;

        r = try_realtime();
        if (r < 0) {
                (void) snprintf(buffer, size, "closed: the kernel refused a trial (%s)",
                                strerror(-r));
                *ret_open = false;
        }
}

static bool broker_gives_realtime(const struct rtgrant_status *broker) {
        for (unsigned i = 0; broker && i < broker->n_offers; i++)
                if (broker->offers[i].reason == RTGRANT_REASON_NONE &&
                    broker->offers[i].priority_max > 0)
                        return true;
        return false;
}

static void describe_broker(const struct machine *machine, char *buffer, size_t size,
                            bool *ret_open) {
        *ret_open = broker_gives_realtime(machine->broker) && !machine->broker->degraded;

        if (!machine_is_live(machine))
                (void) snprintf(buffer, size, "cannot be asked in a copy");
        else if (!machine->broker)
                (void) snprintf(buffer, size, "closed: %s", machine->broker_error);
        else if (machine->broker->degraded)
                (void) snprintf(buffer, size, "closed: it runs degraded");
        else
                (void) snprintf(buffer, size, "%s",
                                *ret_open ? "open" : "no role without asking polkit");
}

static void describe_realtimekit(const struct machine *machine, char *buffer, size_t size,
                                 bool *ret_open) {
        static const char *const names[] = { "rtkit-daemon", NULL };
        bool installed = machine_has(
                machine, "/usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service");
        bool bus = machine_has(machine, "/run/dbus/system_bus_socket");

        *ret_open = bus && (installed || machine_find_process(machine, names, NULL, 0) > 0);
        (void) snprintf(buffer, size, "%s",
                        *ret_open ? "there to be asked"
                        : !bus    ? "closed: there is no system bus"
                                  : "closed: nobody serves it");
}

static void describe_portal(const struct machine *machine, char *buffer, size_t size,
                            bool realtimekit) {
        bool installed = machine_has(
                machine, "/usr/share/dbus-1/services/org.freedesktop.portal.Desktop.service");

        (void) snprintf(buffer, size, "%s",
                        !installed     ? "closed: not installed"
                        : !realtimekit ? "closed: it needs RealtimeKit"
                                       : "there to be asked");
}

static void run_routes(const struct machine *machine, struct finding *ret) {
        char own[128], broker[256], kit[64], portal[64];
        bool own_open, broker_open, kit_open;

        describe_own_right(machine, own, sizeof(own), &own_open);
        describe_broker(machine, broker, sizeof(broker), &broker_open);
        describe_realtimekit(machine, kit, sizeof(kit), &kit_open);
        describe_portal(machine, portal, sizeof(portal), kit_open);

        finding_say(ret,
                    own_open || broker_open ? HEALTH_FINE
                    : kit_open              ? HEALTH_NOTE
                                            : HEALTH_BAD,
                    "own right: %s; rtgrantd: %s; RealtimeKit: %s; desktop portal: %s", own, broker,
                    kit, portal);
        if (ret->health != HEALTH_FINE)
                finding_mend(
                        ret,
                        "systemctl start rtgrantd.socket; rtgrantctl status says which role is "
                        "yours",
                        "systemctl enable rtgrantd.socket; become a member of the group realtime");
}

const struct check check_routes = {
        .id = "routes",
        .title = "Ways to real-time priority",
        .why = "Without one of the four, every audio thread waits behind all other programs.",
        .run = run_routes,
};

/* ---- limits ---- */

static void print_limit(char *buffer, size_t size, uint64_t value, uint64_t unit) {
        if (value == UINT64_MAX)
                (void) snprintf(buffer, size, "unlimited");
        else
                (void) snprintf(buffer, size, "%" PRIu64, value / unit);
}

/* Who set the limits of @machine->pid: the first ancestor that has others, or the start. */
static void describe_origin(const struct machine *machine, const char *row, uint64_t hard,
                            char *buffer, size_t size) {
        pid_t pid = machine->pid;
        char text[64], comm[64];

        for (unsigned depth = 0; depth < 32; depth++) {
                uint64_t soft, other;
                pid_t parent;

                if (machine_status(machine, pid, "PPid", text, sizeof(text)) < 0)
                        break;
                parent = (pid_t) strtol(text, NULL, 10);
                if (parent <= 0 || machine_status(machine, pid, "Name", comm, sizeof(comm)) < 0)
                        break;
                text_printable(text, sizeof(text), comm);
                if (machine_limit(machine, parent, row, &soft, &other) < 0) {
                        (void) snprintf(buffer, size, "set when %s (pid %d) was started or before: its parent is hidden",
                                        text, (int) pid);
                        return;
                }
                if (other != hard) {
                        (void) snprintf(buffer, size, "set when %s (pid %d) was started", text,
                                        (int) pid);
                        return;
                }
                pid = parent;
        }
        (void) snprintf(buffer, size, "inherited from the start of the machine");
}

static void run_limits(const struct machine *machine, struct finding *ret) {
        uint64_t soft, hard;
        char now[32], origin[128];
        bool in_kib;
        int r;

        r = machine_limit(machine, machine->pid, "Max locked memory", &soft, &hard);
        if (r < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "the limits of process %d cannot be read: %s",
                            (int) machine->pid, strerror(-r));
                return;
        }

        in_kib = soft < 1 << 20; /* the limit of old is 64 KiB */
        describe_origin(machine, "Max locked memory", hard, origin, sizeof(origin));
        print_limit(now, sizeof(now), soft, in_kib ? 1 << 10 : 1 << 20);
        /* An audio program of today has 100 to 300 MiB mapped. */
        finding_say(ret, soft < (uint64_t) 128 << 20 ? HEALTH_WARNING : HEALTH_FINE,
                    "process %d may lock %s%s of memory, %s", (int) machine->pid, now,
                    soft == UINT64_MAX ? "" : in_kib ? " KiB" : " MiB", origin);
        if (ret->health == HEALTH_FINE)
                return;
        finding_mend(
                ret, NULL,
                "'@realtime - memlock unlimited' in /etc/security/limits.d/; of user services: "
                "LimitMEMLOCK= in a drop-in of user@.service; then log in again");
        (void) snprintf(ret->lease, sizeof(ret->lease), "rtgrant --memlock SIZE COMMAND");
}

const struct check check_limits = {
        .id = "memlock",
        .title = "Memory that may be locked",
        .why = "An audio thread that touches a page which is not in memory waits for the disk.",
        .run = run_limits,
};

static void run_rttime(const struct machine *machine, struct finding *ret) {
        uint64_t soft, hard;
        char origin[128];
        int r;

        r = machine_limit(machine, machine->pid, "Max realtime timeout", &soft, &hard);
        if (r < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "the limits of process %d cannot be read: %s",
                            (int) machine->pid, strerror(-r));
                return;
        }
        if (soft == UINT64_MAX) {
                finding_say(ret, HEALTH_FINE, "no limit ends a real-time thread of process %d",
                            (int) machine->pid);
                return;
        }

        describe_origin(machine, "Max realtime timeout", hard, origin, sizeof(origin));
        finding_say(ret, soft < RTTIME_SHORT_US ? HEALTH_BAD : HEALTH_WARNING,
                    "a real-time thread of process %d that runs %" PRIu64
                    " us without sleeping is signalled, and killed with its whole process; %s",
                    (int) machine->pid, soft, origin);
        finding_mend(ret, "start the program from a shell in which ulimit -R is unlimited",
                     "LimitRTTIME=infinity for the service that starts it; rtgrantd demotes a "
                     "thread that runs away, and kills nobody");
}

const struct check check_rttime = {
        .id = "rttime",
        .title = "Limit on real-time running (RLIMIT_RTTIME)",
        .why = "The kernel kills the whole process for one thread, and children inherit the limit.",
        .run = run_rttime,
};

/* ---- limits.d ---- */

struct group_limit {
        char group[64];
        char file[96];
        int64_t rtprio;
        bool rttime; /* the same group is limited in time too */
};

struct group_limits {
        const struct machine *machine;
        const char *folder;
        struct group_limit found[8];
        size_t n_found;
};

/* "@realtime - rtprio 95" */
static void take_line(struct group_limits *limits, const char *file, const char *line) {
        struct group_limit *at = NULL;
        char group[64], item[32], value[32];

        if (sscanf(line, " @%63s %*s %31s %31s", group, item, value) != 3 ||
            (strcmp(item, "rtprio") != 0 && strcmp(item, "rttime") != 0))
                return;

        for (size_t i = 0; i < limits->n_found; i++)
                if (strcmp(limits->found[i].group, group) == 0)
                        at = &limits->found[i];
        if (!at) {
                if (limits->n_found == ELEMENTS(limits->found))
                        return;
                at = &limits->found[limits->n_found++];
                *at = (struct group_limit){};
                text_printable(at->group, sizeof(at->group), group);
                (void) snprintf(at->file, sizeof(at->file), "%s", file);
        }
        if (strcmp(item, "rtprio") == 0)
                at->rtprio = strcmp(value, "unlimited") == 0 ? 99 : strtoll(value, NULL, 10);
        else
                at->rttime = true;
}

static int read_limits_file(const char *name, void *userdata) {
        struct group_limits *limits = userdata;
        char text[16384], *line, *rest = text;
        const char *dot = strrchr(name, '.');

        if (!dot || strcmp(dot, ".conf") != 0 ||
            machine_read(limits->machine, text, sizeof(text), "%s/%s", limits->folder, name) < 0)
                return 0;
        while ((line = strsep(&rest, "\n")))
                take_line(limits, name, line);
        return 0;
}

/* Whether the process has the group: what counts is the process, not the group file. */
static bool process_has_group(const struct machine *machine, const char *name) {
        char text[4096], line[4096], *field, *rest;
        long gid = -1;

        if (machine_read(machine, text, sizeof(text), "/etc/group") < 0)
                return false;
        rest = text;
        while ((field = strsep(&rest, "\n"))) {
                size_t length = strlen(name);

                if (strncmp(field, name, length) == 0 && field[length] == ':' &&
                    sscanf(field + length, ":%*[^:]:%ld", &gid) == 1)
                        break;
        }
        if (gid < 0 || machine_status(machine, machine->pid, "Groups", line, sizeof(line)) < 0)
                return false;
        rest = line;
        while ((field = strsep(&rest, " ")))
                if (*field && strtol(field, NULL, 10) == gid)
                        return true;
        return false;
}

static void run_group_limits(const struct machine *machine, struct finding *ret) {
        struct group_limits limits = { .machine = machine };
        const struct group_limit *worst = NULL;
        uint64_t soft = 0, hard = 0;
        bool member;

        limits.folder = "/etc/security/limits.d";
        (void) machine_each(machine, read_limits_file, &limits, "%s", limits.folder);
        limits.folder = "/etc/security";
        (void) read_limits_file("limits.conf", &limits);
        for (size_t i = 0; i < limits.n_found; i++)
                if (!worst || limits.found[i].rtprio > worst->rtprio)
                        worst = &limits.found[i];
        if (!worst) {
                finding_say(ret, HEALTH_FINE, "no group gets real-time priority from PAM's limits");
                return;
        }

        member = process_has_group(machine, worst->group);
        (void) machine_limit(machine, machine->pid, "Max realtime priority", &soft, &hard);
        if (worst->rtprio > 94 && !worst->rttime) {
                finding_say(ret, HEALTH_WARNING,
                            "%s gives group %s priority %" PRId64
                            " without a limit in time; process %d %s that group",
                            worst->file, worst->group, worst->rtprio, (int) machine->pid,
                            member ? "has" : "has not");
                finding_mend(ret, NULL,
                             "leave it to rtgrantd, which stays above every grant and demotes who "
                             "runs away; else rtprio 94 at most, and rttime");
        } else if (member && (int64_t) hard < worst->rtprio) {
                finding_say(ret, HEALTH_WARNING,
                            "%s gives group %s priority %" PRId64
                            ", process %d has the group, but a limit of %" PRIu64,
                            worst->file, worst->group, worst->rtprio, (int) machine->pid, hard);
                finding_mend(ret, "log in again, by a login that runs PAM's limits",
                             "of user services: LimitRTPRIO= in a drop-in of user@.service");
        } else {
                finding_say(ret, HEALTH_FINE,
                            "%s gives group %s priority %" PRId64
                            "; process %d %s that group, and its limit is %" PRIu64,
                            worst->file, worst->group, worst->rtprio, (int) machine->pid,
                            member ? "has" : "has not", hard);
        }
}

const struct check check_group_limits = {
        .id = "group-limits",
        .title = "Limits by group (limits.d)",
        .why = "Any thread of a member can then run above everything, and nothing takes it back.",
        .run = run_group_limits,
};

static void run_capabilities(const struct machine *machine, struct finding *ret) {
        char effective[64], bounding[64];

        if (machine_status(machine, machine->pid, "CapEff", effective, sizeof(effective)) < 0 ||
            machine_status(machine, machine->pid, "CapBnd", bounding, sizeof(bounding)) < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "process %d cannot be read", (int) machine->pid);
                return;
        }
        if (!has_capability(machine, "CapEff", CAPABILITY_SYS_NICE) &&
            has_capability(machine, "CapPrm", CAPABILITY_SYS_NICE)) {
                finding_say(ret, HEALTH_NOTE,
                            "process %d has CAP_SYS_NICE permitted but not effective (CapEff %s)",
                            (int) machine->pid, effective);
                finding_mend(ret, NULL, "raise it in the program, or as an ambient capability");
                return;
        }
        finding_say(ret, HEALTH_FINE, "process %d has CapEff %s of CapBnd %s", (int) machine->pid,
                    effective, bounding);
}

const struct check check_capabilities = {
        .id = "capabilities",
        .title = "Capabilities of the process",
        .why = "A capability that is granted to a container or a file but is not effective gives "
               "nothing.",
        .run = run_capabilities,
};
