/* SPDX-License-Identifier: MIT */

/* Peers and targets in pid and user namespaces below ours: whose numbers are meant. */

#include <fcntl.h>
#include <sched.h>

#include "broker/ids.h"
#include "broker/proc.h"
#include "tests/unit/broker/target-test.h"

/* ---- pid namespaces ---- */

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
        world_make_peer(&w, UID_NOBODY);
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
        world_end(&w);
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
        world_end(&w);
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
        world_end(&w);
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
        world_end(&w);
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
        world_end(&w);
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
        world_end(&w);
}

/* ---- user namespaces ---- */

static void from_a_user_namespace(const struct kernel *kernel) {
        struct world w = world_make(kernel, &NOBODY, &NOBODY);
        const struct target_request other = by_numbers(w.other.pid, 0);
        struct target target;

        w.peer.in_user_namespace = true;
        w.peer.quota_uid = UID_OTHER;
        assert_resolves(&w, &(struct target_request) { 0, 0, -1 }, w.child.pid, w.child.pid);
        assert_int_equal(target_resolve(&w.kernel, &w.peer, &other, &target), REASON_NONE);
        assert_true(target.in_user_namespace);
        assert_int_equal(target.quota_uid, UID_OTHER); /* a way around its own quota is none */
        thread_close(&target.thread);
        world_end(&w);
}

/* A target within one, asked for from outside: the capabilities that it has there are no rights. */
static void into_a_user_namespace(const struct kernel *kernel) {
        struct world w = { .kernel = *kernel };
        struct target_request request;
        struct target target;

        test_child_start(&w.child, &NOBODY, 0, 0);
        test_child_start(&w.other, NULL, 0, CLONE_NEWUSER); /* of root's */
        world_make_peer(&w, 0);
        w.peer.pid = w.child.pid;
        request = by_numbers(w.other.pid, 0);

        assert_int_equal(target_resolve(&w.kernel, &w.peer, &request, &target), REASON_NONE);
        assert_true(target.in_user_namespace);
        assert_int_equal(target.quota_uid, 0);
        assert_true(target.cap_permitted != 0);
        thread_close(&target.thread);
        world_end(&w);
}

static const struct target_case cases[] = {
        { "U10: numbers of a pid namespace", numbers_of_a_namespace },
        { "another process of a pid namespace", other_process_of_a_namespace },
        { "the same number in another pid namespace", same_number_in_another_namespace },
        { "outer numbers from a pid namespace", outer_numbers_from_a_namespace },
        { "pidfds from a pid namespace", pidfd_from_a_namespace },
        { "too many threads to look through", too_many_threads_to_look_through },
        { "from a user namespace", from_a_user_namespace },
        { "into a user namespace", into_a_user_namespace },
};

int main(void) {
        struct CMUnitTest tests[TEST_KERNELS * ELEMENTS(cases)];
        struct target_row rows[ELEMENTS(tests)];
        char names[ELEMENTS(tests)][80];

        target_rows(cases, ELEMENTS(cases), tests, rows, names);
        return cmocka_run_group_tests_name("namespace", tests, NULL, NULL);
}
