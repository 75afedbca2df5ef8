/* SPDX-License-Identifier: MIT */

/* Whose thread may be spoken for: every way to name one that is not the caller's own. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "broker/ids.h"
#include "broker/proc.h"
#include "broker/target.h"
#include "tests/unit/broker/broker-test.h"

/* A peer made by hand: @child as it would be known after it connected. */
struct world {
        struct kernel kernel;
        struct test_child child;        /* the peer: two threads beside the main one */
        struct test_child other;        /* another process, of the ids of the row */
        struct peer peer;
};

static void make_peer(struct world *w, uid_t uid) {
        w->peer = (struct peer) {
                .uid = uid,
                .pid = w->child.pid,
                .pidfd = kernel_pidfd_open(w->child.pid, /* thread= */ false),
                .complete = true,
                .ns_pid = w->child.pid,
                .quota_uid = uid,
                .cap_permitted = 0x10,
                .admin = uid == 0,
        };
        assert_true(w->peer.pidfd >= 0);
}

static struct world make_world(const struct kernel *kernel, const struct test_ids *peer,
                               const struct test_ids *other) {
        struct world w = { .kernel = *kernel };

        test_child_start(&w.child, peer, 2, 0);
        test_child_start(&w.other, other, 2, 0);
        make_peer(&w, peer->euid);
        return w;
}

static void end_world(struct world *w) {
        (void) close(w->peer.pidfd);
        test_child_end(&w->other);
        test_child_end(&w->child);
}

static void assert_resolves(const struct world *w, const struct target_request *request, pid_t pid,
                            pid_t tid) {
        struct target target;

        assert_int_equal(target_resolve(&w->kernel, &w->peer, request, &target), REASON_NONE);
        assert_int_equal(target.thread.pid, pid);
        assert_int_equal(target.thread.tid, tid);
        assert_int_equal(target.quota_uid, w->peer.quota_uid);
        assert_int_equal(target.in_user_namespace, w->peer.in_user_namespace);
        /* its own rights it has already; of another process they are read */
        assert_int_equal(target.cap_permitted, pid == w->peer.pid ? w->peer.cap_permitted : 0);
        assert_int_equal(target_check(&w->kernel, &target.thread, &target.creds), REASON_NONE);
        thread_close(&target.thread);
}

static void assert_reason(const struct world *w, const struct target_request *request,
                          enum reason reason) {
        struct target target = { .thread = { .pid = -7, .fd = -1 } };
        int before = dup(0), after;

        assert_int_equal(target_resolve(&w->kernel, &w->peer, request, &target), reason);
        assert_int_equal(target.thread.pid, -7);
        (void) close(before);
        after = dup(0);
        assert_int_equal(after, before); /* no descriptor is left behind */
        (void) close(after);
}

static struct target_request by_numbers(pid_t pid, pid_t tid) {
        return (struct target_request) { (uint64_t) pid, (uint64_t) tid, -1 };
}

#define NOBODY TEST_IDS(UID_NOBODY)
#define OTHER TEST_IDS(UID_OTHER)

/* ---- who it is ---- */

static void own_process(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &OTHER);
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
        end_world(&w);
}

static void other_process_of_the_same_user(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        const struct target_request leader = by_numbers(w.other.pid, 0);
        const struct target_request thread = by_numbers(w.other.pid, w.other.tids[2]);
        const struct target_request not_said = by_numbers(0, w.other.tids[2]);

        assert_resolves(&w, &leader, w.other.pid, w.other.pid);
        assert_resolves(&w, &thread, w.other.pid, w.other.tids[2]);
        /* without a process it is one's own that is meant */
        assert_reason(&w, &not_said, REASON_NO_SUCH_THREAD);
        end_world(&w);
}

/* S3, S4: the same for what is another's and for what is not there. */
static void other_user(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &OTHER);
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
        end_world(&w);
}

/* S5: root's, init, the kernel's, the broker's own. */
static void others_that_matter(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &TEST_IDS(0));
        const struct target_request requests[] = {
                by_numbers(w.other.pid, 0), by_numbers(1, 0), by_numbers(1, 1), by_numbers(2, 0),
                by_numbers(getpid(), 0),    by_numbers(getpid(), getpid()),
        };

        for (size_t i = 0; i < ELEMENTS(requests); i++)
                assert_reason(&w, &requests[i], REASON_NO_SUCH_THREAD);
        end_world(&w);
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
        struct world w = make_world(kernel, &TEST_IDS(0), &TEST_IDS(0));
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
        end_world(&w);
}

static void root_of_others(const struct kernel *kernel) {
        struct world w = make_world(kernel, &TEST_IDS(0), &NOBODY);
        const struct target_request request = by_numbers(w.other.pid, 0);

        assert_reason(&w, &request, REASON_NO_SUCH_THREAD);
        end_world(&w);
}

