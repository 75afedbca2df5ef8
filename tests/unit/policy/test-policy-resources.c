/* SPDX-License-Identifier: MIT */

/* Memory, latency and disks: what a role gives, what is left, and who decides. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>

#include "policy/policy.h"

#define MIB (INT64_C(1) << 20)
#define BIT(resource) (1U << RESOURCE_##resource)

static const uint32_t everybody_ids[1];

struct world {
        struct role roles[2];
        struct policy policy;
        struct situation now;
        struct request request;
        unsigned by_role[POLICY_ROLES_MAX];
};

static void world_init(struct world *w) {
        *w = (struct world) {
                .roles = {
                        { .name = "plain", .description = "", .action = "",
                          .policies = 1U << SCHED_FIFO, .priority_min = 1, .priority_max = 20,
                          .threads_per_user_max = 9, .allow_users.everybody = true },
                        { .name = "studio", .description = "", .action = "org.example.studio",
                          .policies = 1U << SCHED_FIFO, .priority_min = 60, .priority_max = 70,
                          .threads_per_user_max = 9, .allow_users.everybody = true,
                          .resources = {
                                  [RESOURCE_MEMLOCK] = { true, 1, 100 * MIB },
                                  [RESOURCE_CPU_LATENCY] = { true, 10, 1000000 },
                                  [RESOURCE_BLOCK_QUEUE] = { true, 16, 512 },
                          },
                          .memlock_per_user_max = 160 * MIB, .cpu_latency_on_battery = true },
                },
                .policy = { .n_roles = 2, .threads_max = 99, .threads_per_user_max = 99,
                            .memlock_max = 200 * MIB, .ask_polkit = true },
                .now = { .uid = 1000, .rt_possible = true, .grant_tokens = 1 },
                .request = { .role = "studio" },
        };
        w->policy.roles = w->roles;
        w->now.threads_held_by_role = w->by_role;
        w->roles[0].allow_users.ids = w->roles[1].allow_users.ids = everybody_ids;
}

static struct decision ask(struct world *w, enum resource_index resource, int64_t value) {
        w->request.resources |= 1U << resource;
        w->request.values[resource] = value;
        return policy_evaluate(&w->policy, &w->now, &w->request);
}

struct value_case {
        const char *name;
        enum resource_index resource;
        int64_t value;
        enum reason reason;
        int64_t clamped;        /* what --clamp gives; 0: the same refusal */
};

static const struct value_case value_cases[] = {
        { "memory: all that there is", RESOURCE_MEMLOCK, 100 * MIB, REASON_NONE, 0 },
        { "memory: a byte", RESOURCE_MEMLOCK, 1, REASON_NONE, 0 },
        { "memory: a byte too many", RESOURCE_MEMLOCK, 100 * MIB + 1, REASON_RESOURCE_LIMIT,
          100 * MIB },
        { "memory: the largest number", RESOURCE_MEMLOCK, INT64_MAX, REASON_RESOURCE_LIMIT,
          100 * MIB },
        { "memory: none", RESOURCE_MEMLOCK, 0, REASON_INVALID, 0 },
        { "memory: negative", RESOURCE_MEMLOCK, -1, REASON_INVALID, 0 },
        { "memory: the smallest number", RESOURCE_MEMLOCK, INT64_MIN, REASON_INVALID, 0 },
        { "latency: the floor", RESOURCE_CPU_LATENCY, 10, REASON_NONE, 0 },
        { "latency: below it", RESOURCE_CPU_LATENCY, 9, REASON_RESOURCE_LIMIT, 10 },
        { "latency: beyond all sense", RESOURCE_CPU_LATENCY, UINT32_MAX, REASON_RESOURCE_LIMIT, 0 },
        { "queue: the least", RESOURCE_BLOCK_QUEUE, 16, REASON_NONE, 0 },
        { "queue: less", RESOURCE_BLOCK_QUEUE, 15, REASON_RESOURCE_LIMIT, 16 },
        { "queue: more than asked is never given", RESOURCE_BLOCK_QUEUE, 513,
          REASON_RESOURCE_LIMIT, 0 },
        { "interrupts: not in the role", RESOURCE_IRQ, 90, REASON_RESOURCE_NOT_IN_ROLE, 0 },
};

static void test_value(void **state) {
        const struct value_case *c = *state;
        struct decision d;
        struct world w;

        world_init(&w);
        d = ask(&w, c->resource, c->value);
        assert_int_equal(d.reason, c->reason);
        assert_int_equal(d.verdict, c->reason == REASON_NONE ? VERDICT_GRANT : VERDICT_DENY);
        if (c->reason == REASON_NONE)
                assert_true(d.values[c->resource] == c->value && d.resources == w.request.resources);

        w.request.clamp = true;
        d = ask(&w, c->resource, c->value);
        if (c->clamped == 0) {
                assert_int_equal(d.reason, c->reason);
                return;
        }
        assert_int_equal(d.verdict, VERDICT_GRANT);
        assert_true(d.clamped && d.values[c->resource] == c->clamped);
}

