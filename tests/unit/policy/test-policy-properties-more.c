/* SPDX-License-Identifier: MIT */

/*
 * The same of what requests may ask besides: a place in the band, to stay below others, declared
 * timing, memory, latency, queues, interrupts.
 */

#include "tests/unit/policy/policy-world.h"

#define PPM 1000000
#define CEILING 94

/* With the memory that the newer fields point to. */
struct full {
        struct world w;
        const char *below[ROLES_MAX][1];
        int lowest[ROLES_MAX];
        uint64_t ppm[_DECLARED_MAX][ROLES_MAX];
};

static void tie_full(struct full *f) {
        tie(&f->w);
        for (size_t i = 0; i < ROLES_MAX; i++)
                f->w.roles[i].below.words = f->below[i];
        f->w.now.lowest_by_role = f->lowest;
        for (size_t i = 0; i < _DECLARED_MAX; i++)
                f->w.now.declared[i].ppm_by_role = f->ppm[i];
}

/* Of latency and queues less is more. */
static bool is_descending(int resource) {
        return resource == RESOURCE_CPU_LATENCY || resource == RESOURCE_BLOCK_QUEUE;
}

static void fill_role(struct full *f, size_t i, uint64_t *seed) {
        struct role *role = &f->w.roles[i];

        role->action = "";
        role->sessions = (unsigned) between(seed, 0, 31) & ~(1U << SESSION_UNREAD);
        role->priority_by_period = one_in(seed, 3);
        role->declared_cpu_percent = (unsigned) between(seed, 1, 100);
        role->memlock_per_user_max = (uint64_t) between(seed, 0, 60);
        role->cpu_latency_on_battery = one_in(seed, 2);
        for (int r = 0; r < _RESOURCE_MAX; r++) {
                int low = between(seed, 1, 90);

                role->resources[r] = (struct resource_band) {
                        !one_in(seed, 4), low, between(seed, low, 94)
                };
        }
        f->below[i][0] = names[between(seed, 0, ROLES_MAX)];
        role->below.n_words = (size_t) between(seed, 0, 1);
}

static void fill_now(struct full *f, uint64_t *seed) {
        struct situation *now = &f->w.now;

        now->authority = AUTHORITY_UNASKED;
        now->session = (enum session_state) between(seed, 0, SESSION_ACTIVE);
        now->rt_possible = true;
        now->in_user_namespace = false;
        now->quota_uid = one_in(seed, 3) ? 5 : 1000;
        now->feeds_priority = one_in(seed, 4) ? between(seed, 1, 99) : 0;
        now->feeds_irq_priority = one_in(seed, 4) ? between(seed, 1, 99) : 0;
        now->memlock_held = (uint64_t) between(seed, 0, 40);
        now->memlock_total = now->memlock_held + (uint64_t) between(seed, 0, 40);
        now->on_battery = one_in(seed, 3);
        now->grant_tokens = 1;
        for (size_t i = 0; i < ROLES_MAX; i++)
                f->lowest[i] = one_in(seed, 3) ? between(seed, 1, 94) : 0;
        for (int set = 0; set < _DECLARED_MAX; set++) {
                now->declared[set] = (struct declared) { .n_cpus = set == DECLARED_OWN ? 1 : 2 };
                for (size_t i = 0; i < ROLES_MAX; i++) {
                        f->ppm[set][i] = one_in(seed, 2) ? (uint64_t) between(seed, 0, PPM / 3) : 0;
                        now->declared[set].ppm += f->ppm[set][i];
                }
        }
}

static void fill_request(struct full *f, uint64_t *seed) {
        struct request *request = &f->w.request;

        if (request->lifetime_s == 0)
                request->lifetime = LIFETIME_THREAD;
        if (is_realtime(request) && one_in(seed, 3)) {
                request->is_relative = true;
                request->priority = 0;
                request->relative = between(seed, -2, 2);
        }
        if (one_in(seed, 2)) {
                request->period_ns = (uint64_t) between(seed, 1, 2000) * 150000;
                request->computation_ns =
                        request->period_ns * (uint64_t) between(seed, 1, 1000) / 1500;
        }
        request->resources = (unsigned) (between(seed, 0, 15) & between(seed, 0, 15));
        for (int r = 0; r < _RESOURCE_MAX; r++)
                request->values[r] = between(seed, r == RESOURCE_IRQ ? 0 : 1, 94);
        request->irq_roles = (unsigned) between(seed, 0, 15);
        request->raises_fed = one_in(seed, 2);
}

