/* SPDX-License-Identifier: MIT */

/* Declared timing, places in a band, who stands above whom, sessions, hints, and what is traced. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "policy/policy.h"

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define RULE(role, key) [ROLE_KEY_##key] = { "p", 100 * (role) + ROLE_KEY_##key }
#define LINE(role, key) (100 * (role) + ROLE_KEY_##key)
#define WORDS(...)                                                                                \
        {                                                                                         \
                .words = (const char *const[]) { __VA_ARGS__ },                                   \
                .n_words = sizeof((const char *const[]) { __VA_ARGS__ }) / sizeof(char *),        \
        }
#define RULES(role)                                                                               \
        .rules = {                                                                                \
                RULE(role, PRIORITY), RULE(role, BELOW), RULE(role, DECLARED_CPU),                \
                RULE(role, PRIORITY_BY_PERIOD), RULE(role, ALLOW_SESSIONS), RULE(role, ACTION),   \
                RULE(role, UNITS), RULE(role, EXECUTABLES), RULE(role, ALLOW_USERS),              \
        }
#define A_ROLE(id, word)                                                                          \
        .name = (word), .description = "", .action = "", .lifetime_s_max = 60,                    \
        .policies = 1U << SCHED_FIFO | 1U << SCHED_RR | 1U << SCHED_OTHER,                        \
        .threads_per_user_max = 9, .declared_cpu_percent = 100, RULES(id)

#pragma GCC diagnostic ignored "-Woverride-init" /* rows override the defaults below */

enum { CLIENT, SERVER, PERIODIC, SMALL, SEATED, ASKED, N_ROLES };
#define RESERVE_LINE 900
#define SYSTEM_LINE 901

static const struct role roles[] = {
        [CLIENT] = { A_ROLE(CLIENT, "client"), .priority_min = 61, .priority_max = 80,
                     .allow_users.everybody = true, .below = WORDS("server"),
                     .units = WORDS("synth.service"), .executables = WORDS("/opt/synth/*") },
        [SERVER] = { A_ROLE(SERVER, "server"), .priority_min = 71, .priority_max = 85,
                     .allow_users.everybody = true, .executables = WORDS("jackd", "pipewire*"),
                     .resources[RESOURCE_IRQ] = { true, 75, 94 } },
        [PERIODIC] = { A_ROLE(PERIODIC, "periodic"), .priority_min = 20, .priority_max = 60,
                       .allow_users.everybody = true, .priority_by_period = true },
        [SMALL] = { A_ROLE(SMALL, "small"), .priority_min = 5, .priority_max = 5,
                    .allow_users.everybody = true, .declared_cpu_percent = 25 },
        [SEATED] = { A_ROLE(SEATED, "seated"), .priority_min = 1, .priority_max = 9,
                     .sessions = 1U << SESSION_ACTIVE | 1U << SESSION_REMOTE },
        [ASKED] = { A_ROLE(ASKED, "asked"), .priority_min = 1, .priority_max = 9,
                    .action = "org.a" },
};

#define POLICY                                                                                    \
        .roles = roles, .n_roles = N_ROLES, .threads_max = 50, .threads_per_user_max = 5,         \
        .reserve_cpu_percent = 10,                                                                \
        .rules = {                                                                                \
                [BROKER_KEY_RESERVE_CPU] = { "p", RESERVE_LINE },                                 \
                [BROKER_KEY_SYSTEM_THREADS_PER_USER] = { "p", SYSTEM_LINE },                      \
        }
#define NOW                                                                                       \
        .uid = 1000, .quota_uid = 1000, .rt_possible = true,                                      \
        .threads_held_by_role = (const unsigned[N_ROLES]) { 0 }, .grant_tokens = 4
#define DECLARED(own_ppm, all_ppm)                                                                \
        NOW, .declared = { [DECLARED_OWN] = { .n_cpus = 1, .ppm = (own_ppm) },                    \
                           [DECLARED_MACHINE] = { .n_cpus = 2, .ppm = (all_ppm) } }
#define FIFO(word, p) .role = (word), .wants_sched = true, .policy = SCHED_FIFO, .priority = (p)
#define PLACE(word, r) FIFO(word, 0), .is_relative = true, .relative = (r)
#define RAISED(p)                                                                                 \
        .resources = 1U << RESOURCE_IRQ, .values[RESOURCE_IRQ] = (p), .raises_fed = true,         \
        .irq_roles = 1U << SERVER
#define MS(ms) ((uint64_t) (ms) * 1000000)

