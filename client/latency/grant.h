/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_GRANT_H
#define RTGRANT_LATENCY_GRANT_H

/* The grant that is measured: got through the broker, as any program would get it. */

#include <stdbool.h>

#include "client/rtgrant.h"

/* A role's priority, and what comes with it; 0 and NULL: not of interest. */
struct grant_request {
        const char *socket;
        const char *role;
        int policy;
        int priority;
        bool direct; /* by the caller's own right if that suffices */
        unsigned cpu_latency_us;
        const char *irq;
        const char *block;
        unsigned block_max_sectors_kb;
};

struct grant_result {
        int error; /* as rtgrant_acquire(); -EOPNOTSUPP if a part was not given */
        struct rtgrant_answer answer;
};

struct grant {
        struct rtgrant *handle; /* owned */
};

/* For the calling thread, until grant_release(). Where the broker asks to wait, it waits. */
int grant_acquire(struct grant *grant, const struct grant_request *request,
                  struct grant_result *ret);
void grant_release(struct grant *grant);

/*
 * Where no role or priority was asked for: the highest role that gives the caller real-time
 * priority without asking anybody, and the lowest priority of its band. @role_buffer keeps the
 * name. Errors: those of rtgrant_open(); -EACCES if no role does, -ENOENT if there is no such role.
 */
int grant_choose(struct grant_request *request, char role_buffer[32]);

#endif