/* ---- S6 ---- */

static void impossible_numbers(const struct kernel *kernel) {
        static const uint64_t numbers[] = {
                ID_MAX + UINT64_C(1), INT32_MAX,         UINT64_C(1) << 31,
                UINT32_MAX,           UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1,
                UINT64_C(1) << 63,    UINT64_MAX,
        };
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
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
        end_world(&w);
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
        w = make_world(&kernel, &NOBODY, &row->c->ids);
        request = by_numbers(w.other.pid, w.other.tids[1]);
        if (row->c->reason == REASON_NONE)
                assert_resolves(&w, &request, w.other.pid, w.other.tids[1]);
        else
                assert_reason(&w, &request, row->c->reason);
        end_world(&w);

        w = make_world(&kernel, &row->c->ids, &NOBODY);
        request = by_numbers(0, w.child.tids[1]);
        if (row->c->own == REASON_NONE) {
                assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target),
                                 REASON_NONE);
                thread_close(&target.thread);
        } else {
                assert_reason(&w, &request, row->c->own);
        }
        end_world(&w);
}

/* ---- by descriptor ---- */

static void by_pidfd(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        int fd = kernel_pidfd_open(w.other.pid, /* thread= */ false);

        assert_true(fd >= 0);
        assert_resolves(&w, &(struct target_request) { 0, 0, fd }, w.other.pid, w.other.pid);
        assert_resolves(&w, &(struct target_request){ 0, (uint64_t) w.other.tids[1], fd },
                        w.other.pid, w.other.tids[1]);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.tids[1], fd },
                      REASON_NO_SUCH_THREAD);
        (void) close(fd);
        end_world(&w);
}

static void by_pidfd_of_a_thread(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        int fd = kernel_pidfd_open(w.other.tids[1], /* thread= */ true);

        if (fd >= 0) {
                assert_resolves(&w, &(struct target_request){ 0, 0, fd }, w.other.pid,
                                w.other.tids[1]);
                (void) close(fd);
        }
        end_world(&w);
}

static void by_pidfd_of_another_user(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &OTHER);
        int fd = kernel_pidfd_open(w.other.pid, /* thread= */ false);
        int init = kernel_pidfd_open(1, /* thread= */ false);

        assert_true(fd >= 0);
        assert_reason(&w, &(struct target_request) { 0, 0, fd }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) w.child.tids[1], fd },
                      REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request) { 0, 0, init }, REASON_NO_SUCH_THREAD);
        (void) close(fd);
        (void) close(init);
        end_world(&w);
}

static void by_pidfd_of_the_dead(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
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
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
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
        end_world(&w);
}

/* ---- time passes ---- */

static void a_peer_that_is_gone(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        const struct target_request other = by_numbers(w.other.pid, 0);

        test_child_end(&w.child);
        assert_reason(&w, &(struct target_request) { 0, 0, -1 }, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &other, REASON_NO_SUCH_THREAD);
        (void) close(w.peer.pidfd);
        test_child_end(&w.other);
}

static void a_thread_that_ends_after(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        const struct target_request request = by_numbers(0, w.child.tids[1]);
        struct target target;

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        test_child_end_thread(&w.child, 1);
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_NO_SUCH_THREAD);
        thread_close(&target.thread);
        assert_reason(&w, &request, REASON_NO_SUCH_THREAD);
        end_world(&w);
}

static void a_number_given_to_another_after(const struct kernel *kernel) {
        struct world w = make_world(kernel, &TEST_IDS(0), &NOBODY);
        const struct target_request request = by_numbers(0, w.child.tids[1]);
        struct target target;

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        if (!test_child_recycle_thread(&w.child, 1))
                test_skip("the number of a thread could not be had again");
        assert_int_equal(target_check(&w.kernel, &target.thread, &target.creds),
                         REASON_NO_SUCH_THREAD);
        thread_close(&target.thread);
        end_world(&w);
}

/* As if it had called setuid(2) or started a setuid program between check and check. */
static void other_ids_after(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
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
        end_world(&w);
}

/* ---- a peer in a pid namespace below ours ---- */

static pid_t inner_number(pid_t pid, pid_t tid) {
        struct proc_status status;

        assert_int_equal(proc_read_status(pid, tid, &status), 0);
        assert_int_equal(status.tgid, pid);
        return status.ns_pid;
}

static struct world make_inner_world(const struct kernel *kernel, unsigned n_threads) {
        struct world w = { .kernel = *kernel };

