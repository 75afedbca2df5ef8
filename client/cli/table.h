/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_TABLE_H
#define RTGRANT_CLI_TABLE_H

/* Aligned tables for people. */

#include <stddef.h>

#include "client/cli/output.h"

struct table;

/* @headers ends with NULL and outlives the table. NULL if out of memory. */
struct table *table_new(const char *const *headers);
struct table *table_free(struct table *table);

static inline void cleanup_table(struct table **table) {
        (void) table_free(*table);
}

/* Copies one cell for each header. A row that finds no memory is left out. */
void table_add(struct table *table, enum style style, const char *const *cells);

size_t table_rows(const struct table *table);
void table_print(const struct table *table, bool colour);

#endif
