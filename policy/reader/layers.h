/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_LAYERS_H
#define RTGRANT_POLICY_READER_LAYERS_H

/* Which files make up a policy, and whether they may be trusted. */

#include <glib.h>

#include "policy/reader/report.h"

/*
 * @root    goes before the system's layers; "" but in tests
 * @path    a file or directory instead of them, or NULL
 *
 * The files that exist, the first the weakest; free with g_ptr_array_unref(). What cannot be
 * looked at goes to @report.
 */
GPtrArray *layers_list(const char *root, const char *path, struct report *report);

/* The text of a trustworthy file, to be freed by g_free(); NULL: @report says why. */
char *layer_read(const char *file, size_t size_max, size_t *ret_length, struct report *report);

#endif
