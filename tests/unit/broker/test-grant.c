/* SPDX-License-Identifier: MIT */

/* The bracket: on real threads that sleep, with a kernel that fails where it is told to. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/broker.h"
#include "broker/grant.h"
#include "tests/unit/broker/broker-test.h"

/* ---- what the linker puts in the place of the real ones: see meson.build ---- */

int __real_sched_write(pid_t tid, const struct sched_values *values);
int __real_sched_write_nice(pid_t tid, int nice);
enum reason __real_target_check(const struct kernel *kernel, const struct thread *thread,
                                const struct creds *creds);
int __wrap_sched_write(pid_t tid, const struct sched_values *values);
int __wrap_sched_write_nice(pid_t tid, int nice);
enum reason __wrap_target_check(const struct kernel *kernel, const struct thread *thread,
                                const struct creds *creds);

static struct {
        /* the n-th call from now, from 1; 0: none */
        unsigned fail_write;
        unsigned lie_write;             /* sets another priority or nice than asked */
        unsigned fail_write_nice;
        unsigned fail_check;            /* says @reason */
        enum reason reason;
        void (*on_write)(void *userdata); /* before each */
        void *userdata;
        unsigned n_writes, n_nices, n_checks;
} fake;

int __wrap_sched_write(pid_t tid, const struct sched_values *values) {
        struct sched_values other = *values;

        if (fake.on_write)
                fake.on_write(fake.userdata);
        if (++fake.n_writes == fake.fail_write)
                return -EINVAL;
        if (fake.n_writes == fake.lie_write && sched_is_rt(values->policy))
                other.priority--;
        else if (fake.n_writes == fake.lie_write)
                other.nice++;

        return __real_sched_write(tid, &other);
}

int __wrap_sched_write_nice(pid_t tid, int nice) {
        return ++fake.n_nices == fake.fail_write_nice ? -EINVAL
                                                      : __real_sched_write_nice(tid, nice);
}

enum reason __wrap_target_check(const struct kernel *kernel, const struct thread *thread,
                                const struct creds *creds) {
        return ++fake.n_checks == fake.fail_check ? fake.reason
                                                  : __real_target_check(kernel, thread, creds);
}

/* ---- a broker with one lease and nothing else ---- */

struct world {
        char dir[64];
        struct broker broker;
        struct user user;
        struct lease lease;
        struct test_child child;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int tear_down(void **state) {
        struct world *w = *state;

