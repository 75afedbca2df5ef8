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

#define STORE_MAGIC "rtgirq\0\1"

struct file {
        char magic[8];
        char boot_id[40]; /* numbers of threads mean nothing after a reboot */
        uint32_t record_size;
        uint32_t n_records;
        uint64_t sum; /* of the records */
        struct irq_record records[IRQ_RAISED_MAX];
};

static_assert(sizeof(struct irq_record) == 112, "as on file");

#define FILE_BYTES(n) (offsetof(struct file, records) + (size_t) (n) * sizeof(struct irq_record))

/* FNV-1a: against damage, not against root. */
static uint64_t sum_of(const struct file *file, unsigned n) {
        const uint8_t *bytes = (const uint8_t *) file->records;
        uint64_t sum = UINT64_C(14695981039346656037) ^ n;

        for (size_t i = 0; i < n * sizeof(struct irq_record); i++)
                sum = (sum ^ bytes[i]) * UINT64_C(1099511628211);
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

int irq_store_write(const char *directory, const struct irq_record *records, unsigned n) {
        char path[PATH_MAX], next[PATH_MAX];
        struct file file = { .magic = STORE_MAGIC };
        _cleanup_close_ int fd = -1;
        int r;

        assert(n <= IRQ_RAISED_MAX);
        (void) snprintf(path, sizeof(path), "%s/irq-threads", directory);
        if (n == 0)
                return unlink(path) < 0 && errno != ENOENT ? -errno : 0;

        read_boot_id(file.boot_id);
        file.record_size = sizeof(struct irq_record);
        file.n_records = n;
        memcpy(file.records, records, n * sizeof(records[0]));
        file.sum = sum_of(&file, n);

        (void) snprintf(next, sizeof(next), "%s/irq-threads.next", directory);
        fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, &file, FILE_BYTES(n));
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

int irq_store_read(const char *directory, struct irq_record records[IRQ_RAISED_MAX]) {
        char path[PATH_MAX], boot_id[40];
        struct file file = {};
        _cleanup_close_ int fd = -1;
        size_t size;

        (void) snprintf(path, sizeof(path), "%s/irq-threads", directory);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!is_trusted(fd, &size) || size < FILE_BYTES(0) || size > sizeof(file) ||
            read(fd, &file, sizeof(file)) != (ssize_t) size)
                return -EBADMSG;
        if (memcmp(file.magic, STORE_MAGIC, sizeof(file.magic)) != 0 ||
            file.record_size != sizeof(struct irq_record) || file.n_records > IRQ_RAISED_MAX ||
            size != FILE_BYTES(file.n_records) || sum_of(&file, file.n_records) != file.sum)
                return -EBADMSG;

        read_boot_id(boot_id);
        if (memcmp(boot_id, file.boot_id, sizeof(boot_id)) != 0)
                return 0;
        for (unsigned i = 0; i < file.n_records; i++) {
                records[i] = file.records[i];
                records[i].name[sizeof(records[i].name) - 1] = '\0';
                if (records[i].tid < 1)
                        return -EBADMSG;
        }
        return (int) file.n_records;
}
