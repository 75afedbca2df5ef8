/* SPDX-License-Identifier: MIT */

#include "broker/kinds/process.h"

#include <errno.h>
#include <poll.h>

#include "broker/kernel.h"
#include "broker/proc.h"

#define PID_BITS 22 /* of the largest pid_max */

int process_resource_name(pid_t pid, struct resource_name *ret) {
        struct proc_stat stat;
        int r;

        r = proc_read_stat(pid, 0, &stat);
        if (r < 0)
                return r;

        /* a number may come again, but not with the same time of birth */
        *ret = (struct resource_name) {
                .key = stat.start_time << PID_BITS | (uint64_t) pid,
                .pid = pid,
        };
        return 0;
}

uint64_t process_resource_born(const struct resource *resource) {
        return resource->name.key >> PID_BITS;
}

int process_resource_open(struct resource *resource) {
        struct resource_name now;

        resource->fd = kernel_pidfd_open(resource->name.pid, /* thread= */ false);
        if (resource->fd < 0)
                return resource->fd;

        return process_resource_name(resource->name.pid, &now) >= 0 && now.key == resource->name.key
                       ? 0
                       : -ESRCH;
}

bool process_resource_has_ended(const struct resource *resource) {
        struct pollfd ended = { .fd = resource->fd, .events = POLLIN };

        return resource->fd < 0 || poll(&ended, 1, 0) != 0;
}