        test_child_start(&w.child, &NOBODY, n_threads, CLONE_NEWPID);
        test_child_start(&w.other, &NOBODY, 0, 0);
        make_peer(&w, UID_NOBODY);
        w.peer.ns_depth = 1;
        w.peer.ns_pid = w.child.tids[0];
        assert_int_equal(w.peer.ns_pid, 1);
        return w;
}

/* U10: thread 1 of a container is not init. */
static void numbers_of_a_namespace(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 3);
        const pid_t pid = w.child.pid;

        assert_resolves(&w, &(struct target_request) { 0, 0, -1 }, pid, pid);
        assert_resolves(&w, &(struct target_request) { 0, 1, -1 }, pid, pid);
        assert_resolves(&w, &(struct target_request) { 1, 0, -1 }, pid, pid);
        assert_resolves(&w, &(struct target_request) { 1, 1, -1 }, pid, pid);

        for (unsigned i = 1; i <= 3; i++) {
                const struct target_request request = by_numbers(0, w.child.tids[i]);
                struct target target;

                assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target),
                                 REASON_NONE);
                assert_int_equal(target.thread.pid, pid);
                assert_int_equal(inner_number(pid, target.thread.tid), w.child.tids[i]);
                assert_true(target.n_scanned >= 1 && target.n_scanned <= 4);
                thread_close(&target.thread);
        }
        end_world(&w);
}

/* A child in the pid namespace of another one. */
static void start_beside(struct test_child *beside, struct test_child *child,
                         const struct test_ids *ids, unsigned n_threads) {
        char path[64];
        int ours, theirs;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", beside->pid);
        ours = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
        theirs = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(ours >= 0 && theirs >= 0);
        assert_int_equal(setns(theirs, CLONE_NEWPID), 0);
        test_child_start(child, ids, n_threads, 0);
        assert_int_equal(setns(ours, CLONE_NEWPID), 0);
        (void) close(ours);
        (void) close(theirs);
}

static void other_process_of_a_namespace(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 0);
        struct test_child same, foreign;
        struct target_request request;
        struct target target;

        start_beside(&w.child, &same, &NOBODY, 1);
        start_beside(&w.child, &foreign, &OTHER, 0);
        request = by_numbers(same.tids[0], 0);
        assert_resolves(&w, &request, same.pid, same.pid);
        request = by_numbers(same.tids[0], same.tids[0]);
        assert_resolves(&w, &request, same.pid, same.pid);
        request = by_numbers(same.tids[0], same.tids[1]);
        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        assert_int_equal(target.thread.pid, same.pid);
        assert_int_equal(inner_number(same.pid, target.thread.tid), same.tids[1]);
        thread_close(&target.thread);

        request = by_numbers(same.tids[0], 1);
        assert_reason(&w, &request, REASON_NO_SUCH_THREAD);
        request = by_numbers(foreign.tids[0], 0);
        assert_reason(&w, &request, REASON_NAMESPACE);
        test_child_end(&foreign);
        test_child_end(&same);
        end_world(&w);
}

/* Two containers have the same numbers. */
static void same_number_in_another_namespace(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 0);
        struct test_child root, child;
        struct target_request request;

        test_child_start(&root, &NOBODY, 5, CLONE_NEWPID);
        start_beside(&root, &child, &NOBODY, 0);
        request = by_numbers(child.tids[0], 0);
        assert_true(child.tids[0] > 1);
        assert_reason(&w, &request, REASON_NAMESPACE);
        test_child_end(&child);
        test_child_end(&root);
        end_world(&w);
}

/* Numbers of ours mean nothing from in there, whosever they are. */
static void outer_numbers_from_a_namespace(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 1);
        const struct target_request outer_process = by_numbers(w.other.pid, 0);
        const struct target_request own_outer = by_numbers(w.child.pid, 0);
        const struct target_request outer_thread = by_numbers(0, w.other.pid);

        assert_reason(&w, &outer_process, REASON_NAMESPACE);
        assert_reason(&w, &own_outer, REASON_NAMESPACE);
        assert_reason(&w, &outer_thread, REASON_NO_SUCH_THREAD);
        assert_reason(&w, &(struct target_request) { 2, 0, -1 }, REASON_NAMESPACE); /* a thread's */
        end_world(&w);
}

static void pidfd_from_a_namespace(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 2);
        int fd = kernel_pidfd_open(w.child.pid, /* thread= */ false);
        struct target target;

        assert_true(fd >= 0);
        assert_resolves(&w, &(struct target_request) { 0, 0, fd }, w.child.pid, w.child.pid);
        assert_int_equal(
                target_resolve(&w.kernel, &w.peer,
                               &(struct target_request){ 0, (uint64_t) w.child.tids[2], fd },
                               &target),
                REASON_NONE);
        assert_int_equal(inner_number(w.child.pid, target.thread.tid), w.child.tids[2]);
        thread_close(&target.thread);
        assert_reason(&w, &(struct target_request){ 0, (uint64_t) ID_MAX, fd },
                      REASON_NO_SUCH_THREAD);
        (void) close(fd);
        end_world(&w);
}

