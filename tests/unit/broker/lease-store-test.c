/* SPDX-License-Identifier: MIT */

#include "tests/unit/broker/lease-store-test.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

int place_set_up(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) snprintf(p->dir, sizeof(p->dir), "/tmp/test-lease-store-XXXXXX");
        assert_non_null(mkdtemp(p->dir));
        (void) snprintf(p->path, sizeof(p->path), "%s/leases", p->dir);
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

int place_tear_down(void **state) {
        struct place *p = *state;

        p->store = lease_store_close(p->store);
        assert_int_equal(nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        free(p);
        return 0;
}

void open_store(struct place *p) {
        assert_null(p->store);
        assert_int_equal(lease_store_open(p->dir, &p->store), 0);
        assert_non_null(p->store);
}

void reopen_store(struct place *p) {
        p->store = lease_store_close(p->store);
        open_store(p);
}

void assert_refused(struct place *p, int error) {
        struct lease_store *store = NULL;

        assert_int_equal(lease_store_open(p->dir, &store), error);
        assert_null(store);
}

struct lease_record make_record(unsigned n) {
        struct lease_record record;

        /* each byte is told apart from its neighbours and from those of other records */
        for (size_t i = 0; i < sizeof(record); i++)
                ((uint8_t *) &record)[i] = (uint8_t) (n * 31 + i * 7 + 1);
        record.state = LEASE_RECORD_LIVE;
        return record;
}

void assert_holds(const struct place *p, unsigned slot, unsigned n) {
        const struct lease_record *record = lease_store_get(p->store, slot);
        struct lease_record expected = make_record(n);

        assert_non_null(record);
        expected.sum = record->sum;
        assert_memory_equal(record, &expected, sizeof(expected));
}

unsigned take_slot(struct place *p) {
        unsigned slot = UINT32_MAX;

        assert_int_equal(lease_store_take(p->store, &slot), 0);
        assert_true(slot < lease_store_n_slots(p->store));
        return slot;
}

unsigned put_new(struct place *p, unsigned n) {
        const struct lease_record record = make_record(n);
        unsigned slot = take_slot(p);

        lease_store_put(p->store, slot, &record);
        return slot;
}

void put_again(struct place *p, unsigned slot, unsigned n) {
        const struct lease_record record = make_record(n);

        lease_store_put(p->store, slot, &record);
}

struct file read_file(const struct place *p) {
        struct file file;
        struct stat st;
        int fd = open(p->path, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        file.size = (size_t) st.st_size;
        file.bytes = malloc(file.size > 0 ? file.size : 1);
        assert_non_null(file.bytes);
        assert_int_equal(read(fd, file.bytes, file.size), file.size);
        (void) close(fd);
        return file;
}

void write_bytes(const struct place *p, size_t at, const void *bytes, size_t length) {
        int fd = open(p->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, bytes, length, (off_t) at), length);
        (void) close(fd);
}

void write_number(const struct place *p, size_t at, uint32_t number) {
        write_bytes(p, at, &number, sizeof(number));
}

uint32_t read_number(const struct place *p, size_t at) {
        struct file file = read_file(p);
        uint32_t number;

        assert_true(at + sizeof(number) <= file.size);
        memcpy(&number, file.bytes + at, sizeof(number));
        free(file.bytes);
        return number;
}
