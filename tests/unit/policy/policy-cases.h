/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_POLICY_CASES_H
#define RTGRANT_TESTS_POLICY_CASES_H

/* Six roles, and rows of what is asked of them and what comes of it: one row, one test. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "policy/policy.h"

/* Every rule has its own line: that of the key plus a hundred for each role. */
#define ROLE_LINE(role, key) (100 * (role) + ROLE_KEY_##key)
#define ROLE_RULE(role, key) [ROLE_KEY_##key] = { "policy.conf", ROLE_LINE(role, key) }
#define ROLE_RULES(role)                                                                          \
        .rules = {                                                                                \
                ROLE_RULE(role, DESCRIPTION),      ROLE_RULE(role, POLICY),                       \
                ROLE_RULE(role, PRIORITY),         ROLE_RULE(role, NICE),                         \
                ROLE_RULE(role, THREADS_PER_USER), ROLE_RULE(role, LIFETIME_MAX),                 \
                ROLE_RULE(role, ALLOW_USERS),      ROLE_RULE(role, ALLOW_GROUPS),                 \
                ROLE_RULE(role, DENY_USERS),       ROLE_RULE(role, DENY_GROUPS),                  \
                ROLE_RULE(role, ACTION),                                                          \
        }
#define LINE(role, key) .line = ROLE_LINE(role, key)
#define BROKER_LINE(key) .line = (1000 + BROKER_KEY_##key)
#define BROKER_RULE(key) [BROKER_KEY_##key] = { "policy.conf", 1000 + BROKER_KEY_##key }

#define IDS(...)                                                                                  \
        {                                                                                         \
                .ids = (const uint32_t[]) { __VA_ARGS__ },                                        \
                .n_ids = sizeof((uint32_t[]) { __VA_ARGS__ }) / sizeof(uint32_t),                 \
        }
#define EVERYBODY { .everybody = true }

#define FIFO (1U << SCHED_FIFO)
#define RR (1U << SCHED_RR)
#define OTHER (1U << SCHED_OTHER)

/* Groups 100 and 101 are the caller's. */
enum { NO_ROLE = 0, DESKTOP = 1, CALM, STAGE, OFFICE, CLOSED, GREEDY };

#define ROLE(id, word) .name = (word), .description = "", ROLE_RULES(id), .lifetime_s_max = 3600

/* The actions count only in rows with polkit. */
static const struct role roles[] = {
        { ROLE(DESKTOP, "desktop"), .policies = FIFO | RR | OTHER, .priority_min = 5,
          .priority_max = 20, .nice_min = -15, .threads_per_user_max = 3,
          .allow_groups = IDS(7, 100), .deny_users = IDS(1666, 1667), .action = "org.a" },
        { ROLE(CALM, "calm"), .policies = RR | OTHER, .priority_min = 30, .priority_max = 40,
          .nice_min = -10, .threads_per_user_max = 3, .allow_users = IDS(1000),
          .deny_groups = IDS(166), .action = "" },
        { ROLE(STAGE, "stage"), .policies = FIFO, .priority_min = 61, .priority_max = 94,
          .nice_min = -19, .threads_per_user_max = 3, .allow_groups = IDS(101),
          .action = "org.b" },
        { ROLE(OFFICE, "office"), .policies = FIFO | RR | OTHER, .nice_min = 0,
          .threads_per_user_max = 3, .allow_users = EVERYBODY, .action = "" },
        { ROLE(CLOSED, "closed"), .policies = FIFO | RR | OTHER, .priority_min = 41,
          .priority_max = 60, .nice_min = -20, .threads_per_user_max = 3,
          .allow_groups = EVERYBODY, .deny_users = EVERYBODY, .action = "org.a" },
        { ROLE(GREEDY, "greedy"), .policies = FIFO | RR, .priority_min = 95, .priority_max = 99,
          .threads_per_user_max = 3, .allow_users = IDS(0), .action = "" },
};

#define N_ROLES (sizeof(roles) / sizeof(roles[0]))

/* What every row starts from; a row states only what it changes. */
#define A_POLICY                                                                                  \
        .roles = roles, .n_roles = N_ROLES, .threads_max = 50, .threads_per_user_max = 10,        \
        .grant_burst = 4,                                                                         \
        .rules = {                                                                                \
                BROKER_RULE(DEFAULT_ROLE),  BROKER_RULE(THREADS_MAX),                             \
                BROKER_RULE(GRANT_BURST),   BROKER_RULE(THREADS_PER_USER),                        \
                BROKER_RULE(GRANT_REFILL),  BROKER_RULE(USER_NAMESPACES),                         \
                BROKER_RULE(BACK_OFF),                                                            \
        }
