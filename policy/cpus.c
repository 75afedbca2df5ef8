/* SPDX-License-Identifier: MIT */

#include "policy/cpus.h"

#include <errno.h>
#include <string.h>

static void add(struct cpus *cpus, unsigned cpu) {
        cpus->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static bool has(const struct cpus *cpus, unsigned cpu) {
        return cpu < CPUS_MAX && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

static int take_number(const char **at, unsigned *ret) {
        unsigned number = 0;

        if (**at < '0' || **at > '9')
                return -EINVAL;
        for (; **at >= '0' && **at <= '9'; (*at)++) {
                number = number * 10 + (unsigned) (**at - '0');
                if (number >= CPUS_MAX)
                        return -ERANGE;
        }
        *ret = number;
        return 0;
}

static int take_range(const char **at, struct cpus *cpus) {
        unsigned low, high;
        int r;

        r = take_number(at, &low);
        if (r < 0)
                return r;
        high = low;
        if (**at == '-') {
                (*at)++;
                r = take_number(at, &high);
                if (r < 0)
                        return r;
        }
        if (low > high)
                return -EINVAL;
        for (; low <= high; low++)
                add(cpus, low);
        return 0;
}

int cpus_parse(const char *text, struct cpus *ret) {
        struct cpus cpus = {};
        const char *at = text;
        int r;

        while (*at != '\0') {
                r = take_range(&at, &cpus);
                if (r < 0)
                        return r;
                if (*at == ',' && at[1] != '\0')
                        at++;
                else if (*at != '\0')
                        return -EINVAL;
        }
        *ret = cpus;
        return 0;
}

static size_t put_number(char *buffer, unsigned number) {
        char digits[12];
        size_t n = 0;

        do
                digits[n++] = (char) ('0' + number % 10);
        while ((number /= 10) > 0);
        for (size_t i = 0; i < n; i++)
                buffer[i] = digits[n - 1 - i];
        return n;
}

void cpus_format(const struct cpus *cpus, char *buffer, size_t size) {
        const size_t longest = sizeof(",1022-1023...");
        size_t n = 0;

        if (size > 0)
                buffer[0] = '\0';
        for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
                unsigned low = cpu;

                if (!has(cpus, cpu))
                        continue;
                while (has(cpus, cpu + 1))
                        cpu++;
                if (size < n + longest) {
                        if (size > n + 3)
                                memcpy(buffer + n, "...", 4);
                        return;
                }
                if (n > 0)
                        buffer[n++] = ',';
                n += put_number(buffer + n, low);
                if (cpu > low) {
                        buffer[n++] = '-';
                        n += put_number(buffer + n, cpu);
                }
                buffer[n] = '\0';
        }
}

bool cpus_is_empty(const struct cpus *cpus) {
        static const struct cpus none;

        return cpus_equal(cpus, &none);
}

bool cpus_equal(const struct cpus *a, const struct cpus *b) {
        return memcmp(a->bits, b->bits, sizeof(a->bits)) == 0;
}
