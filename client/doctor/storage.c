/* SPDX-License-Identifier: MIT */

/* Memory that leaves, and disks that keep the bus. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/cli/text.h"
#include "client/doctor/doctor.h"

/* A rotating disk moves this much in about 5 ms. */
#define SECTORS_HIGH_KB 512

static void run_swappiness(const struct machine *machine, struct finding *ret) {
        int64_t swappiness;
        char swaps[4096], *line, *rest = swaps;
        unsigned n = 0, n_memory = 0;

        if (machine_read_number(machine, &swappiness, "/proc/sys/vm/swappiness") < 0 ||
            machine_read(machine, swaps, sizeof(swaps), "/proc/swaps") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "swap and swappiness cannot be read");
                return;
        }
        (void) strsep(&rest, "\n"); /* the heading */
        while ((line = strsep(&rest, "\n")))
                if (*line != '\0') {
                        n++;
                        n_memory += strncmp(line, "/dev/zram", 9) == 0;
                }
        if (n == 0 || n == n_memory || swappiness <= 10) {
                finding_say(ret, HEALTH_FINE, "swappiness %" PRId64 "%s", swappiness,
                            n == 0          ? ", and no swap"
                            : n == n_memory ? ", and swap in memory only"
                                            : "");
                return;
        }
        finding_say(ret, HEALTH_NOTE,
                    "swappiness %" PRId64 " with swap on disk: memory that is not locked may leave",
                    swappiness);
        finding_mend(ret, "sysctl vm.swappiness=10",
                     "vm.swappiness=10 in /etc/sysctl.d/; better: lock the audio program's memory");
        (void) snprintf(ret->lease, sizeof(ret->lease), "rtgrant --memlock SIZE COMMAND");
}

const struct check check_swappiness = {
        .id = "swappiness",
        .title = "Memory that leaves for the disk",
        .why = "A page that comes back from swap takes milliseconds; locked memory never leaves.",
        .run = run_swappiness,
};

static void run_tmpfs(const struct machine *machine, struct finding *ret) {
        char text[16384], *line, *rest = text, meminfo[4096];
        uint64_t soft, hard, total_kb = 0;
        const char *at;

        if (machine_read(machine, text, sizeof(text), "/proc/self/mounts") < 0 &&
            machine_read(machine, text, sizeof(text), "/proc/mounts") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "the mounts cannot be read");
                return;
        }
        if (machine_read(machine, meminfo, sizeof(meminfo), "/proc/meminfo") > 0 &&
            (at = strstr(meminfo, "MemTotal:")))
                total_kb = strtoull(at + 9, NULL, 10);
        while ((line = strsep(&rest, "\n"))) {
                char type[32], options[512];
                uint64_t size_kb;
                const char *size;

                if (sscanf(line, "%*s /dev/shm %31s %511s", type, options) != 2)
                        continue;
                if (strcmp(type, "tmpfs") != 0) {
                        finding_say(
                                ret, HEALTH_WARNING,
                                "/dev/shm is no tmpfs but %s: JACK and PipeWire share memory there",
                                type);
                        finding_mend(ret, "mount -t tmpfs tmpfs /dev/shm",
                                     "the same in /etc/fstab");
                        return;
                }
                size = strstr(options, "size=");
                size_kb = size ? strtoull(size + 5, NULL, 10) : total_kb / 2;
                if (machine_limit(machine, machine->pid, "Max locked memory", &soft, &hard) == 0 &&
                    size_kb > 0 && size_kb < 65536) {
                        finding_say(ret, HEALTH_WARNING,
                                    "/dev/shm holds %" PRIu64
                                    " MiB only: buffers of audio programs may not fit",
                                    size_kb / 1024);
                        finding_mend(ret, "mount -o remount,size=50% /dev/shm",
                                     "the same in /etc/fstab (a container: --shm-size)");
                        return;
                }
                finding_say(ret, HEALTH_FINE, "/dev/shm is memory, up to %" PRIu64 " MiB",
                            size_kb / 1024);
                return;
        }
        finding_say(ret, HEALTH_WARNING,
                    "/dev/shm is not mounted: JACK and PipeWire share memory there");
        finding_mend(ret, "mount -t tmpfs tmpfs /dev/shm", "the same in /etc/fstab");
}

const struct check check_tmpfs = {
        .id = "shared-memory",
        .title = "Shared memory of audio programs",
        .why = "Buffers that are files on a disk, or do not fit, make an audio thread wait or "
               "fail.",
        .run = run_tmpfs,
};

struct disks {
        const struct machine *machine;
        char text[256];
        char worst[64];
        size_t n;
        unsigned n_disks;
};

static int look_at_disk(const char *name, void *userdata) {
        struct disks *disks = userdata;
        int64_t rotational, max_kb;
        char scheduler[128] = "", printable[64];

        if (machine_read_number(disks->machine, &rotational, "/sys/block/%s/queue/rotational",
                                name) < 0 ||
            machine_read_number(disks->machine, &max_kb, "/sys/block/%s/queue/max_sectors_kb",
                                name) < 0 ||
            strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0 ||
            strncmp(name, "zram", 4) == 0)
                return 0;
        disks->n_disks++;
        (void) machine_read(disks->machine, scheduler, sizeof(scheduler),
                            "/sys/block/%s/queue/scheduler", name);
        if (!rotational || (max_kb <= SECTORS_HIGH_KB && !strstr(scheduler, "[none]")))
                return 0;

        text_printable(printable, sizeof(printable), name);
        if (disks->worst[0] == '\0')
                (void) snprintf(disks->worst, sizeof(disks->worst), "%s", printable);
        if (disks->n < sizeof(disks->text))
                disks->n +=
                        (size_t) snprintf(disks->text + disks->n, sizeof(disks->text) - disks->n,
                                          "%s%s rotates, and takes %" PRId64 " KiB at a time%s",
                                          disks->n > 0 ? "; " : "", printable, max_kb,
                                          strstr(scheduler, "[none]") ? ", in no order" : "");
        return 0;
}

static void run_disk_queue(const struct machine *machine, struct finding *ret) {
        struct disks disks = { .machine = machine };
        char now[160];

        if (machine_each(machine, look_at_disk, &disks, "/sys/block") < 0) {
                finding_say(ret, HEALTH_UNKNOWN, "/sys/block cannot be read");
                return;
        }
        if (disks.n == 0) {
                finding_say(ret, HEALTH_FINE,
                            "none of %u disks keeps others waiting with long transfers",
                            disks.n_disks);
                return;
        }
        finding_say(ret, HEALTH_NOTE, "%s", disks.text);
        (void) snprintf(now, sizeof(now), "as root: echo 128 > /sys/block/%s/queue/max_sectors_kb",
                        disks.worst);
        finding_mend(ret, now,
                     "a udev rule: ACTION==\"add|change\", KERNEL==\"sd?\", "
                     "ATTR{queue/rotational}==\"1\", ATTR{queue/max_sectors_kb}=\"128\"");
        (void) snprintf(ret->lease, sizeof(ret->lease), "rtgrant --block-queue %s=128 COMMAND",
                        disks.worst);
}

const struct check check_disk_queue = {
        .id = "disk-queue",
        .title = "Transfers of disks",
        .why = "A player that reads from the same disk waits behind a transfer of a megabyte; "
               "smaller ones let it in.",
        .run = run_disk_queue,
};