static void make_full(struct full *f, uint64_t *seed) {
        memset(f, 0, sizeof(*f));
        make_world(&f->w, seed);
        f->w.policy.ask_polkit = false;
        f->w.policy.reserve_cpu_percent = (unsigned) between(seed, 0, 90);
        f->w.policy.system_threads_per_user_max = (unsigned) between(seed, 0, 9);
        f->w.policy.memlock_max = (uint64_t) between(seed, 20, 100);
        for (size_t i = 0; i < f->w.policy.n_roles; i++)
                fill_role(f, i, seed);
        fill_now(f, seed);
        fill_request(f, seed);
        tie_full(f);
}

static struct decision ask(const struct full *f) {
        return evaluate(&f->w);
}

static bool is_below(const struct full *f, const struct role *role, int priority) {
        const struct situation *now = &f->w.now;

        if (now->feeds_priority > 0 && priority >= now->feeds_priority)
                return false;
        for (size_t i = 0; i < role->below.n_words; i++)
                for (size_t j = 0; j < f->w.policy.n_roles; j++)
                        if (strcmp(role->below.words[i], names[j]) == 0 && f->lowest[j] > 0 &&
                            priority >= f->lowest[j])
                                return false;
        return true;
}

static bool irq_is_above(const struct full *f, const struct decision *d) {
        int64_t above = f->w.now.feeds_irq_priority;

        if (above > 0 && f->w.request.raises_fed && d->resources & 1U << RESOURCE_IRQ &&
            d->values[RESOURCE_IRQ] > above)
                above = d->values[RESOURCE_IRQ];
        return above == 0 || d->priority < above;
}

static bool share_is_kept(const struct full *f, const struct role *role) {
        const struct request *request = &f->w.request;
        uint64_t demand;

        if (request->period_ns == 0)
                return true;
        demand = (request->computation_ns * PPM + request->period_ns - 1) / request->period_ns;
        for (int set = 0; set < _DECLARED_MAX; set++) {
                const struct declared *declared = &f->w.now.declared[set];
                uint64_t percent = UINT64_C(10000) * declared->n_cpus;

                if (declared->ppm + demand > percent * (100 - f->w.policy.reserve_cpu_percent) ||
                    f->ppm[set][role - f->w.roles] + demand > percent * role->declared_cpu_percent)
                        return false;
        }
        return true;
}

static bool memory_is_kept(const struct full *f, const struct decision *d) {
        const struct situation *now = &f->w.now;
        uint64_t value = (uint64_t) d->values[RESOURCE_MEMLOCK];
        uint64_t user_max = d->role->memlock_per_user_max;

        if (!(d->resources & 1U << RESOURCE_MEMLOCK))
                return true;
        if (user_max == 0)
                user_max = (uint64_t) d->role->resources[RESOURCE_MEMLOCK].high;
        return now->memlock_held + value <= user_max &&
               now->memlock_total + value <= f->w.policy.memlock_max;
}

static void assert_within_role(const struct full *f, const struct decision *d) {
        const struct request *request = &f->w.request;
        const struct role *role = d->role;

        if (is_realtime(request)) {
                assert_in_range(d->priority, role->priority_min, role->priority_max);
                assert_in_range(d->priority, 1, CEILING);
                assert_true(role->policies >> d->policy & 1);
                assert_true(is_below(f, role, d->priority));
                assert_true(irq_is_above(f, d));
        }
        if (request->wants_nice)
                assert_true(d->nice >= role->nice_min);
        for (int r = 0; r < _RESOURCE_MAX; r++)
                if (d->resources & 1U << r) {
                        assert_true(role->resources[r].given);
                        assert_in_range(d->values[r], role->resources[r].low,
                                        role->resources[r].high);
                }
        if (d->resources & 1U << RESOURCE_IRQ)
                assert_true(request->irq_roles >> (role - f->w.roles) & 1);
        if (d->resources & 1U << RESOURCE_CPU_LATENCY)
                assert_true(!f->w.now.on_battery || role->cpu_latency_on_battery);
        assert_true(memory_is_kept(f, d));
        assert_true(share_is_kept(f, role));
}

static void test_a_grant_is_within_its_role_and_below_its_server(void **state) {
        uint64_t seed = 21;
        unsigned n_grants = 0, n_places = 0, n_resources = 0, n_declared = 0, n_below = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct full f;
                struct decision d;

                make_full(&f, &seed);
                d = ask(&f);
                if (d.verdict != VERDICT_GRANT)
                        continue;

                assert_within_role(&f, &d);
                n_grants++;
                n_places += f.w.request.is_relative;
                n_resources += d.resources != 0;
                n_declared += f.w.request.period_ns != 0;
                n_below += d.superior != SUPERIOR_NONE;
        }

        /* or nothing was tried */
        assert_in_range(n_grants, ROUNDS / 50, ROUNDS);
        assert_in_range(n_places, ROUNDS / 500, ROUNDS);
        assert_in_range(n_resources, ROUNDS / 500, ROUNDS);
        assert_in_range(n_declared, ROUNDS / 500, ROUNDS);
        assert_in_range(n_below, ROUNDS / 6000, ROUNDS);
}

