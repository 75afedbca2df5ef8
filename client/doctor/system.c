/* SPDX-License-Identifier: MIT */

/* Who else is there: the broker, the session, polkit, other daemons, what the machine forbids. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"

static void run_broker(const struct machine *machine, struct finding *ret) {
        const struct rtgrant_status *broker = machine->broker;
        char text[256];

        if (!machine_is_live(machine)) {
                finding_say(ret, HEALTH_UNKNOWN, "a copy of a machine has no daemon to be asked");
                return;
        }
        if (!broker) {
                finding_say(ret, HEALTH_WARNING, "rtgrantd does not answer: %s",
                            machine->broker_error);
                finding_mend(ret, "systemctl start rtgrantd.socket",
                             "systemctl enable rtgrantd.socket");
                return;
        }
        if (broker->degraded) {
                finding_say(ret, HEALTH_BAD,
                            "rtgrantd runs degraded: it cannot be real-time itself, so it makes "
                            "nobody real-time");
                finding_mend(ret, "systemctl status rtgrantd says why",
                             "see rtgrantd(8), DEGRADED");
                return;
        }
        if (broker->policy_broken) {
                text_printable(text, sizeof(text), broker->policy_error);
                finding_say(ret, HEALTH_WARNING,
                            "the policy on disk has a fault, so the one before is in force: %s",
                            text);
                finding_mend(ret, "mend that line, then rtgrantctl reload", "the same");
                return;
        }
        finding_say(ret, HEALTH_FINE, "rtgrantd serves: %u leases of %u users", broker->n_leases,
                    broker->n_users);
}

const struct check check_broker = {
        .id = "broker",
        .title = "The broker",
        .why = "Programs without rights of their own ask it.",
        .run = run_broker,
};

static void run_session(const struct machine *machine, struct finding *ret) {
        switch (machine->session) {
        case SESSION_ACTIVE:
                finding_say(ret, HEALTH_FINE,
                            "the process belongs to the active session of a seat");
                return;
        case SESSION_INACTIVE:
                finding_say(ret, HEALTH_NOTE, "the session of the process is not the one in front");
                finding_mend(ret, "switch to it",
                             "AllowUsers= or AllowGroups= of a role in /etc/rtgrant/policy.conf");
                return;
        case SESSION_REMOTE:
                finding_say(
                        ret, HEALTH_NOTE,
                        "the session of the process is remote: polkit's defaults give it nothing");
                finding_mend(ret, NULL,
                             "AllowUsers= or AllowGroups= of a role in /etc/rtgrant/policy.conf, "
                             "or a polkit rule");
                return;
        case SESSION_NONE:
                finding_say(ret, HEALTH_NOTE,
                            "the process belongs to no session (a service, cron, a container): "
                            "polkit's defaults give it nothing");
                finding_mend(ret, NULL,
                             "AllowUsers= or AllowGroups= of a role in /etc/rtgrant/policy.conf, "
                             "or a polkit rule");
                return;
        case SESSION_UNKNOWN:
                break;
        }
        finding_say(ret, HEALTH_UNKNOWN, "there is no login manager to be asked");
}

const struct check check_session = {
        .id = "session",
        .title = "Login session",
        .why = "polkit gives most to who sits at the machine, and nothing to who does not.",
        .run = run_session,
};

static void run_polkit(const struct machine *machine, struct finding *ret) {
        static const char *const names[] = { "polkitd", NULL };
        bool installed = machine_has(
                machine, "/usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service");
        bool hidden = machine_hides_processes(machine);
        bool runs = machine_find_process(machine, names, NULL, 0) > 0;

        if (hidden && installed) {
                finding_say(ret, HEALTH_WARNING,
                            "polkit is there, but /proc is mounted with hidepid, so it may not see "
                            "who asks");
                finding_mend(ret, "mount -o remount,gid=polkitd /proc",
                             "gid=polkitd for /proc in /etc/fstab, or no hidepid");
                return;
        }
        if (!installed && !runs) {
                finding_say(ret, HEALTH_NOTE,
                            "polkit is not installed: only the lists of the policy decide");
                finding_mend(ret, NULL,
                             "apt install polkitd, or AllowGroups= in /etc/rtgrant/policy.conf");
                return;
        }
        finding_say(ret, HEALTH_FINE, "polkit %s", runs ? "runs" : "is started when it is asked");
}

const struct check check_polkit = {
        .id = "polkit",
        .title = "polkit",
        .why = "It decides for those whom no list of the policy names.",
        .run = run_polkit,
};

/* ---- others that set priorities ---- */

static const struct {
        const char *comm;
        const char *what;
} competitors[] = {
        { "rtkit-daemon",
          "gives real-time priority, too; kills or demotes all of a user's threads on a stall" },
        { "ananicy", "sets nice and priority by program names, again and again" },
        { "ananicy-cpp", "sets nice and priority by program names, again and again" },
        { "gamemoded", "changes nice values and the governor for games" },
        { "system76-schedu", "changes priorities of the program in front" },
        { "tuned", "applies profiles, which set priorities and sched_rt_runtime_us" },
        { "uresourced", "changes the weights of control groups" },
        { "scx_loader", "replaces the scheduler of ordinary threads" },
};

