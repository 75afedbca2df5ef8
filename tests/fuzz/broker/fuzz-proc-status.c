/* SPDX-License-Identifier: MIT */

/* /proc/PID/status: anything at all, and a real one with anything as the thread's name. */

#include "broker/proc.h"
#include "tests/fuzz/broker/fuzz.h"

#define BEHIND "\nTgid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t7\t1\nCapPrm:\t10\n"

static void parse_raw(const uint8_t *data, size_t size) {
        struct proc_status status = { .tgid = -7 };
        char *text = fuzz_text(data, size);

        if (proc_parse_status(text, size, &status) < 0)
                REQUIRE(status.tgid == -7);
        else
                REQUIRE(status.ns_depth <= size);
        free(text);

        text = fuzz_text(data, size);
        (void) proc_uid_map_is_initial(text);
        free(text);
}

/* The kernel writes newlines and backslashes in a name as escapes, and a NUL ends it. */
static size_t escape_name(const uint8_t *data, size_t size, uint8_t *name) {
        size_t n = 0;

        for (size_t i = 0; i < size && data[i] != '\0'; i++) {
                if (data[i] == '\n' || data[i] == '\\')
                        name[n++] = '\\';
                name[n++] = data[i] == '\n' ? 'n' : data[i];
        }
        return n;
}

static void parse_name(const uint8_t *data, size_t size) {
        uint8_t *name = malloc(2 * size + 1);
        struct proc_status status;
        size_t length;
        char *text;

        REQUIRE(name);
        text = fuzz_between("Name:\t", name, escape_name(data, size, name), BEHIND, &length);
        REQUIRE(proc_parse_status(text, length, &status) == 0);
        REQUIRE(status.tgid == 7 && status.uids[PROC_EFFECTIVE] == 2 && status.gids[PROC_FS] == 8);
        REQUIRE(status.ns_depth == 1 && status.ns_pid == 1 && status.cap_permitted == 0x10);
        free(text);
        free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        parse_raw(data, size);
        parse_name(data, size);
        return 0;
}
