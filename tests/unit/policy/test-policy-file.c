/* SPDX-License-Identifier: MIT */

/* What the reader makes of one text, and what it says. Files and layers: test-policy-layers.c. */

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <cmocka.h>

#include "policy/policy-file.h"

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* A role to go with what is about [Broker]; one line. */
#define R "[Role r]\n"
#define DOTTED_12 "org.example."
#define DOTTED_120                                                                                \
        DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 DOTTED_12 \
        "org.example2"
#define NAME_31 "abcdefghijklmnopqrstuvwxyz01_-Z"

struct fault_case {
        const char *name;
        const char *text;
        const char *messages;
        size_t length;          /* 0: strlen(text) */
};

static const struct fault_case fault_cases[] = {
        /* lines */
        { "no role", "", "p: there is no [Role NAME]\n" },
        { "no role but comments", "# nothing\n\n", "p: there is no [Role NAME]\n" },
        { "neither section nor key", R "\n  rubbish  \n",
          "p:3: neither [Section], Key=Value nor # comment\n" },
        { "foreign comment", R "; aside\n", "p:2: not a comment: those begin with #\n" },
        { "no key", R "=5\n", "p:2: no key before the =\n" },
        { "open section", "[Role r\n", "p:1: a section without its ]\n" },
        { "text after a section", R "[Broker] x\n", "p:2: text after the ] of a section\n" },
        { "key before any section", "ThreadsMax=5\n" R,
          "p:1: ThreadsMax= stands before any [Section]\n" },
        { "NUL", R "Nice=0\0\n", "p:2: a NUL byte\n", sizeof(R "Nice=0\0\n") - 1 },
        { "NUL in a comment", R "#\0\n", "p:2: a NUL byte\n", sizeof(R "#\0\n") - 1 },
        { "escape character", R "Description=\x1b[31m\n", "p:2: a control character\n" },
        { "delete character", R "Description=\x7f\n", "p:2: a control character\n" },
        { "carriage return within a line", R "Nice=0\rNice=-1\n", "p:2: a control character\n" },
        { "not UTF-8", R "Description=gr\xfcn\n", "p:2: not valid UTF-8\n" },
        { "not UTF-8 in a comment", "# gr\xfcn\n" R, "p:1: not valid UTF-8\n" },
        { "byte order mark", "\xef\xbb\xbf" R,
          "p:1: neither [Section], Key=Value nor # comment\n" },

        /* sections and keys */
        { "unknown section", "[Other]\nThreadsMax=1\n" R,
          "p:1: unknown section [Other]: there are [Broker], [Role NAME] and [Irq NAME]\n" },
        { "section much like another", "[broker]\n" R,
          "p:1: unknown section [broker], did you mean [Broker]?\n" },
        { "role without a name", "[Role]\n" R,
          "p:1: unknown section [Role], did you mean [Role NAME]?\n" },
        { "role of another case", "[role x]\n" R,
          "p:1: unknown section [role x], did you mean [Role NAME]?\n" },
        { "empty section", "[]\n" R,
          "p:1: unknown section []: there are [Broker], [Role NAME] and [Irq NAME]\n" },
        { "blank in a section", "[ Broker ]\n" R,
          "p:1: unknown section [ Broker ], did you mean [Broker]?\n" },
        { "empty role name", "[Role ]\n" R,
          "p:1: [Role ]: the name of a role is 1 to 31 of A-Z a-z 0-9 _ -\n" },
        { "two blanks before the name", "[Role  x]\n" R,
          "p:1: [Role  x]: the name of a role is 1 to 31 of A-Z a-z 0-9 _ -\n" },
        { "role name of 32", "[Role " NAME_31 "x]\n" R,
          "p:1: [Role " NAME_31 "x]: the name of a role is 1 to 31 of A-Z a-z 0-9 _ -\n" },
        { "role name with a dot", "[Role a.b]\n" R,
          "p:1: [Role a.b]: the name of a role is 1 to 31 of A-Z a-z 0-9 _ -\n" },
        { "irq priority of nobody", R "IrqPriority=95\n",
          "p:2: IrqPriority=95: not LOW-HIGH, LOW <= HIGH, nor one number, from 1 to 94, nor none\n" },
        { "irq devices of no kind", R "IrqDevices=sound disk\n",
          "p:2: IrqDevices=disk: neither sound nor one of card:N, card:ID, pci:SLOT, usb:BUS-PORT, "
          "net:INTERFACE, irq:N, irq/N-NAME\n" },
        { "irq like another", R "[irq x]\n", "p:2: unknown section [irq x], did you mean [Irq NAME]?\n" },
        { "irq without a name", R "[Irq ]\nDevice=card:0\n",
          "p:2: [Irq ]: the name of an irq is 1 to 31 of A-Z a-z 0-9 _ -\n" },
        { "irq without a device", R "[Irq a]\n", "p: [Irq a] has no Device=\n" },
        { "irq with a priority alone", R "[Irq a]\nPriority=80\n", "p:3: [Irq a] has no Device=\n" },
        { "irq of no device", R "[Irq a]\nDevice=sound\n",
          "p:3: Device=sound: not one of card:N, card:ID, pci:SLOT, usb:BUS-PORT, net:INTERFACE, "
          "irq:N, irq/N-NAME\n" },
        { "irq of two devices", R "[Irq a]\nDevice=card:0 card:1\n",
          "p:3: Device=card:0 card:1: not one of card:N, card:ID, pci:SLOT, usb:BUS-PORT, "
          "net:INTERFACE, irq:N, irq/N-NAME\n" },
        { "irq too high", R "[Irq a]\nDevice=card:0\nPriority=95\n",
          "p:4: Priority=95: not a number from 1 to 94\n" },
        { "irq with a role's key", R "[Irq a]\nDevice=card:0\nNice=-1\n",
          "p:4: Nice= is a key of [Role NAME], not of [Irq a]\n" },
        { "section twice", R "[Broker]\n" R "Nice=-1\n", "p:3: [Role r] is at line 1 already\n" },
        { "key twice", R "Nice=-1\nNice=-1\n", "p:3: Nice= is at line 2 already\n" },
        { "key twice in a section twice", R "Nice=-1\n" R "Nice=-1\n",
          "p:3: [Role r] is at line 1 already\np:4: Nice= is at line 2 already\n" },
        { "key with a typing error", R "Priorty=1\n",
          "p:2: unknown key Priorty= in [Role r], did you mean Priority=?\n" },
        { "key of another case", "[Broker]\nthreadsperuser=1\n" R,
          "p:2: unknown key threadsperuser= in [Broker], did you mean ThreadsPerUser=?\n" },
        { "key like no other", R "Wibble=1\n", "p:2: unknown key Wibble= in [Role r]\n" },
        { "very long key",
          R "ThisKeyIsLongerThanAnyoneWouldEverWantToReadInAMessageOnATerminal=1\n",
          "p:2: unknown key ThisKeyIsLongerThanAnyoneWouldEverWantToReadInAMessageOnATer...= "
          "in [Role r]\n" },
        { "key of a translation", R "Description[de]=x\n",
          "p:2: unknown key Description[de]= in [Role r], did you mean Description=?\n" },
        { "key that GKeyFile itself takes for its own", R "Encoding=latin1\n",
          "p:2: unknown key Encoding= in [Role r]\n" },
        { "key of the broker in a role", R "GrantBurst=5\n",
          "p:2: GrantBurst= is a key of [Broker], not of [Role r]\n" },
        { "key of a role in the broker", "[Broker]\nNice=5\n" R,
          "p:2: Nice= is a key of [Role NAME], not of [Broker]\n" },
        { "17 roles",
          "[Role 1]\n[Role 2]\n[Role 3]\n[Role 4]\n[Role 5]\n[Role 6]\n[Role 7]\n[Role 8]\n"
          "[Role 9]\n[Role 10]\n[Role 11]\n[Role 12]\n[Role 13]\n[Role 14]\n[Role 15]\n"
          "[Role 16]\n[Role 17]\n[Role 16]\n",
          "p:17: [Role 17]: more than 16 roles\np:18: [Role 16] is at line 16 already\n" },
        { "default role that is not there", "[Broker]\nDefaultRole=desktpo\n[Role desktop]\n",
          "p:2: DefaultRole=desktpo: there is no [Role desktpo], did you mean desktop?\n" },
        { "default role like no other", "[Broker]\nDefaultRole=x\n[Role desktop]\n",
          "p:2: DefaultRole=x: there is no [Role x]\n" },
        { "default role that is no name", "[Broker]\nDefaultRole=a b\n" R,
          "p:2: DefaultRole=a b: not the name of a role\n" },

        { "action of 121 bytes", R "PolkitAction=" DOTTED_120 "x\n",
          "p:2: PolkitAction=org.example.org.example.org.example.org.example.org.example....: "
          "not an action of polkit: letters, digits, - and at least one dot, at most 120 bytes\n" },
        { "role of RealtimeKit that is not there",
          "[Broker]\nRealtimeKitRole=destkop\n[Role desktop]\n",
          "p:2: RealtimeKitRole=destkop: there is no [Role destkop], did you mean desktop?\n" },

        /* everything at once, in the order of lines */
        { "all faults", "Nice=1\n[Brker]\nX=1\n[Broker]\nThreadsMax=0\nrubbish\n[Role r]\n"
          "Nice=1\nPriority=9-1\nFoo=1\nNice=0\n",
          "p:1: Nice= stands before any [Section]\n"
          "p:2: unknown section [Brker], did you mean [Broker]?\n"
          "p:5: ThreadsMax=0: not a number from 1 to 1000000\n"
          "p:6: neither [Section], Key=Value nor # comment\n"
          "p:8: Nice=1: not a number from -20 to 0\n"
          "p:9: Priority=9-1: not LOW-HIGH, LOW <= HIGH, nor one number, from 1 to 94, nor none\n"
          "p:10: unknown key Foo= in [Role r]\n"
          "p:11: Nice= is at line 8 already\n" },
};

