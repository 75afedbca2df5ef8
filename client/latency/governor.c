/* SPDX-License-Identifier: MIT */

#include "client/latency/governor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RAISED "performance"

void governor_open(struct governor *g, const char *sysroot, int cpu) {
        char path[512];
        ssize_t n = -1;
        int fd;

        *g = (struct governor){ .fd = -1 };
        if (cpu < 0)
                return;
        (void) snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
                        sysroot, cpu);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                n = read(fd, g->was, sizeof(g->was) - 1);
                (void) close(fd);
        }
        g->was[n > 0 ? n : 0] = '\0';
        g->was[strcspn(g->was, "\n")] = '\0';
        if (g->was[0] != '\0')
                g->fd = open(path, O_WRONLY | O_CLOEXEC);
}

const char *governor_why_not(const struct governor *g) {
        if (g->was[0] == '\0')
                return "no cpufreq here: the frequency is not the kernel's to govern, or the CPU is "
                       "not named (--cpu)";
        if (strcmp(g->was, RAISED) == 0)
                return "the governor is \"performance\" already";
        if (g->fd < 0)
                return "only root may change the governor, and the broker has no lease of it";
        return "";
}

static int put(struct governor *g, const char *name) {
        ssize_t n = pwrite(g->fd, name, strlen(name), 0);

        return n < 0 ? -errno : 0;
}

int governor_raise(struct governor *g) {
        int r = put(g, RAISED);

        g->changed = r >= 0;
        return r;
}

void governor_restore(struct governor *g) {
        if (g->changed)
                (void) put(g, g->was);
        g->changed = false;
}

void governor_done(struct governor *g) {
        governor_restore(g);
        if (g->fd >= 0)
                (void) close(g->fd);
        g->fd = -1;
}
