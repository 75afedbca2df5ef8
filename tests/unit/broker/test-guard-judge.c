/* SPDX-License-Identifier: MIT */

/* The guard's judgement, with a clock and threads that are made up. */

#include <string.h>

#include "broker/guard/judge.h"
#include "tests/unit/broker/broker-test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define HOUR (3600 * SECOND)
#define INTERVAL (60 * MS)

/* ---- threads: what they do in each interval ---- */

struct doing {
        const char *name;
        unsigned run_percent;           /* of the time */
        unsigned delay_percent;         /* ready, while others run */
        unsigned quiet_s, busy_s;       /* if not 0: does nothing first, and this in turn */
        struct guard_budget budget;
        enum reason expected;
        unsigned from_ms, to_ms;        /* when it is demoted */
};

#define BUDGET(run_ms, window_ms, percent) \
        .budget = { (run_ms) * MS, (window_ms) * MS, (percent) * 100 }
#define USUAL BUDGET(500, 1000, 90)

static const struct doing doings[] = {
        { "a spinner", 100, 0, 0, 0, USUAL, REASON_RAN_ON, 500, 1000 },
        { "a spinner beside what the kernel reserves", 95, 5, 0, 0, USUAL, REASON_RAN_ON, 500, 1000 },
        { "one that yields to its like", 50, 50, 0, 0, USUAL, REASON_RAN_ON, 1000, 2000 },
        { "95 % and short sleeps", 95, 0, 0, 0, USUAL, REASON_CPU_SHARE, 900, 1300 },
        { "89 % and sleeps", 89, 0, 0, 0, USUAL, REASON_NONE, 0, 0 },
        { "a tenth", 10, 0, 0, 0, USUAL, REASON_NONE, 0, 0 },
        { "starved by another", 0, 100, 0, 0, USUAL, REASON_NONE, 0, 0 },
        { "nearly starved by another", 4, 96, 0, 0, BUDGET(5000, 1000, 90), REASON_NONE, 0, 0 },
        { "no limit of the share", 95, 0, 0, 0, BUDGET(500, 1000, 100), REASON_NONE, 0, 0 },
        { "more than half of a short window", 60, 0, 0, 0, BUDGET(500, 200, 50), REASON_CPU_SHARE,
          100, 400 },
        { "a long window lets it work for a while", 100, 0, 0, 0, BUDGET(60000, 10000, 50),
          REASON_CPU_SHARE, 5000, 5500 },
        { "a spinner after a quiet time", 100, 0, 30, 30, USUAL, REASON_RAN_ON, 30500, 31000 },
};

static void test_thread(void **state) {
        const struct doing *d = *state;
        struct guard_account account = {};
        struct guard_sample sample = { .tick = GUARD_TICK_GOOD };
        enum guard_verdict verdict = GUARD_FINE;
        enum reason reason = REASON_NONE;
        uint64_t demoted_ms = 0;
        unsigned n_warned = 0;

        for (unsigned i = 0; i < 60 * SECOND / INTERVAL && demoted_ms == 0; i++) {
                bool quiet = d->quiet_s != 0 && sample.at_ns < d->quiet_s * SECOND;

                sample.at_ns += INTERVAL;
                sample.cpu_ns += quiet ? 0 : INTERVAL * d->run_percent / 100;
                sample.delay_ns += quiet ? 0 : INTERVAL * d->delay_percent / 100;
                guard_account_add(&account, &d->budget, &sample);
                reason = guard_judge(&account, &d->budget);
                verdict = guard_account_settle(&account, &d->budget, reason);
                n_warned += verdict == GUARD_WARN;
                if (verdict == GUARD_DEMOTE)
                        demoted_ms = sample.at_ns / MS;
        }

        assert_int_equal(reason, d->expected);
        assert_int_equal(n_warned, d->expected == REASON_NONE ? 0 : 1);
        if (d->expected == REASON_NONE)
                return;
        assert_in_range(demoted_ms, d->from_ms, d->to_ms);
}

