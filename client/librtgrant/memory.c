/* SPDX-License-Identifier: MIT */

/* Locking memory without the trap in it. */

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "client/librtgrant/public.h"

static uint64_t locked_bytes(void) {
        unsigned long long kib = 0;
        char line[128];
        FILE *status;

        status = fopen("/proc/self/status", "re");
        if (!status)
                return 0;
        while (fgets(line, sizeof(line), status))
                if (sscanf(line, "VmLck: %llu kB", &kib) == 1)
                        break;
        (void) fclose(status);
        return (uint64_t) kib * 1024;
}

int rtgrant_lock_memory(uint64_t *ret_locked_bytes, uint64_t *ret_limit_bytes) {
        struct rlimit limit;
        int r = 0;

        /* No MCL_FUTURE; the kernel takes its absence for the end of an earlier one, mm/mlock.c. */
        if (mlockall(MCL_CURRENT) < 0)
                r = -errno;

        if (ret_locked_bytes)
                *ret_locked_bytes = locked_bytes();
        if (ret_limit_bytes)
                *ret_limit_bytes = getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ? 0
                                   : limit.rlim_cur == RLIM_INFINITY     ? UINT64_MAX
                                                                         : limit.rlim_cur;
        return r;
}
