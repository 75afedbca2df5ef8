/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_BOOK_H
#define RTGRANT_POLICY_READER_BOOK_H

/* A policy while it is read: its sections, what was written in them and where, and the memory. */

#include <glib.h>

#include "policy/policy-file.h"
#include "policy/reader/keys.h"

#define SECTIONS_MAX (1 + POLICY_ROLES_MAX + POLICY_IRQS_MAX)
#define KEYS_MAX MAX((int) _BROKER_KEY_MAX, (int) _ROLE_KEY_MAX)

/* [Broker], one [Role NAME] or one [Irq NAME]. */
struct section {
        const char *title;              /* borrowed from the book's strings */
        const struct key *keys;
        size_t n_keys;
        void *base;                     /* borrowed; the struct that it fills */
        struct rule *rules;             /* borrowed; those of base */
        const char *values[KEYS_MAX];   /* as written, or the default */
};

struct policy_book {
        GStringChunk *strings;
        GPtrArray *blocks;
        struct section sections[SECTIONS_MAX]; /* the first is [Broker] */
        size_t n_sections;
        struct role roles[POLICY_ROLES_MAX];
        struct irq_rule irqs[POLICY_IRQS_MAX];
};

/* A policy of nothing but defaults, without a role. */
struct policy_store *book_open(void);

/* The section of that title, without the brackets; NULL if there is none (yet). */
struct section *book_find_section(const struct policy_store *store, const char *title,
                                  size_t length);

/* Adds a role of valid name; NULL if there is no place for it. */
struct section *book_add_role(struct policy_store *store, const char *name, size_t length);

/* The same for an interrupt rule. */
struct section *book_add_irq(struct policy_store *store, const char *name, size_t length);

/* Puts a value into the policy, or reports what is wrong with it. */
void book_set(struct policy_store *store, struct section *section, const struct key *key,
              const char *value, struct rule at, struct report *report);

/* What can only be told of the policy as a whole. */
void book_check(struct policy_store *store, const char *file, struct report *report);

#endif
