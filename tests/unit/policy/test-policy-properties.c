/* SPDX-License-Identifier: MIT */

/* What holds of every policy, situation and request, tried on many that were made up. */

#include "tests/unit/policy/policy-world.h"

static bool list_has(const struct id_list *list, const uint32_t *ids, size_t n_ids) {
        for (size_t i = 0; i < list->n_ids; i++)
                for (size_t j = 0; j < n_ids; j++)
                        if (list->ids[i] == ids[j])
                                return true;

        return list->everybody;
}

static bool lists_allow(const struct role *role, const struct situation *now) {
        return list_has(&role->allow_users, &now->uid, 1) ||
               list_has(&role->allow_groups, now->gids, now->n_gids);
}

static bool lists_deny(const struct role *role, const struct situation *now) {
        return list_has(&role->deny_users, &now->uid, 1) ||
               list_has(&role->deny_groups, now->gids, now->n_gids);
}

/* Neither list decides, and there is somebody else to do so. */
static bool polkit_decides(const struct world *w, const struct role *role) {
        return !lists_deny(role, &w->now) && !lists_allow(role, &w->now) && w->policy.ask_polkit &&
               strcmp(role->action, "") != 0;
}

static bool polkit_said(const struct world *w, const struct role *role,
                        enum authority_answer answer) {
        return w->now.authority == answer && role == &w->roles[w->now.authority_role];
}

static bool role_lets_in(const struct world *w, const struct role *role) {
        return (lists_allow(role, &w->now) && !lists_deny(role, &w->now)) ||
               (polkit_decides(w, role) && polkit_said(w, role, AUTHORITY_YES));
}

static bool role_contains(const struct role *role, const struct request *request) {
        if (request->wants_sched && !(role->policies >> request->policy & 1))
                return false;
        if (is_realtime(request) &&
            (role->priority_min == 0 || request->priority < role->priority_min ||
             request->priority > role->priority_max || request->priority > 94))
                return false;
        if (request->wants_nice && request->nice < role->nice_min)
                return false;

        return request->lifetime != LIFETIME_SECONDS || request->lifetime_s <= role->lifetime_s_max;
}

static bool has_place(const struct world *w, size_t role) {
        const struct situation *now = &w->now;
        bool in_role = w->held[role] < w->roles[role].threads_per_user_max;

        if (now->grant_tokens == 0)
                return false;
        if (now->leased)
                return now->leased_role == role || in_role;
        return in_role && now->threads_held < w->policy.threads_per_user_max &&
               now->threads_total < w->policy.threads_max;
}

static bool request_is_sound(const struct request *request) {
        if (!request->wants_sched && !request->wants_nice)
                return false;
        if (request->wants_sched && request->policy == SCHED_IDLE)
                return false;
        if (is_realtime(request) && (request->priority < 1 || request->priority > 99))
                return false;
        if (request->wants_nice && (request->nice < -20 || request->nice > 19))
                return false;

        return request->lifetime != LIFETIME_SECONDS || request->lifetime_s > 0;
}

/* The rules once more, said in one breath: whether @role gives exactly what is asked. */
static bool role_gives(const struct world *w, size_t role) {
        return request_is_sound(&w->request) &&
               (!w->now.in_user_namespace || w->policy.user_namespaces) &&
               role_lets_in(w, &w->roles[role]) &&
               role_contains(&w->roles[role], &w->request) &&
               (!is_realtime(&w->request) || w->now.rt_possible) && has_place(w, role);
}

/* Some role that is asked for, or may be picked, gives exactly what is asked. */
static bool policy_gives(const struct world *w) {
        for (size_t i = 0; i < w->policy.n_roles; i++)
                if ((w->request.role[0] == '\0' || strcmp(w->request.role, names[i]) == 0) &&
                    role_gives(w, i))
                        return true;

        return false;
}

/* The request that would have asked for no more than was given. */
static struct request as_granted(const struct world *w, const struct decision *d) {
        struct request request = w->request;

        request.policy = d->policy;
        request.priority = d->priority;
        request.nice = d->nice;
        request.lifetime_s = d->lifetime_s;
        return request;
}