        memset(&fake, 0, sizeof(fake));
        (void) log_free(w->broker.log);
        (void) lease_store_close(w->broker.store);
        assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        thread_close(&w->lease.thread);
        if (w->child.pid > 0)
                test_child_end(&w->child);
        free(w);
        return 0;
}

static struct world *make_world(const struct kernel *kernel) {
        struct world *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        (void) snprintf(w->dir, sizeof(w->dir), "/tmp/test-grant-XXXXXX");
        assert_non_null(mkdtemp(w->dir));
        w->lease.thread = THREAD_NONE;
        w->broker.kernel = *kernel;
        assert_int_equal(lease_store_open(w->dir, &w->broker.store), 0);
        assert_int_equal(lease_store_take(w->broker.store, &w->lease.slot), 0);
        w->user.uid = UID_NOBODY;
        w->lease.broker = &w->broker;
        w->lease.user = &w->user;
        w->lease.uid = UID_NOBODY;
        (void) snprintf(w->lease.role, sizeof(w->lease.role), "test");
        memset(&fake, 0, sizeof(fake));
        return w;
}

/* In this order: a process whose log has a thread must not fork (an allocator may be locked). */
static void start_child(struct world *w, const struct test_ids *ids) {
        test_child_start(&w->child, ids, 1, 0);
        assert_int_equal(log_new(&w->broker.log, LOG_ERR), 0);
}

static void start(struct world *w) {
        start_child(w, &TEST_IDS(UID_NOBODY));
        assert_int_equal(thread_open(&w->broker.kernel, w->child.pid, w->child.tids[1],
                                     &w->lease.thread, &w->lease.creds),
                         0);
}

static int set_up(void **state) {
        const struct kernel kernel = test_kernels[0].get();

        *state = make_world(&kernel);
        return 0;
}

static const struct lease_record *record_of(const struct world *w) {
        return lease_store_get(w->broker.store, w->lease.slot);
}

/* ---- what a thread has ---- */

struct state {
        int policy;
        int priority;
        int nice;
        bool reset_on_fork;
};

static void set_state(pid_t tid, const struct state *state) {
        const struct sched_values values = {
                .policy = state->policy,
                .priority = state->priority,
                .nice = state->nice,
                .reset_on_fork = state->reset_on_fork,
        };

        assert_int_equal(__real_sched_write_nice(tid, state->nice), 0);
        assert_int_equal(__real_sched_write(tid, &values), 0);
}

static void assert_state(pid_t tid, const struct state *state) {
        assert_sched_is(tid, state->policy, state->priority, state->nice, state->reset_on_fork);
}

#define FIFO SCHED_FIFO
#define RR SCHED_RR
#define OTHER SCHED_OTHER
#define BATCH SCHED_BATCH
#define IDLE SCHED_IDLE

#define PRIORITY(p) { .sched = true, .policy = FIFO, .priority = (p) }
#define NICE(n) { .nice_too = true, .nice = (n) }
#define BOTH(p, n) { .sched = true, .policy = FIFO, .priority = (p), .nice_too = true, .nice = (n) }
#define OTHER_AND(n) { .sched = true, .policy = OTHER, .nice_too = true, .nice = (n) }
#define NOTHING { .sched = false }

static bool is_nothing(const struct wanted *wanted) {
        return !wanted->sched && !wanted->nice_too;
}

/* ---- lives of leases ---- */

struct life_case {
        const char *name;
        struct state before;
        struct wanted first;
        struct state granted;
        bool meanwhile_too;
        struct state meanwhile;         /* by others */
        struct wanted second;
        struct state updated;
        struct state after;             /* the end of the lease */
};

static const struct life_case life_cases[] = {
        { "real-time", { OTHER, 0, 0, false }, PRIORITY(30), { FIFO, 30, 0, true },
          .after = { OTHER, 0, 0, false } },
        { "nice", { OTHER, 0, 0, false }, NICE(-11), { OTHER, 0, -11, true },
          .after = { OTHER, 0, 0, false } },
        { "both", { OTHER, 0, 0, false }, BOTH(30, -11), { FIFO, 30, -11, true },
          .after = { OTHER, 0, 0, false } },
        { "both, from nice 19", { OTHER, 0, 19, false }, BOTH(30, -11), { FIFO, 30, -11, true },
          .after = { OTHER, 0, 19, false } },
        { "both, from IDLE", { IDLE, 0, 5, false }, BOTH(30, -11), { FIFO, 30, -11, true },
          .after = { IDLE, 0, 5, false } },
        { "both, from BATCH with the flag", { BATCH, 0, 5, true }, BOTH(30, -11),
          { FIFO, 30, -11, true }, .after = { BATCH, 0, 5, true } },
        { "both, from an earlier FIFO", { FIFO, 2, 5, false }, BOTH(30, -11),
          { FIFO, 30, -11, true }, .after = { FIFO, 2, 5, false } },
        { "OTHER and a nice, from BATCH", { BATCH, 0, 5, false }, OTHER_AND(-11),
          { OTHER, 0, -11, true }, .after = { BATCH, 0, 5, false } },
        { "OTHER and a nice, from IDLE", { IDLE, 0, 5, false }, OTHER_AND(-11),
          { OTHER, 0, -11, true }, .after = { IDLE, 0, 5, false } },

        { "both: reniced while real-time", { OTHER, 0, 0, false }, BOTH(30, -11),
          { FIFO, 30, -11, true }, true, { FIFO, 30, 7, true }, NOTHING, {},
          { OTHER, 0, 7, false } },
        { "both: its owner gave the priority up", { OTHER, 0, 3, false }, BOTH(30, -11),
          { FIFO, 30, -11, true }, true, { OTHER, 0, -11, true }, NOTHING, {},
          { OTHER, 0, 3, true } },
        { "both: its owner gave all up", { OTHER, 0, 3, false }, BOTH(30, -11),
          { FIFO, 30, -11, true }, true, { OTHER, 0, 9, true }, NOTHING, {},
          { OTHER, 0, 9, true } },

        { "raised: back to the beginning", { OTHER, 0, 4, false }, PRIORITY(30),
          { FIFO, 30, 4, true }, false, {}, PRIORITY(40), { FIFO, 40, 4, true },
          { OTHER, 0, 4, false } },
        { "lowered: back to the beginning", { BATCH, 0, 4, false }, PRIORITY(30),
          { FIFO, 30, 4, true }, false, {}, PRIORITY(20), { FIFO, 20, 4, true },
          { BATCH, 0, 4, false } },
        { "the same again", { OTHER, 0, 4, false }, PRIORITY(30), { FIFO, 30, 4, true },
          false, {}, PRIORITY(30), { FIFO, 30, 4, true }, { OTHER, 0, 4, false } },
        { "nice added later", { OTHER, 0, 4, false }, PRIORITY(30), { FIFO, 30, 4, true },
          false, {}, NICE(-5), { FIFO, 30, -5, true }, { OTHER, 0, 4, false } },
        { "nice added later, with the flag that was there", { OTHER, 0, 4, true }, PRIORITY(30),
          { FIFO, 30, 4, true }, false, {}, NICE(-5), { FIFO, 30, -5, true },
          { OTHER, 0, 4, true } },
        { "priority added later", { OTHER, 0, 4, false }, NICE(-5), { OTHER, 0, -5, true },
          false, {}, PRIORITY(30), { FIFO, 30, -5, true }, { OTHER, 0, 4, false } },
        { "priority added later, from IDLE", { IDLE, 0, 4, false }, NICE(-5), { IDLE, 0, -5, true },
          false, {}, PRIORITY(30), { FIFO, 30, -5, true }, { IDLE, 0, 4, false } },

        /* S16: what was weakened meanwhile is what it goes back to */
        { "given up, asked for again", { OTHER, 0, 4, false }, PRIORITY(30), { FIFO, 30, 4, true },
          true, { OTHER, 0, 9, true }, PRIORITY(30), { FIFO, 30, 9, true },
          { OTHER, 0, 9, false } },
        { "put to IDLE, asked for again", { OTHER, 0, 4, false }, PRIORITY(30),
          { FIFO, 30, 4, true }, true, { IDLE, 0, 4, true }, PRIORITY(30), { FIFO, 30, 4, true },
          { IDLE, 0, 4, false } },
        { "lowered, asked for again", { OTHER, 0, 4, false }, PRIORITY(30), { FIFO, 30, 4, true },
          true, { FIFO, 5, 4, true }, PRIORITY(30), { FIFO, 30, 4, true }, { OTHER, 0, 4, false } },
        { "reniced, asked for again", { OTHER, 0, 4, false }, NICE(-11), { OTHER, 0, -11, true },
          true, { OTHER, 0, 15, true }, NICE(-11), { OTHER, 0, -11, true },
          { OTHER, 0, 15, false } },
        { "reniced by a little, asked for again", { OTHER, 0, 4, false }, NICE(-11),
          { OTHER, 0, -11, true }, true, { OTHER, 0, -9, true }, NICE(-11), { OTHER, 0, -11, true },
          { OTHER, 0, 4, false } },
};

struct life_row {
        const struct life_case *c;
        const struct test_kernel *kernel;
        struct world *world;
};

static int tear_down_life(void **state) {
        struct life_row *row = *state;
        void *world = row->world;

        return row->world ? tear_down(&world) : 0;
}

static void grant(struct world *w, const struct wanted *wanted, const struct state *expected) {
        struct grant_outcome outcome;

        assert_int_equal(grant_apply(&w->broker, &w->lease, wanted, &outcome), REASON_NONE);
        assert_string_equal(outcome.cause, "");
        assert_state(w->lease.thread.tid, expected);
        assert_int_equal(outcome.after.policy, expected->policy);
        assert_int_equal(outcome.after.priority, expected->priority);
        assert_int_equal(outcome.after.nice, expected->nice);
        assert_int_equal(grant_verify(&w->lease), 1);
        lease_save(&w->broker, &w->lease, NULL);
        assert_int_equal(record_of(w)->state, LEASE_RECORD_LIVE);
}

static void test_life(void **state) {
        struct life_row *row = *state;
        const struct life_case *c = row->c;
        const struct kernel kernel = row->kernel->get();
        struct world *w;
        pid_t tid;

        test_need_root();
        w = row->world = make_world(&kernel);
        start(w);
        tid = w->lease.thread.tid;
        set_state(tid, &c->before);

        grant(w, &c->first, &c->granted);
        if (c->meanwhile_too) {
                set_state(tid, &c->meanwhile);
                assert_int_equal(grant_verify(&w->lease), 0);
        }
        if (!is_nothing(&c->second))
                grant(w, &c->second, &c->updated);

        grant_restore(&w->broker, &w->lease);
        assert_state(tid, &c->after);
        assert_sched_is(w->child.tids[0], OTHER, 0, 0, false);
}

/* ---- it fails half-way: nothing is to be left of it ---- */

struct failure_case {
        const char *name;
        struct state before;
        struct wanted held;             /* granted before; NOTHING: a new lease */
        struct wanted wanted;
        unsigned fail_write, fail_write_nice;
        unsigned fail_check;            /* before (1) or after (2) the kernel is asked */
        enum reason check;              /* what it says */
        enum reason reason;
        struct state after;
};

static const struct failure_case failure_cases[] = {
        { .name = "the kernel refuses the priority", .before = { BATCH, 0, 3, false },
          .wanted = PRIORITY(30), .fail_write = 1, .reason = REASON_KERNEL_OTHER,
          .after = { BATCH, 0, 3, false } },
        { .name = "the kernel refuses the nice", .before = { BATCH, 0, 3, false },
          .wanted = NICE(-11), .fail_write = 1, .reason = REASON_KERNEL_OTHER,
          .after = { BATCH, 0, 3, false } },
        { .name = "the kernel refuses the priority of both", .before = { BATCH, 0, 3, false },
          .wanted = BOTH(30, -11), .fail_write = 1, .reason = REASON_KERNEL_OTHER,
          .after = { BATCH, 0, 3, false } },
        { .name = "the kernel refuses the nice of both", .before = { BATCH, 0, 3, false },
          .wanted = BOTH(30, -11), .fail_write_nice = 1, .reason = REASON_KERNEL_OTHER,
          .after = { BATCH, 0, 3, false } },
        { .name = "the kernel refuses the nice of both, from IDLE", .before = { IDLE, 0, 3, true },
          .wanted = BOTH(30, -11), .fail_write_nice = 1, .reason = REASON_KERNEL_OTHER,
          .after = { IDLE, 0, 3, true } },
        { .name = "the kernel refuses the nice of an IDLE thread", .before = { IDLE, 0, 3, false },
          .wanted = NICE(-11), .fail_write_nice = 1, .reason = REASON_KERNEL_OTHER,
          .after = { IDLE, 0, 3, false } },
        { .name = "the kernel refuses the flag of an IDLE thread", .before = { IDLE, 0, 3, false },
          .wanted = NICE(-11), .fail_write = 1, .reason = REASON_KERNEL_OTHER,
          .after = { IDLE, 0, 3, false } },
        { .name = "the kernel refuses the flag of a FIFO thread", .before = { FIFO, 2, 3, false },
          .wanted = NICE(-11), .fail_write = 1, .reason = REASON_KERNEL_OTHER,
          .after = { FIFO, 2, 3, false } },
        { .name = "the kernel refuses a change: what is held stays",
          .before = { BATCH, 0, 3, false }, .held = PRIORITY(30), .wanted = PRIORITY(40),
          .fail_write = 1, .reason = REASON_KERNEL_OTHER, .after = { FIFO, 30, 3, true } },
        { .name = "the kernel refuses half a change: what is held stays",
          .before = { BATCH, 0, 3, false }, .held = PRIORITY(30), .wanted = BOTH(40, -11),
          .fail_write_nice = 1, .reason = REASON_KERNEL_OTHER, .after = { FIFO, 30, 3, true } },

        { .name = "the first check says it is gone", .before = { OTHER, 0, 3, false },
          .wanted = BOTH(30, -11), .fail_check = 1, .check = REASON_NO_SUCH_THREAD,
          .reason = REASON_NO_SUCH_THREAD, .after = { OTHER, 0, 3, false } },
        { .name = "the first check says it is another user's", .before = { OTHER, 0, 3, false },
          .wanted = BOTH(30, -11), .fail_check = 1, .check = REASON_TARGET_CHANGED,
          .reason = REASON_TARGET_CHANGED, .after = { OTHER, 0, 3, false } },
        /* S10: whoever it is now, it keeps nothing of what was meant for another */
        { .name = "the second check says it is another user's", .before = { OTHER, 0, 3, false },
          .wanted = PRIORITY(30), .fail_check = 2, .check = REASON_TARGET_CHANGED,
          .reason = REASON_TARGET_CHANGED, .after = { OTHER, 0, 3, true } },
        { .name = "the second check says its number is another's", .before = { OTHER, 0, 3, false },
          .wanted = PRIORITY(30), .fail_check = 2, .check = REASON_NO_SUCH_THREAD,
          .reason = REASON_NO_SUCH_THREAD, .after = { OTHER, 0, 3, true } },
        { .name = "the second check, with a nice", .before = { OTHER, 0, 3, false },
          .wanted = BOTH(30, -11), .fail_check = 2, .check = REASON_TARGET_CHANGED,
          .reason = REASON_TARGET_CHANGED, .after = { OTHER, 0, 0, true } },
        { .name = "the second check, with a nice alone", .before = { OTHER, 0, 3, false },
          .wanted = NICE(-11), .fail_check = 2, .check = REASON_TARGET_CHANGED,
          .reason = REASON_TARGET_CHANGED, .after = { OTHER, 0, 0, true } },
};

struct failure_row {
        const struct failure_case *c;
        struct world *world;
};

static int tear_down_failure(void **state) {
        struct failure_row *row = *state;
        void *world = row->world;

        return row->world ? tear_down(&world) : 0;
}

static void test_failure(void **state) {
        struct failure_row *row = *state;
        const struct failure_case *c = row->c;
        const struct kernel kernel = test_kernels[0].get();
        struct grant_outcome outcome;
        struct grant grants[_KIND_MAX];
        struct world *w;
        pid_t tid;

        test_need_root();
        w = row->world = make_world(&kernel);
        start(w);
        tid = w->lease.thread.tid;
        set_state(tid, &c->before);
        if (!is_nothing(&c->held))
                assert_int_equal(grant_apply(&w->broker, &w->lease, &c->held, &outcome),
                                 REASON_NONE);
        memcpy(grants, w->lease.grants, sizeof(grants));

        memset(&fake, 0, sizeof(fake));
        fake.fail_write = c->fail_write;
        fake.fail_write_nice = c->fail_write_nice;
        fake.fail_check = c->fail_check;
        fake.reason = c->check;
        assert_int_equal(grant_apply(&w->broker, &w->lease, &c->wanted, &outcome), c->reason);
        assert_state(tid, &c->after);
        assert_memory_equal(w->lease.grants, grants, sizeof(grants)); /* the lease is what it was */
        if (c->reason == REASON_KERNEL_OTHER) {
                assert_int_equal(outcome.error, -EINVAL);
                assert_string_not_equal(outcome.cause, "");
        }
}

/* ---- the rest ---- */

/* The kernel says yes and does something else. */
static void test_reads_back_otherwise(void **state) {
        const struct wanted wanted = PRIORITY(30);
        struct grant_outcome outcome;
        struct world *w = *state;

        test_need_root();
        start(w);
        fake.lie_write = 1;
        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome),
                         REASON_KERNEL_MISMATCH);
        assert_false(w->lease.grants[KIND_SCHED].held);
}

