/* SPDX-License-Identifier: MIT */

/* Why the kernel says EPERM: each cause made on purpose, on a thread that sleeps. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "broker/kernel-cause.h"
#include "tests/unit/broker/broker-test.h"

/* ---- /proc/PID/cgroup ---- */

struct cgroup_case {
        const char *name;
        const char *text;
        const char *path;       /* NULL: @error */
        int error;
        size_t size;            /* 0: enough */
        const char *controller; /* NULL: cpu */
};

static const struct cgroup_case cgroup_cases[] = {
        { "cgroup: a controller of its own", "9:name=systemd:/\n2:cpuacct:/\n1:cpu:/x\n0::/\n",
          "/x" },
        { "cgroup: two controllers together", "4:cpu,cpuacct:/x\n", "/x" },
        { "cgroup: in the other order", "4:cpuacct,cpu:/x\n", "/x" },
        { "cgroup: the root", "1:cpu:/\n", "/" },
        { "cgroup: cpuset is another", "3:cpuset:/no\n1:cpu:/yes\n", "/yes" },
        { "cgroup: cpuacct is another", "2:cpuacct:/no\n", NULL, -ENOENT },
        { "cgroup: a hierarchy named cpu", "1:name=cpu:/no\n", NULL, -ENOENT },
        { "cgroup: cp is another", "1:cp:/no\n", NULL, -ENOENT },
        { "cgroup: version 2", "0::/user.slice\n", NULL, -ENOENT },
        { "cgroup: version 2 first", "0::/no\n1:cpu:/yes\n", "/yes" },
        { "cgroup: a path with colons", "5:memory:/a:cpu:/no\n1:cpu:/b:c:d\n", "/b:c:d" },
        { "cgroup: a path with controllers in it", "5:memory:/cpu,cpu:/no\n", NULL, -ENOENT },
        { "cgroup: a path with blanks", "1:cpu:/a b (deleted)\n", "/a b (deleted)" },
        { "cgroup: no newline at the end", "1:cpu:/x", "/x" },
        { "cgroup: an empty path", "1:cpu:\n", "" },
        { "cgroup: no path", "1:cpu\n2:memory:/no\n", NULL, -ENOENT },
        { "cgroup: lines without colons", "cpu\n\n1:cpu:/x\n", "/x" },
        { "cgroup: lines of colons", ":::\n::\n:\n1:cpu:/x\n", "/x" },
        { "cgroup: empty controllers", "1:,,cpu,:/x\n", "/x" },
        { "cgroup: empty", "", NULL, -ENOENT },
        { "cgroup: just fits", "1:cpu:/abc\n", "/abc", 0, 5 },
        { "cgroup: too long by one", "1:cpu:/abcd\n", NULL, -ENAMETOOLONG, 5 },
        { "cgroup: that of version 2", "1:cpu:/no\n0::/yes\n", "/yes", .controller = "" },
        { "cgroup: none of version 2", "1:cpu:/no\n2:name=:/no\n", NULL, -ENOENT,
          .controller = "" },
};

static void test_cgroup(void **state) {
        const struct cgroup_case *c = *state;
        size_t size = c->size > 0 ? c->size : 64;
        char *buffer = calloc(1, size);
        int r;

        assert_non_null(buffer);
        r = kernel_cause_parse_cgroup(c->text, c->controller ?: "cpu", buffer, size);
        assert_int_equal(r, c->path ? 0 : c->error);
        assert_string_equal(buffer, c->path ? c->path : "");
        free(buffer);
}

/* ---- the causes ---- */

struct cause_case {
        const char *name;
        int error;
        void (*prepare)(pid_t target);  /* in the child that looks for the cause */
        enum reason reason;
        const char *words;              /* somewhere in the text */
};

static void load_filter(bool pass_null) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

        CHECK(filter);
        if (pass_null)
                CHECK(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sched_setattr), 1,
                                       SCMP_A1(SCMP_CMP_NE, 0)) == 0);
        else
                CHECK(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(sched_setattr), 0) ==
                      0);
        CHECK(seccomp_load(filter) == 0);
        seccomp_release(filter);
}

static void prepare_seccomp(pid_t target) {
        load_filter(false);
}

/* As a security module does it: after the kernel has looked at the arguments. */
static void prepare_module(pid_t target) {
        load_filter(true);
}

static void drop_sys_nice(pid_t target) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        CHECK(syscall(SYS_capget, &header, data) == 0);
        data[0].effective &= ~(1U << CAP_SYS_NICE);
        CHECK(syscall(SYS_capset, &header, data) == 0);
}

static void enter_user_namespace(pid_t target) {
        if (unshare(CLONE_NEWUSER) < 0)
                _exit(EXIT_SKIP);
}

#define NAME "/rtgrant-test-kernel-cause"
#define GROUP "/sys/fs/cgroup/cpu" NAME

/* Where cgroup v2 is alone, and where it is beside v1. */
static const char *const v2_groups[] = { "/sys/fs/cgroup" NAME, "/sys/fs/cgroup/unified" NAME };

static void write_number(const char *path, int number) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        CHECK(fd >= 0 && dprintf(fd, "%d", number) > 0);
}