static void test_a_grant_is_what_its_role_gives(void **state) {
        uint64_t seed = 1;
        unsigned n_grants = 0, n_clamped = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;
                struct decision d;

                make_world(&w, &seed);
                d = evaluate(&w);
                if (d.verdict != VERDICT_GRANT)
                        continue;

                n_grants++;
                n_clamped += d.clamped;
                w.request = as_granted(&w, &d);
                assert_true(role_gives(&w, (size_t) (d.role - w.roles)));
                assert_in_range(d.priority, 0, 94);
                assert_true(d.reason == REASON_NONE);
        }

        /* or nothing was tried */
        assert_in_range(n_grants, ROUNDS / 50, ROUNDS);
        assert_in_range(n_clamped, ROUNDS / 200, ROUNDS);
}

static void test_what_some_role_gives_is_granted_and_nothing_else(void **state) {
        uint64_t seed = 2;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;

                make_world(&w, &seed);
                w.request.clamp = false;
                assert_int_equal(evaluate(&w).verdict == VERDICT_GRANT, policy_gives(&w));
        }
}

static void test_an_unclamped_grant_is_what_was_asked(void **state) {
        uint64_t seed = 3;

        for (unsigned i = 0; i < ROUNDS; i++) {
                const struct request *asked;
                struct world w;
                struct decision d;

                make_world(&w, &seed);
                asked = &w.request;
                d = evaluate(&w);

                if (!asked->clamp)
                        assert_false(d.clamped);
                if (d.verdict == VERDICT_DENY || d.clamped)
                        continue;

                assert_int_equal(d.policy, asked->wants_sched ? asked->policy : SCHED_OTHER);
                assert_int_equal(d.priority, is_realtime(asked) ? asked->priority : 0);
                assert_int_equal(d.nice, asked->wants_nice ? asked->nice : 0);
                assert_int_equal(d.lifetime_s,
                                 asked->lifetime == LIFETIME_SECONDS ? asked->lifetime_s : 0);
        }
}

static void test_clamp_gives_less_than_was_asked(void **state) {
        uint64_t seed = 4;

        for (unsigned i = 0; i < ROUNDS; i++) {
                const struct request *asked;
                bool rr_for_fifo, lower, weaker, shorter;
                struct world w;
                struct decision d;

                make_world(&w, &seed);
                w.request.clamp = true;
                asked = &w.request;
                d = evaluate(&w);
                if (!d.clamped)
                        continue;

                rr_for_fifo = asked->wants_sched && asked->policy == SCHED_FIFO &&
                              d.policy == SCHED_RR;
                lower = is_realtime(asked) && d.priority < asked->priority;
                weaker = asked->wants_nice && d.nice > asked->nice;
                shorter = asked->lifetime == LIFETIME_SECONDS && d.lifetime_s < asked->lifetime_s;

                assert_true(rr_for_fifo || lower || weaker || shorter);
                assert_true(rr_for_fifo || !asked->wants_sched || d.policy == asked->policy);
                assert_true(lower || !is_realtime(asked) || d.priority == asked->priority);
                assert_true(weaker || !asked->wants_nice || d.nice == asked->nice);
                assert_true(is_realtime(asked) || d.priority == 0);
        }
}

static void assert_same_grant(const struct decision *a, const struct decision *b) {
        assert_int_equal(a->verdict, b->verdict);
        assert_int_equal(a->clamped, b->clamped);
        assert_ptr_equal(a->role, b->role);
        assert_int_equal(a->policy, b->policy);
        assert_int_equal(a->priority, b->priority);
        assert_int_equal(a->nice, b->nice);
        assert_int_equal(a->lifetime_s, b->lifetime_s);
}

static void test_clamp_changes_nothing_that_is_granted_whole(void **state) {
        uint64_t seed = 5;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;
                struct decision whole, clamped;

                make_world(&w, &seed);
                w.request.clamp = false;
                whole = evaluate(&w);
                w.request.clamp = true;
                clamped = evaluate(&w);

                if (whole.verdict == VERDICT_GRANT)
                        assert_same_grant(&whole, &clamped);
        }
}

