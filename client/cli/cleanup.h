/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_CLEANUP_H
#define RTGRANT_CLI_CLEANUP_H

/* Scope-bound destructors for the programs. */

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void cleanup_free(void *p) {
        free(*(void **) p);
}

static inline void cleanup_close(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#endif
