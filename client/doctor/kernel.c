/* SPDX-License-Identifier: MIT */

/* How the kernel schedules. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cleanup.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"

#define VERSION_FAIR_SERVER     6012 /* ordinary threads keep 50 ms of each second */
#define VERSION_RT_GROUP_SWITCH 6016 /* rt_group_sched= on the command line */

static bool is_preempt_rt(const struct machine *machine) {
        char version[512];
        int64_t realtime;

        if (machine_read_number(machine, &realtime, "/sys/kernel/realtime") == 0)
                return realtime == 1;
        return machine_read(machine, version, sizeof(version), "/proc/version") > 0 &&
               (strstr(version, "PREEMPT_RT") || strstr(version, "PREEMPT RT"));
}

static void run_preemption(const struct machine *machine, struct finding *ret) {
        char version[512], mode[128] = "";

        if (is_preempt_rt(machine)) {
                finding_say(ret, HEALTH_FINE, "a PREEMPT_RT kernel: preemptible nearly everywhere");
                return;
        }
        if (machine_read(machine, version, sizeof(version), "/proc/version") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "/proc/version cannot be read");
                return;
        }

        (void) machine_read(machine, mode, sizeof(mode), "/sys/kernel/debug/sched/preempt");
        if (strstr(mode, "(full)") || strstr(mode, "(lazy)") ||
            machine_booted_with(machine, "preempt=full") ||
            machine_booted_with(machine, "preempt=lazy")) {
                finding_say(ret, HEALTH_FINE, "preemptible while it works for a program (%s)",
                            mode[0] ? mode : "by the command line");
                return;
        }
        if (strstr(version, "PREEMPT_DYNAMIC")) {
                /* Which model it was built to start with only its configuration tells. */
                int full = machine_config(machine, "PREEMPT");

                if (full > 0 && !machine_booted_with(machine, "preempt=")) {
                        finding_say(ret, HEALTH_FINE,
                                    "preemptible while it works for a program, as it was built");
                        return;
                }
                finding_say(ret, HEALTH_NOTE,
                            full < 0 && !machine_booted_with(machine, "preempt=")
                                    ? "the preemption model can be chosen; which is in force root "
                                      "alone can read"
                                    : "preemptible at chosen points only (%s)",
                            mode[0] ? mode : "voluntary or none");
                finding_mend(ret, "as root: echo full > /sys/kernel/debug/sched/preempt",
                             "preempt=full on the kernel's command line");
                return;
        }
        if (strstr(version, " PREEMPT ")) {
                finding_say(ret, HEALTH_FINE, "preemptible while it works for a program");
                return;
        }
        finding_say(ret, HEALTH_WARNING, "not preemptible while it works for a program");
        finding_mend(ret, NULL, "a kernel with CONFIG_PREEMPT_DYNAMIC, as distributions ship it");
}

const struct check check_preemption = {
        .id = "preemption",
        .title = "Preemption of the kernel",
        .why = "A long system call of another program holds up the audio thread by milliseconds.",
        .run = run_preemption,
};

static void run_threadirqs(const struct machine *machine, struct finding *ret) {
        if (is_preempt_rt(machine)) {
                finding_say(ret, HEALTH_FINE, "interrupts have threads: a PREEMPT_RT kernel");
                return;
        }
        if (machine_booted_with(machine, "threadirqs")) {
                finding_say(ret, HEALTH_FINE, "interrupts have threads: booted with threadirqs");
                return;
        }
        finding_say(ret, HEALTH_NOTE,
                    "interrupts are served at once and in no order that could be chosen");
        finding_mend(ret, NULL,
                     "threadirqs on the kernel's command line; then the sound card's "
                     "thread can come first: rtgrant --irq card:0");
}

const struct check check_threadirqs = {
        .id = "threadirqs",
        .title = "Interrupts as threads",
        .why = "A disk's or network's interrupt work delays the sound card's where it cannot be "
               "put behind it.",
        .run = run_threadirqs,
};

