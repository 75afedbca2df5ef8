/* SPDX-License-Identifier: MIT */

/* The kinds of grant on a real thread that sleeps: what is set, and what is there again afterwards.
 */

#include <errno.h>
#include <string.h>

#include "broker/kinds/kind.h"
#include "tests/unit/broker/broker-test.h"

/* What a thread has; nice counts beside real-time too. */
struct state {
        int policy;
        int priority;
        int nice;
        bool reset_on_fork;
};

#define MS UINT64_C(1000000)

static void set_state(pid_t tid, const struct state *state) {
        const struct sched_values values = {
                .policy = state->policy,
                .priority = state->priority,
                .nice = state->nice,
                .reset_on_fork = state->reset_on_fork,
        };

        assert_int_equal(sched_write_nice(tid, state->nice), 0);
        assert_int_equal(sched_write(tid, &values), 0);
}

static void assert_state(pid_t tid, const struct state *state) {
        assert_sched_is(tid, state->policy, state->priority, state->nice, state->reset_on_fork);
}

struct kind_case {
        const char *name;
        enum kind_index kind;
        struct state before;
        struct state set;               /* as far as the kind sets it; then what is there */
        bool changed;                   /* meanwhile, to: */
        struct state meanwhile;
        int restored;                   /* what restore returns */
        struct state after;
};

#define FIFO SCHED_FIFO
#define RR SCHED_RR
#define OTHER SCHED_OTHER
#define BATCH SCHED_BATCH
#define IDLE SCHED_IDLE
#define DEADLINE SCHED_POLICY_DEADLINE

