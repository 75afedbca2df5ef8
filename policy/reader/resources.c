/* SPDX-License-Identifier: MIT */

/* What a role gives besides the scheduling of threads. */

#include <string.h>
#include <unistd.h>

#include "policy/reader/values.h"

/* More than a machine of today has, and far from what overflows. */
#define BYTES_MAX (UINT64_C(1) << 46)
#define LATENCY_US_MAX 1000000
#define SECTORS_KB_MAX 65536
#define SCHEDULER_MAX 15 /* bytes, as the kernel */

static uint64_t ram_bytes(void) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

        return pages > 0 && page > 0 ? (uint64_t) pages * (uint64_t) page : 0;
}

static bool size_from_string(const char *value, uint64_t *ret_bytes) {
        static const struct {
                const char *name;
                unsigned shift;
        } units[] = { { "K", 10 }, { "M", 20 }, { "G", 30 }, { "T", 40 } };
        size_t n_digits = strspn(value, "0123456789");
        g_autofree char *digits = g_strndup(value, n_digits);
        const char *unit = value + n_digits;
        guint64 n;

        if (strcmp(value, "none") == 0) {
                *ret_bytes = 0;
                return true;
        }
        if (!g_ascii_string_to_unsigned(digits, 10, 1, BYTES_MAX, &n, NULL))
                return false;
        if (strcmp(unit, "%") == 0) {
                *ret_bytes = ram_bytes() / 100 * n;
                return n <= 100;
        }

        for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
                if (strcmp(unit, units[i].name) == 0 && n <= BYTES_MAX >> units[i].shift) {
                        *ret_bytes = n << units[i].shift;
                        return true;
                }

        return false;
}

static const char size_expected[] =
        "not a number with K, M, G or T, nor a share of the memory (1% to 100%), nor none";

bool parse_size(const struct value_context *context, const char *value, void *base) {
        uint64_t bytes;

        if (!size_from_string(value, &bytes))
                return value_fault(context, value, size_expected);

        *(uint64_t *) ((char *) base + context->key->offset) = bytes;
        return true;
}

bool parse_memlock(const struct value_context *context, const char *value, void *base) {
        struct role *role = base;
        uint64_t bytes;

        if (!size_from_string(value, &bytes))
                return value_fault(context, value, size_expected);

        role->resources[RESOURCE_MEMLOCK] = (struct resource_band) {
                .given = bytes > 0,
                .low = 1,
                .high = (int64_t) bytes,
        };
        return true;
}

static bool number_from_string(const char *value, guint64 max, int64_t *ret) {
        guint64 n;

        if (!g_ascii_string_to_unsigned(value, 10, 1, max, &n, NULL))
                return false;

        *ret = (int64_t) n;
        return true;
}

bool parse_cpu_latency(const struct value_context *context, const char *value, void *base) {
        g_autofree char *number = g_strdup(value);
        struct role *role = base;
        struct resource_band band = { .high = LATENCY_US_MAX };

        if (strcmp(value, "none") != 0) {
                if (!g_str_has_suffix(number, "us"))
                        return value_fault(context, value,
                                           "not a number of microseconds (10us) nor none");
                number[strlen(number) - 2] = '\0';
                if (!number_from_string(number, LATENCY_US_MAX, &band.low))
                        return value_fault(context, value, "not 1us to 1000000us, nor none");
                band.given = true;
        }

        role->resources[RESOURCE_CPU_LATENCY] = band;
        return true;
}

bool parse_block_queue(const struct value_context *context, const char *value, void *base) {
        g_auto(GStrv) ends = g_strsplit(value, "-", 2);
        struct role *role = base;
        struct resource_band band = {};

        if (strcmp(value, "none") != 0) {
                if (!ends[0] || !number_from_string(ends[0], SECTORS_KB_MAX, &band.low) ||
                    !number_from_string(ends[1] ? ends[1] : ends[0], SECTORS_KB_MAX, &band.high) ||
                    band.low > band.high)
                        return value_fault(
                                context, value,
                                "not LOW-HIGH in KiB, LOW <= HIGH, from 1 to " G_STRINGIFY(
                                        SECTORS_KB_MAX) ", nor none");
                band.given = true;
        }

        role->resources[RESOURCE_BLOCK_QUEUE] = band;
        return true;
}

bool parse_block_scheduler(const struct value_context *context, const char *value, void *base) {
        struct role *role = base;

        if (strlen(value) > SCHEDULER_MAX ||
            strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(value))
                return value_fault(context, value,
                                   "not the name of a scheduler, as in mq-deadline");

        role->block_scheduler = g_string_chunk_insert_const(context->strings, value);
        return true;
}
