/* SPDX-License-Identifier: MIT */

/* Listings: leases, policy and status, page by page, from other versions of the broker too. */

#include <string.h>
#include <sys/socket.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

/* ---- leases ---- */

#define LEASES 29

/* A broker with LEASES leases whose records may be of another size than ours. */
struct lister {
        size_t lease_size;
        uint64_t flags;         /* of the last request */
};

static void put_lease(uint8_t *ret, size_t size, uint64_t number) {
        struct wire_lease lease = {
                .id = { (uint8_t) number },
                .pid = 1000,
                .tid = 1000 + number,
                .uid = 4000000000,
                .since_ms = 1,
                .state = WIRE_LEASE_CHANGED,
                .policy = 0,
                .granted_want = WIRE_WANT_SCHED,
                .granted_policy = 1,
                .granted_priority = 10,
                .lifetime = WIRE_LIFETIME_SECONDS,
                .expires_ms = 2,
                .transport = WIRE_TRANSPORT_REALTIMEKIT,
        };

        memset(lease.comm, 'c', sizeof(lease.comm));
        memset(ret, 0x77, size);
        memcpy(ret, &lease, size < sizeof(lease) ? size : sizeof(lease));
}

static void script_list(struct fake_broker *broker) {
        struct lister *lister = broker->userdata;
        const size_t head = offsetof(struct wire_list_reply, leases);
        union {
                struct wire_list_reply list;
                uint8_t bytes[WIRE_RECORD_MAX];
        } reply;

        while (fake_receive(broker) > 0) {
                uint64_t next = broker->request.list.after;
                size_t n = 0;

                lister->flags = broker->request.list.flags;
                memset(&reply, 0, sizeof(reply));
                while (next < LEASES && n < WIRE_LEASES_MAX &&
                       head + (n + 1) * lister->lease_size <= WIRE_RECORD_MAX)
                        put_lease(&reply.bytes[head + n++ * lister->lease_size], lister->lease_size,
                                  ++next);
                reply.list.n_leases = (uint32_t) n;
                reply.list.lease_size = (uint32_t) lister->lease_size;
                reply.list.next = next < LEASES ? next : 0;
                fake_reply(broker, &reply, head + n * lister->lease_size);
        }
}

struct seen {
        unsigned n;
        unsigned stop_at;       /* 0: never */
        bool in_order;
        struct rtgrant_lease last;
        size_t comm_length;
};

static int on_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct seen *seen = userdata;

        seen->n++;
        seen->in_order = seen->in_order && lease->id.bytes[0] == seen->n;
        seen->last = *lease;
        seen->comm_length = strlen(lease->comm);
        return seen->n == seen->stop_at ? 5 : 0;
}

static void test_list(void **state) {
        struct lister lister = { .lease_size = sizeof(struct wire_lease) };
        struct seen seen = { .in_order = true };
        struct session f;

        session_start(&f, script_list, &lister, 0);
        assert_int_equal(rtgrant_list(f.handle, true, on_lease, &seen), 0);
        assert_int_equal(seen.n, LEASES);
        assert_true(seen.in_order);
        assert_int_equal(lister.flags, WIRE_LIST_ALL);
        assert_int_equal(f.broker.n_requests, 3);

        assert_int_equal(seen.last.size, sizeof(seen.last));
        assert_int_equal(seen.last.tid, 1000 + LEASES);
        assert_int_equal(seen.last.uid, 4000000000);
        assert_int_equal(seen.last.state, RTGRANT_LEASE_CHANGED);
        assert_true(seen.last.holds_sched);
        assert_false(seen.last.holds_nice);
        assert_int_equal(seen.last.granted_priority, 10);
        assert_int_equal(seen.last.lifetime, RTGRANT_LIFETIME_SECONDS);
        assert_string_equal(seen.last.transport, "RealtimeKit1");
        assert_int_equal(seen.comm_length, WIRE_COMM_SIZE - 1);
        session_stop(&f);
}