static void test_a_stricter_policy_never_gives_more(void **state) {
        uint64_t seed = 6;
        unsigned n_less = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w, strict;
                struct decision before, after;
                bool named;

                make_world(&w, &seed);
                strict = w;
                tie(&strict);
                for (int n = between(&seed, 1, 6); n > 0; n--)
                        narrow_policy(&strict, &seed);

                before = evaluate(&w);
                after = evaluate(&strict);
                named = w.request.role[0] != '\0';
                assert_false(gives_more(&after, &before, named));
                n_less += gives_more(&before, &after, named);
        }

        assert_in_range(n_less, ROUNDS / 100, ROUNDS);
}

static void test_one_more_denial_lets_nobody_in(void **state) {
        uint64_t seed = 7;

        for (unsigned i = 0; i < ROUNDS; i++) {
                enum verdict before;
                struct world w;

                make_world(&w, &seed);
                before = evaluate(&w).verdict;
                add_denial(&w, (size_t) between(&seed, 0, (int) w.policy.n_roles - 1), &seed);

                assert_true(evaluate(&w).verdict <= before);
        }
}

static bool is_limit_above(enum reason reason) {
        return reason == REASON_LIFETIME_LIMIT || reason == REASON_THREADS_PER_ROLE ||
               reason == REASON_THREADS_PER_USER || reason == REASON_THREADS_TOTAL;
}

/* Of who may use the role, as the reason has it. */
static bool reason_is_true(const struct world *w, const struct decision *d) {
        switch (d->reason) {
        case REASON_NOT_ALLOWED:
                return !lists_allow(d->role, &w->now) && !polkit_decides(w, d->role);
        case REASON_DENIED:
                return lists_deny(d->role, &w->now);
        case REASON_NOT_AUTHORIZED:
                return polkit_decides(w, d->role) && w->now.authority != AUTHORITY_UNASKED &&
                       !polkit_said(w, d->role, AUTHORITY_YES);
        case REASON_AUTHORITY_UNAVAILABLE:
                return polkit_decides(w, d->role) && polkit_said(w, d->role, AUTHORITY_FAILED);
        case REASON_AUTHORITY_BUSY:
                return polkit_decides(w, d->role) && polkit_said(w, d->role, AUTHORITY_OVERRUN);
        default:
                return !d->role || role_lets_in(w, d->role) ||
                       (polkit_decides(w, d->role) && w->now.authority == AUTHORITY_UNASKED);
        }
}

static void test_a_refusal_gives_nothing_and_tells_the_truth(void **state) {
        uint64_t seed = 8;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;
                struct decision d;

                make_world(&w, &seed);
                d = evaluate(&w);
                if (d.verdict != VERDICT_DENY)
                        continue;

                assert_int_not_equal(d.reason, REASON_NONE);
                assert_false(d.clamped || d.policy || d.priority || d.nice || d.lifetime_s);
                if (d.reason == REASON_PRIORITY_LIMIT)
                        assert_true(d.asked < d.limit_low || d.asked > d.limit);
                if (d.reason == REASON_NICE_LIMIT)
                        assert_true(d.asked < d.limit);
                if (is_limit_above(d.reason))
                        assert_true(d.asked > d.limit);
                assert_true(reason_is_true(&w, &d));
                assert_int_equal(d.retry_after_ms,
                                 d.reason == REASON_RATE ? w.now.grant_wait_ms : 0);
        }
}

static struct decision evaluate_with_answer(const struct world *w, enum authority_answer answer,
                                            size_t role) {
        struct situation now = w->now;

        now.authority = answer;
        now.authority_role = role;
        return policy_evaluate(&w->policy, &now, &w->request);
}

