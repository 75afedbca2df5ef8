/* SPDX-License-Identifier: MIT */

/* What the reader says of one text with faults, and how much it takes. */

#include "tests/unit/policy/policy-text.h"

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
        { "block requests that the kernel has none of", R "BlockRequests=3\n",
          "p:2: BlockRequests=3: not a number from 4 to 65536\n" },
        { "block scheduler that is a path", R "BlockScheduler=../x\n",
          "p:2: BlockScheduler=../x: not the name of a scheduler, as in mq-deadline\n" },
        { "irq affinity of no CPU", R "IrqAffinity=1,\n",
          "p:2: IrqAffinity=1,: not CPUs as in 0-2,5, from 0 to 1023, nor none\n" },
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

#define N_TABLES (ELEMENTS(fault_cases) + ELEMENTS(warning_cases))

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_ids_out_of_range),
                cmocka_unit_test(test_a_comment_behind_a_value),
                cmocka_unit_test(test_too_many_names),
                cmocka_unit_test(test_a_very_long_name),
                cmocka_unit_test(test_an_unfinished_last_line),
                cmocka_unit_test(test_size_limit),
                cmocka_unit_test(test_messages_are_bounded),
        };
        struct CMUnitTest tests[N_TABLES + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(fault_cases); i++)
                tests[n++] = row(fault_cases[i].name, test_fault, &fault_cases[i]);
        for (size_t i = 0; i < ELEMENTS(warning_cases); i++)
                tests[n++] = row(warning_cases[i].name, test_warning, &warning_cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("policy-faults", tests, NULL, NULL);
}
