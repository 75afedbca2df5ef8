/* SPDX-License-Identifier: MIT */

/* The helpers: demotion of the own thread, by hand and by SIGXCPU, and the hand-over record. */

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/lib/fake-broker.h"
#include "tests/unit/lib/lib-test.h"

/* ---- demotion ---- */

/* As after a grant: real-time with RESET_ON_FORK, nice 7, and no right of its own. */
static void become_granted_nobody(void) {
        CHECK(test_nice_set(0, 7) == 0);
        CHECK(test_sched_set(0, SCHED_FIFO, 5, 0, true) == 0);
        test_become(UID_NOBODY);
        /* I01: without the flag the kernel refuses even to go back. */
        CHECK(test_sched_set(0, SCHED_OTHER, 0, 7, false) == -EPERM);
}

static void CHECK_demoted(void) {
        struct test_sched now = test_sched_get(0);

        CHECK(now.policy == SCHED_OTHER);
        CHECK(now.priority == 0);
        CHECK(now.nice == 7);
        CHECK(now.reset_on_fork);
}

static void demote(void *userdata) {
        become_granted_nobody();
        CHECK(rtgrant_demote_self() == 0);
        CHECK_demoted();
        /* Once more has nothing to do. */
        CHECK(rtgrant_demote_self() == 0);
        CHECK_demoted();
}

static void test_I01_demote_keeps_nice_and_flag(void **state) {
        test_need_root();
        test_in_child(0, demote, NULL);
}

/* A thread that never asked keeps what it has: SCHED_IDLE could not be left and come back. */
static void demote_idle(void *userdata) {
        CHECK(test_sched_set(0, SCHED_IDLE, 0, 3, false) == 0);
        CHECK(rtgrant_demote_self() == 0);
        CHECK(test_sched_get(0).policy == SCHED_IDLE);
        CHECK(!test_sched_get(0).reset_on_fork);
}

static void test_demote_leaves_others_alone(void **state) {
        test_in_child(0, demote_idle, NULL);
}

static void demote_without_flag(void *userdata) {
        CHECK(test_sched_set(0, SCHED_RR, 5, 0, false) == 0);
        CHECK(rtgrant_demote_self() == 0);
        CHECK(test_sched_get(0).policy == SCHED_OTHER);
        CHECK(!test_sched_get(0).reset_on_fork);
}

static void test_demote_sets_no_flag(void **state) {
        test_need_root();
        test_in_child(0, demote_without_flag, NULL);
}

static atomic_int n_signals;

static void on_sigxcpu(int number) {
        rtgrant_demote_self_from_signal();
        n_signals++;
}

static uint64_t thread_cpu_ms(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

/*
 * Spins past RLIMIT_RTTIME: SIGXCPU comes at 50 ms, SIGKILL would at 200. Should anything fail,
 * the hard limits end it: the CPU limit too, if it is no longer real-time.
 */
static void spin_over_the_limit(void *userdata) {
        struct rlimit rttime = { 50000, 200000 }, cpu = { 2, 2 };
        struct sigaction action = { .sa_handler = on_sigxcpu };

        CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0);
        CHECK(setrlimit(RLIMIT_RTTIME, &rttime) == 0);
        CHECK(sigaction(SIGXCPU, &action, NULL) == 0);
        become_granted_nobody();

        errno = 4242;
        while (thread_cpu_ms() < 500)
                ;
        CHECK(errno == 4242);
        CHECK(n_signals == 1);
        CHECK_demoted();
}

static void test_sigxcpu_saves_the_process(void **state) {
        test_need_root();
        test_in_child(0, spin_over_the_limit, NULL);
}

/* The same without the handler's help: proves that the limit would have killed. */
static void on_sigxcpu_idle(int number) {
}

static void spin_undemoted(void) {
        struct rlimit rttime = { 50000, 200000 }, cpu = { 2, 2 };
        struct sigaction action = { .sa_handler = on_sigxcpu_idle };

        CHECK(setrlimit(RLIMIT_CPU, &cpu) == 0);
        CHECK(setrlimit(RLIMIT_RTTIME, &rttime) == 0);
        CHECK(sigaction(SIGXCPU, &action, NULL) == 0);
        become_granted_nobody();
        while (thread_cpu_ms() < 1000)
                ;
        _exit(0);
}

static void test_without_demotion_the_limit_kills(void **state) {
        int status;
        pid_t pid;

        test_need_root();
        pid = fork();
        if (pid == 0)
                spin_undemoted();
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* Where a filter makes its every call fail. */
static void errno_survives(void *userdata) {
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);

        CHECK(seccomp_rule_add(context, SCMP_ACT_ERRNO(EXDEV), SCMP_SYS(sched_getattr), 0) == 0);
        CHECK(seccomp_load(context) == 0);
        seccomp_release(context);
        CHECK(rtgrant_demote_self() == -EXDEV);
        errno = 77;
        rtgrant_demote_self_from_signal();
        CHECK(errno == 77);
}

