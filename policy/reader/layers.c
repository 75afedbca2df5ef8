/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/reader/layers.h"

#define _cleanup_(f) __attribute__((cleanup(f)))

static void cleanup_close(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

static void cleanup_closedir(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

/* A symbolic link that leads nowhere exists too: it is told of when it is read. */
static bool exists(const char *path) {
        struct stat st;

        return lstat(path, &st) >= 0 || errno != ENOENT;
}

/* Who may write the policy has what it gives. */
static bool is_trustworthy(const char *path, const struct stat *st, struct report *report) {
        const char *what = NULL;

        if (st->st_uid != 0 && st->st_uid != geteuid())
                what = "must belong to root";
        else if (st->st_mode & (S_IWGRP | S_IWOTH))
                what = "must not be writable by group or others";

        if (what)
                report_fault(report, (struct rule) { .file = path }, "%s (is %u:%u, mode %04o)",
                             what, st->st_uid, st->st_gid, st->st_mode & 07777);
        return !what;
}

static void add_if_exists(GPtrArray *files, const char *directory, const char *name) {
        g_autofree char *file = g_build_filename(directory, name, NULL);

        if (exists(file))
                g_ptr_array_add(files, g_steal_pointer(&file));
}

static int compare_strings(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Adds every x.conf in the directory, by name. */
static void add_directory(GPtrArray *files, const char *path, struct report *report) {
        _cleanup_(cleanup_closedir) DIR *directory = opendir(path);
        g_autoptr(GPtrArray) found = g_ptr_array_new();
        const struct dirent *entry;
        struct stat st;

        if (!directory || fstat(dirfd(directory), &st) < 0) {
                report_errno(report, path, -errno, "%s", g_strerror(errno));
                return;
        }
        if (!is_trustworthy(path, &st, report))
                return;

        for (errno = 0; (entry = readdir(directory)); errno = 0)
                if (entry->d_name[0] != '.' && g_str_has_suffix(entry->d_name, ".conf"))
                        g_ptr_array_add(found, g_build_filename(path, entry->d_name, NULL));
        if (errno != 0)
                report_errno(report, path, -errno, "%s", g_strerror(errno));

        g_ptr_array_sort(found, compare_strings);
        g_ptr_array_extend_and_steal(files, g_steal_pointer(&found));
}

static void add_drop_ins(GPtrArray *files, const char *directory, struct report *report) {
        g_autofree char *path = g_build_filename(directory, "policy.d", NULL);

        if (exists(path))
                add_directory(files, path, report);
}

static void add_system_layers(GPtrArray *files, const char *root, struct report *report) {
        g_autofree char *vendor = g_strconcat(root, POLICY_VENDOR_DIR, NULL);
        g_autofree char *admin = g_strconcat(root, "/etc/rtgrant", NULL);

        add_if_exists(files, vendor, "policy.conf");
        add_if_exists(files, admin, "policy.conf");
        add_drop_ins(files, admin, report);
}

static void add_given(GPtrArray *files, const char *path, struct report *report) {
        g_autofree char *drop_ins = g_build_filename(path, "policy.d", NULL);
        struct stat st;

        if (stat(path, &st) < 0) {
                report_errno(report, path, -errno, "%s", g_strerror(errno));
                return;
        }
        if (!S_ISDIR(st.st_mode)) {
                g_ptr_array_add(files, g_strdup(path));
                return;
        }

        add_if_exists(files, path, "policy.conf");
        if (files->len > 0 || exists(drop_ins))
                add_drop_ins(files, path, report);
        else
                add_directory(files, path, report);
}

GPtrArray *layers_list(const char *root, const char *path, struct report *report) {
        GPtrArray *files = g_ptr_array_new_with_free_func(g_free);

        if (path)
                add_given(files, path, report);
        else
                add_system_layers(files, root, report);

        return files;
}

/* Reads up to @size bytes; the number read, or a negative errno. */
static ssize_t read_fully(int fd, char *buffer, size_t size) {
        size_t length = 0;
        ssize_t n;

        while (length < size) {
                n = read(fd, buffer + length, size - length);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        break;
                if (n > 0)
                        length += (size_t) n;
        }

        return (ssize_t) length;
}

char *layer_read(const char *file, size_t size_max, size_t *ret_length, struct report *report) {
        _cleanup_(cleanup_close) int fd = -1;
        g_autofree char *text = NULL;
        struct rule at = { .file = file };
        struct stat st;
        ssize_t length;

        /* Not to wait for a writer, if it is a FIFO. */
        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0) {
                report_errno(report, file, -errno, "%s", g_strerror(errno));
                return NULL;
        }
        if (!S_ISREG(st.st_mode)) {
                report_fault(report, at, "is not a regular file");
                return NULL;
        }
        if (!is_trustworthy(file, &st, report))
                return NULL;

        if (st.st_size > (off_t) size_max) {
                report_fault(report, at, "is larger than %zu bytes", size_max);
                return NULL;
        }

        text = g_malloc((size_t) st.st_size + 1);
        length = read_fully(fd, text, (size_t) st.st_size + 1);
        if (length < 0) {
                report_errno(report, file, (int) length, "%s", g_strerror((int) -length));
                return NULL;
        }
        if (length != st.st_size) {
                report_fault(report, at, "changed while it was read");
                return NULL;
        }

        *ret_length = (size_t) length;
        return g_steal_pointer(&text);
}
