/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/thread.h"

#define THREADS_MAX 300

/* Threads of this process that wait until they may end. */
struct crowd {
        pthread_t threads[THREADS_MAX];
        size_t n_threads;
        pthread_mutex_t end;    /* locked as long as they are to stay */
        pid_t seen[THREADS_MAX + 1];
        size_t n_seen;
        size_t n_to_make;       /* while they are looked at */
};

static void *wait_for_the_end(void *userdata) {
        struct crowd *crowd = userdata;

        (void) pthread_mutex_lock(&crowd->end);
        (void) pthread_mutex_unlock(&crowd->end);
        return NULL;
}

static void crowd_make_one(struct crowd *crowd) {
        assert_true(crowd->n_threads < THREADS_MAX);
        assert_int_equal(
                pthread_create(&crowd->threads[crowd->n_threads], NULL, wait_for_the_end, crowd),
                0);
        crowd->n_threads++;
}

static void crowd_init(struct crowd *crowd, size_t n) {
        *crowd = (struct crowd) { .end = PTHREAD_MUTEX_INITIALIZER };
        (void) pthread_mutex_lock(&crowd->end);
        for (size_t i = 0; i < n; i++)
                crowd_make_one(crowd);
}

static void crowd_done(struct crowd *crowd) {
        (void) pthread_mutex_unlock(&crowd->end);
        for (size_t i = 0; i < crowd->n_threads; i++)
                (void) pthread_join(crowd->threads[i], NULL);
}

static int on_thread(pid_t tid, void *userdata) {
        struct crowd *crowd = userdata;

        for (size_t i = 0; i < crowd->n_seen; i++)
                assert_int_not_equal(crowd->seen[i], tid);
        crowd->seen[crowd->n_seen++] = tid;
        if (crowd->n_to_make > 0) {
                crowd->n_to_make--;
                crowd_make_one(crowd);
        }
        return 0;
}

static void test_each_is_seen_once(void **state) {
        struct crowd crowd;

        crowd_init(&crowd, 200);
        assert_int_equal(thread_each(getpid(), on_thread, &crowd), 0);
        assert_int_equal(crowd.n_seen, 201);
        crowd_done(&crowd);
}

static void test_those_born_meanwhile_too(void **state) {
        struct crowd crowd;

        crowd_init(&crowd, 3);
        crowd.n_to_make = 50;
        assert_int_equal(thread_each(getpid(), on_thread, &crowd), 0);
        assert_int_equal(crowd.n_seen, 54);
        crowd_done(&crowd);
}

static void test_by_the_id_of_any_thread(void **state) {
        struct crowd crowd;

        crowd_init(&crowd, 2);
        assert_int_equal(thread_each(getpid(), on_thread, &crowd), 0);
        assert_int_not_equal(crowd.seen[2], getpid());
        crowd.n_seen = 0;
        assert_int_equal(thread_each(crowd.seen[2], on_thread, &crowd), 0);
        assert_int_equal(crowd.n_seen, 3);
        crowd_done(&crowd);
}

static int stop_at_once(pid_t tid, void *userdata) {
        *(int *) userdata += 1;
        return -E2BIG;
}

static void test_it_can_be_stopped(void **state) {
        struct crowd crowd;
        int n = 0;

        crowd_init(&crowd, 3);
        assert_int_equal(thread_each(getpid(), stop_at_once, &n), -E2BIG);
        assert_int_equal(n, 1);
        crowd_done(&crowd);
}

/* A number that is nobody's: that of a child that was waited for. */
static pid_t gone(void) {
        pid_t child = fork();

        if (child == 0)
                _exit(0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        return child;
}

static void test_nobody(void **state) {
        struct thread thread;
        int n = 0;

        assert_int_equal(thread_each(gone(), stop_at_once, &n), -ESRCH);
        assert_int_equal(n, 0);
        assert_int_equal(thread_init(gone(), &thread), -ESRCH);
}

/* The process ends while it is looked at, and its thread was seen before. */
static int end_it(pid_t tid, void *userdata) {
        const int *fd = userdata;

        assert_int_equal(close(*fd), 0);
        assert_int_equal(waitpid(tid, NULL, 0), tid);
        return 0;
}

static void test_one_that_ends_meanwhile(void **state) {
        int fds[2];
        pid_t child;

        assert_int_equal(pipe(fds), 0);
        child = fork();
        if (child == 0) {
                char c;

                (void) close(fds[1]);
                _exit(read(fds[0], &c, 1) == 0 ? 0 : 1);
        }
        assert_int_equal(close(fds[0]), 0);
        assert_int_equal(thread_each(child, end_it, &fds[1]), 0);
}

static void *become(void *userdata) {
        const char *name = userdata;
        struct thread thread = { .pidfd = -1 };
        char label[THREAD_LABEL_SIZE], expected[128];
        intptr_t good;

        (void) prctl(PR_SET_NAME, name);
        good = thread_init(gettid(), &thread) == 0 && thread.tid == gettid() &&
               thread.pid == getpid();
        thread_label(&thread, label, sizeof(label));
        (void) snprintf(expected, sizeof(expected), "a\\x0a) R 1\\x1b[2J (thread %d)",
                        (int) gettid());
        good = good && strcmp(label, expected) == 0;
        thread_done(&thread);
        return (void *) good;
}

static void test_a_thread_and_its_odd_name(void **state) {
        pthread_t thread;
        void *good;

        assert_int_equal(pthread_create(&thread, NULL, become, (void *) "a\n) R 1\033[2J"), 0);
        assert_int_equal(pthread_join(thread, &good), 0);
        assert_true((intptr_t) good);
}

static void test_inode(void **state) {
        _cleanup_(thread_done) struct thread thread = { .pidfd = -1 };
        struct stat st;
        int r;

        assert_int_equal(thread_init(getpid(), &thread), 0);
        assert_true(thread.pidfd >= 0);
        assert_int_equal(fstat(thread.pidfd, &st), 0);
        r = thread_check_inode(&thread, st.st_ino);
        if (r == -EOPNOTSUPP)
                skip(); /* no pidfs */
        assert_int_equal(r, 0);
        assert_int_equal(thread_check_inode(&thread, st.st_ino + 1), -ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_is_seen_once),
                cmocka_unit_test(test_those_born_meanwhile_too),
                cmocka_unit_test(test_by_the_id_of_any_thread),
                cmocka_unit_test(test_it_can_be_stopped),
                cmocka_unit_test(test_nobody),
                cmocka_unit_test(test_one_that_ends_meanwhile),
                cmocka_unit_test(test_a_thread_and_its_odd_name),
                cmocka_unit_test(test_inode),
        };

        return cmocka_run_group_tests_name("cli-thread", tests, NULL, NULL);
}
