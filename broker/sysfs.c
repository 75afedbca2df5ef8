/* SPDX-License-Identifier: MIT */

#include "broker/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"

int sysfs_read(const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        ssize_t n;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        n = read(fd, buffer, size - 1);
        if (n < 0)
                return -errno;

        buffer[n] = '\0';
        buffer[strcspn(buffer, "\n")] = '\0';
        return 0;
}

int sysfs_read_number(const char *path, int64_t *ret) {
        char text[64];
        int r;

        r = sysfs_read(path, text, sizeof(text));
        if (r < 0)
                return r;

        return sscanf(text, "%" SCNi64, ret) == 1 ? 0 : -EBADMSG;
}

int sysfs_write(const char *path, const char *text) {
        _cleanup_close_ int fd = -1;

        fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return -errno;

        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int sysfs_write_number(const char *path, int64_t number) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%" PRIi64, number);
        return sysfs_write(path, text);
}
