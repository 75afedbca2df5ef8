/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KINDS_PROCESS_H
#define RTGRANT_BROKER_KINDS_PROCESS_H

/* Resources of a process: known by its number and birth, pinned by a pidfd in resource->fd. */

#include <stdbool.h>

#include "broker/resource.h"

/* Errors: -ESRCH, proc_read(). */
int process_resource_name(pid_t pid, struct resource_name *ret);

/* Opens resource->fd. Errors: -ESRCH if another one has that number by now, pidfd_open(2). */
int process_resource_open(struct resource *resource);

/* When its process was started, in clock ticks since boot. */
uint64_t process_resource_born(const struct resource *resource);

bool process_resource_has_ended(const struct resource *resource);

#endif
