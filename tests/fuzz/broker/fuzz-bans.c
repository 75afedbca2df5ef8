/* SPDX-License-Identifier: MIT */

/* ban_list_parse(): what irqbalance, or who passes for it, answers. */

#include "broker/irq/ban-list.h"
#include "tests/fuzz/broker/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = fuzz_text(data, size), command[BAN_COMMAND_SIZE];
        struct ban_list list;

        if (ban_list_parse(text, &list) >= 0) {
                REQUIRE(list.n <= BAN_LIST_MAX);
                for (unsigned i = 1; i < list.n; i++)
                        REQUIRE(list.lines[i - 1] < list.lines[i]);
                if (ban_list_format(&list, command) >= 0) {
                        REQUIRE(strnlen(command, sizeof(command)) < sizeof(command));
                        REQUIRE(strlen(command) <= strlen(BAN_COMMAND) + BAN_NUMBERS_MAX);
                }
        }
        free(text);
        return 0;
}
