/* SPDX-License-Identifier: MIT */

/* What the reader makes of one text. Faults: test-policy-faults.c; layers: test-policy-layers.c. */

#include "tests/unit/policy/policy-text.h"

/* One key with one value after another; the good ones first. */
struct value_case {
        const char *section;    /* "Broker" or "Role r" */
        const char *key;
        const char *good[8];
        const char *bad[16];
        const char *expected;   /* what is said of the bad ones */
};

static const struct value_case value_cases[] = {
        { "Broker", "ThreadsMax", { "1", "1000000", "007" },
          { "0", "1000001", "", "-1", "+1", "1.0", "1 2", "one", "1k", "0x10",
            "18446744073709551617" },
          "not a number from 1 to 1000000" },
        { "Broker", "ConnectionsPerUser", { "1", "1000000" }, { "0", "1000001" },
          "not a number from 1 to 1000000" },
        { "Broker", "GrantRefill", { "1ms", "1s", "1000us", "60min", "1h" },
          { "0ms", "999us", "1500us", "2h", "3601s", "5124095576h" },
          "not a time from 1ms to 1h in whole milliseconds" },
        { "Broker", "GrantRefill", { NULL },
          { "", "5", "ms", "5 ms", "-5ms", "5msec", "5m", "1h 5min", "5MS", "1.5s",
            "18446744073709551616us", "5124095577h" },
          "not a number with a unit: us, ms, s, min or h" },
        { "Broker", "MessageRefill", { "1us", "60s", "1min" }, { "0us", "61s", "60000001us" },
          "not a time from 1us to 1min" },
        { "Broker", "UserNamespaces", { "yes", "no" }, { "", "true", "1", "Yes", "yes no" },
          "neither yes nor no" },
        { "Broker", "ReserveCPU", { "0%", "10%", "90%", "05%" },
          { "", "%", "10", "91%", "-1%", "5 %", "5%%", "1.5%", "+5%" },
          "not a share from 0% to 90%" },
        { "Broker", "SystemThreadsPerUser", { "", "1", "1000000" }, { "0", "1000001", "none" },
          "not a number from 1 to 1000000" },
        { "Role r", "AllowSessions", { "", "active", "remote inactive none", "active active" },
          { "Active", "any", "active,remote", "*" },
          "not active, inactive, remote and none (blanks between)" },
        { "Role r", "Executables", { "", "jackd", "/usr/bin/* pipewire*", "*" },
          { "a,b", "*a", "a*b", "a **" },
          "not words with blanks between, * only at the end of one" },
        { "Role r", "PriorityByPeriod", { "yes", "no" }, { "", "1" }, "neither yes nor no" },
        { "Role r", "DeclaredCPU", { "1%", "100%" }, { "0%", "101%", "50" },
          "not a share from 1% to 100%" },
        { "Role r", "RTTime", { "supervise", "keep", "require" }, { "", "Keep", "200ms" },
          "none of supervise, keep, require" },
        { "Broker", "CPUPerUser", { "1%", "80%", "100%" }, { "", "0%", "101%", "80" },
          "not a share from 1% to 100%" },
        { "Broker", "BackOff", { "100ms", "5s", "1h" }, { "99ms", "0s", "2h" },
          "not a time from 100ms to 1h in whole milliseconds" },
        { "Broker", "BackOffMax", { "100ms", "5min", "24h" }, { "99ms", "25h" },
          "not a time from 100ms to 24h in whole milliseconds" },
        { "Role r", "RunMax", { "50ms", "500ms", "1min" }, { "49ms", "61s" },
          "not a time from 50ms to 1min" },
        { "Role r", "CPUMax", { "1%", "100%" }, { "0%", "101%", "" },
          "not a share from 1% to 100%" },
        { "Role r", "CPUWindow", { "100ms", "1min" }, { "99ms", "61s" },
          "not a time from 100ms to 1min" },
        { "Broker", "LogLevel", { "", "err", "warning", "notice", "info", "debug" },
          { "error", "7", "INFO", "crit" }, "none of err, warning, notice, info, debug" },
        { "Broker", "Authority", { "static", "polkit" },
          { "", "Polkit", "yes", "no", "polkit static" }, "neither polkit nor static" },
        { "Broker", "RealtimeKitRole", { "r", "first" }, { "a b", "r,first" },
          "not the name of a role" },
        { "Broker", "RealtimeKitPolicy", { "rr", "fifo" },
          { "", "FIFO", "other", "any", "rr fifo" }, "neither rr nor fifo" },
        { "Broker", "RealtimeKitRTTime", { "10ms", "10s", "10001us", "200ms" },
          { "9ms", "9999us", "10001ms", "11s", "0us", "1min" }, "not a time from 10ms to 10s" },
        { "Broker", "RealtimeKitRTTime", { NULL }, { "", "200", "infinity", "200000" },
          "not a number with a unit: us, ms, s, min or h" },
        { "Broker", "RealtimeKitRTTimeUnset", { "refuse", "accept" },
          { "", "yes", "no", "Accept" }, "neither accept nor refuse" },
        { "Role r", "PolkitAction",
          { "", "a.b", "org.rtgrant.realtime-high",
            "org.freedesktop.RealtimeKit1.acquire-real-time", DOTTED_120 },
          { "realtime", "org.rtgrant.real_time", "org rtgrant", "a.b c.d", "org/rtgrant.x", "*.x",
            "\xc3\xa4.b" },
          "not an action of polkit: letters, digits, - and at least one dot, at most 120 bytes" },
        { "Role r", "Policy", { "fifo", "rr other", "any", "other\tfifo  rr", "fifo fifo" },
          { "", "FIFO", "deadline", "fifo,rr", "fifo batch" },
          "not fifo, rr and other (blanks between), nor any" },
        { "Role r", "Priority", { "1", "94", "1-94", "20-20", "none" },
          { "", "0", "95", "0-5", "1-95", "5-4", "-5", "5-", "1-2-3", "1 - 5", "all", "1..5" },
          "not LOW-HIGH, LOW <= HIGH, nor one number, from 1 to 94, nor none" },
        { "Role r", "Nice", { "-20", "0", "-1" }, { "", "-21", "1", "19", "low", "-5-1" },
          "not a number from -20 to 0" },
        { "Role r", "LifetimeMax", { "1s", "8760h", "5000ms", "90min" },
          { "0s", "8761h", "1500ms", "999ms" }, "not a time from 1s to 8760h in whole seconds" },
        { "Role r", "ThreadsPerUser", { "1", "1000000" }, { "0", "1000001" },
          "not a number from 1 to 1000000" },
        { "Role r", "AllowUsers", { "", "*", "0", "4294967294", "root 7", "* root" },
          { "root,daemon", "," }, "names are separated by blanks, not by commas" },
        { "Role r", "DenyGroups", { "", "*", "root" }, { "root, daemon" },
          "names are separated by blanks, not by commas" },
};

