/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_BROKER_TARGET_TEST_H
#define RTGRANT_TESTS_UNIT_BROKER_TARGET_TEST_H

/* A peer made by hand, and what it may and may not name. */

#include "broker/target.h"
#include "tests/unit/broker/broker-test.h"

#define NOBODY TEST_IDS(UID_NOBODY)
#define OTHER TEST_IDS(UID_OTHER)

struct world {
        struct kernel kernel;
        struct test_child child;        /* the peer: two threads beside the main one */
        struct test_child other;        /* another process */
        struct peer peer;               /* @child as it would be known after it connected */
};

struct world world_make(const struct kernel *kernel, const struct test_ids *peer,
                        const struct test_ids *other);
void world_make_peer(struct world *w, uid_t uid);
void world_end(struct world *w);

struct target_request by_numbers(pid_t pid, pid_t tid);

/* The request is for this thread, and that is of the peer's quota and rights. */
void assert_resolves(const struct world *w, const struct target_request *request, pid_t pid,
                     pid_t tid);

/* The request is refused, and leaves nothing behind. */
void assert_reason(const struct world *w, const struct target_request *request, enum reason reason);

struct target_case {
        const char *name;
        void (*test)(const struct kernel *kernel);
};

struct target_row {
        const struct target_case *c;
        const struct test_kernel *kernel;
};

/* For each kernel and each case a test, with its row and name: TEST_KERNELS * @n_cases of each. */
void target_rows(const struct target_case *cases, size_t n_cases, struct CMUnitTest *tests,
                 struct target_row *rows, char (*names)[80]);

#endif