static void enter_poor_group(pid_t target) {
        struct stat st;

        if ((mkdir(GROUP, 0755) < 0 && errno != EEXIST) ||
            stat(GROUP "/cpu.rt_runtime_us", &st) < 0)
                _exit(EXIT_SKIP);
        write_number(GROUP "/tasks", target);
}

/* What the kernel shows where the cpu controller of cgroup v2 is on, which it is not beside v1. */
static void enter_v2_group(pid_t target) {
        char procs[128] = "";

        for (size_t i = 0; i < ELEMENTS(v2_groups); i++) {
                (void) mkdir(v2_groups[i], 0755);
                (void) snprintf(procs, sizeof(procs), "%s/cgroup.procs", v2_groups[i]);
                if (access(procs, W_OK) == 0)
                        break;
        }
        if (access(procs, W_OK) < 0 || unshare(CLONE_NEWNS) < 0)
                _exit(EXIT_SKIP);

        write_number(procs, target);
        CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        CHECK(mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0);
        CHECK(mkdir(v2_groups[0], 0755) == 0);
        CHECK(mknod("/sys/fs/cgroup" NAME "/cpu.weight", S_IFREG | 0444, 0) == 0);
}

/* To the root of cgroup v2, if there is one, which has a budget whatever the controllers are. */
static void leave_groups(pid_t target) {
        if (access("/sys/fs/cgroup/cgroup.procs", W_OK) == 0)
                write_number("/sys/fs/cgroup/cgroup.procs", target);
}

static const struct cause_case cause_cases[] = {
        { "cause: the thread is gone", -ESRCH, NULL, REASON_NO_SUCH_THREAD, "No such process" },
        { "cause: another error", -EINVAL, NULL, REASON_KERNEL_OTHER, "Invalid argument" },
        { "cause: a filter", -EPERM, prepare_seccomp, REASON_KERNEL_SECCOMP, "seccomp" },
        { "cause: no capability", -EPERM, drop_sys_nice, REASON_KERNEL_CAPABILITY, "CAP_SYS_NICE" },
        { "cause: no capability, for nice", -EACCES, drop_sys_nice, REASON_KERNEL_CAPABILITY,
          "CAP_SYS_NICE" },
        { "cause: a capability that does not count", -EPERM, enter_user_namespace,
          REASON_KERNEL_CAPABILITY, "user namespace" },
        { "cause: no budget", -EPERM, enter_poor_group, REASON_KERNEL_RT_GROUP,
          NAME " has no real-time budget (cpu.rt_runtime_us is 0)" },
        { "cause: the cpu controller of v2", -EPERM, enter_v2_group, REASON_KERNEL_RT_GROUP,
          NAME " has no real-time budget: the cpu controller" },
        { "cause: a security module", -EPERM, prepare_module, REASON_KERNEL_LSM,
          "security module" },
        { "cause: none of the known ones", -EPERM, leave_groups, REASON_KERNEL_OTHER,
          "none of the known causes" },
};

struct cause_try {
        const struct cause_case *c;
        pid_t target;
};

static void try_cause(const void *userdata) {
        const struct cause_try *try = userdata;
        enum reason reason;
        char text[200] = "";

        if (try->c->prepare)
                try->c->prepare(try->target);
        reason = kernel_cause_find(try->target, try->c->error, text, sizeof(text));
        if (reason != try->c->reason || !strstr(text, try->c->words))
                (void) dprintf(STDOUT_FILENO, "# %u: %s\n", reason, text);
        CHECK(reason == try->c->reason);
        CHECK(strstr(text, try->c->words));
}

static void test_cause(void **state) {
        struct cause_try try = { .c = *state };
        struct test_child target;

        test_need_root();
        test_child_start(&target, &TEST_IDS(UID_NOBODY), 0, 0);
        try.target = target.pid;
        test_in_child(try_cause, &try);
        /* looking for the cause changed nothing */
        assert_sched_is(target.pid, SCHED_OTHER, 0, 0, false);
        test_child_end(&target);
}

static int remove_group(void **state) {
        for (size_t i = 0; i < ELEMENTS(v2_groups); i++)
                (void) rmdir(v2_groups[i]);
        return rmdir(GROUP) < 0 && errno != ENOENT && errno != ENOTDIR ? -1 : 0;
}

/* The words are cut where there is no room for them. */
static void test_little_room(void **state) {
        char text[8];

        assert_int_equal(kernel_cause_find(getpid(), -EINVAL, text, sizeof(text)),
                         REASON_KERNEL_OTHER);
        assert_string_equal(text, "the ker");
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cgroup_cases) + ELEMENTS(cause_cases) + 1];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(cgroup_cases); i++)
                tests[n++] = test_row(cgroup_cases[i].name, test_cgroup, &cgroup_cases[i]);
        for (size_t i = 0; i < ELEMENTS(cause_cases); i++) {
                tests[n] = test_row(cause_cases[i].name, test_cause, &cause_cases[i]);
                tests[n++].teardown_func = remove_group;
        }
        tests[n++] = (struct CMUnitTest) cmocka_unit_test(test_little_room);

        return cmocka_run_group_tests_name("kernel-cause", tests, NULL, NULL);
}