static struct policy_entry find_entry(const struct policy_store *store, const char *section,
                                      const char *key) {
        struct policy_entry entry;

        for (size_t i = 0; policy_store_entry(store, i, &entry); i++)
                if (strcmp(entry.section, section) == 0 && strcmp(entry.key, key) == 0)
                        return entry;

        fail_msg("no %s in %s", key, section);
        return entry;
}

static void check_good_value(const struct value_case *c, const char *value) {
        struct policy_store *store = NULL;
        struct policy_entry entry;
        char text[512];

        snprintf(text, sizeof(text), "[Role first]\n[%s]\n%s = %s\t \n%s", c->section, c->key,
                 value, strcmp(c->section, "Broker") == 0 ? R : "");
        assert_int_equal(policy_store_parse("p", text, strlen(text), &store, NULL), 0);

        entry = find_entry(store, c->section, c->key);
        assert_string_equal(entry.value, value);
        assert_string_equal(entry.rule.file, "p");
        assert_int_equal(entry.rule.line, 3);
        policy_store_free(store);
}

static void check_bad_value(const struct value_case *c, const char *value) {
        struct policy_store *store = NULL;
        char text[512], expected[512], *messages = NULL;

        snprintf(text, sizeof(text), "[%s]\n%s=%s\n", c->section, c->key, value);
        snprintf(expected, sizeof(expected), "p:2: %s=%s: %s\n", c->key, value, c->expected);
        assert_int_equal(policy_store_parse("p", text, strlen(text), &store, &messages), -EINVAL);
        assert_string_equal(messages, expected);
        assert_null(store);
        free(messages);
}