/*
 * One that did little is looked at every 7th interval. If it begins to spin between two looks it is
 * demoted no later for that; and one that works near half of the time is not taken for a spinner.
 */
static void test_seldom_looked_at(void **state) {
        const struct guard_budget budget = { 500 * MS, SECOND, 9000 };

        for (unsigned begins_ms = 0; begins_ms < 420; begins_ms += 15) {
                struct guard_account account = {};
                struct guard_sample sample = { .tick = GUARD_TICK_GOOD };
                enum guard_verdict verdict = GUARD_FINE;
                unsigned n = 0;

                for (; n < 40 && verdict != GUARD_DEMOTE; n++) {
                        uint64_t spun;

                        sample.at_ns += n < 4 ? 7 * INTERVAL : INTERVAL;
                        spun = sample.at_ns - 3 * 7 * INTERVAL - begins_ms * MS;
                        sample.cpu_ns = n < 3 ? 0 : spun;
                        guard_account_add(&account, &budget, &sample);
                        verdict = guard_account_settle(&account, &budget,
                                                       guard_judge(&account, &budget));
                }
                assert_int_equal(verdict, GUARD_DEMOTE);
                assert_in_range(sample.cpu_ns, 500 * MS, 1000 * MS);
        }
}

static void test_work_that_is_seldom_looked_at(void **state) {
        const struct guard_budget budget = { 500 * MS, SECOND, 9000 };
        struct guard_account account = {};
        struct guard_sample sample = { .tick = GUARD_TICK_GOOD };

        for (unsigned i = 0; i < 1000; i++) {
                uint64_t interval = i % 3 == 0 ? 7 * INTERVAL : INTERVAL;

                sample.at_ns += interval;
                sample.cpu_ns += interval * 85 / 100;
                guard_account_add(&account, &budget, &sample);
                assert_int_equal(guard_judge(&account, &budget), REASON_NONE);
        }
}

static void test_a_peak_is_forgiven(void **state) {
        const struct guard_budget budget = { 500 * MS, SECOND, 9000 };
        struct guard_account account = {};
        struct guard_sample sample = { .tick = GUARD_TICK_GOOD };

        for (unsigned i = 0; i < 600; i++) {
                enum reason reason;

                /* 600 ms of work each 6 s: over, warned, and done before anything is done about it */
                sample.at_ns += INTERVAL;
                sample.cpu_ns += i % 100 < 9 ? INTERVAL : 0;
                guard_account_add(&account, &budget, &sample);
                reason = guard_judge(&account, &budget);
                assert_int_not_equal(guard_account_settle(&account, &budget, reason), GUARD_DEMOTE);
        }
}

/* ---- the clock ---- */

struct guard_world {
        struct guard_time time;
        uint64_t monotonic_ns, boottime_ns;
};

static enum guard_tick pass(struct guard_world *w, uint64_t elapsed_ns, uint64_t asleep_ns) {
        w->monotonic_ns += elapsed_ns;
        w->boottime_ns += elapsed_ns + asleep_ns;
        return guard_time_tick(&w->time, w->monotonic_ns, w->boottime_ns, INTERVAL);
}

static void begin(struct guard_world *w) {
        *w = (struct guard_world) { .monotonic_ns = HOUR, .boottime_ns = 30 * HOUR };
        assert_int_equal(pass(w, 1, 0), GUARD_TICK_RESUMED); /* the first of all */
}