/* The folder of the process's group in the cpu controller; v1 has one of its own. */
static bool find_cpu_group(const struct machine *machine, char *group, size_t size, bool *ret_v1) {
        char text[8192], *line, *rest = text;

        if (machine_read(machine, text, sizeof(text), "/proc/%d/cgroup", (int) machine->pid) < 0)
                return false;
        *ret_v1 = false;
        group[0] = '\0';
        while ((line = strsep(&rest, "\n"))) {
                char *controllers = strchr(line, ':'), *path, *each;

                if (!controllers)
                        continue;
                controllers++;
                path = strchr(controllers, ':');
                if (!path)
                        continue;
                *path++ = '\0';
                while ((each = strsep(&controllers, ",")))
                        if (strcmp(each, "cpu") == 0) {
                                (void) snprintf(group, size, "%s", path);
                                *ret_v1 = true;
                                return true;
                        }
                if (group[0] == '\0')
                        (void) snprintf(group, size, "%s", path);
        }
        return group[0] != '\0';
}

static void mend_rt_group(const struct machine *machine, struct finding *ret) {
        finding_mend(
                ret, "as root: echo PID > cgroup.procs of the controller's root group",
                machine_kernel_version(machine) >= VERSION_RT_GROUP_SWITCH
                        ? "rt_group_sched=0 on the kernel's command line"
                        : "a kernel without CONFIG_RT_GROUP_SCHED, as most distributions ship it");
}

/* On below a group only where it is on for that group: the topmost below the root tells. */
static bool is_under_cpu_controller(const struct machine *machine, const char *group) {
        int64_t weight;

        return group[0] == '/' &&
               machine_read_number(machine, &weight, "/sys/fs/cgroup/%.*s/cpu.weight",
                                   (int) strcspn(group + 1, "/"), group + 1) >= 0;
}

/* cgroup v2 has no budgets to give: they are zero wherever its cpu controller is on. */
static void say_v2(const struct machine *machine, const char *group, bool is_sure,
                   struct finding *ret) {
        if (!is_sure) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "the control group %s has no real-time budget if the kernel has "
                            "CONFIG_RT_GROUP_SCHED, which cannot be read",
                            group);
                return;
        }

        finding_say(ret, HEALTH_BAD,
                    "the control group %s has no real-time budget: the cpu controller of cgroup v2 "
                    "is on for it (CONFIG_RT_GROUP_SCHED)",
                    group);
        mend_rt_group(machine, ret);
}

static void run_rt_group(const struct machine *machine, struct finding *ret) {
        static const char *const mounts[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
                                              "/sys/fs/cgroup" };
        char group[1024];
        int64_t budget;
        int has_budgets;
        bool v1;

        if (!find_cpu_group(machine, group, sizeof(group), &v1)) {
                finding_say(ret, HEALTH_UNKNOWN, "the control group of process %d cannot be read",
                            (int) machine->pid);
                return;
        }
        for (size_t i = 0; i < ELEMENTS(mounts); i++) {
                if (machine_read_number(machine, &budget, "%s%s/cpu.rt_runtime_us", mounts[i],
                                        group) < 0)
                        continue;
                if (budget == 0) {
                        finding_say(ret, HEALTH_BAD,
                                    "the control group %s has no real-time budget: "
                                    "cpu.rt_runtime_us is 0",
                                    group);
                        mend_rt_group(machine, ret);
                        return;
                }
                finding_say(ret, HEALTH_FINE,
                            "the control group %s has %" PRId64 " us of real-time budget", group,
                            budget);
                return;
        }
        has_budgets = machine_booted_with(machine, "rt_group_sched=0")
                              ? 0
                              : machine_config(machine, "RT_GROUP_SCHED");
        if (has_budgets != 0 && !v1 && is_under_cpu_controller(machine, group)) {
                say_v2(machine, group, has_budgets > 0, ret);
                return;
        }
        if (has_budgets > 0) {
                finding_say(
                        ret, HEALTH_WARNING,
                        "the kernel gives real-time budgets to control groups "
                        "(CONFIG_RT_GROUP_SCHED); the group of this process has none of its own");
                mend_rt_group(machine, ret);
                return;
        }
        finding_say(ret, HEALTH_FINE, "real-time threads are not held back by control groups");
}

const struct check check_rt_group = {
        .id = "rt-group",
        .title = "Real-time budget of the control group",
        .why = "In a group without a budget even root gets \"Operation not permitted\".",
        .run = run_rt_group,
};

