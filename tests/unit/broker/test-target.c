/* SPDX-License-Identifier: MIT */

/* Whose thread may be spoken for: every way to name one that is not the caller's own. */

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "broker/ids.h"
#include "broker/proc.h"
#include "tests/unit/broker/target-test.h"

/* ---- who it is ---- */

static void own_process(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &OTHER);
        const pid_t pid = w.child.pid;

        assert_resolves(&w, &(struct target_request) { 0, 0, -1 }, pid, pid);
        assert_resolves(&w, &(struct target_request) { (uint64_t) pid, 0, -1 }, pid, pid);
        assert_resolves(&w, &(struct target_request) { 0, (uint64_t) pid, -1 }, pid, pid);
        for (unsigned i = 0; i <= 2; i++) {
                const struct target_request request = by_numbers(0, w.child.tids[i]);
                const struct target_request both = by_numbers(pid, w.child.tids[i]);

                assert_resolves(&w, &request, pid, w.child.tids[i]);
                assert_resolves(&w, &both, pid, w.child.tids[i]);
        }
        world_end(&w);
}

static void other_process_of_the_same_user(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        const struct target_request leader = by_numbers(w.other.pid, 0);
        const struct target_request thread = by_numbers(w.other.pid, w.other.tids[2]);
        const struct target_request not_said = by_numbers(0, w.other.tids[2]);

        assert_resolves(&w, &leader, w.other.pid, w.other.pid);
        assert_resolves(&w, &thread, w.other.pid, w.other.tids[2]);
        /* without a process it is one's own that is meant */
        assert_reason(&w, &not_said, REASON_NO_SUCH_THREAD);
        world_end(&w);
}

/* S3, S4: the same for what is another's and for what is not there. */
static void other_user(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &OTHER);
        const struct target_request requests[] = {
                by_numbers(w.other.pid, 0),
                by_numbers(w.other.pid, w.other.tids[1]),
                by_numbers(0, w.other.pid),
                by_numbers(0, w.other.tids[1]),
                by_numbers(w.child.pid, w.other.tids[1]),
                by_numbers(w.other.pid, w.child.pid),
                by_numbers(ID_MAX, 0),
                by_numbers(0, ID_MAX),
                by_numbers(w.child.pid, ID_MAX),
        };

        for (size_t i = 0; i < ELEMENTS(requests); i++)
                assert_reason(&w, &requests[i], REASON_NO_SUCH_THREAD);
        world_end(&w);
}

/* S5: root's, init, the kernel's, the broker's own. */
static void others_that_matter(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &TEST_IDS(0));
        const struct target_request requests[] = {
                by_numbers(w.other.pid, 0), by_numbers(1, 0), by_numbers(1, 1), by_numbers(2, 0),
                by_numbers(getpid(), 0),    by_numbers(getpid(), getpid()),
        };

        for (size_t i = 0; i < ELEMENTS(requests); i++)
                assert_reason(&w, &requests[i], REASON_NO_SUCH_THREAD);
        world_end(&w);
}

/* A thread of the kernel's that moves interrupts or the like; 2 is its parent. */
static pid_t find_kernel_thread(void) {
        for (pid_t pid = 3; pid < 500; pid++) {
                struct proc_stat stat;

                if (proc_read_stat(pid, pid, &stat) >= 0 && stat.ppid == 2 &&
                    (stat.flags & PROC_FLAG_KTHREAD))
                        return pid;
        }

        return 2;
}

static void root_itself(const struct kernel *kernel) {
        struct world w = world_make(kernel, &TEST_IDS(0), &TEST_IDS(0));
        const struct target_request good = by_numbers(w.other.pid, w.other.tids[1]);
        const struct target_request bad[] = {
                by_numbers(1, 0),
                by_numbers(1, 1),
                by_numbers(2, 0),
                by_numbers(2, 2),
                by_numbers(find_kernel_thread(), 0),
                by_numbers(getpid(), 0),
                by_numbers(getpid(), getpid()),
        };
        struct target target;

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &good, &target), REASON_NONE);
        assert_int_equal(target.thread.tid, w.other.tids[1]);
        assert_true(target.cap_permitted != 0);
        thread_close(&target.thread);

        for (size_t i = 0; i < ELEMENTS(bad); i++)
                assert_reason(&w, &bad[i], REASON_NO_SUCH_THREAD);
        world_end(&w);
}

