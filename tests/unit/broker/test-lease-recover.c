/* SPDX-License-Identifier: MIT */

/* S54: what a successor makes of the records of a broker that was killed, true and untrue ones. */

#include <ftw.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/broker.h"
#include "broker/grant.h"
#include "broker/ids.h"
#include "broker/lease-recover.h"
#include "tests/unit/broker/broker-test.h"

#define HOUR_MS UINT64_C(3600000)

struct world {
        const struct recover_case *c;
        char dir[64];
        struct broker broker;
        struct test_child child;        /* thread 1 is the leased one */
        struct lease_record record;
};

struct recover_case {
        const char *name;
        void (*change)(struct world *w); /* the record or the thread */
        struct lease_recovery expected;
        bool set_after;                 /* the thread has what was set, else what was saved */
};

/* ---- a good record: of FIFO 20 with nice 3 behind it, in force ---- */

static void set_thread(const struct world *w, int policy, int priority, int nice,
                       bool reset_on_fork) {
        const struct sched_values values = {
                .policy = policy,
                .priority = priority,
                .nice = nice,
                .reset_on_fork = reset_on_fork,
        };

        assert_int_equal(sched_write_nice(w->child.tids[1], nice), 0);
        assert_int_equal(sched_write(w->child.tids[1], &values), 0);
}

static void make_record(struct world *w) {
        struct lease_record *r = &w->record;
        struct thread thread;
        struct creds creds;

        assert_int_equal(
                thread_open(&w->broker.kernel, w->child.pid, w->child.tids[1], &thread, &creds), 0);
        *r = (struct lease_record) {
                .state = LEASE_RECORD_LIVE,
                .id = { 1, 2, 3 },
                .inode = thread.inode,
                .start_time = thread.start_time,
                .since_ms = broker_now_ms() - HOUR_MS,
                .pid = thread.pid,
                .tid = thread.tid,
                .uid = UID_NOBODY,
                .gid = UID_NOBODY,
                .quota_uid = UID_NOBODY,
                .want = WIRE_WANT_SCHED,
                .saved = { .policy = SCHED_OTHER, .nice = 3 },
                .set = { .policy = SCHED_FIFO, .priority = 20, .reset_on_fork = 1 },
                .next = { .policy = SCHED_FIFO, .priority = 20, .reset_on_fork = 1 },
                .role = "test",
                .reason = "a test",
        };
        thread_close(&thread);
}

/* ---- a broker that starts ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int tear_down(void **state) {
        struct world *w = *state;

        (void) broker_end_all(&w->broker, REASON_SHUTDOWN, "the test is over");
        w->broker.check = sd_event_source_disable_unref(w->broker.check);
        lease_table_done(&w->broker.leases);
        resource_table_done(&w->broker.resources);
        user_table_done(&w->broker.users);
        (void) lease_store_close(w->broker.store);
        (void) policy_store_free(w->broker.policy);
        (void) sd_event_unref(w->broker.event);
        (void) log_free(w->broker.log);
        assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        if (w->child.pid > 0)
                test_child_end(&w->child);
        free(w);
        return 0;
}

static int set_up(void **state) {
        static const char policy[] =
                "[Role test]\nPolicy=fifo rr other\nPriority=1-50\nNice=-15\nAllowUsers=*\n";
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        w->c = *state;
        (void) snprintf(w->dir, sizeof(w->dir), "/tmp/test-lease-recover-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        kernel_probe(&w->broker.kernel);
        assert_int_equal(sd_event_new(&w->broker.event), 0);
        assert_int_equal(
                policy_store_parse("p", policy, sizeof(policy) - 1, &w->broker.policy, NULL), 0);
        assert_int_equal(lease_store_open(w->dir, &w->broker.store), 0);
        lease_table_init(&w->broker.leases);
        resource_table_init(&w->broker.resources);
        user_table_init(&w->broker.users);
        w->broker.self.over_budget = true; /* the test itself stays where it is */
        *state = w;
        return 0;
}

/* In this order: a process whose log has a thread must not fork (an allocator may be locked). */
static void start_child(struct world *w) {
        test_child_start(&w->child, &TEST_IDS(UID_NOBODY), 2, 0);
        assert_int_equal(log_new(&w->broker.log, LOG_ERR), 0);
        w->broker.self.log = w->broker.log;
}

static void put_record(struct world *w) {
        unsigned slot;

        assert_int_equal(lease_store_take(w->broker.store, &slot), 0);
        lease_store_put(w->broker.store, slot, &w->record);
}

