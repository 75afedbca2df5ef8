/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_CLEANUP_H
#define RTGRANT_BROKER_CLEANUP_H

/* Scope-bound destructors, and handing a value over to somebody who outlives the scope. */

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

/* Closes @fd if it is one. Returns -1, to be stored where @fd was. */
static inline int close_fd(int fd) {
        cleanup_close(&fd);
        return -1;
}

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