struct expected {
        enum reason reason;
        int priority;
        unsigned line;
        bool clamped;
        int64_t asked;
        int64_t limit;
        enum superior superior;
};

static const struct row {
        const char *name;
        struct policy policy;
        struct situation now;
        struct request request;
        struct expected expected;
} rows[] = {
        /* a place in the band */
        { "the low end", { POLICY }, { NOW }, { PLACE("server", -2) }, { .priority = 71 } },
        { "a quarter up", { POLICY }, { NOW }, { PLACE("server", -1) }, { .priority = 74 } },
        { "the middle", { POLICY }, { NOW }, { PLACE("server", 0) }, { .priority = 78 } },
        { "three quarters", { POLICY }, { NOW }, { PLACE("server", 1) }, { .priority = 81 } },
        { "the top", { POLICY }, { NOW }, { PLACE("server", 2) }, { .priority = 85 } },
        { "a band of one", { POLICY }, { NOW }, { PLACE("small", -2) }, { .priority = 5 } },
        { "above the top", { POLICY }, { NOW }, { PLACE("server", 3) },
          { REASON_INVALID, .asked = 3, .limit = 2 } },
        { "below the end", { POLICY }, { NOW }, { PLACE("server", -3) },
          { REASON_INVALID, .asked = -3, .limit = 2 } },
        { "a place and a priority", { POLICY }, { NOW },
          { PLACE("server", 0), .priority = 72 }, { REASON_INVALID, .limit = 2 } },

        /* declared timing */
        { "as much as the reserve leaves", { POLICY }, { DECLARED(400000, 400000) },
          { FIFO("server", 72), .period_ns = MS(10), .computation_ns = MS(5) },
          { .priority = 72 } },
        { "a millionth more", { POLICY }, { DECLARED(400001, 400001) },
          { FIFO("server", 72), .period_ns = MS(10), .computation_ns = MS(5) },
          { REASON_ADMISSION, .line = RESERVE_LINE, .asked = 900001, .limit = 900000 } },
        { "rounded up", { POLICY }, { DECLARED(899999, 899999) },
          { FIFO("server", 72), .period_ns = MS(1000), .computation_ns = 1001 },
          { REASON_ADMISSION, .line = RESERVE_LINE, .asked = 900001, .limit = 900000 } },
        { "its CPU has room, the machine has not", { POLICY }, { DECLARED(0, 1800000) },
          { FIFO("server", 72), .period_ns = MS(10), .computation_ns = MS(1) },
          { REASON_ADMISSION, .line = RESERVE_LINE, .asked = 1900000, .limit = 1800000 } },
        { "not declared, not counted", { POLICY }, { DECLARED(900000, 1800000) },
          { FIFO("server", 72) }, { .priority = 72 } },
        { "the share of the role", { POLICY }, { DECLARED(0, 0) },
          { FIFO("small", 5), .period_ns = MS(100), .computation_ns = MS(25) },
          { .priority = 5 } },
        { "more than the share of the role", { POLICY }, { DECLARED(0, 0) },
          { FIFO("small", 5), .period_ns = MS(100), .computation_ns = MS(26) },
          { REASON_ADMISSION, .line = LINE(SMALL, DECLARED_CPU), .asked = 260000,
            .limit = 250000 } },
        { "no reserve", { POLICY, .reserve_cpu_percent = 0 }, { DECLARED(500000, 0) },
          { FIFO("server", 72), .period_ns = MS(10), .computation_ns = MS(5) },
          { .priority = 72 } },
        { "computation beyond the period", { POLICY }, { NOW },
          { FIFO("server", 72), .period_ns = 5, .computation_ns = 6 }, { REASON_INVALID } },
        { "half of a declaration", { POLICY }, { NOW }, { FIFO("server", 72), .period_ns = 5 },
          { REASON_INVALID } },
        { "an hour", { POLICY }, { NOW },
          { FIFO("server", 72), .period_ns = POLICY_PERIOD_NS_MAX, .computation_ns = 1 },
          { .priority = 72 } },
        { "more than an hour", { POLICY }, { NOW },
          { FIFO("server", 72), .period_ns = POLICY_PERIOD_NS_MAX + 1, .computation_ns = 1 },
          { REASON_INVALID } },

        /* priorities that follow the period */
        { "the shortest period", { POLICY }, { NOW },
          { FIFO("periodic", 60), .period_ns = 250000, .computation_ns = 1 },
          { .priority = 60 } },
        { "a longer one is lower", { POLICY }, { NOW },
          { FIFO("periodic", 60), .period_ns = MS(1), .computation_ns = 1 },
          { REASON_PRIORITY_LIMIT, .line = LINE(PERIODIC, PRIORITY_BY_PERIOD), .asked = 60,
            .limit = 52 } },
        { "and may be asked so", { POLICY }, { NOW },
          { FIFO("periodic", 52), .period_ns = MS(1), .computation_ns = 1 }, { .priority = 52 } },
        { "clamped to it", { POLICY }, { NOW },
          { FIFO("periodic", 60), .period_ns = MS(1), .computation_ns = 1, .clamp = true },
          { .priority = 52, .line = LINE(PERIODIC, PRIORITY_BY_PERIOD), .clamped = true,
            .asked = 60, .limit = 52 } },
        { "the longest", { POLICY }, { NOW },
          { PLACE("periodic", 0), .period_ns = MS(256), .computation_ns = 1 },
          { .priority = 20 } },
        { "its own place", { POLICY }, { NOW },
          { PLACE("periodic", 2), .period_ns = MS(1), .computation_ns = 1 }, { .priority = 52 } },
        { "below its place", { POLICY }, { NOW },
          { PLACE("periodic", -2), .period_ns = MS(1), .computation_ns = 1 }, { .priority = 50 } },
        { "without a period the whole band", { POLICY }, { NOW }, { FIFO("periodic", 60) },
          { .priority = 60 } },

        /* who stands above whom */
        { "below the thread that it feeds", { POLICY }, { NOW, .feeds_priority = 72 },
          { FIFO("client", 71) }, { .priority = 71 } },
        { "beside it", { POLICY }, { NOW, .feeds_priority = 72 }, { FIFO("client", 72) },
          { REASON_ABOVE_SERVER, .asked = 72, .limit = 71 } },
        { "clamped below it", { POLICY }, { NOW, .feeds_priority = 72 },
          { FIFO("client", 75), .clamp = true },
          { .priority = 71, .clamped = true, .asked = 75, .limit = 71 } },
        { "no place below it", { POLICY }, { NOW, .feeds_priority = 61 },
          { FIFO("client", 61), .clamp = true },
          { REASON_ABOVE_SERVER, .asked = 61, .limit = 60 } },
        { "below the server's role", { POLICY },
          { NOW, .lowest_by_role = (const int[N_ROLES]) { [SERVER] = 74 } },
          { FIFO("client", 74) },
          { REASON_ABOVE_SERVER, .line = LINE(CLIENT, BELOW), .asked = 74, .limit = 73 } },
        { "one lower", { POLICY },
          { NOW, .lowest_by_role = (const int[N_ROLES]) { [SERVER] = 74 } },
          { FIFO("client", 73) }, { .priority = 73 } },
        { "below its sound card", { POLICY }, { NOW, .feeds_irq_priority = 72 },
          { FIFO("server", 71) }, { .priority = 71 } },
        { "beside its sound card", { POLICY }, { NOW, .feeds_irq_priority = 72 },
          { FIFO("server", 72) },
          { REASON_ABOVE_SERVER, .asked = 72, .limit = 71, .superior = SUPERIOR_IRQ } },
        { "clamped below its sound card", { POLICY }, { NOW, .feeds_irq_priority = 72 },
          { FIFO("server", 85), .clamp = true },
          { .priority = 71, .clamped = true, .asked = 85, .limit = 71,
            .superior = SUPERIOR_IRQ } },
        { "a thread and a sound card: the lower", { POLICY },
          { NOW, .feeds_irq_priority = 74, .feeds_priority = 73 },
          { FIFO("server", 80), .clamp = true },
          { .priority = 72, .clamped = true, .asked = 80, .limit = 72,
            .superior = SUPERIOR_THREAD } },
        { "a sound card that is raised too", { POLICY }, { NOW, .feeds_irq_priority = 50 },
          { FIFO("server", 79), RAISED(80) }, { .priority = 79 } },
        { "and not enough", { POLICY }, { NOW, .feeds_irq_priority = 50 },
          { FIFO("server", 80), RAISED(80) },
          { REASON_ABOVE_SERVER, .asked = 80, .limit = 79, .superior = SUPERIOR_IRQ } },
        { "as far as may be", { POLICY }, { NOW, .feeds_irq_priority = 50 },
          { FIFO("server", 85), RAISED(0) }, { .priority = 85 } },
        { "and is higher already", { POLICY }, { NOW, .feeds_irq_priority = 84 },
          { FIFO("server", 83), RAISED(80) }, { .priority = 83 } },
        { "another card is raised", { POLICY }, { NOW, .feeds_irq_priority = 50 },
          { FIFO("server", 71), RAISED(80), .raises_fed = false },
          { REASON_ABOVE_SERVER, .asked = 71, .limit = 49, .superior = SUPERIOR_IRQ } },
        { "a card that cannot be raised was left out", { POLICY },
          { NOW, .feeds_irq_priority = 73 },
          { FIFO("server", 85), RAISED(80), .clamp = true, .irq_roles = 0 },
          { .priority = 72, .clamped = true,
            .asked = 80, .superior = SUPERIOR_NONE } },
        { "a sound card without a thread", { POLICY }, { NOW }, { FIFO("server", 85) },
          { .priority = 85 } },
        { "no server is there", { POLICY }, { NOW, .lowest_by_role = (const int[N_ROLES]) { 0 } },
          { FIFO("client", 80) }, { .priority = 80 } },

        /* sessions */
        { "an active session", { POLICY }, { NOW, .session = SESSION_ACTIVE },
          { FIFO("seated", 3) }, { .priority = 3 } },
        { "a remote one, which is listed", { POLICY }, { NOW, .session = SESSION_REMOTE },
          { FIFO("seated", 3) }, { .priority = 3 } },
        { "one behind another", { POLICY }, { NOW, .session = SESSION_INACTIVE },
          { FIFO("seated", 3) },
          { REASON_NO_ACTIVE_SESSION, .line = LINE(SEATED, ALLOW_SESSIONS) } },
        { "none", { POLICY }, { NOW, .session = SESSION_NONE }, { FIFO("seated", 3) },
          { REASON_NO_ACTIVE_SESSION, .line = LINE(SEATED, ALLOW_SESSIONS) } },
        { "nobody to say", { POLICY }, { NOW }, { FIFO("seated", 3) },
          { REASON_NOT_ALLOWED, .line = LINE(SEATED, ALLOW_USERS) } },
        { "polkit's no to one without", { POLICY, .ask_polkit = true },
          { NOW, .session = SESSION_NONE, .authority = AUTHORITY_NO, .authority_role = ASKED },
          { FIFO("asked", 3) }, { REASON_NO_ACTIVE_SESSION, .line = LINE(ASKED, ACTION) } },
        { "polkit's no to one with", { POLICY, .ask_polkit = true },
          { NOW, .session = SESSION_ACTIVE, .authority = AUTHORITY_NO, .authority_role = ASKED },
          { FIFO("asked", 3) }, { REASON_NOT_AUTHORIZED, .line = LINE(ASKED, ACTION) } },
        { "polkit's yes to one without", { POLICY, .ask_polkit = true },
          { NOW, .session = SESSION_NONE, .authority = AUTHORITY_YES, .authority_role = ASKED },
          { FIFO("asked", 3) }, { .priority = 3 } },

        /* the system's own users */
        { "a user's place", { POLICY, .system_threads_per_user_max = 2 },
          { NOW, .threads_held = 4 }, { FIFO("server", 72) }, { .priority = 72 } },
        { "no place of the system's", { POLICY, .system_threads_per_user_max = 2 },
          { NOW, .quota_uid = 999, .threads_held = 2 }, { FIFO("server", 72) },
          { REASON_THREADS_PER_USER, .line = SYSTEM_LINE, .asked = 3, .limit = 2 } },
        { "the last place of the system's", { POLICY, .system_threads_per_user_max = 2 },
          { NOW, .quota_uid = 999, .threads_held = 1 }, { FIFO("server", 72) },
          { .priority = 72 } },
        { "not said: as all", { POLICY }, { NOW, .quota_uid = 999, .threads_held = 4 },
          { FIFO("server", 72) }, { .priority = 72 } },
};

