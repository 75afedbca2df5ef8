/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_IRQ_FILES_H
#define RTGRANT_IRQ_FILES_H

/* Small files of /sys and /proc, read whole or not at all; never longer than the buffer. */

#include <stddef.h>
#include <stdlib.h>

#define _irq_cleanup_free_ __attribute__((cleanup(irq_cleanup_free)))

static inline void irq_cleanup_free(void *p) {
        free(*(void **) p);
}

/* Where the trees are: elsewhere in tests. Borrowed. */
struct irq_roots {
        const char *sys;
        const char *proc;
};

extern const struct irq_roots irq_roots_system; /* /sys and /proc */

/*
 * Reads the file of that name, without the newline at its end, NUL-terminated.
 * Returns its length. Errors: -E2BIG if it does not fit, -ENAMETOOLONG, open(2), read(2).
 */
ssize_t irq_read(char *buffer, size_t size, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* A whole decimal number. Errors: as irq_read(), -EBADMSG. */
int irq_read_number(unsigned *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last part of where a link leads. Errors: readlink(2), -E2BIG. */
int irq_read_link(char *buffer, size_t size, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Copies what fits. */
void irq_copy(char *buffer, size_t size, const char *string);

#endif
