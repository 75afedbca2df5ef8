/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANTCTL_KERNEL_H
#define RTGRANT_CLIENT_RTGRANTCTL_KERNEL_H

/* The kernel's part in a yes or no about a process: what /proc and /sys show of it. */

#include <json-c/json.h>
#include <sys/types.h>

/* Lines of "  kernel: …" for people. */
void kernel_part_print(pid_t pid);

/* The same as an object; owned by the caller. */
json_object *kernel_part_json(pid_t pid);

#endif
