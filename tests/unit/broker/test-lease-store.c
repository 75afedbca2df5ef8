/* SPDX-License-Identifier: MIT */

/* The file that a killed broker leaves to the next one, whole and in every state of damage. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "broker/lease-store.h"
#include "tests/unit/broker/broker-test.h"

/* The layout on file, as a successor must know it. */
#define HEADER_SIZE 64
#define SLOT_SIZE (8 + 2 * sizeof(struct lease_record))
#define AT_SLOT_SIZE 8
#define AT_BOOT_ID 16
#define AT_SLOT(n) (HEADER_SIZE + (n) * SLOT_SIZE)
#define AT_COPY(n, copy) (AT_SLOT(n) + 8 + ((copy) - 1) * sizeof(struct lease_record))
#define SLOTS_AT_FIRST 64
#define SLOTS_MAX 65536

struct place {
        char dir[64];
        char path[80];
        struct lease_store *store;
};

static int set_up(void **state) {
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

static int tear_down(void **state) {
        struct place *p = *state;

        p->store = lease_store_close(p->store);
        assert_int_equal(nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        free(p);
        return 0;
}

static void open_store(struct place *p) {
        assert_null(p->store);
        assert_int_equal(lease_store_open(p->dir, &p->store), 0);
        assert_non_null(p->store);
}

static void reopen_store(struct place *p) {
        p->store = lease_store_close(p->store);
        open_store(p);
}

static void assert_refused(struct place *p, int error) {
        struct lease_store *store = NULL;

        assert_int_equal(lease_store_open(p->dir, &store), error);
        assert_null(store);
}

static struct lease_record make_record(unsigned n) {
        struct lease_record record;

        /* each byte is told apart from its neighbours and from those of other records */
        for (size_t i = 0; i < sizeof(record); i++)
                ((uint8_t *) &record)[i] = (uint8_t) (n * 31 + i * 7 + 1);
        record.state = LEASE_RECORD_LIVE;
        return record;
}

static void assert_holds(const struct place *p, unsigned slot, unsigned n) {
        const struct lease_record *record = lease_store_get(p->store, slot);
        struct lease_record expected = make_record(n);

        assert_non_null(record);
        expected.sum = record->sum;
        assert_memory_equal(record, &expected, sizeof(expected));
}

static unsigned take_slot(struct place *p) {
        unsigned slot = UINT32_MAX;

        assert_int_equal(lease_store_take(p->store, &slot), 0);
        assert_true(slot < lease_store_n_slots(p->store));
        return slot;
}

static unsigned put_new(struct place *p, unsigned n) {
        const struct lease_record record = make_record(n);
        unsigned slot = take_slot(p);

        lease_store_put(p->store, slot, &record);
        return slot;
}

static void put_again(struct place *p, unsigned slot, unsigned n) {
        const struct lease_record record = make_record(n);

        lease_store_put(p->store, slot, &record);
}

/* ---- the file from outside ---- */

struct file {
        uint8_t *bytes;
        size_t size;
};

static struct file read_file(const struct place *p) {
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

static void write_bytes(const struct place *p, size_t at, const void *bytes, size_t length) {
        int fd = open(p->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, bytes, length, (off_t) at), length);
        (void) close(fd);
}

static void write_number(const struct place *p, size_t at, uint32_t number) {
        write_bytes(p, at, &number, sizeof(number));
}

static uint32_t read_number(const struct place *p, size_t at) {
        struct file file = read_file(p);
        uint32_t number;

        assert_true(at + sizeof(number) <= file.size);
        memcpy(&number, file.bytes + at, sizeof(number));
        free(file.bytes);
        return number;
}

/* ---- whole ---- */

static void test_a_new_one(void **state) {
        struct place *p = *state;
        struct stat st;

        open_store(p);
        assert_int_equal(stat(p->path, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(st.st_uid, geteuid());
        assert_int_equal(st.st_size, HEADER_SIZE + SLOTS_AT_FIRST * SLOT_SIZE);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        for (unsigned slot = 0; slot < SLOTS_AT_FIRST; slot++)
                assert_null(lease_store_get(p->store, slot));
}

static void test_an_empty_file_is_a_new_one(void **state) {
        struct place *p = *state;

        write_bytes(p, 0, "", 0);
        open_store(p);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        (void) put_new(p, 1);
}

static void test_the_mask_does_not_matter(void **state) {
        struct place *p = *state;
        mode_t mask = umask(0);

        open_store(p);
        (void) umask(mask);
        reopen_store(p);
}

static void test_take_put_get_clear(void **state) {
        struct place *p = *state;
        unsigned slot;

        open_store(p);
        slot = take_slot(p);
        assert_null(lease_store_get(p->store, slot));
        put_again(p, slot, 1);
        assert_holds(p, slot, 1);
        put_again(p, slot, 2);
        assert_holds(p, slot, 2);
        put_again(p, slot, 3);
        assert_holds(p, slot, 3);
        lease_store_clear(p->store, slot);
        assert_null(lease_store_get(p->store, slot));
}

static void test_slots_are_given_once(void **state) {
        bool taken[SLOTS_AT_FIRST] = {};
        struct place *p = *state;

        open_store(p);
        for (unsigned i = 0; i < SLOTS_AT_FIRST; i++) {
                unsigned slot = take_slot(p);

                assert_true(slot < SLOTS_AT_FIRST);
                assert_false(taken[slot]);
                taken[slot] = true;
        }
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        lease_store_clear(p->store, 17);
        lease_store_clear(p->store, 5);
        assert_int_equal(take_slot(p) + take_slot(p), 17 + 5);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
}

static void test_growth(void **state) {
        const unsigned n = 3 * SLOTS_AT_FIRST + 1;
        struct place *p = *state;
        const struct lease_record *first;
        unsigned slots[3 * SLOTS_AT_FIRST + 1];

        open_store(p);
        slots[0] = put_new(p, 0);
        first = lease_store_get(p->store, slots[0]);
        for (unsigned i = 1; i < n; i++)
                slots[i] = put_new(p, i);
        assert_int_equal(lease_store_n_slots(p->store), 4 * SLOTS_AT_FIRST);
        assert_ptr_equal(lease_store_get(p->store, slots[0]), first); /* slots never move */

        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < n; i++)
                        assert_holds(p, slots[i], i);
                reopen_store(p);
                assert_int_equal(lease_store_n_slots(p->store), 4 * SLOTS_AT_FIRST);
        }
}

static void test_all_slots_there_can_be(void **state) {
        struct place *p = *state;
        unsigned slot = 7;

        open_store(p);
        for (unsigned i = 0; i < SLOTS_MAX; i++)
                (void) take_slot(p);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_MAX);
        assert_int_equal(lease_store_take(p->store, &slot), -ENOSPC);
        assert_int_equal(slot, 7);

        put_again(p, SLOTS_MAX - 1, 9);
        lease_store_clear(p->store, 1234);
        assert_int_equal(take_slot(p), 1234);
        reopen_store(p);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_MAX);
        assert_holds(p, SLOTS_MAX - 1, 9);
}