static void test_row(void **state) {
        const struct row *row = *state;
        const struct expected *e = &row->expected;
        struct decision d = policy_evaluate(&row->policy, &row->now, &row->request);

        assert_string_equal(reason_to_string(d.reason), reason_to_string(e->reason));
        assert_int_equal(d.verdict, e->reason == REASON_NONE ? VERDICT_GRANT : VERDICT_DENY);
        assert_int_equal(d.priority, e->priority);
        assert_int_equal(d.clamped, e->clamped);
        assert_int_equal(d.asked, e->asked);
        assert_int_equal(d.limit, e->limit);
        if (e->superior != SUPERIOR_NONE)
                assert_int_equal(d.superior, e->superior);
        if (e->line != 0)
                assert_int_equal(d.rule.line, e->line);
}

struct pick_row {
        const char *unit;
        const char *executable;
        int priority;
        bool clamp;
        const char *role;
        enum pick pick;
};

/* A hint chooses among roles that give the same, and never gives more or less. */
static void test_pick(void **state) {
        static const struct pick_row picks[] = {
                { NULL, NULL, 72, false, "client", PICK_FIRST },
                { NULL, "/usr/bin/jackd", 72, false, "server", PICK_EXECUTABLE },
                { NULL, "/usr/bin/jackd2", 72, false, "client", PICK_FIRST },
                { NULL, "/usr/bin/pipewire-pulse", 72, false, "server", PICK_EXECUTABLE },
                { NULL, "/opt/synth/bin/a", 72, false, "client", PICK_EXECUTABLE },
                { "synth.service", "/usr/bin/jackd", 72, false, "client", PICK_UNIT },
                { "other.service", NULL, 72, false, "client", PICK_FIRST },
                { NULL, "jackd", 65, false, "client", PICK_FIRST },
                { NULL, "", 72, false, "client", PICK_FIRST },
                { NULL, NULL, 90, true, "server", PICK_MOST },
                { NULL, "/opt/synth/x", 90, true, "client", PICK_EXECUTABLE },
        };
        const struct policy policy = { POLICY };

        for (size_t i = 0; i < ELEMENTS(picks); i++) {
                const struct situation now = { NOW, .unit = picks[i].unit,
                                               .executable = picks[i].executable };
                const struct request request = { FIFO("", picks[i].priority),
                                                 .clamp = picks[i].clamp };
                struct decision d = policy_evaluate(&policy, &now, &request);

                assert_int_equal(d.verdict, VERDICT_GRANT);
                assert_string_equal(d.role->name, picks[i].role);
                assert_int_equal(d.pick, picks[i].pick);
        }
}