static void test_values(void **state) {
        const struct value_case *c = *state;

        for (size_t i = 0; i < ELEMENTS(c->good) && c->good[i]; i++)
                check_good_value(c, c->good[i]);
        for (size_t i = 0; i < ELEMENTS(c->bad) && c->bad[i]; i++)
                check_bad_value(c, c->bad[i]);
}

static void test_defaults(void **state) {
        struct policy_store *store = parse("[Role first]\n[Role second]\n");
        const struct policy *p = &store->policy;
        const struct role *role = &p->roles[1];

        assert_int_equal(p->n_roles, 2);
        assert_int_equal(p->default_role, 0);
        assert_int_equal(p->threads_max, 4096);
        assert_int_equal(p->threads_per_user_max, 256);
        assert_int_equal(p->connections_max, 2048);
        assert_int_equal(p->connections_per_user_max, 64);
        assert_int_equal(p->grant_burst, 64);
        assert_int_equal(p->grant_refill_ms, 200);
        assert_int_equal(p->message_burst, 2000);
        assert_int_equal(p->message_refill_us, 1000);
        assert_false(p->user_namespaces);
        assert_int_equal(p->log_level, -1);
        assert_false(p->ask_polkit);
        assert_int_equal(p->realtimekit_role, 0);
        assert_int_equal(p->realtimekit_policy, SCHED_RR);
        assert_int_equal(p->realtimekit_rttime_us, 200000);
        assert_false(p->realtimekit_rttime_unset);
        assert_false(p->observe_groups.everybody || p->observe_groups.n_ids > 0);
        for (size_t i = 0; i < _BROKER_KEY_MAX; i++)
                assert_null(p->rules[i].file);

        assert_string_equal(role->name, "second");
        assert_string_equal(role->description, "");
        assert_int_equal(role->policies, 1 << SCHED_FIFO | 1 << SCHED_RR | 1 << SCHED_OTHER);
        assert_int_equal(role->priority_min, 0);
        assert_int_equal(role->priority_max, 0);
        assert_int_equal(role->nice_min, 0);
        assert_int_equal(role->threads_per_user_max, 64);
        assert_int_equal(role->lifetime_s_max, 3600);
        assert_false(role->allow_users.everybody || role->allow_groups.everybody);
        assert_int_equal(role->allow_users.n_ids + role->allow_groups.n_ids, 0);
        assert_int_equal(role->deny_users.n_ids + role->deny_groups.n_ids, 0);
        assert_string_equal(role->action, "");
        policy_store_free(store);
}

