/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_KEYS_H
#define RTGRANT_POLICY_READER_KEYS_H

/* The keys of a policy file: names, defaults, ranges, and how a value gets into struct policy. */

#include <glib.h>

#include "policy/reader/report.h"

struct key;

/* Where values are read to. */
struct value_context {
        struct report *report;  /* borrowed; gets the faults and warnings */
        GStringChunk *strings;  /* borrowed; keeps texts that the policy points to */
        GPtrArray *blocks;      /* borrowed; keeps arrays that the policy points to */
        const struct key *key;
        struct rule at;
};

struct key {
        const char *name;
        const char *fallback;   /* the default, as one would write it */
        /* Stores @value in @base, the struct of its section, or reports what is wrong. */
        bool (*parse)(const struct value_context *context, const char *value, void *base);
        size_t offset;          /* of the field in @base, for the parsers of numbers */
        uint64_t min;           /* times: in µs */
        uint64_t max;
        uint64_t unit_us;       /* times: what the field counts in */
        const char *no;         /* parse_bool: its words */
        const char *yes;
        const char *range;      /* min and max in words */
};

extern const struct key broker_keys[_BROKER_KEY_MAX];
extern const struct key role_keys[_ROLE_KEY_MAX];
extern const struct key irq_keys[_IRQ_KEY_MAX];

/* The key of that very name; NULL if there is none. */
const struct key *key_find(const struct key *keys, size_t n_keys, const char *name, size_t length);

/* The known key that looks most like @name; NULL if none does. */
const char *key_suggest(const struct key *keys, size_t n_keys, const char *name, size_t length);

/* How many letters to put in, take out or change to make @a of @b, whatever their case. */
size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length);

bool role_name_is_valid(const char *name, size_t length);

#endif
