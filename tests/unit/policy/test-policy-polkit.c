/* SPDX-License-Identifier: MIT */

#include "tests/unit/policy/policy-cases.h"

static const struct evaluate_case cases[] = {
        { "asked where no list decides", { POLKIT }, { STRANGER }, { ASK },
          { ASKED(DESKTOP), .policy = SCHED_FIFO, .priority = 10 } },
        { "not asked by a static policy", { A_POLICY }, { STRANGER }, { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "not asked about a role without an action", { POLKIT }, { STRANGER },
          { ASK, .role = "calm", .policy = SCHED_RR, .priority = 35 },
          { DENIED(NOT_ALLOWED, CALM), LINE(CALM, ALLOW_GROUPS) } },
        { "not asked about who is allowed", { POLKIT }, { NOW }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "no to who is allowed", { POLKIT }, { NOW, SAID(NO, DESKTOP) }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "not asked about who is denied", { POLKIT }, { NOW, .uid = 1667, .n_gids = 0 },
          { ASK, .role = "desktop" }, { DENIED(DENIED, DESKTOP), LINE(DESKTOP, DENY_USERS) } },
        { "yes to who is denied", { POLKIT },
          { NOW, .uid = 1667, .n_gids = 0, SAID(YES, DESKTOP) }, { ASK, .role = "desktop" },
          { DENIED(DENIED, DESKTOP), LINE(DESKTOP, DENY_USERS) } },
        { "yes where everybody is denied", { POLKIT }, { STRANGER, SAID(YES, CLOSED) },
          { ASK, .role = "closed", .priority = 50 },
          { DENIED(DENIED, CLOSED), LINE(CLOSED, DENY_USERS) } },
        { "yes", { POLKIT }, { STRANGER, SAID(YES, DESKTOP) }, { ASK },
          { GRANTED(DESKTOP, ACTION), .policy = SCHED_FIFO, .priority = 10 } },
        { "no", { POLKIT }, { STRANGER, SAID(NO, DESKTOP) }, { ASK, .role = "desktop" },
          { DENIED(NOT_AUTHORIZED, DESKTOP), LINE(DESKTOP, ACTION) } },
        { "no answer", { POLKIT }, { STRANGER, SAID(FAILED, DESKTOP) }, { ASK },
          { DENIED(AUTHORITY_UNAVAILABLE, DESKTOP), LINE(DESKTOP, ACTION) } },
        { "too many questions", { POLKIT }, { STRANGER, SAID(OVERRUN, DESKTOP) }, { ASK },
          { DENIED(AUTHORITY_BUSY, DESKTOP), LINE(DESKTOP, ACTION) } },
        { "yes without Authority=polkit", { A_POLICY }, { STRANGER, SAID(YES, DESKTOP) },
          { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "yes about another role", { POLKIT }, { STRANGER, SAID(YES, STAGE) },
          { ASK, .role = "desktop" }, { DENIED(NOT_AUTHORIZED, DESKTOP), LINE(DESKTOP, ACTION) } },

        /* nobody is asked for what would be refused anyway */
        { "asked for no other policy", { POLKIT }, { STRANGER },
          { ASK, .role = "stage", .policy = SCHED_RR, .priority = 70 },
          { DENIED(POLICY_NOT_IN_ROLE, STAGE), LINE(STAGE, POLICY) } },
        { "asked for nothing above the band", { POLKIT }, { STRANGER },
          { ASK, .role = "desktop", .priority = 21 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(21, 5, 20) } },
        { "asked for no lower nice", { POLKIT }, { STRANGER },
          { ASK_NICE, .role = "desktop", .nice = -16 },
          { DENIED(NICE_LIMIT, DESKTOP), LINE(DESKTOP, NICE), LIMIT(-16, -15) } },
        { "asked for no longer time", { POLKIT }, { STRANGER },
          { ASK, .role = "desktop", .lifetime = LIFETIME_SECONDS, .lifetime_s = 3601 },
          { DENIED(LIFETIME_LIMIT, DESKTOP), LINE(DESKTOP, LIFETIME_MAX), LIMIT(3601, 3600) } },
        { "asked from no user namespace", { POLKIT }, { STRANGER, .in_user_namespace = true },
          { ASK }, { DENIED(USER_NAMESPACE, NO_ROLE), BROKER_LINE(USER_NAMESPACES) } },
        { "not asked by a degraded broker", { POLKIT }, { STRANGER, .rt_possible = false },
          { ASK, .role = "desktop" }, { DENIED(DEGRADED, DESKTOP) } },
        { "not asked without a place", { POLKIT }, { STRANGER, .threads_total = 50 },
          { ASK, .role = "desktop" },
          { DENIED(THREADS_TOTAL, DESKTOP), BROKER_LINE(THREADS_MAX), LIMIT(51, 50) } },
        { "not asked without a token", { POLKIT },
          { STRANGER, .grant_tokens = 0, .grant_wait_ms = 150 }, { ASK, .role = "desktop" },
          { DENIED(RATE, DESKTOP), BROKER_LINE(GRANT_BURST), .retry_after_ms = 150 } },
        { "yes, and the place is gone", { POLKIT },
          { STRANGER, .threads_total = 50, SAID(YES, DESKTOP) }, { ASK },
          { DENIED(THREADS_TOTAL, DESKTOP), BROKER_LINE(THREADS_MAX), LIMIT(51, 50) } },

        /* polkit, and the policy picks the role */
        { "asked about the first role that gives it", { POLKIT }, { STRANGER },
          { ASK, .priority = 70 }, { ASKED(STAGE), .policy = SCHED_FIFO, .priority = 70 } },
        { "asked about the first of two", { POLKIT }, { STRANGER },
          { .wants_nice = true, .nice = -1 },
          { ASKED(DESKTOP), .policy = SCHED_OTHER, .nice = -1 } },
        { "a later role that allows before one to be asked about", { POLKIT }, { STRANGER },
          { .wants_sched = true, .policy = SCHED_OTHER },
          { GRANTED(OFFICE, ALLOW_USERS), .policy = SCHED_OTHER } },
        { "even if it clamps", { POLKIT }, { NOW, .n_gids = 0 },
          { ASK, .priority = 70, .clamp = true },
          { CLAMPED(CALM, POLICY), .policy = SCHED_RR, .priority = 40 } },
        { "asked for what is clamped", { POLKIT }, { STRANGER },
          { ASK, .role = "desktop", .priority = 88, .clamp = true },
          { DENIED(NEEDS_AUTHORIZATION, DESKTOP), LINE(DESKTOP, PRIORITY), .clamped = true,
            .policy = SCHED_FIFO, .priority = 20, RANGE(88, 5, 20) } },
        { "asked for the most", { POLKIT }, { STRANGER }, { ASK, .priority = 99, .clamp = true },
          { DENIED(NEEDS_AUTHORIZATION, STAGE), LINE(STAGE, PRIORITY), .clamped = true,
            .policy = SCHED_FIFO, .priority = 94, RANGE(99, 61, 94) } },
        { "yes to what is clamped", { POLKIT }, { STRANGER, SAID(YES, STAGE) },
          { ASK, .priority = 99, .clamp = true },
          { CLAMPED(STAGE, PRIORITY), .policy = SCHED_FIFO, .priority = 94, RANGE(99, 61, 94) } },
        { "no, and no other role is asked about", { POLKIT }, { STRANGER, SAID(NO, DESKTOP) },
          { .wants_nice = true, .nice = -1 },
          { DENIED(NOT_AUTHORIZED, DESKTOP), LINE(DESKTOP, ACTION) } },
        { "of two refusals the one that polkit gave", { POLKIT }, { STRANGER, SAID(NO, STAGE) },
          { .wants_nice = true, .nice = -1 },
          { DENIED(NOT_AUTHORIZED, STAGE), LINE(STAGE, ACTION) } },
        { "polkit's refusal before that of a role which lets in", { POLKIT },
          { STRANGER, SAID(NO, DESKTOP) }, { ASK },
          { DENIED(NOT_AUTHORIZED, DESKTOP), LINE(DESKTOP, ACTION) } },
        { "a role that was not asked about lets nobody in", { POLKIT },
          { STRANGER, SAID(YES, STAGE) }, { ASK },
          { DENIED(PRIORITY_LIMIT, STAGE), LINE(STAGE, PRIORITY), RANGE(10, 61, 94) } },
        { "a role to be asked about may let in", { POLKIT, .n_roles = 3 }, { STRANGER },
          { ASK, .priority = 41 },
          { DENIED(PRIORITY_LIMIT, STAGE), LINE(STAGE, PRIORITY), RANGE(41, 61, 94) } },
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

/* What the offers to a caller show: nobody was asked yet. */
static void test_role_that_polkit_decides_about(void **state) {
        const struct policy polkit = { POLKIT }, lists = { A_POLICY };
        const struct situation stranger = { STRANGER }, member = { NOW },
                               denied = { NOW, .uid = 1666 },
                               refused = { STRANGER, SAID(NO, DESKTOP) };
        const struct role *desktop = &roles[DESKTOP - 1];
        struct rule rule;

        assert_int_equal(policy_role_admits(&polkit, desktop, &stranger, &rule),
                         REASON_NEEDS_AUTHORIZATION);
        assert_int_equal(rule.line, ROLE_LINE(DESKTOP, ACTION));
        assert_int_equal(policy_role_admits(&polkit, desktop, &member, &rule), REASON_NONE);
        assert_int_equal(rule.line, ROLE_LINE(DESKTOP, ALLOW_GROUPS));
        assert_int_equal(policy_role_admits(&polkit, desktop, &denied, &rule), REASON_DENIED);
        assert_int_equal(policy_role_admits(&polkit, desktop, &refused, &rule),
                         REASON_NOT_AUTHORIZED);
        assert_int_equal(policy_role_admits(&lists, desktop, &stranger, &rule),
                         REASON_NOT_ALLOWED);
        assert_int_equal(policy_role_admits(&polkit, &roles[CALM - 1], &stranger, &rule),
                         REASON_NOT_ALLOWED);
}

static void test_who_may_see_who_has_a_cpu(void **state) {
        static const gid_t gids[] = { 100, 29 };
        static const uint32_t audio[] = { 7, 29 };
        const struct id_list groups = { .ids = audio, .n_ids = 2 }, all = { .everybody = true };
        const struct {
                const char *name;
                struct policy policy;
                struct situation now;
                enum verdict verdict;
                enum reason reason;
                unsigned line;
        } rows[] = {
                { "of a group", { .observe_groups = groups }, { .gids = gids, .n_gids = 2 },
                  VERDICT_GRANT, REASON_NONE, 3 },
                { "of a group, without asking", { .observe_groups = groups, .ask_polkit = true },
                  { .gids = gids, .n_gids = 2 }, VERDICT_GRANT, REASON_NONE, 3 },
                { "everybody", { .observe_groups = all }, { .n_gids = 0 }, VERDICT_GRANT,
                  REASON_NONE, 3 },
                { "of another group", { .observe_groups = groups }, { .gids = gids, .n_gids = 1 },
                  VERDICT_DENY, REASON_NOT_ALLOWED, 3 },
                { "of another, by polkit", { .observe_groups = groups, .ask_polkit = true },
                  { .gids = gids, .n_gids = 1 }, VERDICT_ASK, REASON_NEEDS_AUTHORIZATION, 3 },
                { "of a container", { .observe_groups = all, .ask_polkit = true,
                                      .user_namespaces = true },
                  { .in_user_namespace = true }, VERDICT_DENY, REASON_USER_NAMESPACE, 0 },
        };
        enum reason reason;
        struct rule rule;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct policy policy = rows[i].policy;

                policy.rules[BROKER_KEY_OBSERVE_GROUPS] = (struct rule) { "policy.conf", 3 };
                if (policy_observe(&policy, &rows[i].now, &reason, &rule) != rows[i].verdict ||
                    reason != rows[i].reason || rule.line != rows[i].line)
                        fail_msg("%s: %s, line %u", rows[i].name, reason_to_string(reason),
                                 rule.line);
        }
}

/* No reason that this is about is without a row. */
static void test_every_reason_is_tried(void **state) {
        static const enum reason given[] = {
                REASON_NONE, REASON_NEEDS_AUTHORIZATION, REASON_NOT_AUTHORIZED,
                REASON_AUTHORITY_UNAVAILABLE, REASON_AUTHORITY_BUSY,
        };

        for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
                assert_tried(given[i], cases, N_CASES);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_role_that_polkit_decides_about),
                cmocka_unit_test(test_who_may_see_who_has_a_cpu),
                cmocka_unit_test(test_every_reason_is_tried),
        };

        return run_cases("policy-polkit", cases, N_CASES, others, sizeof(others) / sizeof(others[0]));
}