/* Of two one is as asked: that one is taken back. */
static void test_one_of_two_reads_back_otherwise(void **state) {
        const struct wanted wanted = BOTH(30, -11);
        const struct state before = { OTHER, 0, 3, false };
        struct grant_outcome outcome;
        struct sched_values now;
        struct world *w = *state;

        test_need_root();
        start(w);
        set_state(w->lease.thread.tid, &before);
        fake.lie_write = 1; /* the priority */
        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome),
                         REASON_KERNEL_MISMATCH);
        assert_int_equal(sched_read(w->lease.thread.tid, &now), 0);
        assert_int_equal(now.nice, 3);
        assert_false(w->lease.grants[KIND_SCHED].held || w->lease.grants[KIND_NICE].held);
}

static void test_other_ids(void **state) {
        const struct wanted wanted = BOTH(30, -11);
        struct grant_outcome outcome;
        struct world *w = *state;

        test_need_root();
        start(w);
        w->lease.creds.suid = 0;
        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome),
                         REASON_TARGET_CHANGED);
        assert_sched_is(w->lease.thread.tid, OTHER, 0, 0, false);
        assert_int_equal(fake.n_writes + fake.n_nices, 0);
}

static void test_ended(void **state) {
        const struct wanted wanted = BOTH(30, -11);
        struct grant_outcome outcome;
        struct world *w = *state;

        test_need_root();
        start(w);
        test_child_end_thread(&w->child, 1);
        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome),
                         REASON_NO_SUCH_THREAD);
        assert_int_equal(grant_verify(&w->lease), -ESRCH);
        grant_restore(&w->broker, &w->lease);
        assert_int_equal(fake.n_writes + fake.n_nices, 0);
}

