/* SPDX-License-Identifier: MIT */

/* What feeds the machine, as sysfs of different machines has it. */

#include "broker/kinds/resources.h"
#include "tests/unit/broker/broker-test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct supply {
        const char *name;
        const char *type;
        const char *online;     /* NULL: no such attribute */
        const char *scope;
};

struct power_case {
        const char *name;
        struct supply supplies[4];
        bool battery;
};

static const struct power_case cases[] = {
        { "a desktop: none at all", {}, false },
        { "a laptop, plugged in",
          { { "AC", "Mains", "1", NULL }, { "BAT0", "Battery", NULL, NULL } }, false },
        { "a laptop, not plugged in",
          { { "AC", "Mains", "0", NULL }, { "BAT0", "Battery", NULL, NULL } }, true },
        { "charged by USB",
          { { "AC", "Mains", "0", NULL }, { "ucsi", "USB", "1", NULL },
            { "BAT0", "Battery", NULL, "System" } }, false },
        { "two batteries, neither fed",
          { { "BAT0", "Battery", NULL, NULL }, { "BAT1", "Battery", NULL, NULL } }, true },
        { "a desktop with a mouse", { { "hidpp", "Battery", "1", "Device" } }, false },
        { "a desktop and a mouse, mains known",
          { { "AC", "Mains", "1", NULL }, { "hidpp", "Battery", NULL, "Device" } }, false },
};

static void put(const char *dir, const char *name, const char *attribute, const char *value) {
        char path[256];
        FILE *file;

        if (!value)
                return;
        (void) snprintf(path, sizeof(path), "%s/%s/%s", dir, name, attribute);
        file = fopen(path, "we");
        assert_non_null(file);
        fprintf(file, "%s\n", value);
        (void) fclose(file);
}

static void take_away(const char *dir, const struct power_case *c) {
        static const char *const attributes[] = { "type", "online", "scope" };
        char path[256];

        for (const struct supply *s = c->supplies; s->name; s++) {
                for (size_t i = 0; i < 3; i++) {
                        (void) snprintf(path, sizeof(path), "%s/%s/%s", dir, s->name, attributes[i]);
                        (void) unlink(path);
                }
                (void) snprintf(path, sizeof(path), "%s/%s", dir, s->name);
                (void) rmdir(path);
        }
        (void) rmdir(dir);
}

static void test_power(void **state) {
        const struct power_case *c = *state;
        char dir[] = "/tmp/test-power-XXXXXX", path[256];
        bool battery;

        assert_non_null(mkdtemp(dir));
        for (const struct supply *s = c->supplies; s->name; s++) {
                (void) snprintf(path, sizeof(path), "%s/%s", dir, s->name);
                assert_int_equal(mkdir(path, 0755), 0);
                put(dir, s->name, "type", s->type);
                put(dir, s->name, "online", s->online);
                put(dir, s->name, "scope", s->scope);
        }
        battery = power_is_battery_in(dir);
        take_away(dir, c);
        assert_int_equal(battery, c->battery);
}

static void test_no_such_directory(void **state) {
        assert_false(power_is_battery_in("/nonexistent"));
}

int main(void) {
        enum { N = sizeof(cases) / sizeof(cases[0]) };
        struct CMUnitTest tests[N + 1];

        for (size_t i = 0; i < N; i++)
                tests[i] = (struct CMUnitTest) { cases[i].name, test_power, NULL, NULL,
                                                 (void *) &cases[i] };
        tests[N] = (struct CMUnitTest) cmocka_unit_test(test_no_such_directory);
        return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
