/* SPDX-License-Identifier: MIT */

#include "irq/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct irq_roots irq_roots_system = { .sys = "/sys", .proc = "/proc" };

void irq_copy(char *buffer, size_t size, const char *string) {
        size_t length = strnlen(string, size - 1);

        memcpy(buffer, string, length);
        buffer[length] = '\0';
}

static ssize_t read_descriptor(int fd, char *buffer, size_t size) {
        size_t length = 0;
        ssize_t n;

        for (;;) {
                if (length == size)
                        return -E2BIG;
                n = read(fd, buffer + length, size - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }

        if (length > 0 && buffer[length - 1] == '\n')
                length--;
        buffer[length] = '\0';
        return (ssize_t) length;
}

static ssize_t read_path(char *buffer, size_t size, const char *path) {
        ssize_t r;
        int fd;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;

        r = read_descriptor(fd, buffer, size);
        (void) close(fd);
        return r;
}

static int format_path(char path[PATH_MAX], const char *format, va_list args)
        __attribute__((format(printf, 2, 0)));

static int format_path(char path[PATH_MAX], const char *format, va_list args) {
        int n = vsnprintf(path, PATH_MAX, format, args);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

ssize_t irq_read(char *buffer, size_t size, const char *format, ...) {
        char path[PATH_MAX];
        va_list args;
        int r;

        va_start(args, format);
        r = format_path(path, format, args);
        va_end(args);
        return r < 0 ? r : read_path(buffer, size, path);
}

int irq_read_number(unsigned *ret, const char *format, ...) {
        char path[PATH_MAX], text[32], *end;
        unsigned long number;
        va_list args;
        ssize_t n;
        int r;

        va_start(args, format);
        r = format_path(path, format, args);
        va_end(args);
        if (r < 0)
                return r;
        n = read_path(text, sizeof(text), path);
        if (n < 0)
                return (int) n;

        errno = 0;
        number = strtoul(text, &end, 10);
        if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > UINT_MAX)
                return -EBADMSG;
        *ret = (unsigned) number;
        return 0;
}

int irq_read_link(char *buffer, size_t size, const char *format, ...) {
        char path[PATH_MAX], link[PATH_MAX];
        const char *last;
        va_list args;
        ssize_t n;
        int r;

        va_start(args, format);
        r = format_path(path, format, args);
        va_end(args);
        if (r < 0)
                return r;
        n = readlink(path, link, sizeof(link) - 1);
        if (n < 0)
                return -errno;

        link[n] = '\0';
        last = strrchr(link, '/');
        last = last ? last + 1 : link;
        if (strlen(last) >= size)
                return -E2BIG;
        irq_copy(buffer, size, last);
        return 0;
}