static struct policy_store *parse(const char *text) {
        struct policy_store *store = NULL;
        char *messages = NULL;
        int r;

        r = policy_store_parse("p", text, strlen(text), &store, &messages);
        if (r < 0)
                print_error("%s", messages);
        assert_int_equal(r, 0);
        assert_string_equal(messages, "");
        free(messages);
        return store;
}

static void test_fault(void **state) {
        const struct fault_case *c = *state;
        struct policy_store *store = NULL;
        char *messages = NULL;
        int r;

        r = policy_store_parse("p", c->text, c->length > 0 ? c->length : strlen(c->text), &store,
                               &messages);
        assert_string_equal(messages, c->messages);
        assert_int_equal(r, -EINVAL);
        assert_null(store);
        free(messages);
}

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

struct warning_case {
        const char *name;
        const char *text;
        const char *messages;
};

static const struct warning_case warning_cases[] = {
        { "unknown user", R "AllowUsers=root no-such-user\n",
          "p:2: warning: AllowUsers=: no user is named no-such-user, ignoring it\n" },
        { "unknown group", R "DenyGroups=no-such-group\n",
          "p:2: warning: DenyGroups=: no group is named no-such-group, ignoring it\n" },
        { "a minus is no number", R "DenyUsers=-1\n",
          "p:2: warning: DenyUsers=: no user is named -1, ignoring it\n" },
        { "bands overlap", "[Role a]\nPriority=1-20\n[Role b]\nPriority=20-30\n",
          "p:4: warning: the priorities of [Role b], 20 to 30, overlap those of [Role a], "
          "1 to 20 (p:2)\n" },
        { "bands that touch do not", "[Role a]\nPriority=1-20\n[Role b]\nPriority=21-30\n", "" },
        { "no bands do not", "[Role a]\n[Role b]\n[Role c]\nPriority=none\n", "" },
        { "a band of no use", R "Policy=other\nPriority=5\n",
          "p:3: warning: Priority= is of no use: Policy= of [Role r] has no fifo and no rr\n" },
        { "real-time without a band", R "Policy=rr\n",
          "p:2: warning: [Role r] gives no real-time priority: it has no Priority=\n" },
        { "a role of no use to RealtimeKit", "[Broker]\nRealtimeKitRole=r\n" R,
          "p:2: warning: RealtimeKitRole=r gives RealtimeKit's clients only nice: the role has no "
          "priorities by RealtimeKitPolicy=rr\n" },
        { "a role of another policy than RealtimeKit's",
          "[Broker]\nRealtimeKitRole=r\nRealtimeKitPolicy=fifo\n" R "Policy=rr\nPriority=5\n",
          "p:2: warning: RealtimeKitRole=r gives RealtimeKit's clients only nice: the role has no "
          "priorities by RealtimeKitPolicy=fifo\n" },
        { "a role of use to RealtimeKit",
          "[Broker]\nRealtimeKitRole=r\n" R "Policy=rr\nPriority=5\n", "" },
        { "a default role of no use to RealtimeKit", R "Policy=fifo\nPriority=5\n", "" },
};

