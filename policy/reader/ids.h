/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_IDS_H
#define RTGRANT_POLICY_READER_IDS_H

/* Turns names of users and groups into ids. */

#include "policy/reader/keys.h"

struct id_source {
        const char *what;       /* "user", "group" */
        /* 1: found, 0: there is none, -ERANGE: larger than @buffer, other errno: no telling */
        int (*find)(const char *name, char *buffer, size_t size, uint32_t *ret_id);
};

extern const struct id_source id_source_users;
extern const struct id_source id_source_groups;

/*
 * @value   names, numbers and "*", separated by blanks
 *
 * A name that is not known is a warning and left out; false if a number is no id, or if there are
 * too many. The ids live in @context->blocks.
 */
bool id_list_read(const struct value_context *context, const struct id_source *source,
                  const char *value, struct id_list *ret_list);

/* The words of @value, freed by g_strfreev(). */
char **split_words(const char *value);

#endif