/* U24: a stranger with the number of a thread that ended loses nothing when the lease does. */
static void test_recycled(void **state) {
        const struct state stranger = { FIFO, 30, 0, true };
        const struct wanted wanted = PRIORITY(30);
        struct grant_outcome outcome;
        struct world *w = *state;

        test_need_root();
        start_child(w, NULL);
        assert_int_equal(thread_open(&w->broker.kernel, w->child.pid, w->child.tids[1],
                                     &w->lease.thread, &w->lease.creds),
                         0);
        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome), REASON_NONE);
        if (!test_child_recycle_thread(&w->child, 1))
                test_skip("the number of a thread could not be had again");
        set_state(w->lease.thread.tid, &stranger);
        fake.n_writes = fake.n_nices = 0;

        assert_int_equal(grant_apply(&w->broker, &w->lease, &wanted, &outcome),
                         REASON_NO_SUCH_THREAD);
        grant_restore(&w->broker, &w->lease);
        assert_state(w->lease.thread.tid, &stranger);
        assert_int_equal(fake.n_writes + fake.n_nices, 0);
}

/* R39: at every moment the file says what may be in force. */
static void note_record(void *userdata) {
        struct world *w = userdata;
        const struct lease_record *record = record_of(w);

        /* .reason is where the noted state goes: nobody else uses it here */
        w->lease.reason[fake.n_writes] = record ? (char) ('0' + record->state) : '-';
        if (record) {
                w->lease.timing.period_ns = (uint64_t) record->next.priority;
                w->lease.timing.deadline_ns = (uint64_t) record->set.priority;
        }
}

