/* SPDX-License-Identifier: MIT */

#include "broker/text.h"

#include <stdio.h>
#include <string.h>

/* Length of the UTF-8 character at @s of at most @left bytes; 0 if it is none or a C1 control. */
static size_t utf8_length(const unsigned char *s, size_t left) {
        static const unsigned min[] = { 0, 0, 0x80, 0x800, 0x10000 };
        unsigned code;
        size_t n;

        if (s[0] < 0x80)
                return 1;
        if (s[0] >= 0xc2 && s[0] <= 0xdf)
                n = 2;
        else if (s[0] >= 0xe0 && s[0] <= 0xef)
                n = 3;
        else if (s[0] >= 0xf0 && s[0] <= 0xf4)
                n = 4;
        else
                return 0;
        if (n > left)
                return 0;

        code = s[0] & (0x7fU >> n);
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                code = code << 6 | (s[i] & 0x3fU);
        }
        if (code < min[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
                return 0;

        /* C1 controls, and the marks that turn the direction of text around */
        if (code <= 0x9f || code == 0x061c || (code >= 0x200b && code <= 0x200f) ||
            (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
                return 0;

        return n;
}

void text_escape(char *buffer, size_t size, const char *string, size_t length) {
        const unsigned char *s = (const unsigned char *) string;
        size_t out = 0;

        length = strnlen(string, length);

        for (size_t in = 0; in < length;) {
                size_t n = utf8_length(s + in, length - in);
                char hex[5];
                const char *from = string + in;
                size_t add = n;

                if (n == 0 || (n == 1 && (s[in] < 0x20 || s[in] == 0x7f || s[in] == '\\'))) {
                        (void) snprintf(hex, sizeof(hex), "\\x%02x", s[in]);
                        from = hex;
                        add = 4;
                        n = 1;
                }
                if (out + add >= size)
                        break;

                memcpy(buffer + out, from, add);
                out += add;
                in += n;
        }

        buffer[out] = '\0';
}

void text_copy(char *buffer, size_t size, const char *string) {
        size_t n = strnlen(string, size - 1);

        memcpy(buffer, string, n);
        buffer[n] = '\0';
}
