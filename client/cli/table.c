/* SPDX-License-Identifier: MIT */

#include "client/cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/text.h"

#define GAP 2

struct row {
        struct row *next;
        enum style style;
        char *cells[];          /* owned */
};

struct table {
        const char *const *headers; /* borrowed; outlives the table */
        size_t n_columns;
        size_t n_rows;
        struct row *first;      /* owned */
        struct row **last;
        size_t widths[];        /* of each column so far */
};

static void widen(struct table *table, const char *const *cells) {
        for (size_t i = 0; i < table->n_columns; i++) {
                size_t width = text_width(cells[i]);

                if (width > table->widths[i])
                        table->widths[i] = width;
        }
}

struct table *table_new(const char *const *headers) {
        struct table *table;
        size_t n = 0;

        while (headers[n])
                n++;
        table = calloc(1, sizeof(*table) + n * sizeof(table->widths[0]));
        if (!table)
                return NULL;

        table->headers = headers;
        table->n_columns = n;
        table->last = &table->first;
        widen(table, headers);
        return table;
}

static struct row *row_free(struct row *row, size_t n_cells) {
        for (size_t i = 0; i < n_cells; i++)
                free(row->cells[i]);
        free(row);
        return NULL;
}

struct table *table_free(struct table *table) {
        struct row *next;

        if (!table)
                return NULL;

        for (struct row *row = table->first; row; row = next) {
                next = row->next;
                row_free(row, table->n_columns);
        }
        free(table);
        return NULL;
}

void table_add(struct table *table, enum style style, const char *const *cells) {
        struct row *row;

        row = calloc(1, sizeof(*row) + table->n_columns * sizeof(row->cells[0]));
        if (!row)
                return;
        row->style = style;
        for (size_t i = 0; i < table->n_columns; i++) {
                row->cells[i] = strdup(cells[i]);
                if (!row->cells[i]) {
                        row_free(row, i);
                        return;
                }
        }

        widen(table, cells);
        *table->last = row;
        table->last = &row->next;
        table->n_rows++;
}

size_t table_rows(const struct table *table) {
        return table->n_rows;
}

static void print_line(const struct table *table, const char *const *cells, enum style style,
                       bool colour) {
        size_t n = table->n_columns;

        while (n > 1 && cells[n - 1][0] == '\0')
                n--;
        fputs(style_begin(colour, style), stdout);
        for (size_t i = 0; i < n; i++) {
                size_t pad = table->widths[i] - text_width(cells[i]) + GAP;

                printf("%s%*s", cells[i], i + 1 < n ? (int) pad : 0, "");
        }
        printf("%s\n", style_end(colour, style));
}

void table_print(const struct table *table, bool colour) {
        print_line(table, table->headers, STYLE_BOLD, colour);
        for (const struct row *row = table->first; row; row = row->next)
                print_line(table, (const char *const *) row->cells, row->style, colour);
}