static void test_the_file_knows_first(void **state) {
        const struct wanted first = PRIORITY(30), second = PRIORITY(40);
        struct grant_outcome outcome;
        struct world *w = *state;

        test_need_root();
        start(w);
        fake.on_write = note_record;
        fake.userdata = w;
        assert_null(record_of(w));
        assert_int_equal(grant_apply(&w->broker, &w->lease, &first, &outcome), REASON_NONE);
        assert_int_equal(w->lease.reason[0], '0' + LEASE_RECORD_INTENT);
        assert_int_equal(w->lease.timing.period_ns, 30);
        lease_save(&w->broker, &w->lease, NULL);

        assert_int_equal(grant_apply(&w->broker, &w->lease, &second, &outcome), REASON_NONE);
        assert_int_equal(w->lease.reason[1], '0' + LEASE_RECORD_CHANGING);
        assert_int_equal(w->lease.timing.period_ns, 40);
        assert_int_equal(w->lease.timing.deadline_ns, 30);
        assert_int_equal(fake.n_writes, 2);

        fake.on_write = NULL;
        lease_save(&w->broker, &w->lease, NULL);
        assert_int_equal(record_of(w)->state, LEASE_RECORD_LIVE);
        assert_int_equal(record_of(w)->set.priority, 40);
        assert_int_equal(record_of(w)->saved.policy, OTHER);
        assert_int_equal(record_of(w)->tid, w->lease.thread.tid);
        assert_int_equal(record_of(w)->want, WIRE_WANT_SCHED);
        grant_restore(&w->broker, &w->lease);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test_setup_teardown(test_reads_back_otherwise, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_one_of_two_reads_back_otherwise, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_other_ids, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_ended, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_recycled, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_the_file_knows_first, set_up, tear_down),
        };
        struct CMUnitTest tests[TEST_KERNELS * ELEMENTS(life_cases) + ELEMENTS(failure_cases) +
                                ELEMENTS(others)];
        struct life_row rows[TEST_KERNELS * ELEMENTS(life_cases)];
        struct failure_row failure_rows[ELEMENTS(failure_cases)];
        char names[ELEMENTS(rows)][80];
        size_t n = 0;

        for (size_t i = 0; i < TEST_KERNELS; i++)
                for (size_t j = 0; j < ELEMENTS(life_cases); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", test_kernels[i].name,
                                        life_cases[j].name);
                        rows[n] = (struct life_row) { &life_cases[j], &test_kernels[i], NULL };
                        tests[n] = test_row(names[n], test_life, &rows[n]);
                        tests[n].teardown_func = tear_down_life;
                }
        for (size_t i = 0; i < ELEMENTS(failure_cases); i++, n++) {
                failure_rows[i] = (struct failure_row) { &failure_cases[i], NULL };
                tests[n] = test_row(failure_cases[i].name, test_failure, &failure_rows[i]);
                tests[n].teardown_func = tear_down_failure;
        }
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("grant", tests, NULL, NULL);
}
