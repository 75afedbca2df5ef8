/* SPDX-License-Identifier: MIT */

/* Values that are words: states of sessions, names of programs, units and roles. */

#include <string.h>

#include "policy/reader/ids.h"
#include "policy/reader/values.h"

#define WORDS_MAX 64
#define WORD_LENGTH_MAX 255

bool parse_count_or_none(const struct value_context *context, const char *value, void *base) {
        if (value[0] != '\0')
                return parse_count(context, value, base);

        *(unsigned *) (void *) ((char *) base + context->key->offset) = 0;
        return true;
}

bool parse_sessions(const struct value_context *context, const char *value, void *base) {
        static const struct {
                const char *name;
                unsigned bits;
        } states[] = {
                { "active", 1U << SESSION_ACTIVE },
                { "inactive", 1U << SESSION_INACTIVE },
                { "remote", 1U << SESSION_REMOTE },
                { "none", 1U << SESSION_NONE },
        };
        g_auto(GStrv) words = split_words(value);
        struct role *role = base;
        unsigned bits = 0;

        for (size_t i = 0; words[i]; i++) {
                unsigned found = 0;

                for (size_t j = 0; j < G_N_ELEMENTS(states); j++)
                        if (strcmp(words[i], states[j].name) == 0)
                                found = states[j].bits;
                if (found == 0)
                        return value_fault(
                                context, value,
                                "not active, inactive, remote and none (blanks between)");
                bits |= found;
        }

        role->sessions = bits;
        return true;
}

bool parse_rttime(const struct value_context *context, const char *value, void *base) {
        static const char *const words[] = {
                [RTTIME_SUPERVISE] = "supervise",
                [RTTIME_KEEP] = "keep",
                [RTTIME_REQUIRE] = "require",
        };
        struct role *role = base;

        for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
                if (strcmp(value, words[i]) == 0) {
                        role->rttime = (enum rttime_handling) i;
                        return true;
                }

        return value_fault(context, value, "none of supervise, keep, require");
}

/* "*" stands for any end, and nowhere else. */
static bool word_is_sound(const char *word) {
        const char *star = strchr(word, '*');

        return strlen(word) <= WORD_LENGTH_MAX && !strpbrk(word, ",#") &&
               (!star || star[1] == '\0');
}

bool parse_words(const struct value_context *context, const char *value, void *base) {
        g_auto(GStrv) words = split_words(value);
        struct word_list list = { .n_words = g_strv_length(words) };
        const char **kept;

        if (list.n_words > WORDS_MAX)
                return value_fault(context, value, "more than " G_STRINGIFY(WORDS_MAX) " words");
        for (size_t i = 0; i < list.n_words; i++)
                if (!word_is_sound(words[i]))
                        return value_fault(
                                context, value,
                                "not words with blanks between, * only at the end of one");

        kept = g_new0(const char *, list.n_words + 1);
        g_ptr_array_add(context->blocks, kept);
        for (size_t i = 0; i < list.n_words; i++)
                kept[i] = g_string_chunk_insert_const(context->strings, words[i]);
        list.words = kept;
        *(struct word_list *) (void *) ((char *) base + context->key->offset) = list;
        return true;
}
