/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_CLEANUP_H
#define RTGRANT_CLIENT_CLEANUP_H

/* Scope-bound destructors for the library and the programs; libc only. */

#include <stdio.h>
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

static inline void cleanup_fclose(FILE **file) {
        if (*file)
                (void) fclose(*file);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)

#define STEAL_FD(fd)                                                                              \
        ({                                                                                        \
                int _stolen = (fd);                                                               \
                (fd) = -1;                                                                        \
                _stolen;                                                                          \
        })

#define STEAL(p)                                                                                  \
        ({                                                                                        \
                typeof(p) _stolen = (p);                                                          \
                (p) = NULL;                                                                       \
                _stolen;                                                                          \
        })

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#endif