/*
 * What the fair server leaves to ordinary threads, in per cent of CPU 0: as it is set, where root
 * asks, else as the kernel begins with it. 0: nothing, or there is no such thing.
 */
static int fair_share(const struct machine *machine) {
        int64_t runtime, period;

        if (machine_kernel_version(machine) < VERSION_FAIR_SERVER)
                return 0;
        if (machine_read_number(machine, &runtime, "/sys/kernel/debug/sched/fair_server/cpu0/runtime") <
                    0 ||
            machine_read_number(machine, &period, "/sys/kernel/debug/sched/fair_server/cpu0/period") < 0 ||
            period <= 0)
                return 5;
        return (int) (runtime * 100 / period);
}

static void run_rt_throttling(const struct machine *machine, struct finding *ret) {
        int64_t runtime, period = 1000000;
        int share = fair_share(machine);
        char server[80] = "";

        if (machine_read_number(machine, &runtime, "/proc/sys/kernel/sched_rt_runtime_us") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "sched_rt_runtime_us cannot be read");
                return;
        }
        (void) machine_read_number(machine, &period, "/proc/sys/kernel/sched_rt_period_us");
        if (share > 0)
                (void) snprintf(server, sizeof(server),
                                "; ordinary threads keep %d %% by the fair server", share);
        if (runtime < 0) {
                finding_say(ret, HEALTH_WARNING, "sched_rt_runtime_us is -1: no throttle%s%s", server,
                            share > 0 ? ", lower real-time ones nothing"
                                      : ", a runaway thread hangs the machine");
                finding_mend(
                        ret, "sysctl kernel.sched_rt_runtime_us=950000",
                        "take the line out of /etc/sysctl.d/ (or the tuned profile) that sets it");
                return;
        }
        if (runtime < period * 8 / 10) {
                finding_say(ret, HEALTH_WARNING,
                            "real-time threads together get %" PRId64 " of %" PRId64 " us of a CPU",
                            runtime, period);
                finding_mend(ret, "sysctl kernel.sched_rt_runtime_us=950000",
                             "the same in /etc/sysctl.d/");
                return;
        }
        finding_say(ret, HEALTH_FINE, "real-time threads get %" PRId64 " of %" PRId64 " us%s",
                    runtime, period, server);
}

const struct check check_rt_throttling = {
        .id = "rt-throttling",
        .title = "What is left for other threads",
        .why = "Without a throttle one spinning real-time thread takes a CPU for good.",
        .run = run_rt_throttling,
};

static void run_autogroup(const struct machine *machine, struct finding *ret) {
        int64_t enabled;

        if (machine_read_number(machine, &enabled, "/proc/sys/kernel/sched_autogroup_enabled") <
                    0 ||
            enabled == 0) {
                finding_say(ret, HEALTH_FINE, "nice values count between all programs");
                return;
        }
        finding_say(ret, HEALTH_NOTE,
                    "autogroup is on: a nice value counts only between programs of one session");
        finding_mend(ret, NULL, "ask for real-time priority, which autogroup does not touch");
}

const struct check check_autogroup = {
        .id = "autogroup",
        .title = "Automatic groups",
        .why = "A nice value seems to have no effect on programs of other terminals.",
        .run = run_autogroup,
};

static void run_timers(const struct machine *machine, struct finding *ret) {
        struct timespec resolution;

        if (!machine_is_live(machine)) {
                int on = machine_config(machine, "HIGH_RES_TIMERS");

                if (on < 0)
                        finding_say(ret, HEALTH_UNKNOWN,
                                    "what timers can do has to be tried on the machine itself");
                else
                        finding_say(ret, on ? HEALTH_FINE : HEALTH_BAD,
                                    "the kernel is built with%s high-resolution timers",
                                    on ? "" : "out");
                if (on == 0)
                        finding_mend(ret, NULL, "a kernel with CONFIG_HIGH_RES_TIMERS");
                return;
        }
        if (clock_getres(CLOCK_MONOTONIC, &resolution) < 0 || resolution.tv_sec > 0 ||
            resolution.tv_nsec > 1000) {
                finding_say(ret, HEALTH_BAD, "timers tick each %ld us", resolution.tv_nsec / 1000);
                finding_mend(ret, NULL, "take highres=off off the kernel's command line");
                return;
        }
        finding_say(ret, HEALTH_FINE, "timers have a resolution of %ld ns", resolution.tv_nsec);
}