static void test_quotas(void **state) {
        struct decision d;
        struct world w;

        world_init(&w);
        w.now.memlock_held = w.now.memlock_total = 100 * MIB;
        assert_int_equal(ask(&w, RESOURCE_MEMLOCK, 60 * MIB).verdict, VERDICT_GRANT);
        d = ask(&w, RESOURCE_MEMLOCK, 60 * MIB + 1);
        assert_int_equal(d.reason, REASON_MEMLOCK_QUOTA);
        assert_true(d.limit == 60 * MIB);

        /* of all users less is left */
        w.now.memlock_total = 190 * MIB;
        d = ask(&w, RESOURCE_MEMLOCK, 11 * MIB);
        assert_int_equal(d.reason, REASON_MEMLOCK_QUOTA);
        assert_true(d.limit == 10 * MIB);
        w.request.clamp = true;
        d = ask(&w, RESOURCE_MEMLOCK, 11 * MIB);
        assert_true(d.verdict == VERDICT_GRANT && d.values[RESOURCE_MEMLOCK] == 10 * MIB);

        /* more lent than there is, after a reload; and sums that do not overflow */
        w.request.clamp = false;
        w.now.memlock_held = w.now.memlock_total = UINT64_MAX;
        assert_int_equal(ask(&w, RESOURCE_MEMLOCK, 1).reason, REASON_MEMLOCK_QUOTA);
}

static void test_on_battery(void **state) {
        struct world w;

        world_init(&w);
        w.now.on_battery = true;
        assert_int_equal(ask(&w, RESOURCE_CPU_LATENCY, 10).verdict, VERDICT_GRANT);
        w.roles[1].cpu_latency_on_battery = false;
        assert_int_equal(ask(&w, RESOURCE_CPU_LATENCY, 10).reason, REASON_ON_BATTERY);
        w.now.on_battery = false;
        assert_int_equal(ask(&w, RESOURCE_CPU_LATENCY, 10).verdict, VERDICT_GRANT);
}

/* The first role that gives all of it serves; what no role gives is said of the nearest. */
static void test_the_role_that_gives_it_is_found(void **state) {
        struct decision d;
        struct world w;

        world_init(&w);
        w.request.role = "";
        d = ask(&w, RESOURCE_CPU_LATENCY, 10);
        assert_int_equal(d.verdict, VERDICT_GRANT);
        assert_string_equal(d.role->name, "studio");
        d = ask(&w, RESOURCE_CPU_LATENCY, 9);
        assert_int_equal(d.reason, REASON_RESOURCE_LIMIT);
        assert_string_equal(d.role->name, "studio");
}

/* With clamp, what cannot be had is left out, if something remains. */
static void test_left_out(void **state) {
        struct decision d;
        struct world w;

        world_init(&w);
        w.request.clamp = true;
        w.request.unavailable[RESOURCE_MEMLOCK] = REASON_RESOURCE_UNAVAILABLE;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_int_equal(d.reason, REASON_RESOURCE_UNAVAILABLE);
        assert_true(d.about_resource && d.resource == RESOURCE_MEMLOCK);
        d = ask(&w, RESOURCE_CPU_LATENCY, 10);
        assert_int_equal(d.verdict, VERDICT_GRANT);
        assert_true(d.clamped && d.resources == BIT(CPU_LATENCY));
        w.request.clamp = false;
        d = ask(&w, RESOURCE_CPU_LATENCY, 10);
        assert_int_equal(d.reason, REASON_RESOURCE_UNAVAILABLE);
}

/* Whom polkit lets in it is asked about each kind: one question at a time, the role first. */
static void test_polkit_is_asked_about_each(void **state) {
        struct decision d;
        struct world w;

        world_init(&w);
        w.roles[1].allow_users.everybody = false;
        (void) ask(&w, RESOURCE_CPU_LATENCY, 10);
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_true(d.verdict == VERDICT_ASK && !d.about_resource);

        w.now.authority = AUTHORITY_YES;
        w.now.authority_role = 1;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_true(d.verdict == VERDICT_ASK && d.about_resource && d.resource == RESOURCE_MEMLOCK);

        w.now.resources_answered = BIT(MEMLOCK);
        w.now.resource_answers[RESOURCE_MEMLOCK] = AUTHORITY_YES;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_true(d.verdict == VERDICT_ASK && d.resource == RESOURCE_CPU_LATENCY);

        w.now.resources_answered |= BIT(CPU_LATENCY);
        w.now.resource_answers[RESOURCE_CPU_LATENCY] = AUTHORITY_NO;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_int_equal(d.verdict, VERDICT_DENY);
        assert_int_equal(d.reason, REASON_NOT_AUTHORIZED);
        assert_true(d.about_resource && d.resource == RESOURCE_CPU_LATENCY);

        w.request.clamp = true;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_true(d.verdict == VERDICT_GRANT && d.resources == BIT(MEMLOCK));

        w.now.resource_answers[RESOURCE_CPU_LATENCY] = AUTHORITY_YES;
        d = ask(&w, RESOURCE_MEMLOCK, MIB);
        assert_true(d.verdict == VERDICT_GRANT && !d.clamped);
}

int main(void) {
        enum { N_VALUES = sizeof(value_cases) / sizeof(value_cases[0]) };
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_quotas),
                cmocka_unit_test(test_on_battery),
                cmocka_unit_test(test_the_role_that_gives_it_is_found),
                cmocka_unit_test(test_left_out),
                cmocka_unit_test(test_polkit_is_asked_about_each),
        };
        struct CMUnitTest tests[N_VALUES + sizeof(others) / sizeof(others[0])];

        for (size_t i = 0; i < N_VALUES; i++)
                tests[i] = (struct CMUnitTest) { value_cases[i].name, test_value, NULL, NULL,
                                                 (void *) &value_cases[i] };
        memcpy(tests + N_VALUES, others, sizeof(others));
        return cmocka_run_group_tests_name("policy-resources", tests, NULL, NULL);
}