static void test_errno_survives(void **state) {
        test_in_child(0, errno_survives, NULL);
}

/* ---- hand-over ---- */

#define FIFO_5 .size = sizeof(struct rtgrant_request), .wants_sched = true,                        \
               .policy = SCHED_FIFO, .priority = 5

/* A child that hands over its main thread and waits. In a pid namespace of its own if @apart. */
struct child {
        pid_t pid;
        int go;
        struct rtgrant_handover handover;
};

static void run_child(int to_parent, int from_parent) {
        struct rtgrant_handover handover;
        char byte;

        /* H10: a name that looks like the end of field 2 and what follows. */
        CHECK(prctl(PR_SET_NAME, ") R 1 1\n 9 9") == 0);
        CHECK(rtgrant_handover_init(&handover) == 0);
        CHECK(write(to_parent, &handover, sizeof(handover)) == sizeof(handover));
        CHECK(read(from_parent, &byte, 1) == 0);
        _exit(test_sched_get(0).policy == SCHED_FIFO ? 0 : 3);
}

static pid_t fork_apart(bool apart) {
        struct {
                uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
        } args = { .flags = apart ? CLONE_NEWPID : 0, .exit_signal = SIGCHLD };

        return (pid_t) syscall(SYS_clone3, &args, sizeof(args));
}

static void child_start(struct child *child, bool apart) {
        int to_parent[2], from_parent[2];

        assert_int_equal(pipe(to_parent), 0);
        assert_int_equal(pipe(from_parent), 0);
        child->pid = fork_apart(apart);
        assert_true(child->pid >= 0);
        if (child->pid == 0) {
                (void) close(from_parent[1]);
                run_child(to_parent[1], from_parent[0]);
        }
        (void) close(to_parent[1]);
        (void) close(from_parent[0]);
        child->go = from_parent[1];
        assert_int_equal(read(to_parent[0], &child->handover, sizeof(child->handover)),
                         sizeof(child->handover));
        (void) close(to_parent[0]);
}

