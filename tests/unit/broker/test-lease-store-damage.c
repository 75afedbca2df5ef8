/* SPDX-License-Identifier: MIT */

/* State files that are foreign, damaged, or were being written when the writer was killed. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/unit/broker/lease-store-test.h"

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

        if (place_set_up(&made) < 0)
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
                cmocka_unit_test_setup_teardown(test_a_header_alone, place_set_up, place_tear_down),
                cmocka_unit_test_setup_teardown(test_of_another_boot, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_a_torn_copy, place_set_up, place_tear_down),
                cmocka_unit_test_setup_teardown(test_copies_take_turns, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_a_damaged_record, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_neither_copy_is_active, place_set_up,
                                                place_tear_down),
        };
        struct CMUnitTest tests[ELEMENTS(damage_cases) + ELEMENTS(others)];
        size_t n = ELEMENTS(damage_cases);

        for (size_t i = 0; i < n; i++) {
                tests[i] = test_row(damage_cases[i].name, test_damage, &damage_cases[i]);
                tests[i].setup_func = set_up_damage;
                tests[i].teardown_func = place_tear_down;
        }
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("lease-store-damage", tests, NULL, NULL);
}
