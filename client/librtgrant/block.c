/* SPDX-License-Identifier: MIT */

/* Which block device a path is on: looked up here, with the caller's own rights to the path. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/librtgrant/wire.h"

/* mountinfo writes blanks and the like in names as octal numbers; proc(5). */
static void unescape(char *text) {
        char *to = text;

        for (const char *from = text; *from != '\0'; to++) {
                unsigned number;

                if (from[0] == '\\' && sscanf(from + 1, "%3o", &number) == 1) {
                        *to = (char) number;
                        from += 4;
                } else {
                        *to = *from++;
                }
        }
        *to = '\0';
}

static bool is_below(const char *path, const char *dir) {
        size_t length = strlen(dir);

        return strncmp(path, dir, length) == 0 &&
               (length == 1 || path[length] == '/' || path[length] == '\0');
}

/* What is mounted where @path is, for file systems without a number of their own. */
static int find_source(const char *path, char source[PATH_MAX]) {
        char line[2 * PATH_MAX], dir[PATH_MAX], from[PATH_MAX], real[PATH_MAX];
        size_t best = 0;
        FILE *mounts;

        if (!realpath(path, real))
                return -errno;
        mounts = fopen("/proc/self/mountinfo", "re");
        if (!mounts)
                return -errno;

        while (fgets(line, sizeof(line), mounts)) {
                const char *rest = strstr(line, " - ");

                if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", dir) != 1 ||
                    sscanf(rest, " - %*s %4095s", from) != 1)
                        continue;
                unescape(dir);
                unescape(from);
                /* later lines are mounted over earlier ones */
                if (is_below(real, dir) && strlen(dir) >= best) {
                        best = strlen(dir);
                        memcpy(source, from, strlen(from) + 1);
                }
        }
        (void) fclose(mounts);
        return best > 0 ? 0 : -ENODEV;
}

int block_find(const char *block, char ret[WIRE_DEVICE_SIZE]) {
        char source[PATH_MAX];
        struct stat st;
        dev_t device;

        memset(ret, 0, WIRE_DEVICE_SIZE);
        if (!strchr(block, '/')) {
                if (block[0] == '\0' || strlen(block) >= WIRE_DEVICE_SIZE)
                        return -EINVAL;
                memcpy(ret, block, strlen(block) + 1);
                return 0;
        }

        if (stat(block, &st) < 0)
                return -errno;
        device = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
        if (major(device) == 0) {
                if (find_source(block, source) < 0 || stat(source, &st) < 0 ||
                    !S_ISBLK(st.st_mode))
                        return -ENODEV;
                device = st.st_rdev;
        }

        (void) snprintf(ret, WIRE_DEVICE_SIZE, "%u:%u", major(device), minor(device));
        return 0;
}