/* Returns its exit status: 0 if it was FIFO at its end, 3 if not. */
static int child_stop(struct child *child) {
        int status;

        (void) close(child->go);
        assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* Field 22 of /proc/PID/stat as another program would find it. */
static uint64_t start_time_of(pid_t pid) {
        char path[64], text[1024] = "", *p;
        uint64_t start_time = 0;
        FILE *file;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        file = fopen(path, "re");
        assert_non_null(file);
        assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
        (void) fclose(file);
        p = strrchr(text, ')');
        assert_non_null(p);
        /* state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime
         * cstime priority nice threads itrealvalue start */
        assert_int_equal(sscanf(p + 2,
                                "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                                "%*d %*d %*d %*d %lu", &start_time), 1);
        return start_time;
}

static void test_handover_record(void **state) {
        struct child child;

        test_need_root();
        child_start(&child, false);
        assert_int_equal(child.handover.size, sizeof(child.handover));
        assert_int_equal(child.handover.version, 1);
        assert_int_equal(child.handover.pid, child.pid);
        assert_int_equal(child.handover.tid, child.pid);
        assert_int_equal(child.handover.start_time, start_time_of(child.pid));
        assert_int_equal(child_stop(&child), 3);
        assert_int_equal(rtgrant_handover_init(NULL), -EINVAL);
}

static void *init_handover(void *userdata) {
        (void) rtgrant_handover_init(userdata);
        return NULL;
}

/* Another than the main thread, which started some clock ticks before it. */
static void test_handover_of_another_thread(void **state) {
        struct rtgrant_handover own, others = {};
        pthread_t thread;

        assert_int_equal(rtgrant_handover_init(&own), 0);
        (void) poll(NULL, 0, 50);
        assert_int_equal(pthread_create(&thread, NULL, init_handover, &others), 0);
        (void) pthread_join(thread, NULL);
        assert_int_equal(others.pid, own.pid);
        assert_int_not_equal(others.tid, own.tid);
        assert_true(others.start_time > own.start_time);
}

struct parent {
        struct fake_broker broker;
        struct rtgrant *handle;
};

static void parent_start(struct parent *parent) {
        fake_start(&parent->broker, script_grant, NULL);
        assert_int_equal(rtgrant_open(&parent->handle, parent->broker.path, 0), 0);
}

static void parent_stop(struct parent *parent) {
        assert_null(rtgrant_close(parent->handle));
        fake_stop(&parent->broker);
}

static int handover_acquire(struct parent *parent, const struct rtgrant_handover *handover,
                            pid_t child_pid) {
        /* The target in it is not looked at. */
        struct rtgrant_request request = { FIFO_5, .pid = 1, .tid = 1 };

        return rtgrant_handover_acquire(parent->handle, handover, child_pid, &request, NULL);
}

/* G16: the sandboxed child may not ask, its parent does; in its own pid namespace too (G01). */
static void test_G16_parent_asks(void **state) {
        static const bool apart[] = { false, true };

        test_need_root();
        for (size_t i = 0; i < N_ELEMENTS(apart); i++) {
                struct parent parent;
                struct child child;
                int r;

                parent_start(&parent);
                child_start(&child, apart[i]);
                assert_int_equal(child.handover.pid, apart[i] ? 1 : child.pid);
                r = handover_acquire(&parent, &child.handover, child.pid);
                assert_int_equal(child_stop(&child), 0);
                assert_int_equal(r, 0);
                assert_int_equal(parent.broker.acquired.pid, child.pid);
                assert_int_equal(parent.broker.acquired.tid, child.pid);
                parent_stop(&parent);
        }
}

static void test_parent_believes_the_record(void **state) {
        struct parent parent;
        struct child child;
        int r;

        test_need_root();
        parent_start(&parent);
        child_start(&child, false);
        r = handover_acquire(&parent, &child.handover, 0);
        assert_int_equal(child_stop(&child), 0);
        assert_int_equal(r, 0);
        parent_stop(&parent);
}

static void test_records_that_do_not_fit(void **state) {
        struct rtgrant_handover wrong;
        struct parent parent;
        struct child child;

        test_need_root();
        parent_start(&parent);
        child_start(&child, false);

        /* Another process than the child, a thread of another, a later one of the same number. */
        assert_int_equal(handover_acquire(&parent, &child.handover, getpid()), -ESRCH);
        wrong = child.handover;
        wrong.pid++;
        assert_int_equal(handover_acquire(&parent, &wrong, child.pid), -ESRCH);
        wrong = child.handover;
        wrong.tid = (uint64_t) getpid();
        assert_int_equal(handover_acquire(&parent, &wrong, child.pid), -ESRCH);
        wrong = child.handover;
        wrong.start_time++;
        assert_int_equal(handover_acquire(&parent, &wrong, child.pid), -ESRCH);
        assert_int_equal(handover_acquire(&parent, &wrong, 0), -ESRCH);
        assert_int_equal(parent.broker.n_requests, 0);
        assert_int_equal(child_stop(&child), 3);
        parent_stop(&parent);
}

static void test_damaged_records(void **state) {
        struct rtgrant_request request = { FIFO_5 };
        struct rtgrant_handover good, bad;
        struct parent parent;

        parent_start(&parent);
        assert_int_equal(rtgrant_handover_init(&good), 0);

#define ASSERT_DAMAGED(field, value)                                                              \
        do {                                                                                      \
                bad = good;                                                                       \
                bad.field = (value);                                                              \
                assert_int_equal(handover_acquire(&parent, &bad, 0), -EINVAL);                    \
        } while (false)

        ASSERT_DAMAGED(size, 0);
        ASSERT_DAMAGED(size, good.size + 8);
        ASSERT_DAMAGED(version, 0);
        ASSERT_DAMAGED(version, 2);
        ASSERT_DAMAGED(pid, 0);
        ASSERT_DAMAGED(pid, UINT64_C(1) << 32 | good.pid);
        ASSERT_DAMAGED(tid, 0);
        ASSERT_DAMAGED(tid, UINT64_MAX);
        ASSERT_DAMAGED(reserved[3], 1);
        assert_int_equal(handover_acquire(&parent, NULL, 0), -EINVAL);
        assert_int_equal(handover_acquire(&parent, &good, -1), -EINVAL);
        request.size = 0;
        assert_int_equal(rtgrant_handover_acquire(parent.handle, &good, 0, &request, NULL),
                         -EINVAL);
        assert_int_equal(parent.broker.n_requests, 0);
        parent_stop(&parent);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_I01_demote_keeps_nice_and_flag),
                cmocka_unit_test(test_demote_leaves_others_alone),
                cmocka_unit_test(test_demote_sets_no_flag),
                cmocka_unit_test(test_sigxcpu_saves_the_process),
                cmocka_unit_test(test_without_demotion_the_limit_kills),
                cmocka_unit_test(test_errno_survives),
                cmocka_unit_test(test_handover_record),
                cmocka_unit_test(test_handover_of_another_thread),
                cmocka_unit_test(test_G16_parent_asks),
                cmocka_unit_test(test_parent_believes_the_record),
                cmocka_unit_test(test_records_that_do_not_fit),
                cmocka_unit_test(test_damaged_records),
        };

        return cmocka_run_group_tests_name("lib-self", tests, NULL, NULL);
}