static void test_reopening(void **state) {
        struct place *p = *state;
        unsigned kept, cleared, taken;

        open_store(p);
        kept = put_new(p, 1);
        cleared = put_new(p, 2);
        taken = take_slot(p);
        lease_store_clear(p->store, cleared);
        reopen_store(p);

        assert_holds(p, kept, 1);
        assert_null(lease_store_get(p->store, cleared));
        assert_null(lease_store_get(p->store, taken));
        /* and what is held is not given to anybody else */
        for (unsigned i = 0; i < SLOTS_AT_FIRST - 1; i++)
                assert_int_not_equal(take_slot(p), kept);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        assert_holds(p, kept, 1);
}

/* A writer that is killed closes nothing. */
static void put_and_die(const void *userdata) {
        const struct place *p = userdata;
        const struct lease_record record = make_record(5);
        struct lease_store *store;
        unsigned slot;

        CHECK(lease_store_open(p->dir, &store) == 0);
        CHECK(lease_store_take(store, &slot) == 0 && slot == 0);
        lease_store_put(store, slot, &record);
        _exit(0);
}

static void test_a_killed_writer(void **state) {
        struct place *p = *state;

        test_in_child(put_and_die, p);
        open_store(p);
        assert_holds(p, 0, 5);
}

static void test_a_second_one_is_busy(void **state) {
        struct place *p = *state;
        unsigned slot;

        open_store(p);
        slot = put_new(p, 1);
        assert_refused(p, -EBUSY);
        assert_holds(p, slot, 1);
        p->store = lease_store_close(p->store);
        open_store(p);
        assert_holds(p, slot, 1);
}