const struct check check_timers = {
        .id = "timers",
        .title = "Resolution of timers",
        .why = "A sleep that ends at the next tick is up to 10 ms late.",
        .run = run_timers,
};

/* ---- what a sleeper sees ---- */

#define SLEEPS   250
#define SLEEP_NS 1000000
#define LATE_US  2000 /* a period of 64 frames and some more */

static int by_size(const void *a, const void *b) {
        const int64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static int64_t to_ns(const struct timespec *time) {
        return time->tv_sec * 1000000000 + time->tv_nsec;
}

static void run_wake_up(const struct machine *machine, struct finding *ret) {
        int64_t late_ns[SLEEPS];
        struct timespec at, now;

        if (!machine_is_live(machine)) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "how late a thread wakes up has to be measured on the machine itself");
                return;
        }

        (void) clock_gettime(CLOCK_MONOTONIC, &at);
        for (size_t i = 0; i < SLEEPS; i++) {
                at.tv_nsec += SLEEP_NS;
                if (at.tv_nsec >= 1000000000) {
                        at.tv_nsec -= 1000000000;
                        at.tv_sec++;
                }
                (void) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
                (void) clock_gettime(CLOCK_MONOTONIC, &now);
                late_ns[i] = to_ns(&now) - to_ns(&at);
        }
        qsort(late_ns, SLEEPS, sizeof(late_ns[0]), by_size);

        finding_say(ret, late_ns[SLEEPS - 1] > LATE_US * 1000 ? HEALTH_NOTE : HEALTH_FINE,
                    "this thread, as it was started, slept %d times for 1 ms", SLEEPS);
        (void) snprintf(ret->effect, sizeof(ret->effect),
                        "it woke up %" PRId64 " us late as a rule, %" PRId64 " us at worst",
                        late_ns[SLEEPS / 2] / 1000, late_ns[SLEEPS - 1] / 1000);
        if (ret->health != HEALTH_FINE)
                finding_mend(
                        ret,
                        "rtgrant-latency shows what a grant makes of it, and who is in the way",
                        NULL);
}

const struct check check_wake_up = {
        .id = "wake-up",
        .title = "Wake-up latency",
        .why = "What is lost here is missing from every period of the audio thread.",
        .run = run_wake_up,
};

/* What reading the clock costs, in ns: the best of some, since others run meanwhile. */
static int64_t clock_cost_ns(void) {
        int64_t best = INT64_MAX;

        for (unsigned i = 0; i < 20; i++) {
                struct timespec begin, end;
                int64_t ns;

                (void) clock_gettime(CLOCK_MONOTONIC, &begin);
                for (unsigned j = 0; j < 99; j++)
                        (void) clock_gettime(CLOCK_MONOTONIC, &end);
                ns = ((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec) / 99;
                if (ns < best)
                        best = ns;
        }
        return best;
}

static void run_clocksource(const struct machine *machine, struct finding *ret) {
        char source[64], printable[128];
        bool slow;

        if (machine_read(machine, source, sizeof(source),
                         "/sys/devices/system/clocksource/clocksource0/current_clocksource") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "the clock source cannot be read");
                return;
        }
        text_printable(printable, sizeof(printable), source);
        slow = strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0 ||
               strcmp(source, "jiffies") == 0;
        finding_say(ret, slow ? HEALTH_WARNING : HEALTH_FINE, "time is read from %s", printable);
        if (machine_is_live(machine))
                (void) snprintf(ret->effect, sizeof(ret->effect),
                                "one reading takes %" PRId64 " ns", clock_cost_ns());
        if (slow)
                finding_mend(
                        ret, NULL,
                        "the kernel's log says why it gave up tsc (often the firmware: update it)");
}

const struct check check_clocksource = {
        .id = "clocksource",
        .title = "Clock source",
        .why = "Audio servers read the clock several times a period; a slow source costs "
               "microseconds each.",
        .run = run_clocksource,
};