static void test_warning(void **state) {
        const struct warning_case *c = *state;
        struct policy_store *store = NULL;
        char *messages = NULL;

        assert_int_equal(policy_store_parse("p", c->text, strlen(c->text), &store, &messages), 0);
        assert_string_equal(messages, c->messages);
        free(messages);
        policy_store_free(store);
}

static void assert_fault(const char *text, size_t length, const char *expected) {
        struct policy_store *store = NULL;
        char *messages = NULL;

        assert_int_equal(policy_store_parse("p", text, length, &store, &messages), -EINVAL);
        assert_string_equal(messages, expected);
        free(messages);
}

static void test_ids_out_of_range(void **state) {
        static const char users[] = R "AllowUsers=4294967294 4294967295\n";
        static const char groups[] = R "DenyGroups=99999999999999999999 5\n";

        assert_fault(users, strlen(users),
                     "p:2: AllowUsers=: 4294967295 is not a user id, 0 to 4294967294\n");
        assert_fault(groups, strlen(groups),
                     "p:2: DenyGroups=: 99999999999999999999 is not a group id, 0 to 4294967294\n");
}

static void test_a_comment_behind_a_value(void **state) {
        static const char text[] = R "Nice=-5 # strong\nAllowUsers=root # me\n";

        assert_fault(text, strlen(text),
                     "p:2: Nice=-5 # strong: not a number from -20 to 0; "
                     "a comment needs a line of its own\n"
                     "p:3: AllowUsers=root # me: not a list of names; "
                     "a comment needs a line of its own\n");
}