static void test_no_directory(void **state) {
        struct place p = { .dir = "/tmp/test-lease-store-of-nobody/x" };
        char dir[5000];
        struct lease_store *store = NULL;

        assert_refused(&p, -ENOENT);
        memset(dir, 'x', sizeof(dir) - 1);
        dir[sizeof(dir) - 1] = '\0';
        assert_int_equal(lease_store_open(dir, &store), -ENAMETOOLONG);
        assert_null(lease_store_close(NULL));
}

/* A full disk is an error and no SIGBUS; what is held stays so. */
static void fill_disk(const void *userdata) {
        const struct place *p = userdata;
        const struct lease_record record = make_record(1);
        struct lease_store *store;
        unsigned slot;
        char options[32];
        int r = 0;

        (void) snprintf(options, sizeof(options), "size=%zu",
                        HEADER_SIZE + (SLOTS_AT_FIRST + 20) * SLOT_SIZE);
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", p->dir, "tmpfs", 0, options) < 0)
                _exit(EXIT_SKIP);

        CHECK(lease_store_open(p->dir, &store) == 0);
        for (unsigned i = 0; i < 2 * SLOTS_AT_FIRST && r >= 0; i++) {
                r = lease_store_take(store, &slot);
                if (r >= 0)
                        lease_store_put(store, slot, &record);
        }
        CHECK(r == -ENOSPC);
        CHECK(lease_store_n_slots(store) == SLOTS_AT_FIRST);
        CHECK(lease_store_get(store, 0) && lease_store_get(store, SLOTS_AT_FIRST - 1));
        lease_store_clear(store, 3);
        CHECK(lease_store_take(store, &slot) == 0 && slot == 3);
        (void) lease_store_close(store);
        CHECK(lease_store_open(p->dir, &store) == 0);
}

static void test_a_full_disk(void **state) {
        test_need_root();
        test_in_child(fill_disk, *state);
}

/* ---- foreign and damaged ---- */

struct damage_case {
        const char *name;
        void (*damage)(struct place *p);        /* after a good one with a record was closed */
        int error;
        bool root;
};

static void damage_mode_group(struct place *p) {
        assert_int_equal(chmod(p->path, 0640), 0);
}

static void damage_mode_others(struct place *p) {
        assert_int_equal(chmod(p->path, 0602), 0);
}

static void damage_owner(struct place *p) {
        assert_int_equal(chown(p->path, UID_NOBODY, 0), 0);
}

static void damage_links(struct place *p) {
        char other[96];

        (void) snprintf(other, sizeof(other), "%s/other", p->dir);
        assert_int_equal(link(p->path, other), 0);
}

static void damage_symlink(struct place *p) {
        char other[96];

        (void) snprintf(other, sizeof(other), "%s/other", p->dir);
        assert_int_equal(rename(p->path, other), 0);
        assert_int_equal(symlink(other, p->path), 0);
}

static void damage_dangling_symlink(struct place *p) {
        assert_int_equal(unlink(p->path), 0);
        assert_int_equal(symlink("nowhere", p->path), 0);
}

static void damage_fifo(struct place *p) {
        assert_int_equal(unlink(p->path), 0);
        assert_int_equal(mkfifo(p->path, 0600), 0);
}

static void damage_directory(struct place *p) {
        assert_int_equal(unlink(p->path), 0);
        assert_int_equal(mkdir(p->path, 0700), 0);
}

static void damage_device(struct place *p) {
        assert_int_equal(unlink(p->path), 0);
        if (mknod(p->path, S_IFCHR | 0600, makedev(1, 5)) < 0)
                test_skip("no device nodes can be made here");
}

static void damage_cut_by_a_byte(struct place *p) {
        assert_int_equal(truncate(p->path, (off_t) AT_SLOT(SLOTS_AT_FIRST) - 1), 0);
}

static void damage_longer_by_a_byte(struct place *p) {
        assert_int_equal(truncate(p->path, (off_t) AT_SLOT(SLOTS_AT_FIRST) + 1), 0);
}

static void damage_cut_within_the_header(struct place *p) {
        assert_int_equal(truncate(p->path, HEADER_SIZE - 1), 0);
}

static void damage_one_byte_left(struct place *p) {
        assert_int_equal(truncate(p->path, 1), 0);
}

static void damage_too_many_slots(struct place *p) {
        assert_int_equal(truncate(p->path, (off_t) AT_SLOT(SLOTS_MAX + 1)), 0);
}

static void damage_huge(struct place *p) {
        assert_int_equal(truncate(p->path, INT64_C(1) << 40), 0);
}