static void root_of_others(const struct kernel *kernel) {
        struct world w = world_make(kernel, &TEST_IDS(0), &NOBODY);
        const struct target_request request = by_numbers(w.other.pid, 0);

        assert_reason(&w, &request, REASON_NO_SUCH_THREAD);
        world_end(&w);
}

/* ---- S6 ---- */

static void impossible_numbers(const struct kernel *kernel) {
        static const uint64_t numbers[] = {
                ID_MAX + UINT64_C(1), INT32_MAX,         UINT64_C(1) << 31,
                UINT32_MAX,           UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1,
                UINT64_C(1) << 63,    UINT64_MAX,
        };
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        const uint64_t own = (uint64_t) w.child.pid;

        for (size_t i = 0; i < ELEMENTS(numbers); i++) {
                assert_reason(&w, &(struct target_request) { numbers[i], 0, -1 }, REASON_INVALID);
                assert_reason(&w, &(struct target_request) { 0, numbers[i], -1 }, REASON_INVALID);
                assert_reason(&w, &(struct target_request) { own, numbers[i], -1 }, REASON_INVALID);
                assert_reason(&w, &(struct target_request) { numbers[i], own, -1 }, REASON_INVALID);
                assert_reason(&w, &(struct target_request){ 0, numbers[i], w.peer.pidfd },
                              REASON_INVALID);
                /* cut off it would be one's own */
                assert_reason(&w, &(struct target_request){ own | UINT64_C(1) << 32, 0, -1 },
                              REASON_INVALID);
        }
        world_end(&w);
}

/* ---- S11: more rights than the user has ---- */

struct ids_case {
        const char *name;
        struct test_ids ids;
        enum reason reason;             /* asked for by another process of UID_NOBODY */
        enum reason own;                /* asked for by itself, if it can be: its euid is that */
};

#define N UID_NOBODY

static const struct ids_case ids_cases[] = {
        { "as the user", { N, N, N, N, N, N, false }, REASON_NONE, REASON_NONE },
        { "another group altogether", { N, N, N, 4, 4, 4, false }, REASON_NONE, REASON_NONE },
        { "setuid root", { N, 0, 0, N, N, N, false }, REASON_NO_SUCH_THREAD,
          REASON_NO_SUCH_THREAD },
        { "setuid root that dropped its euid", { N, N, 0, N, N, N, false }, REASON_NO_SUCH_THREAD,
          REASON_NO_SUCH_THREAD },
        { "setuid somebody", { N, UID_OTHER, UID_OTHER, N, N, N, false }, REASON_NO_SUCH_THREAD,
          REASON_NO_SUCH_THREAD },
        { "somebody running our setuid program", { UID_OTHER, N, N, N, N, N, false },
          REASON_NO_SUCH_THREAD, REASON_NO_SUCH_THREAD },
        { "setgid", { N, N, N, N, 4, 4, false }, REASON_TARGET_PRIVILEGED,
          REASON_TARGET_PRIVILEGED },
        { "setgid that dropped its egid", { N, N, N, N, N, 4, false }, REASON_TARGET_PRIVILEGED,
          REASON_TARGET_PRIVILEGED },
        { "file capabilities", { N, N, N, N, N, N, true }, REASON_TARGET_PRIVILEGED, REASON_NONE },
};

struct ids_row {
        const struct ids_case *c;
        const struct test_kernel *kernel;
};

static void test_ids(void **state) {
        const struct ids_row *row = *state;
        const struct kernel kernel = row->kernel->get();
        struct world w;
        struct target_request request;
        struct target target;

        test_need_root();
        w = world_make(&kernel, &NOBODY, &row->c->ids);
        request = by_numbers(w.other.pid, w.other.tids[1]);
        if (row->c->reason == REASON_NONE)
                assert_resolves(&w, &request, w.other.pid, w.other.tids[1]);
        else
                assert_reason(&w, &request, row->c->reason);
        world_end(&w);

        w = world_make(&kernel, &row->c->ids, &NOBODY);
        request = by_numbers(0, w.child.tids[1]);
        if (row->c->own == REASON_NONE) {
                assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target),
                                 REASON_NONE);
                thread_close(&target.thread);
        } else {
                assert_reason(&w, &request, row->c->own);
        }
        world_end(&w);
}

