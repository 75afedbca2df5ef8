/* SPDX-License-Identifier: MIT */

#include <sched.h>
#include <string.h>
#include <syslog.h>

#include "policy/reader/ids.h"
#include "policy/reader/values.h"

#define ACTION_MAX 120 /* bytes */

static void *field(const struct value_context *context, void *base) {
        return (char *) base + context->key->offset;
}

bool value_fault(const struct value_context *context, const char *value, const char *expected) {
        report_fault(context->report, context->at, "%s=%s: %s%s", context->key->name,
                     excerpt(value, strlen(value)).text, expected,
                     strchr(value, '#') ? "; a comment needs a line of its own" : "");
        return false;
}

static bool fault_range(const struct value_context *context, const char *value, const char *what) {
        g_autofree char *expected = g_strdup_printf("not %s %s", what, context->key->range);

        return value_fault(context, value, expected);
}

bool parse_count(const struct value_context *context, const char *value, void *base) {
        guint64 n;

        if (!g_ascii_string_to_unsigned(value, 10, context->key->min, context->key->max, &n, NULL))
                return fault_range(context, value, "a number from");

        *(unsigned *) field(context, base) = (unsigned) n;
        return true;
}

bool parse_percent(const struct value_context *context, const char *value, void *base) {
        size_t length = strlen(value);
        g_autofree char *digits = g_strndup(value, length > 0 ? length - 1 : 0);
        guint64 n;

        if (length == 0 || value[length - 1] != '%' ||
            !g_ascii_string_to_unsigned(digits, 10, context->key->min, context->key->max, &n, NULL))
                return fault_range(context, value, "a share from");

        *(unsigned *) field(context, base) = (unsigned) n;
        return true;
}

/* False if it is no number with a unit, or too large for any of our ranges. */
static bool time_from_string(const char *value, uint64_t *ret_us) {
        static const struct {
                const char *name;
                uint64_t us;
        } units[] = {
                { "us", 1 },
                { "ms", 1000 },
                { "s", 1000000 },
                { "min", UINT64_C(60) * 1000000 },
                { "h", UINT64_C(3600) * 1000000 },
        };
        size_t n_digits = strspn(value, "0123456789");
        guint64 n;
        g_autofree char *digits = g_strndup(value, n_digits);

        if (!g_ascii_string_to_unsigned(digits, 10, 0, UINT64_MAX / units[4].us, &n, NULL))
                return false;

        for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
                if (strcmp(value + n_digits, units[i].name) == 0) {
                        *ret_us = n * units[i].us;
                        return true;
                }

        return false;
}

bool parse_time(const struct value_context *context, const char *value, void *base) {
        const struct key *key = context->key;
        uint64_t us;

        if (!time_from_string(value, &us))
                return value_fault(context, value, "not a number with a unit: us, ms, s, min or h");
        if (us < key->min || us > key->max || us % key->unit_us != 0)
                return fault_range(context, value, "a time from");

        *(unsigned *) field(context, base) = (unsigned) (us / key->unit_us);
        return true;
}

bool parse_bool(const struct value_context *context, const char *value, void *base) {
        const struct key *key = context->key;
        bool yes = strcmp(value, key->yes) == 0;

        if (!yes && strcmp(value, key->no) != 0) {
                g_autofree char *expected = g_strdup_printf("neither %s nor %s", key->yes, key->no);

                return value_fault(context, value, expected);
        }

        *(bool *) field(context, base) = yes;
        return true;
}

bool parse_realtime_policy(const struct value_context *context, const char *value, void *base) {
        bool fifo = strcmp(value, "fifo") == 0;

        if (!fifo && strcmp(value, "rr") != 0)
                return value_fault(context, value, "neither rr nor fifo");

        *(int *) field(context, base) = fifo ? SCHED_FIFO : SCHED_RR;
        return true;
}

bool parse_log_level(const struct value_context *context, const char *value, void *base) {
        static const struct {
                const char *name;
                int level;
        } levels[] = {
                { "", -1 },
                { "err", LOG_ERR },
                { "warning", LOG_WARNING },
                { "notice", LOG_NOTICE },
                { "info", LOG_INFO },
                { "debug", LOG_DEBUG },
        };
        struct policy *policy = base;

        for (size_t i = 0; i < G_N_ELEMENTS(levels); i++)
                if (strcmp(value, levels[i].name) == 0) {
                        policy->log_level = levels[i].level;
                        return true;
                }

        return value_fault(context, value, "none of err, warning, notice, info, debug");
}