static void test_every_key_arrives(void **state) {
        struct policy_store *store = parse(
                "[Broker]\r\nDefaultRole=b\r\nThreadsMax=11\r\nThreadsPerUser=12\r\n"
                "ConnectionsMax=13\r\nConnectionsPerUser=14\r\n"
                "GrantBurst=15\r\nGrantRefill=16ms\r\nMessageBurst=17\r\nMessageRefill=18us\r\n"
                "UserNamespaces=yes\r\nReserveCPU=21%\r\nCPUPerUser=22%\r\nBackOff=23s\r\nBackOffMax=24min\r\nLogLevel=debug\r\nAuthority=polkit\r\n"
                "RealtimeKitRole=a\r\nRealtimeKitPolicy=fifo\r\nRealtimeKitRTTime=19ms\r\n"
                "RealtimeKitRTTimeUnset=accept\r\nMemlockMax=64M\r\n"
                "SystemThreadsPerUser=20\r\nObserveGroups=root 9\r\n"
                "  [Role a]  \r\nPriority=90\r\n"
                "[Role b]\r\n\tDescription =\t Gr\xc3\xbc\xc3\x9f Gott \r\nPolicy=rr\tother\r\n"
                "Priority=21-42\r\nNice=-13\r\nThreadsPerUser=5\r\nLifetimeMax=2min\r\n"
                "RunMax=61ms\r\nCPUMax=62%\r\nCPUWindow=630ms\r\n"
                "AllowUsers=root 7\r\nAllowGroups=*\r\nDenyUsers=8 9 *\r\nDenyGroups=root\r\n"
                "PolkitAction=org.example.b\r\nMemlock=3M\r\nMemlockPerUser=1G\r\n"
                "CpuLatency=10us\r\nCpuLatencyOnBattery=no\r\nBlockQueue=64-512\r\n"
                "BlockRequests=32\r\nBlockScheduler=bfq\r\n"
                "IrqPriority=86-90\r\nIrqDevices= sound  irq:24\tnet:eth0\r\n"
                "IrqAffinity=1,3-4\r\n"
                "AllowSessions=active none\r\nUnits=x.service y*\r\nExecutables=jackd\r\n"
                "Below=a\r\nPriorityByPeriod=yes\r\nDeclaredCPU=40%\r\nRTTime=keep\r\n"
                "[Irq c]\r\nDevice=irq/25-ACPI:Ged\r\nPriority=77\r\nAffinity=0\r");
        const struct policy *p = &store->policy;
        const struct role *role = &p->roles[1];

        assert_int_equal(p->default_role, 1);
        assert_int_equal(p->threads_max, 11);
        assert_int_equal(p->threads_per_user_max, 12);
        assert_int_equal(p->connections_max, 13);
        assert_int_equal(p->connections_per_user_max, 14);
        assert_int_equal(p->grant_burst, 15);
        assert_int_equal(p->grant_refill_ms, 16);
        assert_int_equal(p->message_burst, 17);
        assert_int_equal(p->message_refill_us, 18);
        assert_true(p->user_namespaces);
        assert_int_equal(p->reserve_cpu_percent, 21);
        assert_int_equal(p->system_threads_per_user_max, 20);
        assert_int_equal(p->cpu_per_user_percent_max, 22);
        assert_int_equal(p->back_off_ms, 23000);
        assert_int_equal(p->back_off_ms_max, 24 * 60000);
        assert_int_equal(p->log_level, LOG_DEBUG);
        assert_true(p->ask_polkit);
        assert_int_equal(p->realtimekit_role, 0);
        assert_int_equal(p->realtimekit_policy, SCHED_FIFO);
        assert_int_equal(p->realtimekit_rttime_us, 19000);
        assert_true(p->realtimekit_rttime_unset);
        assert_int_equal(p->memlock_max, 64 << 20);
        assert_int_equal(p->observe_groups.n_ids, 2);
        assert_int_equal(p->observe_groups.ids[1], 9);
        for (unsigned i = 0; i < _BROKER_KEY_MAX; i++)
                assert_int_equal(p->rules[i].line, 2 + i);

        assert_string_equal(role->description, "Gr\xc3\xbc\xc3\x9f Gott");
        assert_int_equal(role->policies, 1 << SCHED_RR | 1 << SCHED_OTHER);
        assert_int_equal(role->priority_min, 21);
        assert_int_equal(role->priority_max, 42);
        assert_int_equal(role->nice_min, -13);
        assert_int_equal(role->threads_per_user_max, 5);
        assert_int_equal(role->lifetime_s_max, 120);
        assert_int_equal(role->run_us_max, 61000);
        assert_int_equal(role->cpu_percent_max, 62);
        assert_int_equal(role->cpu_window_us, 630000);
        assert_int_equal(role->allow_users.n_ids, 2);
        assert_int_equal(role->allow_users.ids[0], 0);
        assert_int_equal(role->allow_users.ids[1], 7);
        assert_true(role->allow_groups.everybody);
        assert_true(role->deny_users.everybody);
        assert_int_equal(role->deny_users.n_ids, 2);
        assert_int_equal(role->deny_groups.n_ids, 1);
        assert_int_equal(role->deny_groups.ids[0], 0);
        assert_string_equal(role->action, "org.example.b");
        assert_true(role->resources[RESOURCE_MEMLOCK].given);
        assert_int_equal(role->resources[RESOURCE_MEMLOCK].high, 3 << 20);
        assert_int_equal(role->memlock_per_user_max, 1 << 30);
        assert_true(role->resources[RESOURCE_CPU_LATENCY].given);
        assert_int_equal(role->resources[RESOURCE_CPU_LATENCY].low, 10);
        assert_false(role->cpu_latency_on_battery);
        assert_true(role->resources[RESOURCE_BLOCK_QUEUE].given);
        assert_int_equal(role->resources[RESOURCE_BLOCK_QUEUE].low, 64);
        assert_int_equal(role->resources[RESOURCE_BLOCK_QUEUE].high, 512);
        assert_int_equal(role->block_requests, 32);
        assert_string_equal(role->block_scheduler, "bfq");
        assert_true(role->resources[RESOURCE_IRQ].given);
        assert_int_equal(role->resources[RESOURCE_IRQ].low, 86);
        assert_int_equal(role->resources[RESOURCE_IRQ].high, 90);
        assert_int_equal(role->n_irq_devices, 3);
        assert_string_equal(role->irq_devices[0], "sound");
        assert_string_equal(role->irq_devices[1], "irq:24");
        assert_string_equal(role->irq_devices[2], "net:eth0");
        assert_int_equal(role->irq_affinity.bits[0], 1 << 1 | 1 << 3 | 1 << 4);
        assert_int_equal(role->sessions, 1 << SESSION_ACTIVE | 1 << SESSION_NONE);
        assert_int_equal(role->units.n_words, 2);
        assert_string_equal(role->units.words[1], "y*");
        assert_string_equal(role->executables.words[0], "jackd");
        assert_string_equal(role->below.words[0], "a");
        assert_true(role->priority_by_period);
        assert_int_equal(role->declared_cpu_percent, 40);
        assert_int_equal(role->rttime, RTTIME_KEEP);
        for (unsigned i = 0; i < _ROLE_KEY_MAX; i++)
                assert_int_equal(role->rules[i].line, _BROKER_KEY_MAX + 5 + i);

        assert_int_equal(p->n_irqs, 1);
        assert_string_equal(p->irqs[0].name, "c");
        assert_string_equal(p->irqs[0].device, "irq/25-ACPI:Ged");
        assert_int_equal(p->irqs[0].priority, 77);
        assert_int_equal(p->irqs[0].affinity.bits[0], 1);
        policy_store_free(store);
}