static void run_competitors(const struct machine *machine, struct finding *ret) {
        char text[384] = "", comm[64], state[64] = "";
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(competitors); i++) {
                const char *const names[] = { competitors[i].comm, NULL };
                pid_t pid = machine_find_process(machine, names, comm, sizeof(comm));

                if (pid > 0 && strcmp(comm, competitors[i].comm) == 0 && n < sizeof(text))
                        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s (pid %d) %s",
                                               n > 0 ? "; " : "", comm, (int) pid,
                                               competitors[i].what);
        }
        (void) machine_read(machine, state, sizeof(state), "/sys/kernel/sched_ext/state");
        if (strcmp(state, "enabled") == 0 && n < sizeof(text))
                n += (size_t) snprintf(text + n, sizeof(text) - n,
                                       "%sa sched_ext scheduler is loaded", n > 0 ? "; " : "");

        if (n > 0) {
                finding_say(ret, HEALTH_NOTE, "%s", text);
                finding_mend(
                        ret, "stop what you do not need",
                        "systemctl disable it; where both run, rtgrantd lists what others changed");
        } else if (machine_hides_processes(machine)) {
                finding_say(ret, HEALTH_UNKNOWN, "/proc hides other users' processes");
        } else {
                finding_say(ret, HEALTH_FINE, "nothing else sets priorities here");
        }
}

const struct check check_competitors = {
        .id = "competitors",
        .title = "Others that set priorities",
        .why = "Two that set the same thread's priority undo each other's work.",
        .run = run_competitors,
};

static void run_hidepid(const struct machine *machine, struct finding *ret) {
        if (!machine_hides_processes(machine)) {
                finding_say(ret, HEALTH_FINE, "/proc shows everybody's processes");
                return;
        }
        finding_say(ret, HEALTH_NOTE,
                    "/proc is mounted with hidepid: other users' processes are hidden");
        finding_mend(ret, NULL,
                     "rtgrantd copes; polkit, rtkit and this command see less: gid= of a group "
                     "they have");
}

const struct check check_hidepid = {
        .id = "hidepid",
        .title = "Hidden processes",
        .why = "A daemon that cannot see a process refuses it, for reasons that seem unrelated.",
        .run = run_hidepid,
};

static void run_lockdown(const struct machine *machine, struct finding *ret) {
        char text[128];

        if (machine_read(machine, text, sizeof(text), "/sys/kernel/security/lockdown") < 0) {
                finding_say(ret, HEALTH_FINE,
                            "the kernel is not locked down, or root alone can read whether it is");
                return;
        }
        if (strstr(text, "[none]")) {
                finding_say(ret, HEALTH_FINE, "the kernel is not locked down");
                return;
        }
        finding_say(ret, HEALTH_NOTE,
                    "the kernel is locked down (%s): knobs in debugfs and MSRs cannot be turned",
                    strstr(text, "[confidentiality]") ? "confidentiality" : "integrity");
        finding_mend(ret, NULL,
                     "nothing of rtgrantd needs them; advice that writes to /sys/kernel/debug does "
                     "not work here");
}

const struct check check_lockdown = {
        .id = "lockdown",
        .title = "Lockdown",
        .why = "Advice from elsewhere fails with \"Operation not permitted\", for root too.",
        .run = run_lockdown,
};

static void run_lsm(const struct machine *machine, struct finding *ret) {
        char text[256], printable[512], mode[16];

        if (machine_read(machine, text, sizeof(text), "/sys/kernel/security/lsm") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "the list of security modules cannot be read");
                return;
        }
        text_printable(printable, sizeof(printable), text);
        if (strstr(text, "selinux") &&
            machine_read(machine, mode, sizeof(mode), "/sys/fs/selinux/enforce") > 0 &&
            mode[0] == '1') {
                finding_say(
                        ret, HEALTH_NOTE,
                        "SELinux enforces: it may forbid a daemon to set priorities (setsched)");
                finding_mend(ret, "ausearch -m avc -c rtgrantd shows whether it did",
                             "a policy module for what is shown there");
                return;
        }
        finding_say(ret, HEALTH_FINE, "security modules: %s", printable);
}

const struct check check_lsm = {
        .id = "lsm",
        .title = "Security modules",
        .why = "Their refusals look like a missing right.",
        .run = run_lsm,
};

static void run_container(const struct machine *machine, struct finding *ret) {
        char map[256], name[64] = "";
        unsigned long inside, outside, count;
        bool mapped;

        if (machine_read(machine, map, sizeof(map), "/proc/%d/uid_map", (int) machine->pid) < 0 ||
            sscanf(map, "%lu %lu %lu", &inside, &outside, &count) != 3) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "whether process %d is in a user namespace cannot be read",
                            (int) machine->pid);
                return;
        }
        mapped = inside != 0 || outside != 0 || count != UINT32_MAX;
        (void) machine_read(machine, name, sizeof(name), "/run/systemd/container");
        if (mapped) {
                finding_say(ret, HEALTH_NOTE,
                            "process %d is in a user namespace: no capability in it gives priority",
                            (int) machine->pid);
                finding_mend(ret, NULL,
                             "UserNamespaces=yes in /etc/rtgrant/policy.conf of the host, and its "
                             "socket /run/rtgrant bound into the container");
        } else if (name[0] != '\0' || machine_has(machine, "/.dockerenv") ||
                   machine_has(machine, "/run/.containerenv")) {
                finding_say(ret, HEALTH_NOTE,
                            "this is a container%s%s: priorities belong to the host",
                            name[0] ? " of " : "", name);
                finding_mend(ret, NULL, "bind the host's /run/rtgrant into it");
        } else {
                finding_say(ret, HEALTH_FINE, "no container, no user namespace");
        }
}

const struct check check_container = {
        .id = "container",
        .title = "Containers",
        .why = "The kernel asks for rights in the first user namespace, which a container has not.",
        .run = run_container,
};