static void test_clock(void **state) {
        struct guard_world w;

        begin(&w);
        assert_int_equal(pass(&w, INTERVAL, 0), GUARD_TICK_GOOD);
        assert_int_equal(w.time.now_ns, INTERVAL);
        assert_int_equal(pass(&w, INTERVAL + 2 * MS, 1000), GUARD_TICK_GOOD);
        assert_int_equal(pass(&w, INTERVAL, (uint64_t) -1000), GUARD_TICK_GOOD);
        assert_int_equal(w.time.now_ns, 3 * INTERVAL + 2 * MS);
        assert_int_equal(pass(&w, 500 * MS, 0), GUARD_TICK_LATE);
        assert_int_equal(pass(&w, INTERVAL, 0), GUARD_TICK_GOOD);
        assert_int_equal(w.time.now_ns, 4 * INTERVAL + 2 * MS);
        assert_int_equal(pass(&w, 12 * SECOND, 0), GUARD_TICK_RESUMED);
        assert_int_equal(pass(&w, INTERVAL, 8 * HOUR), GUARD_TICK_RESUMED);
        assert_int_equal(pass(&w, INTERVAL, 0), GUARD_TICK_GOOD);
        assert_int_equal(w.time.now_ns, 5 * INTERVAL + 2 * MS);
}

/*
 * A day of sleeps, of all lengths, and of stops of the daemon and of the whole virtual machine, in
 * each of which the kernel books all the time on the thread. Nobody is judged by that.
 */
static void test_a_day_of_suspends(void **state) {
        const struct guard_budget budget = { 500 * MS, SECOND, 9000 };
        struct guard_account account = {};
        struct guard_sample sample = {};
        struct guard_world w;
        unsigned n_sleeps = 0;

        begin(&w);
        for (uint64_t i = 0; w.boottime_ns < 54 * HOUR; i++) {
                uint64_t asleep_ns = 0, stopped_ns = 0;

                if (i % 16 == 15 && i / 16 % 3 == 0)
                        asleep_ns = 20 * MS << (i / 48 % 20);
                if (i % 16 == 15 && i / 16 % 3 == 1)
                        stopped_ns = 200 * MS << (i / 48 % 8);
                n_sleeps += asleep_ns + stopped_ns > 0;

                sample.tick = pass(&w, INTERVAL + stopped_ns, asleep_ns);
                sample.at_ns = w.time.now_ns;
                sample.cpu_ns += INTERVAL / 2 + asleep_ns + stopped_ns;
                guard_account_add(&account, &budget, &sample);
                assert_int_equal(guard_judge(&account, &budget), REASON_NONE);
        }
        assert_true(n_sleeps > 100);

        /* and one that spins after the last of them is caught as ever */
        for (unsigned i = 0; i < 10; i++) {
                sample.tick = pass(&w, INTERVAL, 0);
                sample.at_ns = w.time.now_ns;
                sample.cpu_ns += INTERVAL;
                guard_account_add(&account, &budget, &sample);
        }
        assert_int_equal(guard_judge(&account, &budget), REASON_RAN_ON);
}

/* ---- budgets ---- */

static void test_budget_of_a_role(void **state) {
        struct guard_budget budget = guard_budget_make(300000, 2000000, 70, 0, 0);

        assert_int_equal(budget.run_max_ns, 300 * MS);
        assert_int_equal(budget.window_ns, 2 * SECOND);
        assert_int_equal(budget.share_max, 7000);
}

static void test_budget_as_declared(void **state) {
        /* 2 ms in 10: 40 % */
        assert_int_equal(guard_budget_make(500000, 1000000, 90, 10 * MS, 2 * MS).share_max, 4000);
        /* never more than the role gives */
        assert_int_equal(guard_budget_make(500000, 1000000, 90, 10 * MS, 8 * MS).share_max, 9000);
        assert_int_equal(guard_budget_make(500000, 1000000, 30, 10 * MS, 2 * MS).share_max, 3000);
        /* what is next to nothing is no trap */
        assert_int_equal(guard_budget_make(500000, 1000000, 90, 10 * MS, 1000).share_max, 500);
        /* a long period is not judged by a part of it */
        assert_int_equal(guard_budget_make(500000, 1000000, 90, 1000 * MS, 2 * MS).window_ns,
                         4 * SECOND);
        /* the longest that can be declared */
        assert_int_equal(guard_budget_make(500000, 1000000, 90, HOUR, HOUR).share_max, 9000);
}