/* Without RealtimeKitRole= its clients get the default role, whatever file names that. */
static void test_role_of_realtimekit(void **state) {
        struct policy_store *store = parse("[Broker]\nDefaultRole=b\n[Role a]\n[Role b]\n");

        assert_int_equal(store->policy.realtimekit_role, 1);
        assert_string_equal(find_entry(store, "Broker", "RealtimeKitRole").value, "b");
        policy_store_free(store);
}

static void test_entries(void **state) {
        struct policy_store *store = parse("[Role a]\nNice=-5\n[Role b]\n");
        struct policy_entry entry;
        size_t n = 0;

        while (policy_store_entry(store, n, &entry)) {
                assert_non_null(entry.value);
                assert_int_equal(entry.rule.file == NULL, entry.rule.line == 0);
                n++;
        }
        assert_int_equal(n, _BROKER_KEY_MAX + 2 * _ROLE_KEY_MAX);
        assert_false(policy_store_entry(store, SIZE_MAX, &entry));

        assert_true(policy_store_entry(store, 0, &entry));
        assert_string_equal(entry.section, "Broker");
        assert_string_equal(entry.key, "DefaultRole");
        assert_string_equal(entry.value, "a");
        assert_null(entry.rule.file);

        entry = find_entry(store, "Role a", "Nice");
        assert_string_equal(entry.value, "-5");
        assert_int_equal(entry.rule.line, 2);
        assert_string_equal(find_entry(store, "Role b", "Nice").value, "0");
        assert_string_equal(find_entry(store, "Role b", "Priority").value, "none");
        policy_store_free(store);
}

#define N_TABLES ELEMENTS(value_cases)

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_every_key_arrives),
                cmocka_unit_test(test_role_of_realtimekit),
                cmocka_unit_test(test_entries),
        };
        struct CMUnitTest tests[N_TABLES + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(value_cases); i++)
                tests[n++] = row(value_cases[i].key, test_values, &value_cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("policy-file", tests, NULL, NULL);
}