/* What a place in the band is without any limit: the most that it may come to. */
static int place_in(const struct role *role, int relative) {
        int high = role->priority_max < CEILING ? role->priority_max : CEILING;

        return role->priority_min + (high - role->priority_min) * (relative + 2) / 4;
}

static void test_nothing_becomes_more_than_was_asked(void **state) {
        uint64_t seed = 22;
        unsigned n_less = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                const struct request *asked;
                struct full f;
                struct decision d;

                make_full(&f, &seed);
                asked = &f.w.request;
                d = ask(&f);
                if (d.verdict != VERDICT_GRANT)
                        continue;

                n_less += d.clamped;
                assert_true(asked->clamp || !d.clamped);
                if (is_realtime(asked) && !asked->is_relative)
                        assert_true(d.priority <= asked->priority);
                if (asked->is_relative && !(d.role->priority_by_period && asked->period_ns != 0))
                        assert_true(d.priority <= place_in(d.role, asked->relative));
                if (asked->wants_nice)
                        assert_true(d.nice >= asked->nice);
                assert_int_equal(d.resources & ~asked->resources, 0);
                for (int r = 0; r < _RESOURCE_MAX; r++)
                        if (d.resources & 1U << r && asked->values[r] != 0)
                                assert_true(is_descending(r) ? d.values[r] >= asked->values[r]
                                                             : d.values[r] <= asked->values[r]);
                if (!d.clamped)
                        assert_int_equal(d.resources, asked->resources);
        }
        assert_in_range(n_less, ROUNDS / 200, ROUNDS);
}

/* Asked for what it gave, the same role gives just that, and nothing is lowered. */
static void test_what_was_given_can_be_asked_for(void **state) {
        uint64_t seed = 23;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct decision d, again;
                struct request *request;
                struct full f;

                make_full(&f, &seed);
                d = ask(&f);
                if (d.verdict != VERDICT_GRANT)
                        continue;

                request = &f.w.request;
                request->role = d.role->name;
                request->is_relative = false;
                request->relative = 0;
                request->policy = request->wants_sched ? d.policy : 0;
                request->priority = d.priority;
                request->nice = d.nice;
                request->lifetime_s = d.lifetime_s;
                request->resources = d.resources;
                memcpy(request->values, d.values, sizeof(d.values));
                request->clamp = false;
                again = ask(&f);
                assert_int_equal(again.verdict, VERDICT_GRANT);
                assert_int_equal(again.priority, d.priority);
                assert_int_equal(again.resources, d.resources);
                assert_false(again.clamped);
        }
}

static bool gives_more_resources(const struct decision *a, const struct decision *b) {
        if (a->resources & ~b->resources)
                return true;
        for (int r = 0; r < _RESOURCE_MAX; r++)
                if (a->resources & 1U << r &&
                    (is_descending(r) ? a->values[r] < b->values[r] : a->values[r] > b->values[r]))
                        return true;
        return false;
}

/* Of one role, anything; a denial gives nothing. */
static bool gives_more_of_any(const struct decision *a, const struct decision *b) {
        return gives_more(a, b, /* same_role= */ true) ||
               (a->verdict == VERDICT_GRANT && gives_more_resources(a, b));
}

static unsigned count(unsigned bits) {
        unsigned n = 0;

        for (; bits != 0; bits &= bits - 1)
                n++;
        return n;
}

/* Of whatever role serves: of the first that differs, as the policy picks one. */
static bool serves_more(const struct decision *a, const struct decision *b) {
        bool both = a->verdict == VERDICT_GRANT && b->verdict == VERDICT_GRANT;

        if (!both || a->priority != b->priority || a->policy != b->policy || a->nice != b->nice)
                return gives_more(a, b, /* same_role= */ false);
        if (count(a->resources) != count(b->resources))
                return count(a->resources) > count(b->resources);

        return a->lifetime_s > b->lifetime_s;
}

static void narrow_resource(struct role *role, uint64_t *seed) {
        struct resource_band *band = &role->resources[between(seed, 0, _RESOURCE_MAX - 1)];

        if (one_in(seed, 3))
                band->given = false;
        else if (one_in(seed, 2))
                band->high = between(seed, (int) band->low, (int) band->high);
        else
                band->low = between(seed, (int) band->low, (int) band->high);
}