/* Looking through all of them would take too long; that it was long is told. */
static void too_many_threads_to_look_through(const struct kernel *kernel) {
        struct world w = make_inner_world(kernel, 600);
        struct target target = {};

        assert_int_equal(target_resolve(&w.kernel, &w.peer,
                                        &(struct target_request){ 0, ID_MAX, -1 }, &target),
                         REASON_NAMESPACE);
        assert_true(target.n_scanned > 500 && target.n_scanned < 600);
        /* the main thread is known without looking */
        assert_resolves(&w, &(struct target_request) { 0, 1, -1 }, w.child.pid, w.child.pid);
        end_world(&w);
}

/* ---- user namespaces ---- */

static void from_a_user_namespace(const struct kernel *kernel) {
        struct world w = make_world(kernel, &NOBODY, &NOBODY);
        const struct target_request other = by_numbers(w.other.pid, 0);
        struct target target;

        w.peer.in_user_namespace = true;
        w.peer.quota_uid = UID_OTHER;
        assert_resolves(&w, &(struct target_request) { 0, 0, -1 }, w.child.pid, w.child.pid);
        assert_int_equal(target_resolve(&w.kernel, &w.peer, &other, &target), REASON_NONE);
        assert_true(target.in_user_namespace);
        assert_int_equal(target.quota_uid, UID_OTHER); /* a way around its own quota is none */
        thread_close(&target.thread);
        end_world(&w);
}

/* A target within one, asked for from outside: the capabilities that it has there are no rights. */
static void into_a_user_namespace(const struct kernel *kernel) {
        struct world w = { .kernel = *kernel };
        struct target_request request;
        struct target target;

        test_child_start(&w.child, &NOBODY, 0, 0);
        test_child_start(&w.other, NULL, 0, CLONE_NEWUSER); /* of root's */
        make_peer(&w, 0);
        w.peer.pid = w.child.pid;
        request = by_numbers(w.other.pid, 0);

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        assert_true(target.in_user_namespace);
        assert_int_equal(target.quota_uid, 0);
        assert_true(target.cap_permitted != 0);
        thread_close(&target.thread);
        end_world(&w);
}

struct target_case {
        const char *name;
        void (*test)(const struct kernel *kernel);
};

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
        { "by pidfd of the dead", by_pidfd_of_the_dead },
        { "by a descriptor that is no pidfd", by_something_else },
        { "the peer is gone", a_peer_that_is_gone },
        { "the thread ended after", a_thread_that_ends_after },
        { "its number is another's after", a_number_given_to_another_after },
        { "other ids after", other_ids_after },
        { "U10: numbers of a pid namespace", numbers_of_a_namespace },
        { "another process of a pid namespace", other_process_of_a_namespace },
        { "the same number in another pid namespace", same_number_in_another_namespace },
        { "outer numbers from a pid namespace", outer_numbers_from_a_namespace },
        { "pidfds from a pid namespace", pidfd_from_a_namespace },
        { "too many threads to look through", too_many_threads_to_look_through },
        { "from a user namespace", from_a_user_namespace },
        { "into a user namespace", into_a_user_namespace },
};

struct target_row {
        const struct target_case *c;
        const struct test_kernel *kernel;
};

static void test_target(void **state) {
        const struct target_row *row = *state;
        const struct kernel kernel = row->kernel->get();

        test_need_root();
        row->c->test(&kernel);
}

int main(void) {
        struct CMUnitTest tests[TEST_KERNELS * (ELEMENTS(cases) + ELEMENTS(ids_cases))];
        struct target_row rows[TEST_KERNELS][ELEMENTS(cases)];
        struct ids_row ids_rows[TEST_KERNELS][ELEMENTS(ids_cases)];
        char names[ELEMENTS(tests)][80];
        size_t n = 0;

        for (size_t i = 0; i < TEST_KERNELS; i++) {
                for (size_t j = 0; j < ELEMENTS(cases); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", test_kernels[i].name,
                                        cases[j].name);
                        rows[i][j] = (struct target_row) { &cases[j], &test_kernels[i] };
                        tests[n] = test_row(names[n], test_target, &rows[i][j]);
                }
                for (size_t j = 0; j < ELEMENTS(ids_cases); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: S11: %s",
                                        test_kernels[i].name, ids_cases[j].name);
                        ids_rows[i][j] = (struct ids_row) { &ids_cases[j], &test_kernels[i] };
                        tests[n] = test_row(names[n], test_ids, &ids_rows[i][j]);
                }
        }

        return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
