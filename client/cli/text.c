/* SPDX-License-Identifier: MIT */

#include "client/cli/text.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of the character at @s, and its code point; 0 if it is no UTF-8. */
static size_t decode(const unsigned char *s, uint32_t *ret_code) {
        size_t n = s[0] < 0x80   ? 1
                   : s[0] < 0xc2 ? 0
                   : s[0] < 0xe0 ? 2
                   : s[0] < 0xf0 ? 3
                   : s[0] < 0xf5 ? 4
                                 : 0;
        uint32_t code = n == 1 ? s[0] : s[0] & (0x7fU >> n);

        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80) /* also stops at the NUL */
                        return 0;
                code = code << 6 | (s[i] & 0x3fU);
        }
        if ((n == 3 && code < 0x800) || (n == 4 && code < 0x10000) || code > 0x10ffff ||
            (code >= 0xd800 && code <= 0xdfff))
                return 0;

        *ret_code = code;
        return n;
}

static bool is_printable(uint32_t code) {
        if (code < 0x20 || (code >= 0x7f && code < 0xa0))
                return false;

        /* zero-width marks, line separators, embeddings, overrides and isolates of direction */
        return !((code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                 (code >= 0x2066 && code <= 0x2069) || code == 0xfeff);
}

void text_printable(char *buffer, size_t size, const char *string) {
        const unsigned char *s = (const unsigned char *) string;
        size_t out = 0;

        while (*s) {
                uint32_t code;
                size_t n = decode(s, &code);

                if (n > 0 && is_printable(code)) {
                        if (out + n >= size)
                                break;
                        memcpy(buffer + out, s, n);
                        out += n;
                        s += n;
                } else {
                        if (out + 4 >= size)
                                break;
                        (void) snprintf(buffer + out, size - out, "\\x%02x", *s);
                        out += 4;
                        s++;
                }
        }
        buffer[out] = '\0';
}

size_t text_width(const char *string) {
        size_t width = 0;

        for (; *string; string++)
                width += (*string & 0xc0) != 0x80;
        return width;
}

void text_duration(char *buffer, size_t size, uint64_t duration_ms) {
        static const struct {
                uint64_t unit_s;
                const char *name;
        } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
        uint64_t s = duration_ms / 1000;
        size_t i = 0;

        while (units[i].unit_s > 1 && s < units[i].unit_s)
                i++;
        (void) snprintf(buffer, size, "%" PRIu64 " %s", s / units[i].unit_s, units[i].name);
}

uint64_t text_now_ms(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

void text_user(char *buffer, size_t size, uid_t uid) {
        const struct passwd *user = getpwuid(uid);

        if (user)
                text_printable(buffer, size, user->pw_name);
        else
                (void) snprintf(buffer, size, "%u", (unsigned) uid);
}

int text_parse_size(const char *string, int64_t *ret) {
        static const char units[] = "KMGT";
        size_t n_digits = strspn(string, "0123456789");
        char digits[32];
        const char *unit;
        unsigned shift = 0;
        int64_t number;
        int r;

        if (n_digits == 0 || n_digits >= sizeof(digits))
                return -EINVAL;
        memcpy(digits, string, n_digits);
        digits[n_digits] = '\0';
        if (string[n_digits] != '\0') {
                unit = strchr(units, string[n_digits]);
                if (!unit || string[n_digits + 1] != '\0')
                        return -EINVAL;
                shift = 10 * (unsigned) (unit - units + 1);
        }

        r = text_parse_number(digits, 1, INT64_MAX >> shift, &number);
        if (r < 0)
                return r;
        *ret = number << shift;
        return 0;
}

bool text_is_number(const char *string) {
        string += strspn(string, " \t\n\v\f\r");
        if (*string == '+' || *string == '-')
                string++;

        return *string && string[strspn(string, "0123456789")] == '\0';
}

int text_parse_number(const char *string, int64_t min, int64_t max, int64_t *ret) {
        intmax_t number;

        if (!text_is_number(string))
                return -EINVAL;

        errno = 0;
        number = strtoimax(string, NULL, 10);
        if (errno != 0 || number < min || number > max)
                return -ERANGE;

        *ret = number;
        return 0;
}

#define WORD_MAX 31

/* How many letters must be added, removed or replaced to turn one word into the other. */
static size_t edit_distance(const char *a, const char *b) {
        size_t row[WORD_MAX + 1];
        size_t n_b = strnlen(b, WORD_MAX);

        for (size_t j = 0; j <= n_b; j++)
                row[j] = j;
        for (size_t i = 1; a[i - 1] && i <= WORD_MAX; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= n_b; j++) {
                        size_t cost = diagonal + (a[i - 1] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j] + 1 < cost)
                                cost = row[j] + 1;
                        if (row[j - 1] + 1 < cost)
                                cost = row[j - 1] + 1;
                        row[j] = cost;
                }
        }
        return row[n_b];
}

const char *text_nearest(const char *string, const char *const *words) {
        const char *nearest = NULL;
        size_t best = 3; /* further away is no typing error any more */

        for (; *words; words++) {
                size_t distance = edit_distance(string, *words);

                if (distance < best && distance < strlen(*words)) {
                        best = distance;
                        nearest = *words;
                }
        }
        return nearest;
}