static void damage_magic(struct place *p) {
        write_bytes(p, 0, "R", 1);
}

static void damage_version(struct place *p) {
        write_bytes(p, 7, "\2", 1);
}

static void damage_slot_size(struct place *p) {
        write_number(p, AT_SLOT_SIZE, SLOT_SIZE + 8);
}

static void damage_all_text(struct place *p) {
        assert_int_equal(truncate(p->path, 0), 0);
        write_bytes(p, 0,
                    "these are my notes, do not overwrite them: ................................",
                    76);
}

static const struct damage_case damage_cases[] = {
        { "the group may read it", damage_mode_group, -EBADMSG },
        { "others may write to it", damage_mode_others, -EBADMSG },
        { "somebody else's", damage_owner, -EBADMSG, true },
        { "another name for it", damage_links, -EBADMSG },
        { "a symbolic link to a good one", damage_symlink, -EBADMSG },
        { "a symbolic link to nowhere", damage_dangling_symlink, -EBADMSG },
        { "a fifo", damage_fifo, -EBADMSG },
        { "a directory", damage_directory, -EISDIR },
        { "a device", damage_device, -EBADMSG, true },
        { "cut by a byte", damage_cut_by_a_byte, -EBADMSG },
        { "longer by a byte", damage_longer_by_a_byte, -EBADMSG },
        { "cut within the header", damage_cut_within_the_header, -EBADMSG },
        { "one byte left", damage_one_byte_left, -EBADMSG },
        { "more slots than there can be", damage_too_many_slots, -EBADMSG },
        { "a terabyte", damage_huge, -EBADMSG },
        { "not ours", damage_magic, -EBADMSG },
        { "ours of another version", damage_version, -EBADMSG },
        { "slots of another size", damage_slot_size, -EBADMSG },
        { "somebody's notes", damage_all_text, -EBADMSG },
};

/* The state is the place, which cmocka hands to the set-up: the row comes by way of it. */
struct damage_place {
        struct place place;
        const struct damage_case *c;
};

static int set_up_damage(void **state) {
        const struct damage_case *c = *state;
        struct damage_place *d;
        struct place *p;
        void *made;

        if (set_up(&made) < 0)
                return -1;
        p = made;
        d = calloc(1, sizeof(*d));
        assert_non_null(d);
        d->place = *p;
        d->c = c;
        free(p);
        *state = d;
        return 0;
}

