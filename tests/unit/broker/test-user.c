/* SPDX-License-Identifier: MIT */

/* What is remembered of a user, and when it is forgotten. */

#include "broker/user.h"
#include "tests/unit/broker/broker-test.h"

#define USERS_TIDY 256
#define USERS_MAX 16384
#define SECOND_US UINT64_C(1000000)

static const struct policy policy = {
        .grant_burst = 10,
        .grant_refill_ms = 1000,
        .message_burst = 100,
        .message_refill_us = 1000,
};

static int set_up(void **state) {
        struct user_table *table = calloc(1, sizeof(*table));

        assert_non_null(table);
        user_table_init(table);
        *state = table;
        return 0;
}

static int tear_down(void **state) {
        user_table_done(*state);
        free(*state);
        return 0;
}

static struct user *get(struct user_table *table, uid_t uid, uint64_t now_us) {
        struct user *user = user_get(table, &policy, uid, now_us);

        assert_non_null(user);
        assert_int_equal(user->uid, uid);
        return user;
}

static void test_a_new_one(void **state) {
        struct user_table *table = *state;
        struct user *user = get(table, 1000, 5 * SECOND_US);

        assert_int_equal(bucket_tokens(&user->grants, 5 * SECOND_US), 10);
        assert_int_equal(bucket_wait_us(&user->grants, 11, 5 * SECOND_US), 0);
        assert_int_equal(user->grants.refill_us, SECOND_US);
        assert_int_equal(bucket_tokens(&user->messages, 5 * SECOND_US), 100);
        assert_int_equal(user->messages.refill_us, 1000);
        assert_int_equal(user->n_leases + user->n_connections, 0);
}

static void test_the_same_again(void **state) {
        struct user_table *table = *state;
        static const uid_t uids[] = {
                0, 1, 1000, UID_NOBODY, 0x7fffffff, 0x80000000, UINT32_MAX - 1
        };
        struct user *users[ELEMENTS(uids)];

        for (size_t i = 0; i < ELEMENTS(uids); i++)
                users[i] = get(table, uids[i], 0);
        for (size_t i = 0; i < ELEMENTS(uids); i++) {
                assert_ptr_equal(get(table, uids[i], 9 * SECOND_US), users[i]);
                for (size_t j = 0; j < i; j++)
                        assert_ptr_not_equal(users[i], users[j]);
        }
}

/* One more than are kept without looking, all at one time. */
static void crowd(struct user_table *table, uid_t from, uint64_t now_us) {
        for (uid_t uid = from; uid <= from + USERS_TIDY; uid++)
                (void) get(table, uid, now_us);
}

static bool is_known(struct user_table *table, uid_t uid) {
        return g_hash_table_contains(table->by_uid, GUINT_TO_POINTER(uid));
}

/* Reconnecting is no way to a fresh start. */
static void test_who_owes_something_is_remembered(void **state) {
        struct user_table *table = *state;
        struct user *connected = get(table, 1, 0), *holder = get(table, 2, 0),
                    *asked = get(table, 3, 0);
        struct user *talked = get(table, 4, 0), *logged = get(table, 5, 0);

        (void) get(table, 6, 0);
        connected->n_connections = 1;
        holder->n_leases = 1;
        assert_true(bucket_take(&asked->grants, 0));
        assert_true(bucket_take(&talked->messages, 0));
        assert_true(bucket_take(&logged->lines, 0));

        crowd(table, 1000, 500);
        for (uid_t uid = 1; uid <= 5; uid++)
                assert_true(is_known(table, uid));
        assert_false(is_known(table, 6));

        /* in time nothing is owed any more */
        connected->n_connections = 0;
        holder->n_leases = 0;
        crowd(table, 2000, 3600 * SECOND_US);
        for (uid_t uid = 1; uid <= 5; uid++)
                assert_false(is_known(table, uid));
}

static void test_so_many_and_no_more(void **state) {
        struct user_table *table = *state;

        for (uid_t uid = 1; uid <= USERS_MAX; uid++)
                get(table, uid, 0)->n_connections = 1;
        assert_null(user_get(table, &policy, USERS_MAX + 1, 0));
        (void) get(table, USERS_MAX, 0); /* who is known is served */

        for (uid_t uid = 1; uid <= USERS_MAX; uid++)
                get(table, uid, 0)->n_connections = 0;
        (void) get(table, USERS_MAX + 1, 0);
}

static void test_new_limits(void **state) {
        const struct policy other = { .grant_burst = 4,
                                      .grant_refill_ms = 10,
                                      .message_burst = 200,
                                      .message_refill_us = 7 };
        struct user_table *table = *state;
        struct user *a = get(table, 1, 0), *b = get(table, 2, 0);

        for (unsigned i = 0; i < 3; i++)
                assert_true(bucket_take(&a->grants, 0));
        user_table_apply_policy(table, &other, 0);
        assert_int_equal(bucket_tokens(&a->grants, 0), 1);
        assert_int_equal(a->grants.refill_us, 10000);
        assert_int_equal(bucket_tokens(&b->grants, 0), 4);
        assert_int_equal(bucket_tokens(&b->messages, 0), 200);
        assert_int_equal(b->messages.refill_us, 7);
}

static void test_holders(void **state) {
        struct user_table *table = *state;

        assert_int_equal(user_table_n_holders(table), 0);
        get(table, 1, 0)->n_leases = 5;
        get(table, 2, 0)->n_connections = 1;
        get(table, 3, 0)->n_leases = 1;
        assert_int_equal(user_table_n_holders(table), 2);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_new_one, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_same_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_owes_something_is_remembered, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_so_many_and_no_more, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_new_limits, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_holders, set_up, tear_down),
        };

        return cmocka_run_group_tests_name("user", tests, NULL, NULL);
}