#define NOW                                                                                       \
        .uid = 1000, .gids = (const gid_t[]) { 100, 101 }, .n_gids = 2, .rt_possible = true,      \
        .threads_held_by_role = (const unsigned[N_ROLES]) { 0 }, .grant_tokens = 4
#define POLKIT A_POLICY, .ask_polkit = true
#define STRANGER NOW, .uid = 5, .n_gids = 0 /* on no list but that of everybody */
#define SAID(answer, id) .authority = AUTHORITY_##answer, .authority_role = (id) - 1
#define ASK .wants_sched = true, .policy = SCHED_FIFO, .priority = 10
#define ASK_NICE .wants_sched = true, .policy = SCHED_OTHER, .wants_nice = true

struct expected {
        enum reason reason;
        int role;               /* 0: none */
        unsigned line;          /* 0: no rule */
        bool clamped;
        int policy;
        int priority;
        int nice;
        unsigned lifetime_s;
        int64_t asked;
        int64_t limit;
        int64_t limit_low;
        unsigned retry_after_ms;
};

struct evaluate_case {
        const char *name;
        struct policy policy;
        struct situation now;
        struct request request;
        struct expected expected;
};

#define GRANTED(id, key) .role = (id), LINE(id, key)
#define CLAMPED(id, key) .clamped = true, .role = (id), LINE(id, key)
#define ASKED(id) DENIED(NEEDS_AUTHORIZATION, id), LINE(id, ACTION)
#define DENIED(why, id) .reason = REASON_##why, .role = (id)
#define RANGE(a, low, high) .asked = (a), .limit_low = (low), .limit = (high)
#define LIMIT(a, max) RANGE(a, max, max)

#pragma GCC diagnostic ignored "-Woverride-init" /* rows override the defaults above */

static inline const struct role *role_of(int id) {
        return id == NO_ROLE ? NULL : &roles[id - 1];
}

/* cmocka calls this once a row; the row arrives as the initial state. */
static inline void test_evaluate(void **state) {
        const struct evaluate_case *c = *state;
        const struct expected *e = &c->expected;
        struct decision d;

        d = policy_evaluate(&c->policy, &c->now, &c->request);

        assert_string_equal(reason_to_string(d.reason), reason_to_string(e->reason));
        assert_int_equal(d.verdict, e->reason == REASON_NONE                  ? VERDICT_GRANT
                                    : e->reason == REASON_NEEDS_AUTHORIZATION ? VERDICT_ASK
                                                                              : VERDICT_DENY);
        assert_ptr_equal(d.role, role_of(e->role));
        assert_int_equal(d.rule.line, e->line);
        assert_true(!d.rule.file == (e->line == 0));
        assert_int_equal(d.clamped, e->clamped);
        assert_int_equal(d.policy, e->policy);
        assert_int_equal(d.priority, e->priority);
        assert_int_equal(d.nice, e->nice);
        assert_int_equal(d.lifetime_s, e->lifetime_s);
        assert_int_equal(d.asked, e->asked);
        assert_int_equal(d.limit, e->limit);
        assert_int_equal(d.limit_low, e->limit_low);
        assert_int_equal(d.retry_after_ms, e->retry_after_ms);
}

/* Runs the rows of @cases, then @others. */
static inline int run_cases(const char *name, const struct evaluate_case *cases, size_t n_cases,
                            const struct CMUnitTest *others, size_t n_others) {
        struct CMUnitTest *tests = calloc(n_cases + n_others, sizeof(*tests));
        int r;

        assert_non_null(tests);
        for (size_t i = 0; i < n_cases; i++)
                tests[i] = (struct CMUnitTest) {
                        .name = cases[i].name,
                        .test_func = test_evaluate,
                        .initial_state = (void *) &cases[i],
                };
        for (size_t i = 0; i < n_others; i++)
                tests[n_cases + i] = others[i];

        r = _cmocka_run_group_tests(name, tests, n_cases + n_others, NULL, NULL);
        free(tests);
        return r;
}

static inline void assert_tried(enum reason reason, const struct evaluate_case *cases,
                                size_t n_cases) {
        size_t n = 0;

        for (size_t i = 0; i < n_cases; i++)
                n += cases[i].expected.reason == reason;
        assert_int_not_equal(n, 0);
}

#endif