static void test_back_off(void **state) {
        const uint64_t expected[] = { 5000, 10000, 20000, 40000, 60000, 60000 };

        for (unsigned i = 0; i < ELEMENTS(expected); i++)
                assert_int_equal(guard_back_off_ms(5000, 60000, i + 1), expected[i]);
        assert_int_equal(guard_back_off_ms(5000, 60000, 4000000000U), 60000);
        assert_int_equal(guard_back_off_ms(5000, 1000, 1), 1000);
}

/* ---- several ---- */

struct several {
        const char *name;
        struct guard_member members[6];
        size_t expected[6];             /* in the order in which they go */
};

static const struct several severals[] = {
        { "the largest thread", { { 100, 1, 1 }, { 300, 1, 1 }, { 200, 1, 1 } }, { 1, 2, 0 } },
        { "of the largest process", { { 900, 1, 1 }, { 600, 1, 2 }, { 500, 1, 2 } }, { 1, 0, 2 } },
        { "of the largest user",
          { { 1500, 1, 1 }, { 900, 2, 2 }, { 800, 2, 3 }, { 700, 2, 4 } },
          { 1, 0, 2, 3 } },
        { "not who uses nothing", { { 0, 1, 1 }, { 1, 2, 2 } }, { 1 } },
};

static void test_largest(void **state) {
        const struct several *s = *state;
        struct guard_member members[6];
        size_t n = 0;

        memcpy(members, s->members, sizeof(members));
        while (n < 6 && (members[n].group != 0))
                n++;
        for (size_t i = 0; i < n; i++) {
                size_t found = guard_judge_largest(members, n);

                if (found == n) {
                        assert_true(i > 0);
                        return;
                }
                assert_int_equal(found, s->expected[i]);
                members[found].taken = true;
        }
        assert_int_equal(guard_judge_largest(members, n), n);
}

/* ---- what the kernel says ---- */

static void test_schedstat(void **state) {
        uint64_t cpu_ns, delay_ns;

        assert_true(guard_parse_schedstat("123456789012 34567 89\n", &cpu_ns, &delay_ns));
        assert_int_equal(cpu_ns, 123456789012);
        assert_int_equal(delay_ns, 34567);
        assert_false(guard_parse_schedstat("", &cpu_ns, &delay_ns));
        assert_false(guard_parse_schedstat("12", &cpu_ns, &delay_ns));
        assert_false(guard_parse_schedstat("x 1 2", &cpu_ns, &delay_ns));
}

static void test_stat(void **state) {
        static const char good[] = "7 (a) R 1 1) 9\n) S 1 2 3 4 5 6 7 8 9 10 140 60 0 0 20 0\n";
        static const char short_one[] = "7 (a) S 1 2 3";
        uint64_t cpu_ns;

        assert_true(guard_parse_stat(good, strlen(good), 10 * MS, &cpu_ns));
        assert_int_equal(cpu_ns, 2000 * MS);
        assert_false(guard_parse_stat(short_one, strlen(short_one), 10 * MS, &cpu_ns));
        assert_false(guard_parse_stat("", 0, 10 * MS, &cpu_ns));
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_seldom_looked_at),
                cmocka_unit_test(test_work_that_is_seldom_looked_at),
                cmocka_unit_test(test_a_peak_is_forgiven),
                cmocka_unit_test(test_clock),
                cmocka_unit_test(test_a_day_of_suspends),
                cmocka_unit_test(test_budget_of_a_role),
                cmocka_unit_test(test_budget_as_declared),
                cmocka_unit_test(test_back_off),
                cmocka_unit_test(test_schedstat),
                cmocka_unit_test(test_stat),
        };
        struct CMUnitTest tests[ELEMENTS(doings) + ELEMENTS(severals) + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(doings); i++)
                tests[n++] = test_row(doings[i].name, test_thread, &doings[i]);
        for (size_t i = 0; i < ELEMENTS(severals); i++)
                tests[n++] = test_row(severals[i].name, test_largest, &severals[i]);
        for (size_t i = 0; i < ELEMENTS(others); i++)
                tests[n++] = others[i];

        return cmocka_run_group_tests_name("guard-judge", tests, NULL, NULL);
}