/* A place, also by period, is one in the band: where that begins higher, it is higher. Not tried. */
static void narrow_full(struct full *f, uint64_t *seed) {
        struct policy *policy = &f->w.policy;
        size_t i = (size_t) between(seed, 0, (int) policy->n_roles - 1);
        struct role *role = &f->w.roles[i];

        switch (between(seed, 0, 9)) {
        case 0:
                policy->reserve_cpu_percent =
                        (unsigned) between(seed, (int) policy->reserve_cpu_percent, 90);
                break;
        case 1:
                role->declared_cpu_percent =
                        (unsigned) between(seed, 1, (int) role->declared_cpu_percent);
                break;
        case 2:
                role->below.n_words = 1;
                break;
        case 3:
                role->priority_by_period = role->priority_by_period || !f->w.request.is_relative;
                break;
        case 4:
                narrow_resource(role, seed);
                break;
        case 5:
                policy->memlock_max = (uint64_t) between(seed, 0, (int) policy->memlock_max);
                break;
        case 6:
                if (role->memlock_per_user_max > 0)
                        role->memlock_per_user_max =
                                (uint64_t) between(seed, 1, (int) role->memlock_per_user_max);
                break;
        case 7:
                role->sessions &= (unsigned) between(seed, 0, 31);
                break;
        case 8:
                if (policy->system_threads_per_user_max > 1)
                        policy->system_threads_per_user_max = 1;
                break;
        case 9:
                if (!f->w.request.is_relative && f->w.request.period_ns == 0)
                        narrow_policy(&f->w, seed);
                break;
        }
}

static void test_a_stricter_policy_never_gives_more(void **state) {
        uint64_t seed = 24;
        unsigned n_less = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct decision before, after;
                struct full f, strict;
                bool named;

                make_full(&f, &seed);
                named = f.w.request.role[0] != '\0';
                /* Unnamed, a place may be one in another role's band, which is as good. */
                if (f.w.request.is_relative && !named)
                        continue;
                strict = f;
                tie_full(&strict);
                for (int n = between(&seed, 3, 10); n > 0; n--)
                        narrow_full(&strict, &seed);

                before = ask(&f);
                after = ask(&strict);
                if (named)
                        assert_false(gives_more_of_any(&after, &before));
                else
                        assert_false(serves_more(&after, &before));
                n_less += gives_more_of_any(&before, &after);
        }
        assert_in_range(n_less, ROUNDS / 150, ROUNDS);
}

/* More that others have, declare or stand for. */
static void crowd(struct full *f, uint64_t *seed) {
        struct situation *now = &f->w.now;
        size_t i = (size_t) between(seed, 0, ROLES_MAX - 1);
        uint64_t more = (uint64_t) between(seed, 0, PPM / 2);

        switch (between(seed, 0, 5)) {
        case 0:
                for (int set = 0; set < _DECLARED_MAX; set++) {
                        f->ppm[set][i] += more;
                        now->declared[set].ppm += more;
                }
                break;
        case 1:
                now->feeds_priority = between(seed, 1, now->feeds_priority ? now->feeds_priority : 99);
                break;
        case 2:
                now->feeds_irq_priority =
                        between(seed, 1, now->feeds_irq_priority ? now->feeds_irq_priority : 99);
                break;
        case 3:
                f->lowest[i] = between(seed, 1, f->lowest[i] ? f->lowest[i] : 94);
                break;
        case 4:
                now->memlock_held += more % 50;
                now->memlock_total += more % 50;
                break;
        case 5:
                f->w.held[i]++;
                now->threads_held++;
                now->threads_total++;
                break;
        }
}

static void test_what_others_have_never_gives_more(void **state) {
        uint64_t seed = 25;
        unsigned n_less = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                struct decision before, after;
                struct full f, crowded;

                make_full(&f, &seed);
                f.w.request.role = names[between(&seed, 0, (int) f.w.policy.n_roles - 1)];
                crowded = f;
                tie_full(&crowded);
                for (int n = between(&seed, 1, 4); n > 0; n--)
                        crowd(&crowded, &seed);

                before = ask(&f);
                after = ask(&crowded);
                assert_false(gives_more_of_any(&after, &before));
                n_less += gives_more_of_any(&before, &after);
        }
        assert_in_range(n_less, ROUNDS / 100, ROUNDS);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_grant_is_within_its_role_and_below_its_server),
                cmocka_unit_test(test_nothing_becomes_more_than_was_asked),
                cmocka_unit_test(test_what_was_given_can_be_asked_for),
                cmocka_unit_test(test_a_stricter_policy_never_gives_more),
                cmocka_unit_test(test_what_others_have_never_gives_more),
        };

        return cmocka_run_group_tests_name("policy-properties-more", tests, NULL, NULL);
}