static void test_list_of_other_versions(void **state) {
        static const size_t sizes[] = { sizeof(struct wire_lease) + 64,
                                        offsetof(struct wire_lease, comm) };

        for (size_t i = 0; i < N_ELEMENTS(sizes); i++) {
                struct lister lister = { .lease_size = sizes[i] };
                struct seen seen = { .in_order = true };
                struct session f;

                session_start(&f, script_list, &lister, 0);
                assert_int_equal(rtgrant_list(f.handle, false, on_lease, &seen), 0);
                assert_int_equal(seen.n, LEASES);
                assert_true(seen.in_order);
                assert_int_equal(seen.last.tid, 1000 + LEASES);
                assert_int_equal(lister.flags, 0);
                if (i == 1)
                        assert_int_equal(seen.comm_length, 0);
                session_stop(&f);
        }
}

static void test_list_ends_when_told(void **state) {
        struct lister lister = { .lease_size = sizeof(struct wire_lease) };
        struct seen seen = { .stop_at = 13 };
        struct session f;

        session_start(&f, script_list, &lister, 0);
        assert_int_equal(rtgrant_list(f.handle, false, on_lease, &seen), 5);
        assert_int_equal(seen.n, 13);
        assert_int_equal(rtgrant_list(f.handle, false, NULL, NULL), -EINVAL);
        session_stop(&f);
}

struct bad_list {
        struct wire_list_reply reply;
        size_t size;
        int expected;
        unsigned n_seen;
};

static void script_bad_list(struct fake_broker *broker) {
        struct bad_list *bad = broker->userdata;

        while (fake_receive(broker) > 0)
                fake_reply(broker, &bad->reply, bad->size);
}