/* Whatever else changes, a shorter period never has the lower priority. */
static void test_periods_are_in_order(void **state) {
        const struct policy policy = { POLICY };
        const struct situation now = { NOW };
        int before = 60;

        for (uint64_t us = 100; us < 400000; us += 1 + us / 50) {
                const struct request request = { PLACE("periodic", 0), .period_ns = us * 1000,
                                                 .computation_ns = 1 };
                struct decision d = policy_evaluate(&policy, &now, &request);

                assert_int_equal(d.verdict, VERDICT_GRANT);
                assert_true(d.priority <= before && d.priority >= 20);
                before = d.priority;
        }
        assert_int_equal(before, 20);
}

static void test_trace(void **state) {
        const struct policy policy = { POLICY };
        const struct situation now = { NOW };
        const struct request request = { FIFO("server", 90), .clamp = true };
        const struct request refused = { FIFO("server", 90) };
        struct policy_trace trace = { .n_steps = 0 };

        (void) policy_evaluate_traced(&policy, &now, &request, &trace);
        assert_int_equal(trace.n_steps, 4);
        assert_int_equal(trace.steps[0].rule.line, LINE(SERVER, ALLOW_USERS));
        assert_true(trace.steps[2].clamped);
        assert_int_equal(trace.steps[2].rule.line, LINE(SERVER, PRIORITY));
        assert_int_equal(trace.steps[2].asked, 90);
        assert_int_equal(trace.steps[2].limit, 85);
        assert_false(trace.steps[3].clamped);

        trace = (struct policy_trace) { .n_steps = 0 };
        (void) policy_evaluate_traced(&policy, &now, &refused, &trace);
        assert_int_equal(trace.n_steps, 3);
        assert_int_equal(trace.steps[2].reason, REASON_PRIORITY_LIMIT);

        trace = (struct policy_trace) { .n_steps = POLICY_TRACE_MAX - 1 };
        (void) policy_evaluate_traced(&policy, &now, &request, &trace);
        assert_int_equal(trace.n_steps, POLICY_TRACE_MAX);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_pick),
                cmocka_unit_test(test_periods_are_in_order),
                cmocka_unit_test(test_trace),
        };
        struct CMUnitTest tests[ELEMENTS(rows) + ELEMENTS(others)];

        for (size_t i = 0; i < ELEMENTS(rows); i++)
                tests[i] = (struct CMUnitTest) {
                        .name = rows[i].name,
                        .test_func = test_row,
                        .initial_state = (void *) &rows[i],
                };
        for (size_t i = 0; i < ELEMENTS(others); i++)
                tests[ELEMENTS(rows) + i] = others[i];

        return cmocka_run_group_tests_name("policy-timing", tests, NULL, NULL);
}
