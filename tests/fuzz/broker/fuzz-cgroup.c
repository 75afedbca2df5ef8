/* SPDX-License-Identifier: MIT */

/* /proc/PID/cgroup: anything at all, and a real one with a path that its user chose. */

#include <errno.h>

#include "broker/kernel-cause.h"
#include "tests/fuzz/broker/fuzz.h"

static void parse_raw(const uint8_t *data, size_t size) {
        char path[32] = "before", *text = fuzz_text(data, size);
        int r;

        r = kernel_cause_parse_cgroup(text, "cpu", path, sizeof(path));
        REQUIRE(r == 0 || r == -ENOENT || r == -ENAMETOOLONG);
        if (r == 0)
                REQUIRE(strlen(path) < sizeof(path) && !strchr(path, '\n') && strstr(text, path));
        else
                REQUIRE(strcmp(path, "before") == 0);
        free(text);
}

/* A name of a cgroup holds no newline and no NUL; nothing else is kept from it. */
static void parse_path(const uint8_t *data, size_t size) {
        char path[32], *text;
        size_t length;

        if (memchr(data, '\n', size) || memchr(data, '\0', size))
                return;

        text = fuzz_between("5:memory:/", data, size, "\n3:cpuset:/\n2:cpu,cpuacct:/found\n0::/\n",
                            &length);
        REQUIRE(kernel_cause_parse_cgroup(text, "cpu", path, sizeof(path)) == 0);
        REQUIRE(strcmp(path, "/found") == 0);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        parse_raw(data, size);
        if (size > 0)
                parse_path(data, size);
        return 0;
}
