/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SYSFS_H
#define RTGRANT_BROKER_SYSFS_H

/* Attributes of the kernel's: small files with one line each. */

#include <stddef.h>
#include <stdint.h>

/* The first line of a file, without its end. Errors: open(2), read(2). */
int sysfs_read(const char *path, char *buffer, size_t size);

/* The number at its beginning. Errors: likewise; -EBADMSG if there is none. */
int sysfs_read_number(const char *path, int64_t *ret);

/* Errors: open(2), write(2). */
int sysfs_write(const char *path, const char *text);
int sysfs_write_number(const char *path, int64_t number);

#endif