/* ---- by descriptor ---- */

static void by_pidfd(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        int fd = kernel_pidfd_open(w.other.pid, /* thread= */ false);

        assert_true(fd >= 0);
        assert_resolves(&w, &(struct target_request) { 0, 0, fd }, w.other.pid, w.other.pid);
        assert_resolves(&w, &(struct target_request){ 0, (uint64_t) w.other.tids[1], fd },
                        w.other.pid, w.other.tids[1]);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.tids[1], fd },
                      REASON_NO_SUCH_THREAD);
        (void) close(fd);
        world_end(&w);
}

static void by_pidfd_of_a_thread(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        int fd = kernel_pidfd_open(w.other.tids[1], /* thread= */ true);

        if (fd >= 0) {
                assert_resolves(&w, &(struct target_request){ 0, 0, fd }, w.other.pid,
                                w.other.tids[1]);
                (void) close(fd);
        }
        world_end(&w);
}

static void by_pidfd_of_another_user(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &OTHER);
        int fd = kernel_pidfd_open(w.other.pid, /* thread= */ false);
        int init = kernel_pidfd_open(1, /* thread= */ false);

        assert_true(fd >= 0);
        assert_reason(&w, &(struct target_request) { 0, 0, fd }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.tids[1], fd },
                      REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request) { 0, 0, init }, REASON_NO_SUCH_THREAD);
        (void) close(fd);
        (void) close(init);
        world_end(&w);
}

static uint64_t inode_of(pid_t number, bool thread) {
        int fd = kernel_pidfd_open(number, thread);
        struct stat st;

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        (void) close(fd);
        return st.st_ino;
}

static void by_inode_of_a_pidfd(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        uint64_t pid = (uint64_t) w.other.pid, tid = (uint64_t) w.other.tids[1];
        uint64_t inode = inode_of(w.other.pid, /* thread= */ false);

        if (!kernel->pidfd_inode) {
                assert_reason(&w, &(struct target_request) { pid, 0, -1, inode },
                              REASON_UNSUPPORTED);
                world_end(&w);
                return;
        }

        assert_resolves(&w, &(struct target_request) { pid, 0, -1, inode }, w.other.pid,
                        w.other.pid);
        assert_resolves(&w, &(struct target_request) { pid, tid, -1, inode }, w.other.pid,
                        w.other.tids[1]);
        assert_resolves(&w,
                        &(struct target_request) { pid, tid, -1,
                                                   inode_of(w.other.tids[1], /* thread= */ true) },
                        w.other.pid, w.other.tids[1]);
        assert_reason(&w,
                      &(struct target_request) { pid, tid, -1,
                                                 inode_of(w.other.tids[2], /* thread= */ true) },
                      REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request) { 0, 0, -1, inode }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request) { pid, 0, -1, inode + 1 },
                      REASON_NO_SUCH_THREAD);
        world_end(&w);
}

static void by_pidfd_of_the_dead(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        int fd = kernel_pidfd_open(w.other.pid, /* thread= */ false);
        siginfo_t info;

        assert_true(fd >= 0);
        assert_int_equal(kill(w.other.pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t) w.other.pid, &info, WEXITED | WNOWAIT), 0);
        assert_reason(&w, &(struct target_request){ 0, 0, fd },
                      REASON_NO_SUCH_THREAD); /* a zombie */
        test_child_end(&w.other);
        assert_reason(&w, &(struct target_request) { 0, 0, fd }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.tids[1], fd },
                      REASON_NO_SUCH_THREAD);
        (void) close(fd);
        (void) close(w.peer.pidfd);
        test_child_end(&w.child);
}

