/* SPDX-License-Identifier: MIT */

/* text_escape(): whatever comes, what goes out is for a terminal. */

#include <glib.h>

#include "broker/text.h"
#include "tests/fuzz/broker/fuzz.h"

static void check(const char *out, size_t size) {
        size_t length = strnlen(out, size);

        REQUIRE(length < size);
        REQUIRE(g_utf8_validate(out, (gssize) length, NULL));
        for (const char *s = out; *s; s = g_utf8_next_char(s)) {
                gunichar code = g_utf8_get_char(s);

                REQUIRE(code >= 0x20 && code != 0x7f && !(code >= 0x80 && code <= 0x9f));
                REQUIRE(code != 0x61c && !(code >= 0x200b && code <= 0x200f) &&
                        !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069));
                REQUIRE(code != '\\' ||
                        (s[1] == 'x' && g_ascii_isxdigit(s[2]) && g_ascii_isxdigit(s[3])));
        }
}

/* The first byte is the room there is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t room = size > 0 ? 1U + data[0] : 1;
        char *out = malloc(room), *text, *whole;

        REQUIRE(out);
        if (size > 0) {
                data++;
                size--;
        }
        text = fuzz_text(data, size);
        text_escape(out, room, text, size);
        check(out, room);

        /* with room enough nothing is left out, and what was cut is its beginning */
        whole = malloc(4 * size + 1);
        REQUIRE(whole);
        text_escape(whole, 4 * size + 1, text, size);
        check(whole, 4 * size + 1);
        REQUIRE(strncmp(whole, out, strlen(out)) == 0);
        REQUIRE(strlen(whole) >= strlen(text));
        REQUIRE(strlen(whole) < room ? strcmp(whole, out) == 0 : strlen(out) + 4 >= room);

        text_copy(out, room, text);
        REQUIRE(strlen(out) < room && strncmp(out, text, strlen(out)) == 0);
        free(whole);
        free(text);
        free(out);
        return 0;
}
