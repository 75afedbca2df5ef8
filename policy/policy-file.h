/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_POLICY_FILE_H
#define RTGRANT_POLICY_POLICY_FILE_H

/*
 * Reads the administrator's policy files into a struct policy: strictly, whole or not at all.
 *
 * Layers, later ones win key by key:
 *   DATADIR/rtgrant/policy.conf < /etc/rtgrant/policy.conf < /etc/rtgrant/policy.d/x.conf by name.
 * A given file replaces all of them; a given directory is read as policy.conf and policy.d in it
 * (or, if it has neither, every *.conf in it).
 *
 * Files, and directories that are listed, must belong to root or to the caller and be writable by
 * nobody else: who may write the policy has what it gives.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"

/* A policy and all the memory it points to. */
struct policy_store {
        struct policy policy;
        struct policy_book *book; /* owned; the reader's own */
};

/*
 * @path    a file or directory instead of the system's layers; NULL for those
 *
 * On success *ret_store is freed by policy_store_free(). User and group names are looked up here
 * and only here: an unknown one is a warning, since it may be added to the system later.
 * *ret_messages (may be NULL) receives what there is to say, one "FILE:LINE: text" a line, warnings
 * too ("FILE:LINE: warning: text"), and "FILE: text" of a file as a whole; "" if nothing; freed by
 * free(3). It is set in either case. Past a hundred, messages are only counted.
 *
 * Errors: -EINVAL if a file has a fault (all faults of all files are in the messages), -ENOENT if
 * there is no policy at all, other errno of open(2) and read(2); each with a message.
 */
int policy_store_load(const char *path, struct policy_store **ret_store, char **ret_messages);

/* The same with @root before the names of the system's layers. For tests. */
int policy_store_load_rooted(const char *root, const char *path, struct policy_store **ret_store,
                             char **ret_messages);

/*
 * As the broker would have it if @path were read last of all: over the system's layers, if there are
 * any. A directory stands for itself, as with policy_store_load(). To check a file before it is put
 * in place.
 */
int policy_store_load_over(const char *path, struct policy_store **ret_store, char **ret_messages);

/* Reads one policy text; @name stands for the file in rules and messages. For tests and fuzzing. */
int policy_store_parse(const char *name, const char *text, size_t length,
                       struct policy_store **ret_store, char **ret_messages);

/* May be NULL. Returns NULL. */
struct policy_store *policy_store_free(struct policy_store *store);

/* One key of the merged policy, for display. Pointers live as long as the store. */
struct policy_entry {
        const char *section;    /* "Broker" or "Role NAME" */
        const char *key;
        const char *value;      /* as written, or the default */
        struct rule rule;       /* .file NULL: the default */
};

/* Every key of every section in order, defaults too; false past the last. @index from 0. */
bool policy_store_entry(const struct policy_store *store, size_t index,
                        struct policy_entry *ret_entry);

#endif
