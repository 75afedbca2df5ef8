/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_BROKER_BROKER_TEST_H
#define RTGRANT_TESTS_UNIT_BROKER_BROKER_TEST_H

/* What the tests of the broker's modules share: rows, children whose threads sleep, users. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "broker/cleanup.h"
#include "broker/kernel.h"
#include "broker/sched-values.h"

#define UID_NOBODY 65534
#define UID_OTHER 65533

/* A row of a table as a test of its own. */
struct CMUnitTest test_row(const char *name, CMUnitTestFunction function, const void *row);

/* Ends the test as skipped. */
void test_skip(const char *why);

/* Skips the rest unless this is root with the right to make threads real-time. */
void test_need_root(void);

/* In a child, where the assertions of cmocka must not be used. */
#define CHECK(condition)                                                                   \
        do {                                                                               \
                if (!(condition)) {                                                        \
                        (void) dprintf(STDOUT_FILENO, "# %s:%d: %s\n", __FILE__, __LINE__, \
                                       #condition);                                        \
                        _exit(1);                                                          \
                }                                                                          \
        } while (false)

/* What a child exits with that could not do what its test is about. */
#define EXIT_SKIP 77

/* Runs @body in a child; fails unless it returns, skips if it exits with EXIT_SKIP. */
void test_in_child(void (*body)(const void *userdata), const void *userdata);

struct test_ids {
        uid_t ruid, euid, suid;
        gid_t rgid, egid, sgid;
        bool keep_caps;                 /* CapPrm survives the change of user */
};

#define TEST_IDS(id) ((struct test_ids) { (id), (id), (id), (id), (id), (id), false })

/* Makes the calling process one of these ids. */
void test_become(const struct test_ids *ids);

/* A child whose threads sleep; it ends with the test at the latest. */
struct test_child {
        pid_t pid;
        int control;
        unsigned n_threads;
        pid_t *tids;                    /* [0]: the main thread; in the child's own numbers */
};

/*
 * @ids             NULL: as the test
 * @n_threads       beside the main one
 * @clone_flags     CLONE_NEWPID, CLONE_NEWUSER
 */
void test_child_start(struct test_child *child, const struct test_ids *ids, unsigned n_threads,
                      int clone_flags);
void test_child_end(struct test_child *child);

void test_child_end_thread(struct test_child *child, unsigned thread);

/* Ends a thread and makes another one of the same number. False where that cannot be. */
bool test_child_recycle_thread(struct test_child *child, unsigned thread);

/* Gives the main thread this name. */
void test_child_rename(struct test_child *child, const char *name);

/* Kernels that the broker may meet: the one there is, and what is left of it on older ones. */
struct test_kernel {
        const char *name;
        struct kernel (*get)(void);
};

#define TEST_KERNELS 3
extern const struct test_kernel test_kernels[TEST_KERNELS];

void assert_sched_is(pid_t tid, int policy, int priority, int nice, bool reset_on_fork);

#endif
