/* SPDX-License-Identifier: MIT */

/*
 * How long a sleeping CPU may take to wake up. For the whole machine it is held by a descriptor:
 * the kernel takes the lowest of all that are open, and forgets ours when it is closed, however
 * that comes about. For a thread that is pinned to one CPU it is an attribute of that CPU.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/kinds/resources.h"
#include "broker/sysfs.h"
#include "broker/thread.h"

#define DEVICE "/dev/cpu_dma_latency"

/* The attribute of a CPU: 0 is "as long as it likes", and "n/a" is "none at all". */
#define CPU_NO_LIMIT 0
#define CPU_NO_LATENCY (-1)

static bool is_machine(const struct resource *resource) {
        return resource->name.key == 0;
}

static void cpu_path(const struct resource *resource, char buffer[96]) {
        (void) snprintf(buffer, 96,
                        "/sys/devices/system/cpu/cpu%u/power/pm_qos_resume_latency_us",
                        (unsigned) resource->name.key - 1);
}

static int cpu_read(const struct resource *resource, int64_t *ret) {
        char path[96], text[32];
        int r;

        cpu_path(resource, path);
        r = sysfs_read(path, text, sizeof(text));
        if (r < 0)
                return r;
        if (strcmp(text, "n/a") == 0) {
                *ret = CPU_NO_LATENCY;
                return 0;
        }

        return sysfs_read_number(path, ret);
}

static bool latency_probe(char *cause, size_t size) {
        _cleanup_close_ int fd = -1;

        fd = open(DEVICE, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                (void) snprintf(cause, size, "cannot open " DEVICE ": %s", strerror(errno));
        return fd >= 0;
}

/* The one CPU that it may run on; -1 if there are more. */
static int pinned_cpu(pid_t tid) {
        cpu_set_t set;

        if (sched_getaffinity(tid, sizeof(set), &set) < 0 || CPU_COUNT(&set) != 1)
                return -1;

        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &set))
                        return cpu;

        return -1;
}

static enum reason latency_find(const struct resource_query *query,
                                struct resource_name ret_names[LEASE_HOLDS_MAX], unsigned *ret_n,
                                char *cause, size_t size) {
        int cpu = pinned_cpu(query->thread->tid);
        struct resource resource = { .name.key = (uint64_t) (cpu + 1) };
        int64_t now;

        if (cpu >= 0 && cpu_read(&resource, &now) < 0)
                resource.name.key = 0;
        if (resource.name.key > 0)
                (void) snprintf(resource.name.label, sizeof(resource.name.label), "cpu%d", cpu);

        ret_names[0] = resource.name;
        *ret_n = 1;
        return REASON_NONE;
}

/* What is in force in the kernel, by all who ask for it. */
static int machine_read(const struct resource *resource, int64_t *ret) {
        int32_t now;

        if (pread(resource->fd, &now, sizeof(now), 0) != sizeof(now))
                return errno != 0 ? -errno : -EIO;

        *ret = now;
        return 0;
}

static int latency_capture(struct resource *resource, struct resource_value *ret) {
        struct resource_value value = {};
        int r;

        if (is_machine(resource)) {
                resource->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
                if (resource->fd < 0)
                        return -errno;
                r = machine_read(resource, &value.n[0]);
        } else {
                r = cpu_read(resource, &value.n[0]);
        }
        if (r < 0)
                return r;

        *ret = value;
        return 0;
}

static void latency_aim(const struct resource *resource, int64_t value,
                        struct resource_value *ret) {
        int64_t saved = resource->saved.n[0];

        ret->n[0] = value;
        if (!is_machine(resource) && saved != CPU_NO_LIMIT && saved < value)
                ret->n[0] = saved;
}

static int latency_apply(struct resource *resource, const struct resource_value *set) {
        int32_t value = (int32_t) set->n[0];
        char path[96];

        /* 4 bytes: a number; other lengths the device takes for text */
        if (is_machine(resource))
                return write(resource->fd, &value, sizeof(value)) < 0 ? -errno : 0;
        if (set->n[0] == CPU_NO_LATENCY)
                return 0; /* it was so before */

        cpu_path(resource, path);
        return sysfs_write_number(path, set->n[0]);
}

static int latency_verify(struct resource *resource, const struct resource_value *set) {
        int64_t now;
        int r;

        r = is_machine(resource) ? machine_read(resource, &now) : cpu_read(resource, &now);
        if (r < 0)
                return r;

        return is_machine(resource) ? now <= set->n[0] : now == set->n[0];
}

static int latency_restore(struct resource *resource) {
        char path[96];
        int r;

        if (is_machine(resource)) {
                resource->fd = close_fd(resource->fd);
                return 1;
        }

        r = latency_verify(resource, &resource->set);
        if (r != 1 || resource->saved.n[0] == CPU_NO_LATENCY)
                return r;
        cpu_path(resource, path);
        r = sysfs_write_number(path, resource->saved.n[0]);
        return r < 0 ? r : 1;
}

const struct resource_kind resource_cpu_latency = {
        .name = "cpu-latency",
        .index = RESOURCE_CPU_LATENCY,
        .want = WIRE_WANT_CPU_LATENCY,
        .is_volatile = true,
        .probe = latency_probe,
        .find = latency_find,
        .capture = latency_capture,
        .aim = latency_aim,
        .apply = latency_apply,
        .verify = latency_verify,
        .restore = latency_restore,
};