static const struct kind_case cases[] = {
        /* what was there comes back */
        { "sched: an ordinary thread", KIND_SCHED, { OTHER, 0, 0, false }, { FIFO, 30, 0, true },
          .restored = 1, .after = { OTHER, 0, 0, false } },
        { "sched: RR", KIND_SCHED, { OTHER, 0, 0, false }, { RR, 94, 0, true }, .restored = 1,
          .after = { OTHER, 0, 0, false } },
        { "sched: nice 19", KIND_SCHED, { OTHER, 0, 19, false }, { FIFO, 30, 19, true },
          .restored = 1, .after = { OTHER, 0, 19, false } },
        { "sched: a better nice", KIND_SCHED, { OTHER, 0, -11, false }, { FIFO, 30, -11, true },
          .restored = 1, .after = { OTHER, 0, -11, false } },
        { "sched: IDLE", KIND_SCHED, { IDLE, 0, 0, false }, { FIFO, 30, 0, true }, .restored = 1,
          .after = { IDLE, 0, 0, false } },
        { "sched: IDLE with nice 7", KIND_SCHED, { IDLE, 0, 7, false }, { RR, 30, 7, true },
          .restored = 1, .after = { IDLE, 0, 7, false } },
        { "sched: BATCH", KIND_SCHED, { BATCH, 0, 0, false }, { FIFO, 30, 0, true }, .restored = 1,
          .after = { BATCH, 0, 0, false } },
        { "sched: BATCH with nice 12", KIND_SCHED, { BATCH, 0, 12, false }, { FIFO, 30, 12, true },
          .restored = 1, .after = { BATCH, 0, 12, false } },
        { "sched: an earlier FIFO", KIND_SCHED, { FIFO, 3, 5, false }, { FIFO, 30, 5, true },
          .restored = 1, .after = { FIFO, 3, 5, false } },
        { "sched: an earlier RR with the flag", KIND_SCHED, { RR, 2, 0, true },
          { FIFO, 30, 0, true }, .restored = 1, .after = { RR, 2, 0, true } },
        { "sched: the flag that was there", KIND_SCHED, { OTHER, 0, 4, true },
          { FIFO, 30, 4, true }, .restored = 1, .after = { OTHER, 0, 4, true } },
        { "sched: OTHER for a BATCH thread", KIND_SCHED, { BATCH, 0, 3, false },
          { OTHER, 0, 3, true }, .restored = 1, .after = { BATCH, 0, 3, false } },
        { "sched: OTHER for an IDLE thread", KIND_SCHED, { IDLE, 0, 9, false },
          { OTHER, 0, 9, true }, .restored = 1, .after = { IDLE, 0, 9, false } },

        /* what others did meanwhile stays */
        { "sched: its owner gave it up", KIND_SCHED, { OTHER, 0, 0, false }, { FIFO, 30, 0, true },
          true, { OTHER, 0, 0, true }, 0, { OTHER, 0, 0, true } },
        { "sched: its owner lowered it", KIND_SCHED, { OTHER, 0, 0, false }, { FIFO, 30, 0, true },
          true, { FIFO, 29, 0, true }, 1, { OTHER, 0, 0, false } },
        { "sched: its owner lowered it below what was there", KIND_SCHED, { FIFO, 20, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 10, 0, true }, 0, { FIFO, 10, 0, true } },
        { "sched: its owner made OTHER of what was IDLE", KIND_SCHED, { IDLE, 0, 0, false },
          { FIFO, 30, 0, true }, true, { OTHER, 0, 0, true }, 1, { IDLE, 0, 0, false } },
        { "sched: its owner took RR", KIND_SCHED, { OTHER, 0, 0, false }, { FIFO, 30, 0, true },
          true, { RR, 30, 0, true }, 1, { OTHER, 0, 0, false } },
        { "sched: an administrator raised it", KIND_SCHED, { OTHER, 0, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 50, 0, true }, 0, { FIFO, 50, 0, true } },
        { "sched: an administrator took the flag away", KIND_SCHED, { OTHER, 0, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 30, 0, false }, 0, { FIFO, 30, 0, false } },
        { "sched: put to IDLE", KIND_SCHED, { OTHER, 0, 0, false }, { FIFO, 30, 0, true },
          true, { IDLE, 0, 0, true }, 0, { IDLE, 0, 0, true } },
        /* its nice is kept: without privilege it could not be had back */
        { "sched: reniced while real-time", KIND_SCHED, { OTHER, 0, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 30, 15, true }, 1, { OTHER, 0, 15, false } },
        { "sched: reniced by an administrator while real-time", KIND_SCHED, { OTHER, 0, 5, false },
          { FIFO, 30, 5, true }, true, { FIFO, 30, -8, true }, 1, { OTHER, 0, -8, false } },
        { "sched: BATCH, reniced while real-time", KIND_SCHED, { BATCH, 0, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 30, 10, true }, 1, { BATCH, 0, 10, false } },
        { "sched: IDLE, reniced while real-time", KIND_SCHED, { IDLE, 0, 0, false },
          { FIFO, 30, 0, true }, true, { FIFO, 30, 10, true }, 1, { IDLE, 0, 10, false } },

        { "nice: an ordinary thread", KIND_NICE, { OTHER, 0, 0, false }, { OTHER, 0, -11, true },
          .restored = 1, .after = { OTHER, 0, 0, false } },
        { "nice: from 19", KIND_NICE, { OTHER, 0, 19, false }, { OTHER, 0, -20, true },
          .restored = 1, .after = { OTHER, 0, 19, false } },
        { "nice: BATCH", KIND_NICE, { BATCH, 0, 3, false }, { BATCH, 0, -5, true }, .restored = 1,
          .after = { BATCH, 0, 3, false } },
        { "nice: IDLE", KIND_NICE, { IDLE, 0, 8, false }, { IDLE, 0, -5, true }, .restored = 1,
          .after = { IDLE, 0, 8, false } },
        { "nice: a real-time thread", KIND_NICE, { FIFO, 3, 8, false }, { FIFO, 3, -5, true },
          .restored = 1, .after = { FIFO, 3, 8, false } },
        { "nice: the flag that was there", KIND_NICE, { OTHER, 0, 0, true },
          { OTHER, 0, -11, true }, .restored = 1, .after = { OTHER, 0, 0, true } },
        { "nice: to a weaker one", KIND_NICE, { OTHER, 0, 0, false }, { OTHER, 0, 10, true },
          .restored = 1, .after = { OTHER, 0, 0, false } },
        { "nice: its owner weakened it", KIND_NICE, { OTHER, 0, 0, false }, { OTHER, 0, -11, true },
          true, { OTHER, 0, 5, true }, 0, { OTHER, 0, 5, true } },
        { "nice: its owner weakened it a little", KIND_NICE, { OTHER, 0, 0, false },
          { OTHER, 0, -11, true }, true, { OTHER, 0, -10, true }, 1, { OTHER, 0, 0, false } },
        { "nice: an administrator improved it", KIND_NICE, { OTHER, 0, 0, false },
          { OTHER, 0, -11, true }, true, { OTHER, 0, -15, true }, 0, { OTHER, 0, -15, true } },
        { "nice: an administrator took the flag away", KIND_NICE, { OTHER, 0, 0, false },
          { OTHER, 0, -11, true }, true, { OTHER, 0, -11, false }, 0, { OTHER, 0, -11, false } },
        { "nice: became real-time meanwhile", KIND_NICE, { OTHER, 0, 0, false },
          { OTHER, 0, -11, true }, true, { FIFO, 5, -11, true }, 1, { FIFO, 5, 0, false } },
        { "nice: put to BATCH meanwhile", KIND_NICE, { OTHER, 0, 2, false },
          { OTHER, 0, -11, true }, true, { BATCH, 0, -11, true }, 1, { BATCH, 0, 2, false } },
        { "nice: put to IDLE meanwhile", KIND_NICE, { OTHER, 0, 2, false }, { OTHER, 0, -11, true },
          true, { IDLE, 0, -11, true }, 1, { IDLE, 0, 2, false } },
};