static unsigned n_records(const struct world *w) {
        unsigned n = 0;

        for (unsigned slot = 0; slot < lease_store_n_slots(w->broker.store); slot++)
                n += lease_store_get(w->broker.store, slot) != NULL;
        return n;
}

static void test_recover(void **state) {
        struct world *w = *state;
        const struct recover_case *c = w->c;
        struct lease_recovery recovery;

        test_need_root();
        start_child(w);
        set_thread(w, SCHED_FIFO, 20, 3, true);
        make_record(w);
        c->change(w);
        put_record(w);

        lease_recover(&w->broker, &recovery);
        assert_int_equal(recovery.n_adopted, c->expected.n_adopted);
        assert_int_equal(recovery.n_restored, c->expected.n_restored);
        assert_int_equal(recovery.n_ended, c->expected.n_ended);
        assert_int_equal(recovery.n_damaged, c->expected.n_damaged);
        assert_int_equal(lease_table_size(&w->broker.leases), c->expected.n_adopted);
        assert_int_equal(n_records(w),
                         c->expected.n_adopted); /* the slots of the others are free */
        if (recovery.n_ended == 0 || c->set_after) {
                if (c->set_after)
                        assert_sched_is(w->child.tids[1], SCHED_FIFO, 20, 3, true);
                else
                        assert_sched_is(w->child.tids[1], SCHED_OTHER, 0, 3, false);
        }
        assert_sched_is(w->child.tids[2], SCHED_OTHER, 0, 0, false);

        if (c->expected.n_adopted > 0) {
                assert_int_equal(broker_end_all(&w->broker, REASON_SHUTDOWN, "the test is over"),
                                 1);
                assert_sched_is(w->child.tids[1], SCHED_OTHER, 0, 3, false);
                assert_int_equal(n_records(w), 0);
        }
}

/* ---- what is true ---- */

static void as_it_was(struct world *w) {
}

static void of_seconds_to_come(struct world *w) {
        w->record.lifetime = WIRE_LIFETIME_SECONDS;
        w->record.expires_ms = broker_now_ms() + HOUR_MS;
}

static void of_seconds_gone_by(struct world *w) {
        w->record.lifetime = WIRE_LIFETIME_SECONDS;
        w->record.expires_ms = broker_now_ms() - 1;
}

static void of_a_connection(struct world *w) {
        w->record.lifetime = WIRE_LIFETIME_CONNECTION;
}

static void of_a_bus_name(struct world *w) {
        w->record.lifetime = WIRE_LIFETIME_CONNECTION;
        w->record.transport = WIRE_TRANSPORT_BROKER1;
}

static void intent_done(struct world *w) {
        w->record.state = LEASE_RECORD_INTENT;
        w->record.set = (struct lease_record_values) {};
}

static void intent_not_done(struct world *w) {
        intent_done(w);
        set_thread(w, SCHED_OTHER, 0, 3, false);
}

static void changing_not_done(struct world *w) {
        w->record.state = LEASE_RECORD_CHANGING;
        w->record.next.priority = 40;
}

static void changing_done(struct world *w) {
        w->record.state = LEASE_RECORD_CHANGING;
        w->record.set.priority = 10;
}

static void ending_not_done(struct world *w) {
        w->record.state = LEASE_RECORD_ENDING;
}

static void ending_done(struct world *w) {
        ending_not_done(w);
        set_thread(w, SCHED_OTHER, 0, 3, false);
}

static void two_kinds(struct world *w) {
        w->record.want = WIRE_WANT_SCHED | WIRE_WANT_NICE;
        w->record.saved.nice_kind = 3;
        w->record.saved.nice_reset_on_fork = 1;
        w->record.set.nice_kind = w->record.next.nice_kind = -5;
        w->record.set.nice_reset_on_fork = w->record.next.nice_reset_on_fork = 1;
        set_thread(w, SCHED_FIFO, 20, -5, true);
        w->record.lifetime = WIRE_LIFETIME_CONNECTION;
        w->record.transport = WIRE_TRANSPORT_BROKER1;
}

static void role_is_no_more(struct world *w) {
        (void) strcpy(w->record.role, "other");
}

static void other_user(struct world *w) {
        w->record.uid = UID_OTHER;
}

/* ---- threads that are not the record's: nothing is done to them ---- */

static void thread_ended(struct world *w) {
        test_child_end_thread(&w->child, 1);
}

static void another_thread(struct world *w) {
        w->record.inode ^= 1;
        w->record.start_time ^= 1;
}

static void no_proof(struct world *w) {
        w->record.inode = 0;
        w->record.start_time = 0;
}