static void test_polkit_is_asked_for_just_what_its_yes_grants(void **state) {
        uint64_t seed = 9;
        unsigned n_asked = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                static const enum reason reasons[] = {
                        [AUTHORITY_NO] = REASON_NOT_AUTHORIZED,
                        [AUTHORITY_FAILED] = REASON_AUTHORITY_UNAVAILABLE,
                        [AUTHORITY_OVERRUN] = REASON_AUTHORITY_BUSY,
                        [AUTHORITY_CHALLENGE] = REASON_NOT_AUTHORIZED,
                        [AUTHORITY_NO_AGENT] = REASON_NOT_AUTHORIZED,
                        [AUTHORITY_REJECTED] = REASON_NOT_AUTHORIZED,
                        [AUTHORITY_DISMISSED] = REASON_NOT_AUTHORIZED,
                        [AUTHORITY_UNANSWERED] = REASON_NOT_AUTHORIZED,
                };
                struct world w;
                struct decision asked, d;
                size_t role;

                make_world(&w, &seed);
                w.policy.ask_polkit = true;
                w.now.authority = AUTHORITY_UNASKED;
                asked = evaluate(&w);
                if (asked.verdict != VERDICT_ASK)
                        continue;

                n_asked++;
                role = (size_t) (asked.role - w.roles);
                assert_int_equal(asked.reason, REASON_NEEDS_AUTHORIZATION);
                assert_true(polkit_decides(&w, asked.role));

                d = evaluate_with_answer(&w, AUTHORITY_YES, role);
                asked.verdict = VERDICT_GRANT;
                assert_same_grant(&asked, &d);

                for (int answer = AUTHORITY_NO; answer < _AUTHORITY_MAX; answer++) {
                        d = evaluate_with_answer(&w, (enum authority_answer) answer, role);
                        assert_int_equal(d.verdict, VERDICT_DENY);
                        assert_int_equal(d.reason, reasons[answer]);
                        if (d.reason == REASON_NOT_AUTHORIZED)
                                assert_int_equal(d.authority, answer);
                        assert_ptr_equal(d.role, asked.role);
                }
        }

        assert_in_range(n_asked, ROUNDS / 100, ROUNDS);
}

static bool some_yes_grants(const struct world *w) {
        for (size_t i = 0; i < w->policy.n_roles; i++)
                if (evaluate_with_answer(w, AUTHORITY_YES, i).verdict == VERDICT_GRANT)
                        return true;

        return false;
}

static void test_polkit_is_asked_whenever_that_may_help_and_once(void **state) {
        uint64_t seed = 10;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;
                enum verdict verdict;

                make_world(&w, &seed);
                verdict = evaluate(&w).verdict;

                if (w.now.authority != AUTHORITY_UNASKED)
                        assert_int_not_equal(verdict, VERDICT_ASK);
                else if (verdict != VERDICT_GRANT)
                        assert_int_equal(verdict == VERDICT_ASK, some_yes_grants(&w));
        }
}

static void test_polkit_turns_no_list_round(void **state) {
        uint64_t seed = 11;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct world w;
                struct decision with, without;

                make_world(&w, &seed);
                with = evaluate(&w);
                if (with.verdict != VERDICT_DENY)
                        assert_false(lists_deny(with.role, &w.now));

                w.policy.ask_polkit = false;
                without = evaluate(&w);
                if (without.verdict == VERDICT_GRANT)
                        assert_false(gives_more(&without, &with, false));
                if (without.role && lists_allow(without.role, &w.now) && w.request.role[0] != '\0')
                        assert_memory_equal(&with, &without, sizeof(with));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_grant_is_what_its_role_gives),
                cmocka_unit_test(test_what_some_role_gives_is_granted_and_nothing_else),
                cmocka_unit_test(test_an_unclamped_grant_is_what_was_asked),
                cmocka_unit_test(test_clamp_gives_less_than_was_asked),
                cmocka_unit_test(test_clamp_changes_nothing_that_is_granted_whole),
                cmocka_unit_test(test_a_stricter_policy_never_gives_more),
                cmocka_unit_test(test_one_more_denial_lets_nobody_in),
                cmocka_unit_test(test_a_refusal_gives_nothing_and_tells_the_truth),
                cmocka_unit_test(test_polkit_is_asked_for_just_what_its_yes_grants),
                cmocka_unit_test(test_polkit_is_asked_whenever_that_may_help_and_once),
                cmocka_unit_test(test_polkit_turns_no_list_round),
        };

        return cmocka_run_group_tests_name("policy-properties", tests, NULL, NULL);
}
