/* SPDX-License-Identifier: MIT */

/* Pinned threads, on the kernel that is here and on what older ones would have left of it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "broker/thread.h"
#include "tests/unit/broker/broker-test.h"

#define NO_SUCH_ID 4194304 /* as high as numbers go: PID_MAX_LIMIT */

struct thread_case {
        const char *name;
        void (*test)(const struct kernel *kernel);
};

struct thread_row {
        const struct thread_case *c;
        const struct test_kernel *kernel;
};

static void assert_opens(const struct kernel *kernel, pid_t pid, pid_t tid, pid_t expected_pid,
                         uid_t uid) {
        struct thread thread = THREAD_NONE;
        struct creds creds, again;

        assert_int_equal(thread_open(kernel, pid, tid, &thread, &creds), 0);
        assert_int_equal(thread.pid, expected_pid);
        assert_int_equal(thread.tid, tid);
        assert_true(thread.fd >= 0);
        assert_int_equal(fcntl(thread.fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(thread.exact, kernel->thread_pidfd);
        assert_int_equal(thread.inode != 0, kernel->pidfd_inode);
        assert_int_equal(thread.start_time != 0, !kernel->pidfd_inode);
        assert_int_equal(creds.pid, expected_pid);
        assert_int_equal(creds.tid, tid);
        assert_int_equal(creds.ruid, uid);
        assert_int_equal(creds.egid, uid);
        assert_int_equal(thread_read_creds(kernel, &thread, &again), 0);
        assert_true(creds_equal(&creds, &again));

        thread_close(&thread);
        assert_int_equal(thread.fd, -1);
}

static void assert_no_such(const struct kernel *kernel, pid_t pid, pid_t tid) {
        struct thread thread = THREAD_NONE;
        struct creds creds = { .pid = -7 };
        int before = dup(0), after;

        assert_int_equal(thread_open(kernel, pid, tid, &thread, &creds), -ESRCH);
        assert_int_equal(thread.fd, -1);
        assert_int_equal(creds.pid, -7);
        /* and no descriptor is left behind */
        (void) close(before);
        after = dup(0);
        assert_int_equal(after, before);
        (void) close(after);
}

static void own_thread(const struct kernel *kernel) {
        assert_opens(kernel, getpid(), getpid(), getpid(), getuid());
        assert_opens(kernel, 0, getpid(), getpid(), getuid());
}

static void other_process(const struct kernel *kernel) {
        struct test_child child;

        test_need_root();
        test_child_start(&child, &TEST_IDS(UID_NOBODY), 0, 0);
        assert_opens(kernel, child.pid, child.pid, child.pid, UID_NOBODY);
        assert_opens(kernel, 0, child.pid, child.pid, UID_NOBODY);
        test_child_end(&child);
}

static void non_leader(const struct kernel *kernel) {
        struct test_child child;

        test_need_root();
        test_child_start(&child, &TEST_IDS(UID_NOBODY), 2, 0);
        for (unsigned i = 1; i <= 2; i++) {
                assert_opens(kernel, child.pid, child.tids[i], child.pid, UID_NOBODY);
                assert_opens(kernel, 0, child.tids[i], child.pid, UID_NOBODY);
        }
        test_child_end(&child);
}

/* S7, U29: the number of a thread of one process as that of another, or as a process's. */
static void wrong_process(const struct kernel *kernel) {
        struct test_child child;

        test_child_start(&child, NULL, 1, 0);
        assert_no_such(kernel, getpid(), child.pid);
        assert_no_such(kernel, getpid(), child.tids[1]);
        assert_no_such(kernel, child.pid, getpid());
        assert_no_such(kernel, child.tids[1], child.tids[1]);
        assert_no_such(kernel, child.tids[1], child.pid);
        test_child_end(&child);
}

static void missing(const struct kernel *kernel) {
        assert_no_such(kernel, 0, NO_SUCH_ID);
        assert_no_such(kernel, NO_SUCH_ID, NO_SUCH_ID);
        assert_no_such(kernel, getpid(), NO_SUCH_ID);
        assert_no_such(kernel, NO_SUCH_ID, getpid());
}

static void process_ended(const struct kernel *kernel) {
        struct test_child child;
        struct thread thread;
        struct creds creds;
        pid_t pid, tid;

        test_child_start(&child, NULL, 1, 0);
        pid = child.pid;
        tid = child.tids[1];
        assert_int_equal(thread_open(kernel, pid, tid, &thread, &creds), 0);
        test_child_end(&child);

        assert_int_equal(thread_read_creds(kernel, &thread, &creds), -ESRCH);
        assert_true(kernel_pidfd_is_dead(thread.fd));
        thread_close(&thread);
        assert_no_such(kernel, pid, tid);
        assert_no_such(kernel, pid, pid);
}

/* Dead, but its number is still its own: it is refused, or seen to have ended at once. */
static void zombie(const struct kernel *kernel) {
        struct thread thread;
        struct creds creds;
        siginfo_t info;
        pid_t pid = fork();
        int r;

        assert_true(pid >= 0);
        if (pid == 0)
                _exit(0);
        assert_int_equal(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
        r = thread_open(kernel, pid, pid, &thread, &creds);
        if (r == 0) {
                assert_true(kernel_pidfd_is_dead(thread.fd));
                thread_close(&thread);
        } else {
                assert_int_equal(r, -ESRCH);
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void thread_ended(const struct kernel *kernel) {
        struct test_child child;
        struct thread thread;
        struct creds creds;

        test_child_start(&child, NULL, 2, 0);
        assert_int_equal(thread_open(kernel, child.pid, child.tids[1], &thread, &creds), 0);
        assert_false(kernel_pidfd_is_dead(thread.fd));
        test_child_end_thread(&child, 1);

        assert_int_equal(thread_read_creds(kernel, &thread, &creds), -ESRCH);
        assert_int_equal(kernel_pidfd_is_dead(thread.fd), thread.exact);
        thread_close(&thread);
        assert_no_such(kernel, child.pid, child.tids[1]);
        /* its neighbours live */
        assert_opens(kernel, child.pid, child.tids[2], child.pid, getuid());
        test_child_end(&child);
}

/* U6: another thread, of the same process, with the same number. */
static void number_recycled(const struct kernel *kernel) {
        struct test_child child;
        struct thread thread, other;
        struct creds creds;

        test_need_root();
        test_child_start(&child, NULL, 1, 0);
        assert_int_equal(thread_open(kernel, child.pid, child.tids[1], &thread, &creds), 0);
        if (!test_child_recycle_thread(&child, 1))
                test_skip("the number of a thread could not be had again");

        assert_int_equal(thread_read_creds(kernel, &thread, &creds), -ESRCH);
        assert_int_equal(thread_open(kernel, child.pid, child.tids[1], &other, &creds), 0);
        if (kernel->pidfd_inode)
                assert_int_not_equal(other.inode, thread.inode);
        else
                assert_int_not_equal(other.start_time, thread.start_time);
        assert_int_equal(thread_read_creds(kernel, &other, &creds), 0);
        thread_close(&thread);
        thread_close(&other);
        test_child_end(&child);
}

static void start_time_of_another(const struct kernel *kernel) {
        struct thread thread;
        struct creds creds;

        assert_int_equal(thread_open(kernel, getpid(), getpid(), &thread, &creds), 0);
        if (!kernel->pidfd_inode) {
                thread.start_time++;
                assert_int_equal(thread_read_creds(kernel, &thread, &creds), -ESRCH);
        }
        thread_close(&thread);
}

/* Each id in its own place. */
static void all_ids(const struct kernel *kernel) {
        static const struct test_ids ids = { 64001, 64002, 64003, 64011, 64012, 64013, false };
        struct test_child child;
        struct thread thread;
        struct creds creds;

        test_need_root();
        test_child_start(&child, &ids, 0, 0);
        assert_int_equal(thread_open(kernel, child.pid, child.pid, &thread, &creds), 0);
        assert_int_equal(creds.ruid, 64001);
        assert_int_equal(creds.euid, 64002);
        assert_int_equal(creds.suid, 64003);
        assert_int_equal(creds.fsuid, 64002);
        assert_int_equal(creds.rgid, 64011);
        assert_int_equal(creds.egid, 64012);
        assert_int_equal(creds.sgid, 64013);
        assert_int_equal(creds.fsgid, 64012);
        thread_close(&thread);
        test_child_end(&child);
}

/* A descriptor too many is said so, and is not taken for a thread that is not there. */
static void no_descriptor_left(const struct kernel *kernel) {
        struct rlimit limit, none;
        struct thread thread = THREAD_NONE;
        struct creds creds;
        int r;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        none = limit;
        none.rlim_cur = 0;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        r = thread_open(kernel, getpid(), getpid(), &thread, &creds);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(r, -EMFILE);
        assert_int_equal(thread.fd, -1);
}

static const struct thread_case cases[] = {
        { "own thread", own_thread },
        { "of another process and user", other_process },
        { "not the leader", non_leader },
        { "S7: of the wrong process", wrong_process },
        { "missing", missing },
        { "the process ended", process_ended },
        { "a zombie", zombie },
        { "the thread ended", thread_ended },
        { "U6: its number was given to another", number_recycled },
        { "a start time that is not its own", start_time_of_another },
        { "all its ids", all_ids },
        { "no descriptor left", no_descriptor_left },
};

static void test_thread(void **state) {
        const struct thread_row *row = *state;
        const struct kernel kernel = row->kernel->get();

        row->c->test(&kernel);
}

/* ---- numbers from descriptors ---- */

static void test_pidfd_numbers(void **state) {
        struct test_child child;
        pid_t number = -7;
        int fd;

        test_child_start(&child, NULL, 1, 0);
        fd = kernel_pidfd_open(child.pid, false);
        assert_true(fd >= 0);
        assert_int_equal(kernel_pidfd_read_pid(fd, &number), 0);
        assert_int_equal(number, child.pid);
        test_child_end(&child);

        number = -7;
        assert_int_equal(kernel_pidfd_read_pid(fd, &number), -ESRCH);
        assert_int_equal(number, -7);
        (void) close(fd);
}

static void test_pidfd_of_a_thread(void **state) {
        const struct kernel kernel = test_kernels[0].get();
        struct test_child child;
        pid_t number;
        int fd;

        if (!kernel.thread_pidfd)
                test_skip("no pidfds of threads before Linux 6.9");

        test_child_start(&child, NULL, 1, 0);
        fd = kernel_pidfd_open(child.tids[1], true);
        assert_true(fd >= 0);
        assert_int_equal(kernel_pidfd_read_pid(fd, &number), 0);
        assert_int_equal(number, child.tids[1]);
        (void) close(fd);
        test_child_end(&child);
}

static void test_not_a_pidfd(void **state) {
        const char *const paths[] = { "/dev/null", "/proc/self", "/proc/self/status", "/tmp" };
        pid_t number = -7;
        int pair[2];

        for (size_t i = 0; i < ELEMENTS(paths); i++) {
                int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                assert_true(fd >= 0);
                assert_int_equal(kernel_pidfd_read_pid(fd, &number), -EBADF);
                (void) close(fd);
        }
        assert_int_equal(pipe(pair), 0);
        assert_int_equal(kernel_pidfd_read_pid(pair[0], &number), -EBADF);
        (void) close(pair[0]);
        (void) close(pair[1]);
        assert_int_equal(number, -7);
}

/* R5: a dead one must not read as one whose ids are all 0. */
static void test_creds_of_the_dead(void **state) {
        const struct kernel kernel = test_kernels[0].get();
        struct creds creds = { .euid = 7 };
        struct test_child child;
        int fd;

        if (!kernel.pidfd_info)
                test_skip("no PIDFD_GET_INFO before Linux 6.13");

        test_child_start(&child, NULL, 0, 0);
        fd = kernel_pidfd_open(child.pid, false);
        assert_true(fd >= 0);
        assert_int_equal(kernel_pidfd_read_creds(fd, &creds), 0);
        assert_int_equal(creds.pid, child.pid);
        test_child_end(&child);

        creds.euid = 7;
        assert_int_equal(kernel_pidfd_read_creds(fd, &creds), -ESRCH);
        assert_int_equal(creds.euid, 7);
        (void) close(fd);

        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_int_equal(kernel_pidfd_read_creds(fd, &creds), -ENOTTY);
        (void) close(fd);
}

/* Every one of them counts, but where it is kept does not: others may move it. */
static void test_creds_equal(void **state) {
        const struct creds creds = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
        struct creds other = creds;

        assert_true(creds_equal(&creds, &other));
        assert_int_equal(offsetof(struct creds, cgroup), 10 * sizeof(uint32_t));
        for (size_t i = 0; i < offsetof(struct creds, cgroup) / sizeof(uint32_t); i++) {
                other = creds;
                ((uint32_t *) &other)[i]++;
                assert_false(creds_equal(&creds, &other));
        }
        other = creds;
        other.cgroup++;
        assert_true(creds_equal(&creds, &other));
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_pidfd_numbers),
                cmocka_unit_test(test_pidfd_of_a_thread),
                cmocka_unit_test(test_not_a_pidfd),
                cmocka_unit_test(test_creds_of_the_dead),
                cmocka_unit_test(test_creds_equal),
        };
        struct CMUnitTest tests[TEST_KERNELS * ELEMENTS(cases) + ELEMENTS(others)];
        struct thread_row rows[TEST_KERNELS * ELEMENTS(cases)];
        char names[ELEMENTS(rows)][80];
        size_t n = 0;

        for (size_t i = 0; i < TEST_KERNELS; i++)
                for (size_t j = 0; j < ELEMENTS(cases); j++, n++) {
                        (void) snprintf(names[n], sizeof(names[n]), "%s: %s", test_kernels[i].name,
                                        cases[j].name);
                        rows[n] = (struct thread_row) { &cases[j], &test_kernels[i] };
                        tests[n] = test_row(names[n], test_thread, &rows[n]);
                }
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