static union kind_values values_to_set(const struct kind_case *c) {
        union kind_values set = {};

        if (c->kind == KIND_SCHED) {
                set.sched.policy = c->set.policy;
                set.sched.priority = c->set.priority;
                set.sched.reset_on_fork = c->set.reset_on_fork;
        } else {
                set.nice.nice = c->set.nice;
                set.nice.reset_on_fork = c->set.reset_on_fork;
        }
        return set;
}

static void test_kind(void **state) {
        const struct kind_case *c = *state;
        const struct kind *kind = kinds[c->kind];
        const union kind_values set = values_to_set(c);
        union kind_values saved;
        struct sched_values now;
        struct test_child child;
        pid_t tid;

        test_need_root();
        test_child_start(&child, &TEST_IDS(UID_NOBODY), 1, 0);
        tid = child.tids[1];
        set_state(tid, &c->before);

        assert_int_equal(sched_read(tid, &now), 0);
        assert_int_equal(kind->verify(tid, &now, &set), 0);
        assert_int_equal(kind->capture(tid, &now, &saved), 0);
        assert_int_equal(kind->apply(tid, &now, &set), 0);
        assert_state(tid, &c->set);
        assert_int_equal(sched_read(tid, &now), 0);
        assert_int_equal(kind->verify(tid, &now, &set), 1);

        if (c->changed)
                set_state(tid, &c->meanwhile);
        assert_int_equal(kind->restore(tid, &saved, &set), c->restored);
        assert_state(tid, &c->after);
        /* its neighbours have what they had */
        assert_sched_is(child.tids[0], OTHER, 0, 0, false);
        test_child_end(&child);
}

/* ---- the rest ---- */

static void test_custom_slice_comes_back(void **state) {
        const struct sched_values slice = { .policy = OTHER, .runtime_ns = 7 * MS };
        const union kind_values set = {
                .sched = { .policy = FIFO, .priority = 9, .reset_on_fork = true }
        };
        union kind_values saved;
        struct sched_values now;
        struct test_child child;

        test_need_root();
        test_child_start(&child, NULL, 0, 0);
        assert_int_equal(sched_write(child.pid, &slice), 0);
        assert_int_equal(sched_read(child.pid, &now), 0);
        if (now.runtime_ns != 7 * MS) {
                test_child_end(&child);
                test_skip("this kernel has no slices of one's own (Linux 6.12)");
        }

        assert_int_equal(kind_sched.capture(child.pid, &now, &saved), 0);
        assert_int_equal(kind_sched.apply(child.pid, &now, &set), 0);
        assert_int_equal(kind_sched.restore(child.pid, &saved, &set), 1);
        assert_int_equal(sched_read(child.pid, &now), 0);
        assert_int_equal(now.runtime_ns, 7 * MS);
        test_child_end(&child);
}

/*
 * A thread that is taken out of SCHED_DEADLINE while it sleeps leaves its bandwidth behind: the
 * kernel (6.18) never gives it to anybody again. So none is: the last call is seen, not made.
 */
int __real_sched_write(pid_t tid, const struct sched_values *values);
int __wrap_sched_write(pid_t tid, const struct sched_values *values);

static struct sched_values last_deadline;

int __wrap_sched_write(pid_t tid, const struct sched_values *values) {
        if (values->policy != DEADLINE || values->runtime_ns == 0)
                return __real_sched_write(tid, values);

        last_deadline = *values;
        return 0;
}

static const struct sched_values deadline = {
        .policy = DEADLINE,
        .runtime_ns = 1 * MS,
        .deadline_ns = 50 * MS,
        .period_ns = 100 * MS,
        .other_flags = 0x2, /* SCHED_FLAG_RECLAIM */
};

static void assert_deadline(const struct sched_values *values) {
        assert_int_equal(values->policy, DEADLINE);
        assert_int_equal(values->runtime_ns, 1 * MS);
        assert_int_equal(values->deadline_ns, 50 * MS);
        assert_int_equal(values->period_ns, 100 * MS);
        assert_int_equal(values->other_flags, 0x2);
        assert_false(values->reset_on_fork);
}

