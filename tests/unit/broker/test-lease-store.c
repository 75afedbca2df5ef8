/* SPDX-License-Identifier: MIT */

/* The file that a killed broker leaves to the next one, as long as it is whole. */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/unit/broker/lease-store-test.h"

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

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_new_one, place_set_up, place_tear_down),
                cmocka_unit_test_setup_teardown(test_an_empty_file_is_a_new_one, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_the_mask_does_not_matter, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_take_put_get_clear, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_slots_are_given_once, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_growth, place_set_up, place_tear_down),
                cmocka_unit_test_setup_teardown(test_all_slots_there_can_be, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_reopening, place_set_up, place_tear_down),
                cmocka_unit_test_setup_teardown(test_a_killed_writer, place_set_up,
                                                place_tear_down),
                cmocka_unit_test_setup_teardown(test_a_second_one_is_busy, place_set_up,
                                                place_tear_down),
                cmocka_unit_test(test_no_directory),
                cmocka_unit_test_setup_teardown(test_a_full_disk, place_set_up, place_tear_down),
        };

        return cmocka_run_group_tests_name("lease-store", tests, NULL, NULL);
}