/* Only the form: the role may come in a later file. */
bool parse_role_name(const struct value_context *context, const char *value, void *base) {
        if (value[0] != '\0' && !role_name_is_valid(value, strlen(value)))
                return value_fault(context, value, "not the name of a role");

        return true;
}

bool parse_description(const struct value_context *context, const char *value, void *base) {
        struct role *role = base;

        role->description = g_string_chunk_insert_const(context->strings, value);
        return true;
}

static unsigned policy_bits(const char *word) {
        static const struct {
                const char *name;
                unsigned bits;
        } policies[] = {
                { "fifo", 1U << SCHED_FIFO },
                { "rr", 1U << SCHED_RR },
                { "other", 1U << SCHED_OTHER },
                { "any", 1U << SCHED_FIFO | 1U << SCHED_RR | 1U << SCHED_OTHER },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(policies); i++)
                if (strcmp(word, policies[i].name) == 0)
                        return policies[i].bits;

        return 0;
}

bool parse_policies(const struct value_context *context, const char *value, void *base) {
        static const char expected[] = "not fifo, rr and other (blanks between), nor any";
        g_auto(GStrv) words = split_words(value);
        struct role *role = base;
        unsigned bits = 0;

        if (!words[0])
                return value_fault(context, value, expected);

        for (size_t i = 0; words[i]; i++) {
                if (policy_bits(words[i]) == 0)
                        return value_fault(context, value, expected);
                bits |= policy_bits(words[i]);
        }

        role->policies = bits;
        return true;
}

static bool priority_from_string(const char *value, int *ret_priority) {
        guint64 n;

        if (!g_ascii_string_to_unsigned(value, 10, 1, POLICY_PRIORITY_CEILING, &n, NULL))
                return false;

        *ret_priority = (int) n;
        return true;
}

bool parse_band(const struct value_context *context, const char *value, void *base) {
        g_auto(GStrv) ends = g_strsplit(value, "-", 2);
        struct role *role = base;
        int low = 0, high = 0;

        if (strcmp(value, "none") != 0 &&
            (!ends[0] || !priority_from_string(ends[0], &low) ||
             !priority_from_string(ends[1] ? ends[1] : ends[0], &high) || low > high))
                return value_fault(
                        context, value,
                        "not LOW-HIGH, LOW <= HIGH, nor one number, from 1 to " G_STRINGIFY(
                                POLICY_PRIORITY_CEILING) ", nor none");

        role->priority_min = low;
        role->priority_max = high;
        return true;
}

bool parse_nice(const struct value_context *context, const char *value, void *base) {
        struct role *role = base;
        gint64 n;

        if (!g_ascii_string_to_signed(value, 10, -20, 0, &n, NULL))
                return value_fault(context, value, "not a number from -20 to 0");

        role->nice_min = (int) n;
        return true;
}

static bool parse_ids(const struct value_context *context, const char *value, void *base,
                      const struct id_source *source) {
        struct id_list list;

        /* An unknown name is only warned of, and a comma would hide in one. */
        if (strchr(value, ','))
                return value_fault(context, value, "names are separated by blanks, not by commas");
        if (strchr(value, '#'))
                return value_fault(context, value, "not a list of names");

        if (!id_list_read(context, source, value, &list))
                return false;

        *(struct id_list *) field(context, base) = list;
        return true;
}

bool parse_users(const struct value_context *context, const char *value, void *base) {
        return parse_ids(context, value, base, &id_source_users);
}

bool parse_groups(const struct value_context *context, const char *value, void *base) {
        return parse_ids(context, value, base, &id_source_groups);
}

/* The form that polkit(8) gives them; whether there is such an action only polkit knows. */
bool parse_action(const struct value_context *context, const char *value, void *base) {
        static const char letters[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS ".-";
        size_t length = strlen(value);
        struct role *role = base;

        if (length > 0 && (length > ACTION_MAX || strspn(value, letters) != length ||
                           !strchr(value, '.')))
                return value_fault(
                        context, value,
                        "not an action of polkit: letters, digits, - and at least one dot, "
                        "at most " G_STRINGIFY(ACTION_MAX) " bytes");

        role->action = g_string_chunk_insert_const(context->strings, value);
        return true;
}
