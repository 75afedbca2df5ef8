/* SPDX-License-Identifier: MIT */

/* /proc/PID/stat: anything at all, and a real one with anything as the thread's name. */

#include "broker/proc.h"
#include "tests/fuzz/broker/fuzz.h"

static void parse_raw(const uint8_t *data, size_t size) {
        struct proc_stat stat = { .state = '!' };
        char *text = fuzz_text(data, size);

        if (proc_parse_stat(text, size, &stat) < 0)
                REQUIRE(stat.state == '!');
        else
                REQUIRE(memchr(data, ')', size));
        free(text);
}

/* No name changes what is read. */
static void parse_name(const uint8_t *name, size_t size) {
        struct proc_stat stat;
        size_t length;
        char *text = fuzz_between("7 (", name, size,
                                  ") S 6 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 286553 9 9\n",
                                  &length);

        REQUIRE(proc_parse_stat(text, length, &stat) == 0);
        REQUIRE(stat.state == 'S' && stat.ppid == 6 && stat.flags == 4194304 &&
                stat.start_time == 286553);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        parse_raw(data, size);
        parse_name(data, size);
        return 0;
}
