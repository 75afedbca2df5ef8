/* SPDX-License-Identifier: MIT */

#include "tests/unit/broker/broker-test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* The tests' threads begin with what they inherit, and whoever runs them may have a nice value. */
__attribute__((constructor)) static void start_at_nice_0(void) {
        (void) setpriority(PRIO_PROCESS, 0, 0);
}

struct CMUnitTest test_row(const char *name, CMUnitTestFunction function, const void *row) {
        return (struct CMUnitTest) {
                .name = name,
                .test_func = function,
                .initial_state = (void *) row,
        };
}

void test_skip(const char *why) {
        print_message("# SKIP: %s\n", why);
        skip();
}

/* Tried on a child: the test's own thread stays as it is. */
static bool can_be_realtime(void) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                const struct sched_values values = { .policy = SCHED_FIFO, .priority = 1 };

                _exit(sched_write(getpid(), &values) == 0 ? 0 : 1);
        }

        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void test_need_root(void) {
        if (geteuid() != 0 || !can_be_realtime())
                test_skip("needs root with CAP_SYS_NICE and a cgroup with real-time budget");
}

void test_in_child(void (*body)(const void *userdata), const void *userdata) {
        pid_t pid;
        int status;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                body(userdata);
                _exit(0);
        }

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == EXIT_SKIP)
                test_skip("the machine does not let this be tried");
        assert_int_equal(WEXITSTATUS(status), 0);
}

void test_become(const struct test_ids *ids) {
        CHECK(setgroups(0, NULL) == 0);
        CHECK(setresgid(ids->rgid, ids->egid, ids->sgid) == 0);
        CHECK(prctl(PR_SET_KEEPCAPS, ids->keep_caps) == 0);
        CHECK(setresuid(ids->ruid, ids->euid, ids->suid) == 0);
}

/* ---- children ---- */

enum order {
        ORDER_END_THREAD,
        ORDER_RECYCLE_THREAD,
        ORDER_RENAME,
};

struct message {
        enum order order;
        unsigned thread;
        char name[16];
};

struct sleeper {
        pthread_t thread;
        sem_t started, wake;
        pid_t tid;
};

static void *sleeper_run(void *userdata) {
        struct sleeper *sleeper = userdata;

        sleeper->tid = (pid_t) syscall(SYS_gettid);
        (void) sem_post(&sleeper->started);
        while (sem_wait(&sleeper->wake) < 0)
                ;
        return NULL;
}

static void sleeper_start(struct sleeper *sleeper) {
        pthread_attr_t attr;

        CHECK(sem_init(&sleeper->started, 0, 0) == 0 && sem_init(&sleeper->wake, 0, 0) == 0);
        CHECK(pthread_attr_init(&attr) == 0);
        CHECK(pthread_attr_setstacksize(&attr, 128 * 1024) == 0);
        CHECK(pthread_create(&sleeper->thread, &attr, sleeper_run, sleeper) == 0);
        (void) pthread_attr_destroy(&attr);
        while (sem_wait(&sleeper->started) < 0)
                ;
}

static void sleeper_end(struct sleeper *sleeper) {
        char path[64];

        (void) sem_post(&sleeper->wake);
        CHECK(pthread_join(sleeper->thread, NULL) == 0);
        /* joined is before gone, by a little */
        (void) snprintf(path, sizeof(path), "/proc/self/task/%d", sleeper->tid);
        while (access(path, F_OK) == 0)
                (void) sched_yield();
}

/* The kernel gives the number after the last one: that is set to the one before, and put back. */
static bool sleeper_recycle(struct sleeper *sleeper) {
        const struct timespec ticks = { .tv_nsec = 30 * 1000 * 1000 };
        _cleanup_close_ int fd = open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC);
        pid_t tid = sleeper->tid;
        bool done = false;
        char before[16];

        (void) snprintf(before, sizeof(before), "%d", tid - 1);
        sleeper_end(sleeper);
        (void) nanosleep(&ticks, NULL); /* start times are told apart by clock ticks of 10 ms */

        for (unsigned i = 0; fd >= 0 && !done && i < 200; i++) {
                char last[16] = "";
                ssize_t n = pread(fd, last, sizeof(last) - 1, 0);

                if (n <= 0 || pwrite(fd, before, strlen(before), 0) < 0)
                        return false;
                sleeper_start(sleeper);
                CHECK(pwrite(fd, last, (size_t) n, 0) == n);
                done = sleeper->tid == tid;
                if (!done)
                        sleeper_end(sleeper);
        }

        return done;
}