static void test_too_many_names(void **state) {
        enum { MAX = 1024 };
        static char text[64 + 2 * (MAX + 1)];
        struct policy_store *store = NULL;
        size_t n = (size_t) snprintf(text, sizeof(text), R "AllowUsers=");

        for (int i = 0; i < MAX; i++, n += 2)
                snprintf(text + n, sizeof(text) - n, "5 ");
        assert_int_equal(policy_store_parse("p", text, n, &store, NULL), 0);
        assert_int_equal(store->policy.roles[0].allow_users.n_ids, MAX);
        policy_store_free(store);

        snprintf(text + n, sizeof(text) - n, "5 ");
        assert_fault(text, n + 2, "p:2: AllowUsers=: more than 1024 names; use a group\n");
}

static void test_a_very_long_name(void **state) {
        static char text[512];
        struct policy_store *store = NULL;
        char *messages = NULL;
        size_t n = (size_t) snprintf(text, sizeof(text), R "AllowUsers=");

        memset(text + n, 'x', 300);
        assert_int_equal(policy_store_parse("p", text, n + 300, &store, &messages), 0);
        assert_non_null(strstr(messages, "p:2: warning: AllowUsers=: no user is named xxx"));
        assert_int_equal(store->policy.roles[0].allow_users.n_ids, 0);
        free(messages);
        policy_store_free(store);
}

static void test_an_unfinished_last_line(void **state) {
        static const char *const texts[] = { "[Role r]", "[Role r]\r", "[Role r]\r\nNice=-1",
                                             "[Role r]\n#", "[Role r]\n ", "[Role r] \t" };

        for (size_t i = 0; i < ELEMENTS(texts); i++)
                policy_store_free(parse(texts[i]));
}

static void test_size_limit(void **state) {
        enum { MAX = 1024 * 1024 };
        char *text = malloc(MAX + 1);
        struct policy_store *store = NULL;

        assert_non_null(text);
        memset(text, '\n', MAX + 1);
        for (size_t i = 0; i < strlen(R); i++)
                text[i] = R[i];

        assert_int_equal(policy_store_parse("p", text, MAX, &store, NULL), 0);
        policy_store_free(store);
        assert_fault(text, MAX + 1, "p: is larger than 1048576 bytes\n");
        free(text);
}