static void test_deadline_is_saved_whole(void **state) {
        union kind_values saved;
        struct sched_values now;
        struct test_child child;
        int r;

        test_need_root();
        test_child_start(&child, NULL, 0, 0);
        r = __real_sched_write(child.pid, &deadline);
        assert_int_equal(sched_read(child.pid, &now), 0);
        assert_int_equal(kind_sched.capture(child.pid, &now, &saved), 0);
        test_child_end(&child);

        if (r == -EBUSY)
                test_skip("somebody else has the bandwidth for deadlines");
        assert_int_equal(r, 0);
        assert_deadline(&saved.sched);
}

static void test_deadline_comes_back_whole(void **state) {
        const union kind_values set = {
                .sched = { .policy = FIFO, .priority = 9, .reset_on_fork = true },
        };
        const union kind_values saved = { .sched = deadline };
        struct sched_values now;
        struct test_child child;

        test_need_root();
        test_child_start(&child, NULL, 0, 0);
        assert_int_equal(sched_read(child.pid, &now), 0);
        assert_int_equal(kind_sched.apply(child.pid, &now, &set), 0);
        memset(&last_deadline, 0, sizeof(last_deadline));
        assert_int_equal(kind_sched.restore(child.pid, &saved, &set), 1);
        assert_deadline(&last_deadline);
        test_child_end(&child);
}

/* A bandwidth that is not to be had again must not mean that the loan is kept. */
static void test_what_cannot_come_back(void **state) {
        const union kind_values set = {
                .sched = { .policy = FIFO, .priority = 9, .reset_on_fork = true }
        };
        union kind_values saved = {
                .sched = { .policy = DEADLINE }
        }; /* no runtime: the kernel says EINVAL */
        struct sched_values now;
        struct test_child child;

        test_need_root();
        test_child_start(&child, NULL, 0, 0);
        assert_int_equal(sched_write_nice(child.pid, 6), 0);
        assert_int_equal(sched_read(child.pid, &now), 0);
        assert_int_equal(kind_sched.apply(child.pid, &now, &set), 0);
        assert_int_equal(kind_sched.restore(child.pid, &saved, &set), 1);
        assert_sched_is(child.pid, OTHER, 0, 6, false);
        test_child_end(&child);
}

static void test_a_thread_that_is_gone(void **state) {
        const union kind_values sets[_KIND_MAX] = {
                [KIND_SCHED].sched = { .policy = FIFO, .priority = 9, .reset_on_fork = true },
                [KIND_NICE].nice = { .nice = -1, .reset_on_fork = true },
        };
        union kind_values saved[_KIND_MAX] = {};
        struct sched_values now;
        struct test_child child;
        pid_t tid;

        test_need_root();
        test_child_start(&child, NULL, 1, 0);
        tid = child.tids[1];
        assert_int_equal(sched_read(tid, &now), 0);
        test_child_end_thread(&child, 1);

        for (enum kind_index kind = 0; kind < _KIND_MAX; kind++) {
                assert_int_equal(kinds[kind]->apply(tid, &now, &sets[kind]), -ESRCH);
                assert_int_equal(kinds[kind]->restore(tid, &saved[kind], &sets[kind]), -ESRCH);
        }
        assert_int_equal(sched_read(tid, &now), -ESRCH);
        assert_int_equal(sched_write_nice(tid, 1), -ESRCH);
        test_child_end(&child);
}

static void test_words(void **state) {
        assert_string_equal(sched_policy_to_string(SCHED_OTHER), "OTHER");
        assert_string_equal(sched_policy_to_string(SCHED_FIFO), "FIFO");
        assert_string_equal(sched_policy_to_string(SCHED_RR), "RR");
        assert_string_equal(sched_policy_to_string(SCHED_BATCH), "BATCH");
        assert_string_equal(sched_policy_to_string(SCHED_IDLE), "IDLE");
        assert_string_equal(sched_policy_to_string(6), "DEADLINE");
        assert_string_equal(sched_policy_to_string(7), "EXT");
        assert_string_equal(sched_policy_to_string(4), "unknown");
        assert_string_equal(sched_policy_to_string(-1), "unknown");
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_custom_slice_comes_back),
                cmocka_unit_test(test_deadline_is_saved_whole),
                cmocka_unit_test(test_deadline_comes_back_whole),
                cmocka_unit_test(test_what_cannot_come_back),
                cmocka_unit_test(test_a_thread_that_is_gone),
                cmocka_unit_test(test_words),
        };
        struct CMUnitTest tests[ELEMENTS(cases) + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[n++] = test_row(cases[i].name, test_kind, &cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