static void child_run(int control, const struct test_ids *ids, unsigned n_threads) {
        struct sleeper *sleepers;
        struct message message;
        pid_t *tids;

        if (ids)
                test_become(ids);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);

        sleepers = calloc(n_threads + 1, sizeof(*sleepers));
        tids = calloc(n_threads + 1, sizeof(*tids));
        CHECK(sleepers && tids);
        tids[0] = (pid_t) syscall(SYS_gettid);
        for (unsigned i = 1; i <= n_threads; i++) {
                sleeper_start(&sleepers[i]);
                tids[i] = sleepers[i].tid;
        }
        CHECK(send(control, tids, (n_threads + 1) * sizeof(*tids), 0) > 0);

        while (recv(control, &message, sizeof(message), 0) == sizeof(message)) {
                bool done = true;

                if (message.order == ORDER_END_THREAD)
                        sleeper_end(&sleepers[message.thread]);
                else if (message.order == ORDER_RECYCLE_THREAD)
                        done = sleeper_recycle(&sleepers[message.thread]);
                else
                        CHECK(prctl(PR_SET_NAME, message.name) == 0);
                CHECK(send(control, &done, sizeof(done), 0) == sizeof(done));
        }
        _exit(0);
}

void test_child_start(struct test_child *child, const struct test_ids *ids, unsigned n_threads,
                      int clone_flags) {
        size_t size = (n_threads + 1) * sizeof(pid_t);
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        /* without the C library's fork only where it must be: other threads may hold its locks */
        child->pid = clone_flags == 0 ? fork()
                                      : (pid_t) syscall(SYS_clone, clone_flags | SIGCHLD, NULL,
                                                        NULL, NULL, NULL);
        if (child->pid < 0 && clone_flags != 0)
                test_skip("no namespaces can be made here");
        assert_true(child->pid >= 0);
        if (child->pid == 0) {
                (void) close(pair[0]);
                child_run(pair[1], ids, n_threads);
        }

        (void) close(pair[1]);
        child->control = pair[0];
        child->n_threads = n_threads;
        child->tids = calloc(1, size);
        assert_non_null(child->tids);
        assert_int_equal(recv(child->control, child->tids, size, 0), size);
}

void test_child_end(struct test_child *child) {
        (void) close(child->control);
        assert_int_equal(kill(child->pid, SIGKILL), 0);
        assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
        free(child->tids);
}

static bool child_order(struct test_child *child, const struct message *message) {
        bool done;

        assert_int_equal(send(child->control, message, sizeof(*message), MSG_NOSIGNAL),
                         sizeof(*message));
        assert_int_equal(recv(child->control, &done, sizeof(done), 0), sizeof(done));
        return done;
}

void test_child_end_thread(struct test_child *child, unsigned thread) {
        assert_true(child_order(child,
                                &(struct message){ .order = ORDER_END_THREAD, .thread = thread }));
}

bool test_child_recycle_thread(struct test_child *child, unsigned thread) {
        return child_order(child,
                           &(struct message){ .order = ORDER_RECYCLE_THREAD, .thread = thread });
}

void test_child_rename(struct test_child *child, const char *name) {
        struct message message = { .order = ORDER_RENAME };

        (void) strncpy(message.name, name, sizeof(message.name) - 1);
        assert_true(child_order(child, &message));
}

/* ---- kernels ---- */

static struct kernel kernel_here(void) {
        struct kernel kernel;

        kernel_probe(&kernel);
        return kernel;
}

static struct kernel kernel_6_9(void) {
        struct kernel kernel = kernel_here();

        kernel.pidfd_info = false;
        return kernel;
}

static struct kernel kernel_6_1(void) {
        return (struct kernel) {};
}

const struct test_kernel test_kernels[TEST_KERNELS] = {
        { "this kernel", kernel_here },
        { "Linux 6.9", kernel_6_9 },
        { "Linux 6.1", kernel_6_1 },
};

void assert_sched_is(pid_t tid, int policy, int priority, int nice, bool reset_on_fork) {
        struct sched_values now;

        assert_int_equal(sched_read(tid, &now), 0);
        assert_int_equal(now.policy, policy);
        assert_int_equal(now.priority, priority);
        assert_int_equal(now.nice, nice);
        assert_int_equal(now.reset_on_fork, reset_on_fork);
}