static void test_messages_are_bounded(void **state) {
        const size_t length = 200000;
        char *text = malloc(length), *messages = NULL, *more;
        struct policy_store *store = NULL;
        size_t n_lines = 0;

        assert_non_null(text);
        for (size_t i = 0; i < length; i++)
                text[i] = i % 2 == 0 ? 'x' : '\n';

        assert_int_equal(policy_store_parse("p", text, length, &store, &messages), -EINVAL);
        for (const char *s = messages; *s; s++)
                n_lines += *s == '\n';
        assert_int_equal(n_lines, 101);
        more = strstr(messages, "and ");
        assert_non_null(more);
        assert_string_equal(more, "and 99900 more\n");

        free(messages);
        free(text);
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
                "SystemThreadsPerUser=20\r\n"
                "  [Role a]  \r\nPriority=90\r\n"
                "[Role b]\r\n\tDescription =\t Gr\xc3\xbc\xc3\x9f Gott \r\nPolicy=rr\tother\r\n"
                "Priority=21-42\r\nNice=-13\r\nThreadsPerUser=5\r\nLifetimeMax=2min\r\n"
                "RunMax=61ms\r\nCPUMax=62%\r\nCPUWindow=630ms\r\n"
                "AllowUsers=root 7\r\nAllowGroups=*\r\nDenyUsers=8 9 *\r\nDenyGroups=root\r\n"
                "PolkitAction=org.example.b\r\nMemlock=3M\r\nMemlockPerUser=1G\r\n"
                "CpuLatency=10us\r\nCpuLatencyOnBattery=no\r\nBlockQueue=64-512\r\n"
                "IrqPriority=86-90\r\nIrqDevices= sound  irq:24\tnet:eth0\r\n"
                "AllowSessions=active none\r\nUnits=x.service y*\r\nExecutables=jackd\r\n"
                "Below=a\r\nPriorityByPeriod=yes\r\nDeclaredCPU=40%\r\n"
                "[Irq c]\r\nDevice=irq/25-ACPI:Ged\r\nPriority=77\r");
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
        assert_true(role->resources[RESOURCE_IRQ].given);
        assert_int_equal(role->resources[RESOURCE_IRQ].low, 86);
        assert_int_equal(role->resources[RESOURCE_IRQ].high, 90);
        assert_int_equal(role->n_irq_devices, 3);
        assert_string_equal(role->irq_devices[0], "sound");
        assert_string_equal(role->irq_devices[1], "irq:24");
        assert_string_equal(role->irq_devices[2], "net:eth0");
        assert_int_equal(role->sessions, 1 << SESSION_ACTIVE | 1 << SESSION_NONE);
        assert_int_equal(role->units.n_words, 2);
        assert_string_equal(role->units.words[1], "y*");
        assert_string_equal(role->executables.words[0], "jackd");
        assert_string_equal(role->below.words[0], "a");
        assert_true(role->priority_by_period);
        assert_int_equal(role->declared_cpu_percent, 40);
        for (unsigned i = 0; i < _ROLE_KEY_MAX; i++)
                assert_int_equal(role->rules[i].line, _BROKER_KEY_MAX + 5 + i);

        assert_int_equal(p->n_irqs, 1);
        assert_string_equal(p->irqs[0].name, "c");
        assert_string_equal(p->irqs[0].device, "irq/25-ACPI:Ged");
        assert_int_equal(p->irqs[0].priority, 77);
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

#define N_TABLES (ELEMENTS(fault_cases) + ELEMENTS(value_cases) + ELEMENTS(warning_cases))

static struct CMUnitTest row(const char *name, CMUnitTestFunction function, const void *state) {
        return (struct CMUnitTest) {
                .name = name,
                .test_func = function,
                .initial_state = (void *) state,
        };
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_ids_out_of_range),
                cmocka_unit_test(test_a_comment_behind_a_value),
                cmocka_unit_test(test_too_many_names),
                cmocka_unit_test(test_a_very_long_name),
                cmocka_unit_test(test_an_unfinished_last_line),
                cmocka_unit_test(test_size_limit),
                cmocka_unit_test(test_messages_are_bounded),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_every_key_arrives),
                cmocka_unit_test(test_role_of_realtimekit),
                cmocka_unit_test(test_entries),
        };
        struct CMUnitTest tests[N_TABLES + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(fault_cases); i++)
                tests[n++] = row(fault_cases[i].name, test_fault, &fault_cases[i]);
        for (size_t i = 0; i < ELEMENTS(value_cases); i++)
                tests[n++] = row(value_cases[i].key, test_values, &value_cases[i]);
        for (size_t i = 0; i < ELEMENTS(warning_cases); i++)
                tests[n++] = row(warning_cases[i].name, test_warning, &warning_cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("policy-file", tests, NULL, NULL);
}