static void another_process(struct world *w) {
        w->record.pid = getpid();
}

static void number_of_nobody(struct world *w) {
        w->record.pid = w->record.tid = ID_MAX;
}

/* ---- untrue ones ---- */

#define UNTRUE(name, statement)                                                                   \
        static void untrue_##name(struct world *w) {                                              \
                struct lease_record *r = &w->record;                                              \
                statement;                                                                        \
        }

UNTRUE(state_0, r->state = 0)
UNTRUE(state_6, r->state = 6)
UNTRUE(pid_0, r->pid = 0)
UNTRUE(pid_minus_1, r->pid = -1)
UNTRUE(pid_too_high, r->pid = ID_MAX + 1)
UNTRUE(tid_0, r->tid = 0)
UNTRUE(tid_minus_1, r->tid = -1)
UNTRUE(tid_too_high, r->tid = INT32_MAX)
UNTRUE(want_nothing, r->want = 0)
UNTRUE(want_more, r->want |= 1 << 6)
UNTRUE(want_unknown, r->want |= 0x80000000)
UNTRUE(lifetime, r->lifetime = 3)
UNTRUE(transport, r->transport = 3)
UNTRUE(role, memset(r->role, 'x', sizeof(r->role)))
UNTRUE(reason, memset(r->reason, 'x', sizeof(r->reason)))
UNTRUE(saved_policy, r->saved.policy = 4)
UNTRUE(saved_policy_negative, r->saved.policy = -1)
UNTRUE(saved_priority, (r->saved.policy = SCHED_FIFO, r->saved.priority = 100))
UNTRUE(saved_priority_of_none, r->saved.priority = 1)
UNTRUE(saved_nice, r->saved.nice = 20)
UNTRUE(saved_nice_kind, r->saved.nice_kind = -21)
UNTRUE(set_priority, r->set.priority = 95)
UNTRUE(set_priority_0, r->set.priority = 0)
UNTRUE(set_priority_negative, r->set.priority = -1)
UNTRUE(set_policy, r->set.policy = 8)
UNTRUE(set_nice_kind, r->set.nice_kind = 20)
UNTRUE(next_priority, r->next.priority = 99)
UNTRUE(next_policy, r->next.policy = INT32_MIN)

#define ADOPTED { .n_adopted = 1 }
#define RESTORED { .n_restored = 1 }
#define ENDED { .n_ended = 1 }
#define DAMAGED { .n_damaged = 1 }

static const struct recover_case cases[] = {
        { "as it was", as_it_was, ADOPTED, true },
        { "of seconds to come", of_seconds_to_come, ADOPTED, true },
        { "of seconds gone by", of_seconds_gone_by, RESTORED, false },
        { "of a connection, which may come again", of_a_connection, ADOPTED, true },
        { "of a name on the bus", of_a_bus_name, RESTORED, false },
        { "killed while it made the grant, which was done", intent_done, RESTORED, false },
        { "killed while it made the grant, which was not done", intent_not_done, RESTORED, false },
        { "killed while it changed it, which was done", changing_done, ADOPTED, true },
        { "killed while it changed it, which was not done", changing_not_done, ADOPTED, true },
        { "killed while it ended it, which was not done", ending_not_done, RESTORED, false },
        { "killed while it ended it, which was done", ending_done, RESTORED, false },
        { "two kinds", two_kinds, RESTORED, false },
        { "its role is no more", role_is_no_more, RESTORED, false },
        { "its thread runs as another user", other_user, RESTORED, false },

        { "its thread ended", thread_ended, ENDED, false },
        { "another thread has its number", another_thread, ENDED, true },
        { "no proof that it is the thread", no_proof, ENDED, true },
        { "another process", another_process, ENDED, true },
        { "a number that nobody has", number_of_nobody, ENDED, true },

        { "state 0", untrue_state_0, DAMAGED, true },
        { "state 6", untrue_state_6, DAMAGED, true },
        { "process 0", untrue_pid_0, DAMAGED, true },
        { "process -1", untrue_pid_minus_1, DAMAGED, true },
        { "process too high", untrue_pid_too_high, DAMAGED, true },
        { "thread 0", untrue_tid_0, DAMAGED, true },
        { "thread -1", untrue_tid_minus_1, DAMAGED, true },
        { "thread too high", untrue_tid_too_high, DAMAGED, true },
        { "of nothing", untrue_want_nothing, DAMAGED, true },
        { "of a kind that is not kept", untrue_want_more, DAMAGED, true },
        { "of an unknown kind", untrue_want_unknown, DAMAGED, true },
        { "unknown lifetime", untrue_lifetime, DAMAGED, true },
        { "unknown transport", untrue_transport, DAMAGED, true },
        { "a role without end", untrue_role, DAMAGED, true },
        { "a reason without end", untrue_reason, DAMAGED, true },
        { "saved: unknown policy", untrue_saved_policy, DAMAGED, true },
        { "saved: negative policy", untrue_saved_policy_negative, DAMAGED, true },
        { "saved: priority 100", untrue_saved_priority, DAMAGED, true },
        { "saved: a priority without real-time", untrue_saved_priority_of_none, DAMAGED, true },
        { "saved: nice 20", untrue_saved_nice, DAMAGED, true },
        { "saved: nice -21", untrue_saved_nice_kind, DAMAGED, true },
        { "set: more than is ever given", untrue_set_priority, DAMAGED, true },
        { "set: real-time without priority", untrue_set_priority_0, DAMAGED, true },
        { "set: negative priority", untrue_set_priority_negative, DAMAGED, true },
        { "set: unknown policy", untrue_set_policy, DAMAGED, true },
        { "set: nice 20", untrue_set_nice_kind, DAMAGED, true },
        { "next: more than is ever given", untrue_next_priority, DAMAGED, true },
        { "next: unknown policy", untrue_next_policy, DAMAGED, true },
};

