/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_LIB_LIB_TEST_H
#define RTGRANT_TESTS_UNIT_LIB_LIB_TEST_H

/* What the tests of the library share: the kernel's truth, children, time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/rtgrant.h"

#define UID_NOBODY 65534
#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

struct test_sched {
        int policy;
        int priority;
        int nice;
        bool reset_on_fork;
};

/* By raw system calls. 0 or negative errno; 0 as @tid is the calling thread. */
int test_sched_set(pid_t tid, int policy, int priority, int nice, bool reset_on_fork);
int test_nice_set(pid_t tid, int nice);
struct test_sched test_sched_get(pid_t tid);

uint64_t test_now_ms(void);
unsigned test_count_fds(void);

/* Skips the rest unless this is root with the right to make threads real-time. */
void test_need_root(void);

/* Sleeps until thread @tid of this process does (state S); for what no event tells. */
void test_await_sleep(pid_t tid);

/*
 * Runs @body in a child as user @uid (0: as the test itself), and fails unless it returns. In it,
 * CHECK() takes the place of the assertions, which belong to the test's own process.
 */
void test_in_child(uid_t uid, void (*body)(void *userdata), void *userdata);

/* Makes the calling process an unprivileged one for good. */
void test_become(uid_t uid);

/* Waits for a child and fails unless it exited with 0. */
void test_reap(pid_t pid);

#define CHECK(condition)                                                                          \
        do {                                                                                      \
                if (!(condition)) {                                                               \
                        (void) fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
                        _exit(1);                                                                 \
                }                                                                                 \
        } while (false)

#endif
