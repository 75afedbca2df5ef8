/* SPDX-License-Identifier: MIT */

/* Which files make up the policy, what wins, whom the reader trusts; and the policy we ship. */

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "policy/policy-file.h"

#define VENDOR POLICY_VENDOR_DIR "/policy.conf"
#define ADMIN "/etc/rtgrant/policy.conf"
#define DROP_IN "/etc/rtgrant/policy.d/"

#define PATH_SIZE 512
#define TEXT_SIZE 4096

/* Each test has its own directory, to stand for the root of the file system. */
struct place {
        char root[64];
        struct policy_store *store;     /* of the last load */
        char *messages;
        int result;
};

static const char *path_of(const struct place *p, const char *name) {
        static char paths[4][PATH_SIZE];
        static size_t next;
        char *path = paths[next++ % 4];

        snprintf(path, PATH_SIZE, "%s%s", p->root, name);
        return path;
}

static void make_directories(const struct place *p, const char *name) {
        char path[PATH_SIZE];

        snprintf(path, sizeof(path), "%s", path_of(p, name));
        for (char *s = path + strlen(p->root) + 1; (s = strchr(s, '/')); s++) {
                *s = '\0';
                if (mkdir(path, 0755) < 0)
                        assert_int_equal(errno, EEXIST);
                assert_int_equal(chmod(path, 0755), 0);
                *s = '/';
        }
}