/* Refused, and left as it is. */
static void test_damage(void **state) {
        struct damage_place *d = *state;
        struct place *p = &d->place;
        struct stat before, after;

        if (d->c->root)
                test_need_root();

        open_store(p);
        (void) put_new(p, 1);
        p->store = lease_store_close(p->store);
        d->c->damage(p);

        assert_int_equal(lstat(p->path, &before), 0);
        assert_refused(p, d->c->error);
        assert_int_equal(lstat(p->path, &after), 0);
        assert_int_equal(after.st_ino, before.st_ino);
        assert_int_equal(after.st_mode, before.st_mode);
        assert_int_equal(after.st_size, before.st_size);
        assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
        assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

static void test_a_header_alone(void **state) {
        struct place *p = *state;

        open_store(p);
        (void) put_new(p, 1);
        p->store = lease_store_close(p->store);
        assert_int_equal(truncate(p->path, HEADER_SIZE), 0);

        open_store(p);
        assert_int_equal(lease_store_n_slots(p->store), 0);
        assert_holds(p, put_new(p, 2), 2);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
}

/* After a reboot ids and start times are other threads'. */
static void test_of_another_boot(void **state) {
        struct place *p = *state;

        open_store(p);
        for (unsigned i = 0; i < 2 * SLOTS_AT_FIRST; i++)
                (void) put_new(p, i);
        p->store = lease_store_close(p->store);
        write_bytes(p, AT_BOOT_ID, "ffffffff", 8);

        open_store(p);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        for (unsigned slot = 0; slot < SLOTS_AT_FIRST; slot++)
                assert_null(lease_store_get(p->store, slot));
        for (unsigned i = 0; i < SLOTS_AT_FIRST; i++)
                (void) put_new(p, i);
        assert_int_equal(lease_store_n_slots(p->store), SLOTS_AT_FIRST);
        reopen_store(p);
        assert_holds(p, 7, 7);
}

/* Whatever number of bytes of the next record was written when the writer was killed. */
static void test_a_torn_copy(void **state) {
        struct place *p = *state;
        const struct lease_record next = make_record(3);
        unsigned slot;

        open_store(p);
        slot = put_new(p, 1);
        put_again(p, slot, 2);
        p->store = lease_store_close(p->store);

        for (size_t length = 4; length <= sizeof(next); length += 4) {
                uint32_t active = read_number(p, AT_SLOT(slot));

                assert_true(active == 1 || active == 2);
                write_bytes(p, AT_COPY(slot, 3 - active), &next, length);
                open_store(p);
                assert_holds(p, slot, 2);
                p->store = lease_store_close(p->store);
        }

        /* and the next writer goes on as if nothing had been */
        open_store(p);
        put_again(p, slot, 4);
        assert_holds(p, slot, 4);
        reopen_store(p);
        assert_holds(p, slot, 4);
}

/* The writer itself: the copy that counts is not touched until the other one is whole. */
static void test_copies_take_turns(void **state) {
        struct place *p = *state;
        struct file before, after;
        unsigned slot;

        open_store(p);
        slot = put_new(p, 1);
        for (unsigned i = 2; i < 6; i++) {
                uint32_t active = read_number(p, AT_SLOT(slot));

                before = read_file(p);
                put_again(p, slot, i);
                after = read_file(p);
                assert_int_equal(read_number(p, AT_SLOT(slot)), 3 - active);
                assert_memory_equal(after.bytes + AT_COPY(slot, active),
                                    before.bytes + AT_COPY(slot, active),
                                    sizeof(struct lease_record));
                free(before.bytes);
                free(after.bytes);
        }
        assert_holds(p, slot, 5);
}

/* Nothing of a record is believed if a bit of it is not as it was. */
static void test_a_damaged_record(void **state) {
        struct place *p = *state;
        unsigned slot, other;
        struct file file;
        size_t at;

        open_store(p);
        slot = put_new(p, 1);
        other = put_new(p, 2);
        p->store = lease_store_close(p->store);
        file = read_file(p);
        at = AT_COPY(slot, read_number(p, AT_SLOT(slot)));

        for (size_t i = offsetof(struct lease_record, sum); i < sizeof(struct lease_record); i++) {
                uint8_t wrong = file.bytes[at + i] ^ (uint8_t) (1U << (i % 8));

                write_bytes(p, 0, file.bytes, file.size);
                write_bytes(p, at + i, &wrong, 1);
                open_store(p);
                assert_null(lease_store_get(p->store, slot));
                assert_holds(p, other, 2);
                assert_int_equal(take_slot(p), slot); /* its slot is free again */
                p->store = lease_store_close(p->store);
        }
        free(file.bytes);
}

static void test_neither_copy_is_active(void **state) {
        static const uint32_t wrong[] = { 0, 3, 4, 0x100, 0x10000, UINT32_MAX };
        struct place *p = *state;
        unsigned slot;

        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                open_store(p);
                slot = put_new(p, 1);
                put_again(p, slot, 2);
                p->store = lease_store_close(p->store);
                write_number(p, AT_SLOT(slot), wrong[i]);
                open_store(p);
                assert_null(lease_store_get(p->store, slot));
                assert_int_equal(take_slot(p), slot);
                put_again(p, slot, 3);
                assert_holds(p, slot, 3);
                lease_store_clear(p->store, slot);
                p->store = lease_store_close(p->store);
        }
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test_setup_teardown(test_a_new_one, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_an_empty_file_is_a_new_one, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_mask_does_not_matter, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_take_put_get_clear, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_slots_are_given_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_growth, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_all_slots_there_can_be, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_reopening, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_killed_writer, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_second_one_is_busy, set_up, tear_down),
                cmocka_unit_test(test_no_directory),
                cmocka_unit_test_setup_teardown(test_a_full_disk, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_header_alone, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_of_another_boot, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_torn_copy, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_copies_take_turns, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_damaged_record, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_neither_copy_is_active, set_up, tear_down),
        };
        struct CMUnitTest tests[ELEMENTS(damage_cases) + ELEMENTS(others)];
        size_t n = ELEMENTS(damage_cases);

        for (size_t i = 0; i < n; i++) {
                tests[i] = test_row(damage_cases[i].name, test_damage, &damage_cases[i]);
                tests[i].setup_func = set_up_damage;
                tests[i].teardown_func = tear_down;
        }
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("lease-store", tests, NULL, NULL);
}
