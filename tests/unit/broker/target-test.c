/* SPDX-License-Identifier: MIT */

#include "tests/unit/broker/target-test.h"

void world_make_peer(struct world *w, uid_t uid) {
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

struct world world_make(const struct kernel *kernel, const struct test_ids *peer,
                        const struct test_ids *other) {
        struct world w = { .kernel = *kernel };

        test_child_start(&w.child, peer, 2, 0);
        test_child_start(&w.other, other, 2, 0);
        world_make_peer(&w, peer->euid);
        return w;
}

void world_end(struct world *w) {
        (void) close(w->peer.pidfd);
        test_child_end(&w->other);
        test_child_end(&w->child);
}

void assert_resolves(const struct world *w, const struct target_request *request, pid_t pid,
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

void assert_reason(const struct world *w, const struct target_request *request,
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

struct target_request by_numbers(pid_t pid, pid_t tid) {
        return (struct target_request) { (uint64_t) pid, (uint64_t) tid, -1 };
}

static void test_target(void **state) {
        const struct target_row *row = *state;
        const struct kernel kernel = row->kernel->get();

        test_need_root();
        row->c->test(&kernel);
}

void target_rows(const struct target_case *cases, size_t n_cases, struct CMUnitTest *tests,
                 struct target_row *rows, char (*names)[80]) {
        for (size_t i = 0; i < TEST_KERNELS * n_cases; i++) {
                rows[i] = (struct target_row) { &cases[i % n_cases], &test_kernels[i / n_cases] };
                (void) snprintf(names[i], sizeof(names[i]), "%s: %s", rows[i].kernel->name,
                                rows[i].c->name);
                tests[i] = test_row(names[i], test_target, &rows[i]);
        }
}