static void write_file(const struct place *p, const char *name, const char *text) {
        FILE *f;

        make_directories(p, name);
        f = fopen(path_of(p, name), "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path_of(p, name), 0644), 0);
}

static void forget(struct place *p) {
        p->store = policy_store_free(p->store);
        free(p->messages);
        p->messages = NULL;
}

static int load(struct place *p, const char *path) {
        forget(p);
        p->result = policy_store_load_rooted(p->root, path, &p->store, &p->messages);
        return p->result;
}

/* "@" in the expected messages stands for the place. */
static void assert_messages(const struct place *p, int error, const char *expected) {
        char text[TEXT_SIZE] = "";
        size_t n = 0;

        for (const char *s = expected; *s; s++)
                n += (size_t) (*s == '@' ? snprintf(text + n, sizeof(text) - n, "%s", p->root)
                                         : snprintf(text + n, sizeof(text) - n, "%c", *s));

        assert_string_equal(p->messages, text);
        assert_int_equal(p->result, error);
        assert_true(!p->store == (error < 0));
}

static void assert_entry(const struct place *p, const char *section, const char *key,
                         const char *value, const char *file, unsigned line) {
        struct policy_entry entry;

        for (size_t i = 0; policy_store_entry(p->store, i, &entry); i++)
                if (strcmp(entry.section, section) == 0 && strcmp(entry.key, key) == 0) {
                        assert_string_equal(entry.value, value);
                        assert_int_equal(entry.rule.line, line);
                        if (file)
                                assert_string_equal(entry.rule.file, path_of(p, file));
                        else
                                assert_null(entry.rule.file);
                        return;
                }

        fail_msg("no %s in %s", key, section);
}

static int set_up(void **state) {
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        snprintf(p->root, sizeof(p->root), "/tmp/test-policy-layers-XXXXXX");
        assert_non_null(mkdtemp(p->root));
        *state = p;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int tear_down(void **state) {
        struct place *p = *state;

        forget(p);
        assert_int_equal(nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        free(p);
        return 0;
}

static void test_nothing_there(void **state) {
        struct place *p = *state;

        load(p, NULL);
        assert_messages(p, -ENOENT, VENDOR ": there is no policy\n");
}

static void test_later_layers_win_key_by_key(void **state) {
        struct place *p = *state;

        write_file(p, VENDOR, "[Broker]\nThreadsMax=10\nGrantBurst=10\n"
                              "[Role a]\nNice=-1\nPriority=1-10\nAllowUsers=1 2\nAllowGroups=1\n");
        write_file(p, ADMIN, "[Role a]\n\nNice=-2\nAllowUsers=3\n[Broker]\nThreadsMax=20\n");
        write_file(p, DROP_IN "20.conf", "[Role a]\nNice=-4\n[Role c]\nNice=-5\n");
        write_file(p, DROP_IN "10.conf", "[Role a]\nNice=-3\nAllowGroups=\n[Role b]\n");
        write_file(p, DROP_IN "30.conf~", "rubbish");
        write_file(p, DROP_IN ".40.conf", "rubbish");
        write_file(p, DROP_IN "README", "rubbish");

        load(p, NULL);
        assert_messages(p, 0, "");

        assert_entry(p, "Broker", "ThreadsMax", "20", ADMIN, 6);
        assert_entry(p, "Broker", "GrantBurst", "10", VENDOR, 3);
        assert_entry(p, "Broker", "GrantRefill", "200ms", NULL, 0);
        assert_entry(p, "Role a", "Nice", "-4", DROP_IN "20.conf", 2);
        assert_entry(p, "Role a", "Priority", "1-10", VENDOR, 6);
        assert_entry(p, "Role a", "AllowUsers", "3", ADMIN, 4);
        assert_entry(p, "Role a", "AllowGroups", "", DROP_IN "10.conf", 3);
        assert_entry(p, "Role c", "Nice", "-5", DROP_IN "20.conf", 4);

        assert_int_equal(p->store->policy.n_roles, 3);
        assert_string_equal(p->store->policy.roles[1].name, "b");
        assert_int_equal(p->store->policy.roles[0].nice_min, -4);
        assert_int_equal(p->store->policy.roles[0].allow_groups.n_ids, 0);
        assert_int_equal(p->store->policy.roles[0].allow_users.n_ids, 1);
        assert_int_equal(p->store->policy.roles[0].allow_users.ids[0], 3);
}

static void test_default_role_of_a_later_file(void **state) {
        struct place *p = *state;

        write_file(p, VENDOR, "[Broker]\nDefaultRole=b\n[Role a]\n");
        write_file(p, ADMIN, "[Role b]\n");
        load(p, NULL);
        assert_messages(p, 0, "");
        assert_int_equal(p->store->policy.default_role, 1);
}

static void test_too_many_roles_together(void **state) {
        struct place *p = *state;
        char text[512] = "";
        size_t n = 0;

        for (int i = 1; i <= POLICY_ROLES_MAX; i++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "[Role %d]\n", i);
        write_file(p, VENDOR, text);
        write_file(p, ADMIN, "[Role 16]\nNice=-1\n");
        load(p, NULL);
        assert_messages(p, 0, "");

        write_file(p, DROP_IN "a.conf", "[Role 1]\n[Role more]\n");
        load(p, NULL);
        assert_messages(p, -EINVAL, "@" DROP_IN "a.conf:2: [Role more]: more than 16 roles\n");
}

static void test_all_faults_of_all_files(void **state) {
        struct place *p = *state;

        write_file(p, VENDOR, "[Role a]\nNice=5\nPriority=1-10\n");
        write_file(p, ADMIN, "[Role a]\nNice=-5\nPrority=1\n");
        write_file(p, DROP_IN "a.conf", "[Broker]\n\nDefaultRole=z\nrubbish\n");
        write_file(p, DROP_IN "b.conf", "[Role b]\nPriority=10-20\n");
        load(p, NULL);
        assert_messages(p, -EINVAL,
                        "@" VENDOR ":2: Nice=5: not a number from -20 to 0\n"
                        "@" ADMIN ":3: unknown key Prority= in [Role a], did you mean Priority=?\n"
                        "@" DROP_IN "a.conf:4: neither [Section], Key=Value nor # comment\n"
                        "@" DROP_IN "a.conf:3: DefaultRole=z: there is no [Role z], "
                        "did you mean a?\n"
                        "@" DROP_IN "b.conf:2: warning: the priorities of [Role b], 10 to 20, "
                        "overlap those of [Role a], 1 to 10 (@" VENDOR ":3)\n");
}

static void test_a_given_file(void **state) {
        struct place *p = *state;

        write_file(p, ADMIN, "[Role system]\n");
        write_file(p, "/given", "[Role given]\n");
        load(p, path_of(p, "/given"));
        assert_messages(p, 0, "");
        assert_int_equal(p->store->policy.n_roles, 1);
        assert_string_equal(p->store->policy.roles[0].name, "given");

        load(p, path_of(p, "/missing"));
        assert_messages(p, -ENOENT, "@/missing: No such file or directory\n");

        load(p, path_of(p, "/given/missing"));
        assert_messages(p, -ENOTDIR, "@/given/missing: Not a directory\n");
}

static void test_a_given_directory(void **state) {
        struct place *p = *state;

        make_directories(p, "/dir/");
        load(p, path_of(p, "/dir"));
        assert_messages(p, -ENOENT, "@/dir: there is no policy\n");

        write_file(p, "/dir/z.conf", "[Role r]\nNice=-1\n");
        write_file(p, "/dir/y.conf", "[Role r]\nNice=-2\nPriority=2\n");
        load(p, path_of(p, "/dir"));
        assert_messages(p, 0, "");
        assert_entry(p, "Role r", "Nice", "-1", "/dir/z.conf", 2);
        assert_entry(p, "Role r", "Priority", "2", "/dir/y.conf", 3);

        write_file(p, "/dir/policy.d/a.conf", "[Role r]\nNice=-3\n");
        load(p, path_of(p, "/dir"));
        assert_messages(p, 0, "");
        assert_entry(p, "Role r", "Nice", "-3", "/dir/policy.d/a.conf", 2);
        assert_entry(p, "Role r", "Priority", "none", NULL, 0);

        write_file(p, "/other/policy.conf", "[Role r]\nNice=-4\nPriority=4\n");
        write_file(p, "/other/z.conf", "[Role r]\nNice=-5\n");
        load(p, path_of(p, "/other"));
        assert_messages(p, 0, "");
        assert_entry(p, "Role r", "Nice", "-4", "/other/policy.conf", 2);

        write_file(p, "/dir/policy.conf", "[Role r]\nNice=-4\nPriority=4\n");
        load(p, path_of(p, "/dir"));
        assert_messages(p, 0, "");
        assert_entry(p, "Role r", "Nice", "-3", "/dir/policy.d/a.conf", 2);
        assert_entry(p, "Role r", "Priority", "4", "/dir/policy.conf", 3);
}

#define OWNER_OF(file, uid, mode)                                                                 \
        "@" file ": must belong to root (is " uid ":0, mode " mode ")\n"
#define WRITABLE "must not be writable by group or others (is 0:0, mode "

static void require_root(void) {
        if (geteuid() != 0) {
                print_message("needs root, to give files away\n");
                skip();
        }
}

static void test_files_that_others_may_write(void **state) {
        struct place *p = *state;

        require_root();
        write_file(p, ADMIN, "[Role r]\n");

        assert_int_equal(chmod(path_of(p, ADMIN), 0664), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, "@" ADMIN ": " WRITABLE "0664)\n");

        assert_int_equal(chmod(path_of(p, ADMIN), 0602), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, "@" ADMIN ": " WRITABLE "0602)\n");

        assert_int_equal(chmod(path_of(p, ADMIN), 0444), 0);
        load(p, NULL);
        assert_messages(p, 0, "");

        assert_int_equal(chown(path_of(p, ADMIN), 65534, 0), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, OWNER_OF(ADMIN, "65534", "0444"));
}

static void test_directories_that_others_may_write(void **state) {
        struct place *p = *state;

        require_root();
        write_file(p, ADMIN, "[Role r]\n");
        write_file(p, DROP_IN "a.conf", "[Role r]\n");

        assert_int_equal(chmod(path_of(p, DROP_IN), 01777), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, "@/etc/rtgrant/policy.d: " WRITABLE "1777)\n");

        assert_int_equal(chmod(path_of(p, DROP_IN), 0755), 0);
        assert_int_equal(chown(path_of(p, DROP_IN), 65534, 0), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, OWNER_OF("/etc/rtgrant/policy.d", "65534", "0755"));
}

static void test_links(void **state) {
        struct place *p = *state;

        write_file(p, "/target", "[Role r]\nNice=-1\n");
        make_directories(p, ADMIN);
        assert_int_equal(symlink(path_of(p, "/target"), path_of(p, ADMIN)), 0);
        load(p, NULL);
        assert_messages(p, 0, "");
        assert_entry(p, "Role r", "Nice", "-1", ADMIN, 2);

        assert_int_equal(unlink(path_of(p, "/target")), 0);
        load(p, NULL);
        assert_messages(p, -ENOENT, "@" ADMIN ": No such file or directory\n");
}

static void test_a_link_to_what_others_may_write(void **state) {
        struct place *p = *state;

        require_root();
        write_file(p, "/target", "[Role r]\nNice=-1\n");
        make_directories(p, ADMIN);
        assert_int_equal(symlink(path_of(p, "/target"), path_of(p, ADMIN)), 0);
        assert_int_equal(chown(path_of(p, "/target"), 65534, 0), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, OWNER_OF(ADMIN, "65534", "0644"));
}

static void test_what_is_no_file(void **state) {
        struct place *p = *state;

        write_file(p, ADMIN, "[Role r]\n");
        make_directories(p, DROP_IN "a.conf/");
        assert_int_equal(mkfifo(path_of(p, DROP_IN "b.conf"), 0600), 0);
        assert_int_equal(symlink("/dev/null", path_of(p, DROP_IN "c.conf")), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, "@" DROP_IN "a.conf: is not a regular file\n"
                                    "@" DROP_IN "b.conf: is not a regular file\n"
                                    "@" DROP_IN "c.conf: is not a regular file\n");
}

static void test_a_file_that_is_too_large(void **state) {
        struct place *p = *state;

        write_file(p, ADMIN, "[Role r]\n");
        assert_int_equal(truncate(path_of(p, ADMIN), 1024 * 1024 + 1), 0);
        load(p, NULL);
        assert_messages(p, -EINVAL, "@" ADMIN ": is larger than 1048576 bytes\n");
}

static unsigned count_descriptors(void) {
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

static void test_a_broken_reload_leaves_the_policy_and_nothing_else(void **state) {
        struct place *p = *state;
        struct policy_store *good = NULL, *other = NULL;
        unsigned n_descriptors;

        write_file(p, ADMIN, "[Role r]\nDescription=good\n");
        assert_int_equal(policy_store_load_rooted(p->root, NULL, &good, NULL), 0);
        n_descriptors = count_descriptors();

        write_file(p, ADMIN, "[Role r]\nDescription=bad\nAllowUsers=1 2 3\nNice=9\nX=1\n");
        make_directories(p, DROP_IN "a.conf/");
        for (int i = 0; i < 50; i++)
                assert_int_equal(policy_store_load_rooted(p->root, NULL, &other, NULL), -EINVAL);

        assert_null(other);
        assert_int_equal(count_descriptors(), n_descriptors);
        assert_string_equal(good->policy.roles[0].description, "good");
        policy_store_free(good);
}

static char *read_shipped(void) {
        static char text[64 * 1024];
        FILE *f = fopen(SHIPPED_POLICY, "re");
        size_t n;

        assert_non_null(f);
        n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = '\0';
        fclose(f);
        return text;
}

static void test_the_shipped_policy(void **state) {
        static const struct {
                const char *name;
                int low, high, nice;
                const char *action;
        } shipped[] = {
                { "desktop", 1, 20, -15, "org.rtgrant.realtime" },
                { "worker", 51, 60, -15, "org.rtgrant.realtime-high" },
                { "audio-client", 61, 70, -15, "org.rtgrant.realtime-high" },
                { "audio-server", 71, 85, -19, "org.rtgrant.realtime-high" },
        };
        const char *text = read_shipped();
        struct policy_store *store = NULL;
        const struct policy *policy;
        char *messages = NULL;

        assert_int_equal(policy_store_parse("shipped", text, strlen(text), &store, &messages), 0);
        /* The group is made when the package is installed: here it may be missing. */
        for (char *line = strtok(messages, "\n"); line; line = strtok(NULL, "\n"))
                assert_non_null(strstr(line, "no group is named realtime"));

        policy = &store->policy;
        assert_true(policy->ask_polkit);
        assert_string_equal(policy->roles[policy->realtimekit_role].name, "desktop");
        assert_int_equal(policy->n_roles, 4);
        for (size_t i = 0; i < 4; i++) {
                const struct role *role = &policy->roles[i];

                assert_string_equal(role->name, shipped[i].name);
                assert_int_equal(role->priority_min, shipped[i].low);
                assert_int_equal(role->priority_max, shipped[i].high);
                assert_int_equal(role->nice_min, shipped[i].nice);
                assert_true(strlen(role->description) > 0);
                assert_false(role->allow_users.everybody || role->allow_groups.everybody);
                assert_int_equal(role->allow_users.n_ids, 0);
                assert_true(role->rules[ROLE_KEY_ALLOW_GROUPS].line > 0);
                assert_string_equal(role->action, shipped[i].action);
        }

        free(messages);
        policy_store_free(store);
}

/* It is the administrator's manual: each key is shown with its default, and nothing else is. */
static void test_the_shipped_policy_shows_every_default(void **state) {
        const char *text = read_shipped(), *s;
        struct policy_store *store = NULL;
        struct policy_entry entry;
        size_t n_entries = 0, n_shown = 0;

        assert_int_equal(policy_store_parse("p", "[Role desktop]\n", 15, &store, NULL), 0);
        for (; policy_store_entry(store, n_entries, &entry); n_entries++) {
                char line[128];

                snprintf(line, sizeof(line), "\n#%s=%s\n", entry.key, entry.value);
                if (!strstr(text, line))
                        fail_msg("%s is not shown", line);
        }

        for (s = text; (s = strstr(s, "\n#")); s++)
                n_shown += s[2] >= 'A' && s[2] <= 'Z';
        assert_int_equal(n_shown, n_entries);
        policy_store_free(store);
}

#define PLACED(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
        static const struct CMUnitTest tests[] = {
                PLACED(test_nothing_there),
                PLACED(test_later_layers_win_key_by_key),
                PLACED(test_default_role_of_a_later_file),
                PLACED(test_too_many_roles_together),
                PLACED(test_all_faults_of_all_files),
                PLACED(test_a_given_file),
                PLACED(test_a_given_directory),
                PLACED(test_files_that_others_may_write),
                PLACED(test_directories_that_others_may_write),
                PLACED(test_links),
                PLACED(test_a_link_to_what_others_may_write),
                PLACED(test_what_is_no_file),
                PLACED(test_a_file_that_is_too_large),
                PLACED(test_a_broken_reload_leaves_the_policy_and_nothing_else),
                cmocka_unit_test(test_the_shipped_policy),
                cmocka_unit_test(test_the_shipped_policy_shows_every_default),
        };

        return cmocka_run_group_tests_name("policy-layers", tests, NULL, NULL);
}