static void test_bad_lists(void **state) {
        const size_t head = offsetof(struct wire_list_reply, leases);
        const size_t one = head + sizeof(struct wire_lease);
        const struct bad_list cases[] = {
                { { .reason = RTGRANT_REASON_ADMIN_ONLY, .n_leases = 1 }, head, -EPERM, 0 },
                { { .n_leases = 1, .lease_size = 0 }, one, -EPROTO, 0 },
                { { .n_leases = 2, .lease_size = sizeof(struct wire_lease) }, one, -EPROTO, 0 },
                { { .n_leases = UINT32_MAX, .lease_size = 16 }, one, -EPROTO, 0 },
                { { .n_leases = 16, .lease_size = 0x10000000 }, one, -EPROTO, 0 },
                { { .n_leases = 1, .lease_size = sizeof(struct wire_lease), .next = 1 }, one,
                  -EPROTO, 2 }, /* the second page says the third is the second */
                { { .n_leases = 0 }, head, 0, 0 },
                { {}, offsetof(struct wire_list_reply, n_leases), 0, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct bad_list bad = cases[i];
                struct seen seen = {};
                struct session f;

                session_start(&f, script_bad_list, &bad, 0);
                assert_int_equal(rtgrant_list(f.handle, false, on_lease, &seen), bad.expected);
                assert_int_equal(seen.n, bad.n_seen);
                session_stop(&f);
        }
}

/* A callback may call the library with the same handle. */
static int on_lease_call(const struct rtgrant_lease *lease, void *userdata) {
        struct seen seen = { .stop_at = 1 };

        return rtgrant_list(userdata, false, on_lease, &seen) == 5 ? 0 : -1;
}

static void test_list_within_a_list(void **state) {
        struct lister lister = { .lease_size = sizeof(struct wire_lease) };
        struct session f;

        session_start(&f, script_list, &lister, 0);
        assert_int_equal(rtgrant_list(f.handle, false, on_lease_call, f.handle), 0);
        assert_int_equal(f.broker.n_requests, 3 + LEASES);
        session_stop(&f);
}

static int on_lease_close(const struct rtgrant_lease *lease, void *userdata) {
        struct rtgrant **handle = userdata;

        if (*handle)
                *handle = rtgrant_close(*handle);
        return 0;
}

/* It may close the handle even: what the listing has is told, and then it ends. */
static void test_close_within_a_list(void **state) {
        struct lister lister = { .lease_size = sizeof(struct wire_lease) };
        struct session f;

        session_start(&f, script_list, &lister, 0);
        assert_int_equal(rtgrant_list(f.handle, false, on_lease_close, &f.handle), -ECANCELED);
        assert_null(f.handle);
        session_stop(&f);
        assert_int_equal(f.broker.n_requests, 1);
}

/* ---- the policy ---- */

#define KEYS 20

/* A policy that is loaded anew while it is read, so many times. */
struct policy_teller {
        unsigned n_reloads;
        uint32_t generation;
};

static void script_policy(struct fake_broker *broker) {
        struct policy_teller *teller = broker->userdata;

        while (fake_receive(broker) > 0) {
                uint64_t next = broker->request.list.after;
                struct wire_policy_reply reply = { .entry_size = sizeof(struct wire_policy_entry) };

                if (next > 0 && teller->n_reloads > 0) {
                        teller->n_reloads--;
                        teller->generation++;
                }
                while (next < KEYS && reply.n_entries < WIRE_POLICY_ENTRIES_MAX) {
                        struct wire_policy_entry *entry = &reply.entries[reply.n_entries++];

                        (void) snprintf(entry->section, sizeof(entry->section), "Role r%u",
                                        teller->generation);
                        (void) snprintf(entry->key, sizeof(entry->key), "Key%u", (unsigned) next++);
                        memset(entry->value, 'v', sizeof(entry->value));
                        strcpy(entry->origin, "/etc/rtgrant/policy.conf:3");
                }
                reply.policy_generation = teller->generation;
                reply.next = next < KEYS ? next : 0;
                fake_reply(broker, &reply, sizeof(reply));
        }
}

struct policy_seen {
        unsigned n;
        bool right;
        const char *section;
};

static int on_key(const char *section, const char *key, const char *value, const char *origin,
                  void *userdata) {
        struct policy_seen *seen = userdata;
        char expected[16];

        (void) snprintf(expected, sizeof(expected), "Key%u", seen->n++);
        seen->right = seen->right && strcmp(section, seen->section) == 0 &&
                      strcmp(key, expected) == 0 && strlen(value) == 199 &&
                      strcmp(origin, "/etc/rtgrant/policy.conf:3") == 0;
        return 0;
}

/* Each key once and all of one policy, whatever happens between the pages. */
static void test_policy(void **state) {
        static const struct {
                unsigned n_reloads;
                const char *section;
        } cases[] = { { 0, "Role r0" }, { 1, "Role r1" }, { 3, "Role r3" } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct policy_teller teller = { .n_reloads = cases[i].n_reloads };
                struct policy_seen seen = { .right = true, .section = cases[i].section };
                struct session f;

                session_start(&f, script_policy, &teller, 0);
                assert_int_equal(rtgrant_get_policy(f.handle, on_key, &seen), 0);
                assert_int_equal(seen.n, KEYS);
                assert_true(seen.right);
                session_stop(&f);
        }
}

static void test_policy_that_never_rests(void **state) {
        struct policy_teller teller = { .n_reloads = UINT32_MAX };
        struct policy_seen seen = { .section = "" };
        struct session f;

        session_start(&f, script_policy, &teller, 0);
        assert_int_equal(rtgrant_get_policy(f.handle, NULL, NULL), -EINVAL);
        assert_int_equal(rtgrant_get_policy(f.handle, on_key, &seen), -EAGAIN);
        assert_int_equal(seen.n, 0);
        session_stop(&f);
}

struct bad_policy {
        struct wire_policy_reply reply;
        size_t size;
        int expected;
};

static void script_bad_policy(struct fake_broker *broker) {
        struct bad_policy *bad = broker->userdata;

        while (fake_receive(broker) > 0)
                fake_reply(broker, &bad->reply, bad->size);
}

static void test_bad_policies(void **state) {
        const uint32_t entry = sizeof(struct wire_policy_entry);
        const size_t head = offsetof(struct wire_policy_reply, entries);
        const struct bad_policy cases[] = {
                { { .reason = RTGRANT_REASON_UNSUPPORTED }, head, -EPERM },
                { { .n_entries = 2, .entry_size = entry }, head + entry, -EPROTO },
                { { .n_entries = UINT32_MAX, .entry_size = 1 }, head + entry, -EPROTO },
                { { .n_entries = 1, .entry_size = 0 }, head + entry, -EPROTO },
                { { .n_entries = 1, .entry_size = entry, .next = 1 }, head + entry, -EPROTO },
                { {}, head, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct bad_policy bad = cases[i];
                struct policy_seen seen = { .section = "" };
                struct session f;

                session_start(&f, script_bad_policy, &bad, 0);
                assert_int_equal(rtgrant_get_policy(f.handle, on_key, &seen), bad.expected);
                assert_int_equal(seen.n, 0);
                session_stop(&f);
        }
}

/* ---- the status ---- */

static void script_status(struct fake_broker *broker) {
        struct wire_hello_reply reply = {
                .state = WIRE_STATE_ADMIN | WIRE_STATE_POLICY_BROKEN,
                .kinds = WIRE_WANT_SCHED,
                .uid = 1001,
                .n_leases = 3,
                .n_leases_max = 256,
                .policy_generation = 4,
                .version = "0.1.0",
                .policy_error = "policy.conf:3: what?",
                .n_offers = 2,
                .offer_size = sizeof(struct wire_offer),
                .offers = {
                        { .role = "desktop", .policies = 6, .priority_min = 1, .priority_max = 20 },
                        { .role = "worker", .reason = RTGRANT_REASON_NOT_ALLOWED, .nice_min = -11 },
                },
        };

        while (fake_receive(broker) > 0)
                fake_reply(broker, &reply, sizeof(reply));
}

static void test_status(void **state) {
        struct rtgrant_status status = { .size = sizeof(status) };
        struct session f;

        session_start(&f, script_status, NULL, 0);
        assert_int_equal(rtgrant_get_status(f.handle, &status), 0);
        assert_int_equal(status.uid, 1001);
        assert_true(status.admin);
        assert_true(status.policy_broken);
        assert_false(status.degraded);
        assert_false(status.old_kernel);
        assert_int_equal(status.kinds, 1);
        assert_int_equal(status.n_leases, 3);
        assert_int_equal(status.n_leases_max, 256);
        assert_int_equal(status.policy_generation, 4);
        assert_string_equal(status.version, "0.1.0");
        assert_string_equal(status.policy_error, "policy.conf:3: what?");
        assert_int_equal(status.n_offers, 2);
        assert_string_equal(status.offers[0].role, "desktop");
        assert_int_equal(status.offers[0].priority_max, 20);
        assert_int_equal(status.offers[1].reason, RTGRANT_REASON_NOT_ALLOWED);
        assert_int_equal(status.offers[1].nice_min, -11);

        status.size = 0;
        assert_int_equal(rtgrant_get_status(f.handle, &status), -EINVAL);
        assert_int_equal(rtgrant_get_status(f.handle, NULL), -EINVAL);
        session_stop(&f);
}

static void script_admin(struct fake_broker *broker) {
        struct wire_hello_reply reply = { .offer_size = sizeof(struct wire_offer) };
        const struct wire_hello *hello = (const struct wire_hello *) &broker->request;

        while (fake_receive(broker) > 0) {
                reply.state = hello->flags == WIRE_HELLO_ADMIN ? WIRE_STATE_ADMIN : 0;
                fake_reply(broker, &reply, sizeof(reply));
        }
}

static void script_no_admin(struct fake_broker *broker) {
        struct wire_hello_reply reply = { .offer_size = sizeof(struct wire_offer) };

        while (fake_receive(broker) > 0)
                fake_reply(broker, &reply, sizeof(reply));
}

static void test_whether_one_is_an_administrator_is_asked(void **state) {
        struct rtgrant_status status = { .size = sizeof(status) };
        struct session f;

        session_start(&f, script_admin, NULL, 0);
        assert_int_equal(rtgrant_is_admin(f.handle), 1);
        assert_int_equal(rtgrant_get_status(f.handle, &status), 0);
        assert_false(status.admin); /* nobody was asked */
        assert_int_equal(rtgrant_is_admin(NULL), -EINVAL);
        session_stop(&f);

        session_start(&f, script_no_admin, NULL, 0);
        assert_int_equal(rtgrant_is_admin(f.handle), 0);
        session_stop(&f);
}

static void script_authenticated(struct fake_broker *broker) {
        struct wire_hello_reply reply = { .state = WIRE_STATE_ADMIN, .version = "a status" };
        const struct wire_hello *hello = (const struct wire_hello *) &broker->request;

        if (fake_receive(broker) == 0)
                return;
        if (hello->flags != (WIRE_HELLO_ADMIN | WIRE_HELLO_MAY_ASK))
                reply.reason = RTGRANT_REASON_INVALID;
        fake_reply(broker, &reply, sizeof(reply));
}

static void script_not_authenticated(struct fake_broker *broker) {
        struct wire_answer no = {
                .reason = RTGRANT_REASON_ADMIN_ONLY,
                .explanation = { .text = "cause", .help = "help" },
        };

        while (fake_receive(broker) > 0)
                fake_reply(broker, &no, sizeof(no));
}

static void test_a_user_becomes_an_administrator(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_authenticated, NULL, 0);
        assert_int_equal(rtgrant_authenticate(f.handle, &answer), 0);
        assert_int_equal(answer.reason, RTGRANT_REASON_NONE);
        assert_string_equal(answer.role, ""); /* nothing of the status */
        session_stop(&f);

        session_start(&f, script_not_authenticated, NULL, 0);
        assert_int_equal(rtgrant_authenticate(f.handle, &answer), -EPERM);
        assert_int_equal(answer.reason, RTGRANT_REASON_ADMIN_ONLY);
        assert_string_equal(answer.text, "cause");
        assert_string_equal(answer.help, "help");
        session_stop(&f);
        assert_int_equal(rtgrant_authenticate(NULL, NULL), -EINVAL);
}

/* Sixteen of ours are 1152 bytes: as much as twenty-eight of 40. */
static void script_many_offers(struct fake_broker *broker) {
        struct wire_hello_reply reply = { .n_offers = 20, .offer_size = 40 };

        while (fake_receive(broker) > 0)
                fake_reply(broker, &reply, sizeof(reply));
}

/* More roles, of an older and shorter kind, than there is room for. */
static void test_status_with_more_offers_than_we_know(void **state) {
        struct rtgrant_status status = { .size = sizeof(status) };
        struct session f;

        session_start(&f, script_many_offers, NULL, 0);
        assert_int_equal(rtgrant_get_status(f.handle, &status), 0);
        assert_int_equal(status.n_offers, 16);
        session_stop(&f);
}

struct occupants {
        struct wire_occupants_reply reply;
        size_t size;
        int result;
        unsigned n;
};

static void script_occupants(struct fake_broker *broker) {
        struct occupants *occupants = broker->userdata;

        while (fake_receive(broker) > 0)
                fake_reply(broker, &occupants->reply, occupants->size);
}

static int on_occupant(const char *comm, uint64_t ns, void *userdata) {
        unsigned *n = userdata;

        assert_int_equal(strlen(comm), WIRE_COMM_SIZE - 1);
        assert_int_equal(ns, *n + 1);
        (*n)++;
        return 0;
}

static void test_occupants(void **state) {
        const uint32_t one = sizeof(struct wire_occupant);
        const size_t head = offsetof(struct wire_occupants_reply, occupants);
        const struct occupants cases[] = {
                { { .n_occupants = 2, .occupant_size = one, .since_ns = 5, .until_ns = 9 },
                  head + 2 * one, 0, 2 },
                { { .n_occupants = 0, .occupant_size = one, .since_ns = 5, .until_ns = 9 }, head, 0, 0 },
                { { .reason = RTGRANT_REASON_NOT_ALLOWED }, head, -EPERM, 0 },
                { { .n_occupants = 3, .occupant_size = one, .since_ns = 5, .until_ns = 9 },
                  head + 2 * one, -EPROTO, 0 },
                { { .n_occupants = UINT32_MAX, .occupant_size = 8, .since_ns = 5, .until_ns = 9 },
                  head + one, -EPROTO, 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                struct occupants occupants = cases[i];
                uint64_t since_ns = 0, until_ns = 0;
                struct session f;
                unsigned n = 0;

                for (unsigned j = 0; j < WIRE_OCCUPANTS_MAX; j++) {
                        occupants.reply.occupants[j].ns = j + 1;
                        memset(occupants.reply.occupants[j].comm, 'x', WIRE_COMM_SIZE);
                }
                session_start(&f, script_occupants, &occupants, 0);
                assert_int_equal(rtgrant_get_occupants(f.handle, 1, 2, on_occupant, &n, &since_ns,
                                                       &until_ns),
                                 cases[i].result);
                if (cases[i].result == 0) {
                        assert_int_equal(n, cases[i].n);
                        assert_int_equal(since_ns, 5);
                        assert_int_equal(until_ns, 9);
                }
                assert_int_equal(rtgrant_get_occupants(f.handle, 2, 1, on_occupant, &n, NULL, NULL),
                                 -EINVAL);
                session_stop(&f);
        }
}

/* Yes to who may ask for a password. */
static void script_observe(struct fake_broker *broker) {
        while (fake_receive(broker) > 0)
                fake_reply(broker,
                           &(struct wire_answer) {
                                   .reason = broker->request.observe.flags == 0
                                                     ? RTGRANT_REASON_NOT_ALLOWED
                                                     : RTGRANT_REASON_NONE,
                                   .explanation.text = "no",
                           },
                           sizeof(struct wire_answer));
}

static void test_observe(void **state) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct session f;

        session_start(&f, script_observe, NULL, 0);
        assert_int_equal(rtgrant_observe(f.handle, 3, 0, &answer), -EPERM);
        assert_int_equal(answer.reason, RTGRANT_REASON_NOT_ALLOWED);
        assert_string_equal(answer.text, "no");
        assert_int_equal(f.broker.request.header.verb, WIRE_OBSERVE);
        assert_int_equal(f.broker.request.observe.cpu, 3);
        assert_int_equal(rtgrant_observe(f.handle, 3, RTGRANT_MAY_ASK, NULL), 0);
        assert_int_equal(rtgrant_observe(f.handle, -1, 0, NULL), -EINVAL);
        assert_int_equal(rtgrant_observe(f.handle, 3, RTGRANT_CLAMP, NULL), -EINVAL);
        session_stop(&f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_list_of_other_versions),
                cmocka_unit_test(test_list_ends_when_told),
                cmocka_unit_test(test_bad_lists),
                cmocka_unit_test(test_list_within_a_list),
                cmocka_unit_test(test_close_within_a_list),
                cmocka_unit_test(test_policy),
                cmocka_unit_test(test_policy_that_never_rests),
                cmocka_unit_test(test_bad_policies),
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_whether_one_is_an_administrator_is_asked),
                cmocka_unit_test(test_a_user_becomes_an_administrator),
                cmocka_unit_test(test_status_with_more_offers_than_we_know),
                cmocka_unit_test(test_occupants),
                cmocka_unit_test(test_observe),
        };

        return cmocka_run_group_tests_name("lib-pages", tests, NULL, NULL);
}