static void by_something_else(const struct kernel *kernel) {
        static const char *const paths[] = { "/dev/null", "/proc/self", "/proc/self/stat", "/" };
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        int pair[2];

        for (size_t i = 0; i < ELEMENTS(paths); i++) {
                int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                assert_true(fd >= 0);
                assert_reason(&w, &(struct target_request) { 0, 0, fd }, REASON_INVALID);
                assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.pid, fd },
                              REASON_INVALID);
                (void) close(fd);
        }
        assert_int_equal(pipe(pair), 0);
        assert_reason(&w, &(struct target_request) { 0, 0, pair[1] }, REASON_INVALID);
        (void) close(pair[0]);
        (void) close(pair[1]);
        world_end(&w);
}

/* ---- time passes ---- */

static void a_peer_that_is_gone(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        const struct target_request other = by_numbers(w.other.pid, 0);

        test_child_end(&w.child);
        assert_reason(&w, &(struct target_request) { 0, 0, -1 }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &other, REASON_NO_SUCH_THREAD);
        (void) close(w.peer.pidfd);
        test_child_end(&w.other);
}

static void a_thread_that_ends_after(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        const struct target_request request = by_numbers(0, w.child.tids[1]);
        struct target target;

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        test_child_end_thread(&w.child, 1);
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_NO_SUCH_THREAD);
        thread_close(&target.thread);
        assert_reason(&w, &request, REASON_NO_SUCH_THREAD);
        world_end(&w);
}

static void a_number_given_to_another_after(const struct kernel *kernel) {
        struct world w = world_make(kernel, &TEST_IDS(0), &NOBODY);
        const struct target_request request = by_numbers(0, w.child.tids[1]);
        struct target target;

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        if (!test_child_recycle_thread(&w.child, 1))
                test_skip("the number of a thread could not be had again");
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_NO_SUCH_THREAD);
        thread_close(&target.thread);
        world_end(&w);
}

/* As if it had called setuid(2) or started a setuid program between check and check. */
static void other_ids_after(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        struct target target;

        assert_int_equal(
                target_resolve(&w.kernel, &w.peer, &(struct target_request){ 0, 0, -1 }, &target),
                REASON_NONE);
        target.creds.euid = 0;
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_TARGET_CHANGED);
        target.creds.euid = UID_NOBODY;
        target.creds.sgid = 4;
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_TARGET_CHANGED);
        thread_close(&target.thread);
        world_end(&w);
}

static const struct target_case cases[] = {
        { "own process, all ways to say so", own_process },
        { "another process of the same user", other_process_of_the_same_user },
        { "S3, S4: another user's, and what is not there", other_user },
        { "S5: root's, init, the kernel's, the broker", others_that_matter },
        { "root asks for init, the kernel's, the broker", root_itself },
        { "root asks for another user's", root_of_others },
        { "S6: numbers that are none", impossible_numbers },
        { "by pidfd", by_pidfd },
        { "by pidfd of a thread", by_pidfd_of_a_thread },
        { "by pidfd of another user's", by_pidfd_of_another_user },
        { "by the inode of a pidfd", by_inode_of_a_pidfd },
        { "by pidfd of the dead", by_pidfd_of_the_dead },
        { "by a descriptor that is no pidfd", by_something_else },
        { "the peer is gone", a_peer_that_is_gone },
        { "the thread ended after", a_thread_that_ends_after },
        { "its number is another's after", a_number_given_to_another_after },
        { "other ids after", other_ids_after },
};

#define N_CASES (TEST_KERNELS * ELEMENTS(cases))
#define N_IDS (TEST_KERNELS * ELEMENTS(ids_cases))

int main(void) {
        struct CMUnitTest tests[N_CASES + N_IDS];
        struct target_row rows[N_CASES];
        struct ids_row ids_rows[N_IDS];
        char names[N_CASES + N_IDS][80];

        target_rows(cases, ELEMENTS(cases), tests, rows, names);
        for (size_t i = 0; i < N_IDS; i++) {
                struct ids_row *row = &ids_rows[i];

                row->c = &ids_cases[i % ELEMENTS(ids_cases)];
                row->kernel = &test_kernels[i / ELEMENTS(ids_cases)];
                (void) snprintf(names[N_CASES + i], sizeof(names[0]), "%s: S11: %s",
                                row->kernel->name, row->c->name);
                tests[N_CASES + i] = test_row(names[N_CASES + i], test_ids, row);
        }

        return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
