/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IDS_H
#define RTGRANT_BROKER_IDS_H

/*
 * The one place where a number from outside becomes a process or thread id. System calls take 0,
 * -1 and cut-off numbers for "myself" or "everybody"; none of them leaves here.
 */

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

/* PID_MAX_LIMIT of include/linux/threads.h: no kernel gives a higher number. */
#define ID_MAX (4 * 1024 * 1024)

static inline int id_parse(uint64_t number, pid_t *ret) {
        if (number < 1 || number > ID_MAX)
                return -EINVAL;

        *ret = (pid_t) number;
        return 0;
}

#endif
