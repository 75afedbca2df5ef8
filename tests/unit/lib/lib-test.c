/* SPDX-License-Identifier: MIT */

#include "tests/unit/lib/lib-test.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

struct attr {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
};

/* The tests' threads begin with what they inherit, and whoever runs them may have a nice value. */
__attribute__((constructor)) static void start_at_nice_0(void) {
        (void) setpriority(PRIO_PROCESS, 0, 0);
}

int test_sched_set(pid_t tid, int policy, int priority, int nice, bool reset_on_fork) {
        struct attr attr = {
                .size = sizeof(attr),
                .policy = (uint32_t) policy,
                .flags = reset_on_fork,
                .nice = nice,
                .priority = (uint32_t) priority,
        };

        return syscall(SYS_sched_setattr, tid, &attr, 0U) < 0 ? -errno : 0;
}

int test_nice_set(pid_t tid, int nice) {
        return setpriority(PRIO_PROCESS, (id_t) tid, nice) < 0 ? -errno : 0;
}

struct test_sched test_sched_get(pid_t tid) {
        struct attr attr = {};

        if (syscall(SYS_sched_getattr, tid, &attr, (unsigned) sizeof(attr), 0U) < 0) {
                perror("sched_getattr");
                abort();
        }

        return (struct test_sched) {
                .policy = (int) attr.policy,
                .priority = (int) attr.priority,
                .nice = getpriority(PRIO_PROCESS, (id_t) tid),
                .reset_on_fork = attr.flags & 1,
        };
}

uint64_t test_now_ms(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

unsigned test_count_fds(void) {
        DIR *directory = opendir("/proc/self/fd");
        unsigned n = 0;

        while (directory && readdir(directory))
                n++;
        if (directory)
                (void) closedir(directory);
        return n;
}

/* Whether it can, is tried on a child: the test's own thread stays as it is. */
static bool can_be_realtime(void) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(test_sched_set(0, SCHED_FIFO, 1, 0, true) == 0 ? 0 : 1);

        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void test_need_root(void) {
        if (geteuid() != 0 || !can_be_realtime()) {
                print_message("SKIP: needs root, CAP_SYS_NICE, a cgroup with real-time budget\n");
                skip();
        }
}

static int thread_state(pid_t tid) {
        char path[64], text[512], *end;
        FILE *file;
        size_t n;

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int) tid);
        file = fopen(path, "re");
        if (!file)
                return 'X';

        n = fread(text, 1, sizeof(text) - 1, file);
        (void) fclose(file);
        text[n] = '\0';
        end = strrchr(text, ')');
        return end && end[1] == ' ' ? end[2] : 'X';
}

void test_await_sleep(pid_t tid) {
        while (thread_state(tid) != 'S')
                (void) sched_yield();
}

void test_become(uid_t uid) {
        CHECK(setgroups(0, NULL) == 0);
        CHECK(setresgid(uid, uid, uid) == 0);
        CHECK(setresuid(uid, uid, uid) == 0);
}

void test_reap(pid_t pid) {
        int status;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

void test_in_child(uid_t uid, void (*body)(void *userdata), void *userdata) {
        pid_t pid;

        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
                if (uid != 0)
                        test_become(uid);
                body(userdata);
                _exit(0);
        }

        test_reap(pid);
}