/* What an adopted lease knows is what was on file. */
static void test_all_of_it_comes_back(void **state) {
        struct lease_recovery recovery;
        struct world *w = *state;
        struct lease *lease;

        test_need_root();
        start_child(w);
        set_thread(w, SCHED_FIFO, 20, 3, true);
        make_record(w);
        of_seconds_to_come(w);
        w->record.timing_ns[0] = 3;
        w->record.timing_ns[1] = 1;
        w->record.timing_ns[2] = 2;
        w->record.cap_permitted = 0x10;
        w->record.quota_uid = UID_OTHER;
        put_record(w);

        lease_recover(&w->broker, &recovery);
        assert_int_equal(recovery.n_adopted, 1);
        lease = lease_find(&w->broker.leases, w->record.id);
        assert_non_null(lease);
        assert_ptr_equal(lease_find_by_tid(&w->broker.leases, w->child.tids[1]), lease);
        assert_int_equal(lease->uid, UID_NOBODY);
        assert_int_equal(lease->user->uid, UID_OTHER);
        assert_int_equal(lease->user->n_leases, 1);
        assert_int_equal(lease->user->threads_by_role[0], 1);
        assert_int_equal(lease->thread.pid, w->child.pid);
        assert_int_equal(lease->timing.period_ns, 3);
        assert_int_equal(lease->timing.computation_ns, 1);
        assert_int_equal(lease->timing.deadline_ns, 2);
        assert_int_equal(lease->cap_permitted, 0x10);
        assert_int_equal(lease->since_ms, w->record.since_ms);
        assert_true(lease->expires_ms >= w->record.expires_ms &&
                    lease->expires_ms < w->record.expires_ms + 2000);
        assert_string_equal(lease->role, "test");
        assert_string_equal(lease->reason, "a test");
        assert_int_equal(w->broker.leases.n_rt, 1);
        assert_int_equal(grant_verify(lease), 1);
}

/* Of many each is looked at, whatever becomes of its neighbours. */
static void test_many(void **state) {
        void (*const changes[])(struct world * w) = { number_of_nobody, untrue_pid_0, as_it_was,
                                                      untrue_set_priority };
        struct lease_recovery recovery;
        struct world *w = *state;

        test_need_root();
        start_child(w);
        set_thread(w, SCHED_FIFO, 20, 3, true);
        for (size_t i = 0; i < ELEMENTS(changes); i++) {
                make_record(w);
                changes[i](w);
                w->record.id[0] = (uint8_t) i;
                put_record(w);
        }

        lease_recover(&w->broker, &recovery);
        assert_int_equal(recovery.n_adopted, 1);
        assert_int_equal(recovery.n_ended, 1);
        assert_int_equal(recovery.n_damaged, 2);
        assert_int_equal(n_records(w), 1);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test_setup_teardown(test_all_of_it_comes_back, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
        };
        struct CMUnitTest tests[ELEMENTS(cases) + ELEMENTS(others)];
        size_t n = ELEMENTS(cases);

        for (size_t i = 0; i < n; i++) {
                tests[i] = test_row(cases[i].name, test_recover, &cases[i]);
                tests[i].setup_func = set_up;
                tests[i].teardown_func = tear_down;
        }
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("lease-recover", tests, NULL, NULL);
}
