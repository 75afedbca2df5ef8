/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/options.h"

#define WORDS_MAX 12

struct options_case {
        const char *name;
        const char *words[WORDS_MAX];   /* after the program's name */
        int status;                     /* of options_parse(), or of options_complete() after it */
        struct options expected;
        const char *command;            /* its first word; NULL if there is none */
};

#define FIFO(p)                                                                        \
        .scheduling = { .policy = SCHED_FIFO, .priority = (p) }, .sched_wanted = true, \
        .policy_given = true
#define RR(p)   .scheduling = { .policy = SCHED_RR, .priority = (p) }, .sched_wanted = true
#define OTHER   .scheduling = { .policy = SCHED_OTHER }, .sched_wanted = true, .policy_given = true
#define SHOW    .action = ACTION_SHOW, .pid_given = true
#define CHANGE  .action = ACTION_CHANGE, .pid_given = true
#define RUN     .action = ACTION_RUN

static const struct options_case cases[] = {
        /* a command */
        { "policy, priority, command", { "-f", "50", "jackd" }, 0, { RUN, FIFO(50) }, "jackd" },
        { "default policy", { "50", "jackd" }, 0, { RUN, RR(50) }, "jackd" },
        { "option after the priority", { "50", "-f", "jackd" }, 0, { RUN, FIFO(50) }, "jackd" },
        { "options of the command",
          { "50", "jackd", "-R", "-p", "5" },
          0,
          { RUN, RR(50) },
          "jackd" },
        { "two dashes before the priority",
          { "-f", "--", "50", "jackd" },
          0,
          { RUN, FIFO(50) },
          "jackd" },
        { "two dashes before the command",
          { "-f", "50", "--", "-odd" },
          0,
          { RUN, FIFO(50) },
          "-odd" },
        { "a command with a dash", { "-f", "--", "50", "-odd" }, 0, { RUN, FIFO(50) }, "-odd" },
        { "a command of digits", { "-f", "50", "7" }, 0, { RUN, FIFO(50) }, "7" },
        { "no priority needed", { "-o", "jackd" }, 0, { RUN, OTHER }, "jackd" },
        { "none needed, but given", { "-o", "0", "jackd" }, 0, { RUN, OTHER }, "jackd" },
        { "nice alone",
          { "--nice", "-5", "jackd" },
          0,
          { RUN, .scheduling.policy = SCHED_RR, .nice_wanted = true, .nice = -5 },
          "jackd" },
        { "nice and a priority",
          { "--nice", "-5", "20", "jackd" },
          0,
          { RUN, RR(20), .nice_wanted = true, .nice = -5 },
          "jackd" },
        { "nice and a policy",
          { "--nice=-5", "-o", "jackd" },
          0,
          { RUN, OTHER, .nice_wanted = true, .nice = -5 },
          "jackd" },
        { "nothing", { NULL }, STATUS_FAILED, { 0 }, NULL },
        { "no command", { "-f", "50" }, STATUS_FAILED, { 0 }, NULL },
        { "no priority", { "-f", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "priority too high", { "-f", "100", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "priority too low", { "0", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "priority beyond 32 bits", { "4294967346", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "priority where there is none", { "-o", "1", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "nice too low", { "--nice", "-21", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "nice that is none", { "--nice", "x", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "all threads of a command", { "-a", "50", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "unknown option", { "-Z", "50", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "role too long",
          { "--role", "abcdefghijklmnopqrstuvwxyz-123456", "5", "jackd" },
          STATUS_FAILED,
          { 0 },
          NULL },
        { "role without a name", { "--role", "", "5", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "lifetime of 0", { "--lifetime", "0", "5", "jackd" }, STATUS_FAILED, { 0 }, NULL },

        /* a process */
        { "show", { "-p", "12" }, 0, { SHOW, .pid = 12 }, NULL },
        { "show, option last",
          { "-p", "12", "-v" },
          0,
          { SHOW, .pid = 12, .verbose = true },
          NULL },
        { "show, pid first", { "12", "-p" }, 0, { SHOW, .pid = 12 }, NULL },
        { "show oneself", { "-p", "0" }, 0, { SHOW }, NULL },
        { "change", { "-f", "-p", "50", "12" }, 0, { CHANGE, FIFO(50), .pid = 12 }, NULL },
        { "change, policy last",
          { "-p", "50", "12", "-f" },
          0,
          { CHANGE, FIFO(50), .pid = 12 },
          NULL },
        { "change, all mixed",
          { "50", "-p", "-a", "12", "-f" },
          0,
          { CHANGE, FIFO(50), .pid = 12, .all_threads = true },
          NULL },
        { "change, by default", { "-p", "50", "12" }, 0, { CHANGE, RR(50), .pid = 12 }, NULL },
        { "change, no priority needed",
          { "-o", "-p", "12" },
          0,
          { CHANGE, OTHER, .pid = 12 },
          NULL },
        { "change nice",
          { "--nice", "3", "-p", "12" },
          0,
          { CHANGE, .scheduling.policy = SCHED_RR, .pid = 12, .nice_wanted = true, .nice = 3 },
          NULL },
        { "inode", { "-p", "12:4711" }, 0, { SHOW, .pid = 12, .inode = 4711 }, NULL },
        { "highest pid", { "-p", "2147483647" }, 0, { SHOW, .pid = INT32_MAX }, NULL },
        { "no pid", { "-p" }, STATUS_FAILED, { 0 }, NULL },
        { "no priority before the pid", { "-f", "-p", "12" }, STATUS_USAGE, { 0 }, NULL },
        { "change oneself", { "-o", "-p", "0" }, STATUS_FAILED, { 0 }, NULL },
        { "one too many", { "-p", "50", "12", "13" }, STATUS_FAILED, { 0 }, NULL },
        { "pid below 0", { "-p", "--", "-12" }, STATUS_FAILED, { 0 }, NULL },
        { "pid 2^31", { "-p", "2147483648" }, STATUS_FAILED, { 0 }, NULL },
        { "pid 2^32 + 1", { "-p", "4294967297" }, STATUS_FAILED, { 0 }, NULL },
        { "pid 2^64 + 1", { "-p", "18446744073709551617" }, STATUS_FAILED, { 0 }, NULL },
        { "pid that is none", { "-p", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "pid with rest", { "-p", "12x" }, STATUS_FAILED, { 0 }, NULL },
        { "empty pid", { "-p", "" }, STATUS_FAILED, { 0 }, NULL },
        { "inode that is none", { "-p", "12:x" }, STATUS_FAILED, { 0 }, NULL },
        { "inode 0", { "-p", "12:0" }, STATUS_FAILED, { 0 }, NULL },
        { "inode without pid", { "-p", ":12" }, STATUS_FAILED, { 0 }, NULL },

        /* the rest */
        { "max", { "-m", "jackd" }, 0, { .action = ACTION_RANGES, RR(0) }, "jackd" },
        { "timing of others", { "-f", "-T", "5", "5", "jackd" }, STATUS_FAILED, { 0 }, NULL },
        { "timing below 0", { "-d", "-T", "-5", "jackd" }, STATUS_FAILED, { 0 }, NULL },
};

/* It says what is wrong; that is not what is looked at here. */
static int be_quiet(void **state) {
        return freopen("/dev/null", "w", stderr) ? 0 : -1;
}

static int parse(const struct options_case *c, struct options *ret) {
        static char *argv[WORDS_MAX + 2]; /* options point into it */
        int argc = 1, status;

        argv[0] = (char *) "rtgrant";
        for (; c->words[argc - 1]; argc++)
                argv[argc] = (char *) c->words[argc - 1];
        argv[argc] = NULL;

        status = options_parse(ret, "rtgrant", /* needs_command= */ true, argc, argv);
        if (status == 0 && (ret->action == ACTION_RUN || ret->action == ACTION_CHANGE))
                status = options_complete(ret);
        return status;
}

static void assert_same(const struct options *o, const struct options *expected) {
        assert_int_equal(o->action, expected->action);
        assert_int_equal(o->pid_given, expected->pid_given);
        assert_int_equal(o->pid, expected->pid);
        assert_int_equal(o->inode, expected->inode);
        assert_int_equal(o->all_threads, expected->all_threads);
        assert_int_equal(o->verbose, expected->verbose);
        assert_int_equal(o->nice_wanted, expected->nice_wanted);
        assert_int_equal(o->nice, expected->nice);
        if (o->action != ACTION_RUN && o->action != ACTION_CHANGE)
                return;
        assert_int_equal(o->sched_wanted, expected->sched_wanted);
        assert_int_equal(o->policy_given, expected->policy_given);
        assert_int_equal(o->scheduling.policy, expected->scheduling.policy);
        assert_int_equal(o->scheduling.priority, expected->scheduling.priority);
}

static void test_options(void **state) {
        const struct options_case *c = *state;
        struct options o;

        assert_int_equal(parse(c, &o), c->status);
        if (c->status != 0)
                return;

        assert_same(&o, &c->expected);
        if (o.action == ACTION_RUN)
                assert_string_equal(o.command[0], c->command);
        else
                assert_null(o.action == ACTION_RANGES ? NULL : o.command);
}

static void test_what_is_for_the_broker(void **state) {
        static const struct options_case c = {
                .words = { "--role", "audio-server", "--reason=a synth", "--clamp", "--dry-run",
                           "--lifetime", "60", "--socket", "/s", "--json", "jackd" },
        };
        struct options o;

        /* The priority is the role's to say, and is filled in before the rest is looked at. */
        assert_int_equal(parse(&c, &o), STATUS_FAILED);
        assert_true(options_lack_priority(&o));
        assert_string_equal(o.command[0], "jackd");
        assert_string_equal(o.role, "audio-server");
        assert_string_equal(o.reason, "a synth");
        assert_string_equal(o.socket, "/s");
        assert_int_equal(o.lifetime_s, 60);
        assert_true(o.clamp && o.dry_run && o.json);

        o.scheduling.priority = 71;
        assert_int_equal(options_complete(&o), 0);
        assert_int_equal(o.scheduling.priority, 71);
}

static void test_deadline_as_chrt_fills_it_in(void **state) {
        static const struct {
                struct options_case c;
                uint64_t runtime_ns, deadline_ns, period_ns;
        } rows[] = {
                { { .words = { "-d", "-P", "1000", "x" } }, 1000, 1000, 1000 },
                { { .words = { "-d", "-P", "1000", "-T", "10", "x" } }, 10, 1000, 1000 },
                { { .words = { "-d", "-P", "1000", "-T", "10", "-D", "500", "x" } },
                  10,
                  500,
                  1000 },
                { { .words = { "-d", "-D", "500", "0", "x" } }, 500, 500, 0 },
        };

        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct options o;

                assert_int_equal(parse(&rows[i].c, &o), 0);
                assert_int_equal(o.scheduling.policy, POLICY_DEADLINE);
                assert_int_equal(o.scheduling.runtime_ns, rows[i].runtime_ns);
                assert_int_equal(o.scheduling.deadline_ns, rows[i].deadline_ns);
                assert_int_equal(o.scheduling.period_ns, rows[i].period_ns);
        }
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases) + 2];

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[i] = (struct CMUnitTest) {
                        .name = cases[i].name,
                        .test_func = test_options,
                        .initial_state = (void *) &cases[i],
                };
        tests[ELEMENTS(cases)] = (struct CMUnitTest) cmocka_unit_test(test_what_is_for_the_broker);
        tests[ELEMENTS(cases) + 1] =
                (struct CMUnitTest) cmocka_unit_test(test_deadline_as_chrt_fills_it_in);

        return cmocka_run_group_tests_name("cli-options", tests, be_quiet, NULL);
}
