/* SPDX-License-Identifier: MIT */

#include "broker/irq/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/cleanup.h"
#include "irq/files.h"

static const struct form {
        const char *name;
        char magic[8];
        size_t record_size;
} forms[_IRQ_STORE_MAX] = {
        [IRQ_STORE_THREADS] = { "irq-threads", "rtgirq\0\1", sizeof(struct irq_record) },
        [IRQ_STORE_LINES] = { "irq-lines", "rtgirq\0\2", sizeof(struct irq_line_record) },
        [IRQ_STORE_BANS] = { "irq-bans", "rtgirq\0\3", sizeof(struct irq_ban_record) },
};

#define RECORD_SIZE_MAX sizeof(struct irq_line_record)

struct file {
        char magic[8];
        char boot_id[40]; /* numbers of threads mean nothing after a reboot */
        uint32_t record_size;
        uint32_t n_records;
        uint64_t sum; /* of the records */
        uint8_t records[IRQ_RAISED_MAX * RECORD_SIZE_MAX];
};

static_assert(sizeof(struct irq_record) == 112, "as on file");
static_assert(sizeof(struct irq_line_record) == 400, "as on file");
static_assert(sizeof(struct irq_ban_record) == 16, "as on file");

static size_t file_bytes(const struct form *form, size_t n) {
        return offsetof(struct file, records) + n * form->record_size;
}

/* FNV-1a: against damage, not against root. */
static uint64_t sum_of(const struct form *form, const struct file *file, unsigned n) {
        uint64_t sum = UINT64_C(14695981039346656037) ^ n;

        for (size_t i = 0; i < n * form->record_size; i++)
                sum = (sum ^ file->records[i]) * UINT64_C(1099511628211);
        return sum;
}

static void read_boot_id(char buffer[40]) {
        memset(buffer, 0, 40);
        (void) irq_read(buffer, 40, "/proc/sys/kernel/random/boot_id");
}

static int write_all(int fd, const void *data, size_t size) {
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

int irq_store_write(const char *directory, enum irq_store which, const void *records, unsigned n) {
        const struct form *form = &forms[which];
        char path[PATH_MAX], next[PATH_MAX];
        struct file file = {};
        _cleanup_close_ int fd = -1;
        int r;

        assert(n <= IRQ_RAISED_MAX);
        (void) snprintf(path, sizeof(path), "%s/%s", directory, form->name);
        if (n == 0)
                return unlink(path) < 0 && errno != ENOENT ? -errno : 0;

        memcpy(file.magic, form->magic, sizeof(file.magic));
        read_boot_id(file.boot_id);
        file.record_size = (uint32_t) form->record_size;
        file.n_records = n;
        memcpy(file.records, records, n * form->record_size);
        file.sum = sum_of(form, &file, n);

        (void) snprintf(next, sizeof(next), "%s/%s.next", directory, form->name);
        fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, &file, file_bytes(form, n));
        if (r >= 0 && rename(next, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(next);
        return r;
}

/* Who else can write it could have any thread changed. */
static bool is_trusted(int fd, size_t *ret_size) {
        struct stat st;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
            (st.st_mode & 0077) != 0 || st.st_nlink != 1 || st.st_size < 0)
                return false;
        *ret_size = (size_t) st.st_size;
        return true;
}

int irq_store_read(const char *directory, enum irq_store which, void *records) {
        const struct form *form = &forms[which];
        char path[PATH_MAX], boot_id[40];
        struct file file = {};
        _cleanup_close_ int fd = -1;
        size_t size;

        (void) snprintf(path, sizeof(path), "%s/%s", directory, form->name);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!is_trusted(fd, &size) || size < file_bytes(form, 0) || size > sizeof(file) ||
            read(fd, &file, sizeof(file)) != (ssize_t) size)
                return -EBADMSG;
        if (memcmp(file.magic, form->magic, sizeof(file.magic)) != 0 ||
            file.record_size != form->record_size || file.n_records > IRQ_RAISED_MAX ||
            size != file_bytes(form, file.n_records) ||
            sum_of(form, &file, file.n_records) != file.sum)
                return -EBADMSG;

        read_boot_id(boot_id);
        if (memcmp(boot_id, file.boot_id, sizeof(boot_id)) != 0)
                return 0;
        memcpy(records, file.records, file.n_records * form->record_size);
        return (int) file.n_records;
}
