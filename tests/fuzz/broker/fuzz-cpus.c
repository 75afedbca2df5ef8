/* SPDX-License-Identifier: MIT */

/* cpus_parse(): a set of CPUs from a policy, or from the kernel, and back. */

#include "policy/cpus.h"
#include "tests/fuzz/broker/fuzz.h"

/* The first byte is the room there is for the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const struct cpus none;
        size_t room = size > 0 ? 1U + data[0] : 1;
        char *text = fuzz_text(size > 0 ? data + 1 : data, size > 0 ? size - 1 : 0), *out, whole[8192];
        struct cpus cpus, again;

        if (cpus_parse(text, &cpus) >= 0) {
                REQUIRE(cpus_is_empty(&cpus) == (text[0] == '\0'));
                REQUIRE(cpus_is_empty(&cpus) == cpus_equal(&cpus, &none));
                cpus_format(&cpus, whole, sizeof(whole));
                REQUIRE(cpus_parse(whole, &again) == 0 && cpus_equal(&again, &cpus));

                out = malloc(room);
                REQUIRE(out);
                cpus_format(&cpus, out, room);
                REQUIRE(strnlen(out, room) < room);
                free(out);
        }
        free(text);
        return 0;
}
