/* SPDX-License-Identifier: MIT */

/* How fast a CPU wakes up, and how fast it is then. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"

/* A quarter of a period of 64 frames at 48 kHz. */
#define EXIT_LATENCY_HIGH_US 300

struct deepest {
        const struct machine *machine;
        int64_t latency_us;
        char name[32];
};

static int look_at_state(const char *name, void *userdata) {
        struct deepest *deepest = userdata;
        int64_t latency_us, disabled = 0;

        if (strncmp(name, "state", 5) != 0 ||
            machine_read_number(deepest->machine, &latency_us,
                                "/sys/devices/system/cpu/cpu0/cpuidle/%s/latency", name) < 0)
                return 0;
        (void) machine_read_number(deepest->machine, &disabled,
                                   "/sys/devices/system/cpu/cpu0/cpuidle/%s/disable", name);
        if (!disabled && latency_us > deepest->latency_us) {
                deepest->latency_us = latency_us;
                (void) machine_read(deepest->machine, deepest->name, sizeof(deepest->name),
                                    "/sys/devices/system/cpu/cpu0/cpuidle/%s/name", name);
        }
        return 0;
}

static void run_c_states(const struct machine *machine, struct finding *ret) {
        struct deepest deepest = { .machine = machine, .latency_us = -1 };
        int64_t resume_us = 0;
        char name[64];

        (void) machine_each(machine, look_at_state, &deepest,
                            "/sys/devices/system/cpu/cpu0/cpuidle");
        if (deepest.latency_us < 0) {
                finding_say(
                        ret, HEALTH_UNKNOWN,
                        "the kernel manages no idle states here (a virtual machine, or idle=poll)");
                return;
        }

        text_printable(name, sizeof(name), deepest.name);
        /* 0 is "no request"; "n/a" is no latency at all, and no number: kernel/power/qos. */
        (void) machine_read_number(machine, &resume_us,
                                   "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us");
        if (resume_us > 0 && resume_us < deepest.latency_us)
                deepest.latency_us = resume_us;
        finding_say(ret, deepest.latency_us > EXIT_LATENCY_HIGH_US ? HEALTH_WARNING : HEALTH_FINE,
                    "the deepest idle state of CPU 0 is %s, and waking from it takes up to %" PRId64
                    " us",
                    name, deepest.latency_us);
        if (ret->health == HEALTH_FINE)
                return;
        finding_mend(ret,
                     "as root, while it is held open: exec 3>/dev/cpu_dma_latency; printf "
                     "'\\0\\0\\0\\0' >&3",
                     "leave it to leases: deep idle states save battery while no sound runs");
        (void) snprintf(ret->lease, sizeof(ret->lease), "rtgrant --cpu-latency 50 COMMAND");
}

const struct check check_c_states = {
        .id = "c-states",
        .title = "Idle states of the CPU",
        .why = "A CPU that sleeps deeply starts the audio thread late, most of all when little "
               "else runs.",
        .run = run_c_states,
};

static void run_governor(const struct machine *machine, struct finding *ret) {
        char governor[32], driver[32] = "", preference[64] = "", printable[64];
        int64_t now_khz = 0, max_khz = 0;
        bool slow;

        if (machine_read(machine, governor, sizeof(governor),
                         "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor") < 0) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "the kernel manages no frequencies here (a virtual machine, or the "
                            "firmware does)");
                return;
        }
        (void) machine_read(machine, driver, sizeof(driver),
                            "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver");
        (void) machine_read(
                machine, preference, sizeof(preference),
                "/sys/devices/system/cpu/cpufreq/policy0/energy_performance_preference");
        (void) machine_read_number(machine, &now_khz,
                                   "/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq");
        (void) machine_read_number(machine, &max_khz,
                                   "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq");

        /* With hardware-managed P-states "powersave" is the ordinary mode, and the preference
         * counts. */
        slow = preference[0] != '\0' ? strcmp(preference, "power") == 0 ||
                                               strcmp(preference, "balance_power") == 0
                                     : strcmp(governor, "powersave") == 0 ||
                                               strcmp(governor, "conservative") == 0;
        text_printable(printable, sizeof(printable), governor);
        finding_say(ret, slow ? HEALTH_WARNING : HEALTH_FINE, "governor %s%s%s", printable,
                    preference[0] ? ", preference " : "", preference);
        if (now_khz > 0 && max_khz > 0)
                (void) snprintf(ret->effect, sizeof(ret->effect),
                                "CPU 0 runs at %" PRId64 " of %" PRId64 " MHz now", now_khz / 1000,
                                max_khz / 1000);
        if (slow)
                finding_mend(
                        ret,
                        "powerprofilesctl set performance, or cpupower frequency-set -g "
                        "performance",
                        "the same in a service at boot; on mains power only, to spare the battery");
}

const struct check check_governor = {
        .id = "governor",
        .title = "Frequency of the CPU",
        .why = "An audio thread works in bursts, and a slow governor raises the frequency after "
               "they are over.",
        .run = run_governor,
};

static void run_smt(const struct machine *machine, struct finding *ret) {
        int64_t active;

        if (machine_read_number(machine, &active, "/sys/devices/system/cpu/smt/active") < 0 ||
            active == 0) {
                finding_say(ret, HEALTH_FINE, "no two CPUs share a core");
                return;
        }
        finding_say(
                ret, HEALTH_NOTE,
                "SMT is on: two CPUs share a core, so work takes longer while the other is busy");
        finding_mend(
                ret, "as root: echo off > /sys/devices/system/cpu/smt/control",
                "nosmt on the kernel's command line; only if rtgrant-latency shows that it helps");
}

const struct check check_smt = {
        .id = "smt",
        .title = "Shared cores (SMT)",
        .why = "The time that a period's work takes varies by half.",
        .run = run_smt,
};

struct capacity {
        const struct machine *machine;
        int64_t min, max;
};

static int look_at_cpu(const char *name, void *userdata) {
        struct capacity *capacity = userdata;
        int64_t value;

        if (strncmp(name, "cpu", 3) != 0 || name[3] < '0' || name[3] > '9' ||
            machine_read_number(capacity->machine, &value,
                                "/sys/devices/system/cpu/%s/cpu_capacity", name) < 0)
                return 0;
        if (capacity->max == 0 || value < capacity->min)
                capacity->min = value;
        if (value > capacity->max)
                capacity->max = value;
        return 0;
}

static void run_hybrid(const struct machine *machine, struct finding *ret) {
        struct capacity capacity = { .machine = machine };
        char big[64], little[64];

        (void) machine_each(machine, look_at_cpu, &capacity, "/sys/devices/system/cpu");
        if (machine_read(machine, little, sizeof(little), "/sys/devices/cpu_atom/cpus") > 0 &&
            machine_read(machine, big, sizeof(big), "/sys/devices/cpu_core/cpus") > 0) {
                finding_say(ret, HEALTH_NOTE, "CPUs %s are fast, %s are slow", big, little);
        } else if (capacity.min < capacity.max) {
                finding_say(ret, HEALTH_NOTE,
                            "CPUs differ: the slowest has %" PRId64 " %% of the fastest",
                            capacity.min * 100 / capacity.max);
        } else {
                finding_say(ret, HEALTH_FINE, "all CPUs are alike");
                return;
        }
        finding_mend(ret, "taskset -c FAST-CPUS COMMAND",
                     "CPUAffinity= of the audio server's service");
}

const struct check check_hybrid = {
        .id = "hybrid",
        .title = "CPUs of different speed",
        .why = "The scheduler places real-time threads by priority, not by the speed of a CPU.",
        .run = run_hybrid,
};
