/* SPDX-License-Identifier: MIT */

/* What /proc says: its text as a thread with an evil name may make it, and the real one. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "broker/proc.h"
#include "tests/unit/broker/broker-test.h"

/* ---- stat ---- */

/* Fields 3 to 21 of a real file, then 22 and what follows. */
#define BEFORE_22 " R 3907 3907 1779 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 "
#define BEHIND_22                                                                                 \
        " 3133440 386 18446744073709551615 94719034580992 94719034600873 140726249590416 0 0 0 "  \
        "0 0 0 0 0 0 17 1 0 0 0 0 0 94719034616880 94719034618496 94719754989568 "                \
        "140726249597571 140726249597591 140726249597591 140726249598955 0\n"

struct stat_case {
        const char *name;
        const char *text;
        size_t length;          /* 0: strlen(text) */
        struct proc_stat stat;  /* .state 0: refused */
};

#define REAL_STAT { 'R', 3907, 4194304, 286553 }

static const struct stat_case stat_cases[] = {
        { "stat: a real one", "3994 (cat)" BEFORE_22 "286553" BEHIND_22, 0, REAL_STAT },
        { "stat: a kernel thread",
          "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 31 0 0 "
          "18446744073709551615 0 0 0 0 0 0 0 "
          "2147483647 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", 0, { 'S', 0, 2129984, 31 } },
        { "stat: a real-time thread, whose priority is negative",
          "5120 (jackd) S 1 5120 1779 0 -1 4194368 101 0 0 0 0 0 0 0 -21 0 3 0 49955 3133440 386 "
          "0 0 0 0 0 0 0 0 0 0 "
          "0 0 17 1 20 1 0 0 0 0 0 0 0 0 0 0 0\n", 0, { 'S', 1, 4194368, 49955 } },
        { "stat: nothing behind field 22", "3994 (cat)" BEFORE_22 "286553", 0, REAL_STAT },
        { "stat: a start time of 64 bits", "3994 (cat)" BEFORE_22 "18446744073709551615" BEHIND_22,
          0, { 'R', 3907, 4194304, UINT64_MAX } },
        { "stat: flags of 32 bits", "1 (x) I 2 0 0 0 -1 4294967295 0 0 0 0 0 0 0 0 20 0 1 0 7 0", 0,
          { 'I', 2, UINT32_MAX, 7 } },

        { "stat: a bracket in the name", "3994 (a)b)" BEFORE_22 "286553" BEHIND_22, 0, REAL_STAT },
        { "stat: a name of brackets", "3994 ()))(()))" BEFORE_22 "286553" BEHIND_22, 0, REAL_STAT },
        { "stat: no name", "3994 ()" BEFORE_22 "286553" BEHIND_22, 0, REAL_STAT },
        { "stat: a name that shifts fields", "3994 (a b c d)" BEFORE_22 "286553" BEHIND_22, 0,
          REAL_STAT },
        { "stat: a name that goes on like the file", "3994 (x) R 9 9)" BEFORE_22 "286553" BEHIND_22,
          0, REAL_STAT },
        { "stat: a name that is a file",
          "3994 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0)" BEFORE_22 "286553" BEHIND_22, 0,
          REAL_STAT },
        { "stat: a newline in the name", "3994 (x) R 1 1\n)" BEFORE_22 "286553" BEHIND_22, 0,
          REAL_STAT },
        { "stat: control characters in the name",
          "3994 (\x1b[2J\r\x7f)" BEFORE_22 "286553" BEHIND_22, 0, REAL_STAT },

        { "stat: empty", "", 0, {} },
        { "stat: no bracket", "3994 cat R 3907 3907", 0, {} },
        { "stat: only the bracket", ")", 0, {} },
        { "stat: ends behind the name", "3994 (cat)", 0, {} },
        { "stat: ends behind the state", "3994 (cat) R", 0, {} },
        { "stat: ends before field 22", "3994 (cat)" BEFORE_22, 0, {} },
        { "stat: ends in the middle", "3994 (cat) R 3907 3907 1779 0 -1 4194304 101 0", 0, {} },
        { "stat: words for numbers", "3994 (cat) R x 3907 1779 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0",
          0, {} },
        { "stat: a word for field 22", "3994 (cat)" BEFORE_22 "x", 0, {} },
        { "stat: NUL behind the name", "3994 (cat)\0" BEFORE_22 "286553",
          sizeof("3994 (cat)\0" BEFORE_22 "286553") - 1, {} },
        { "stat: NUL at the end", "3994 (cat)" BEFORE_22 "286553\0",
          sizeof("3994 (cat)" BEFORE_22 "286553\0") - 1, {} },
        { "stat: NUL in the name is the name's", "3994 (c\0t)" BEFORE_22 "286553",
          sizeof("3994 (c\0t)" BEFORE_22 "286553") - 1, REAL_STAT },
        { "stat: what is behind the length is not read", "3994 (cat)" BEFORE_22 "286553\0)",
          sizeof("3994 (cat)" BEFORE_22 "286553") - 1, REAL_STAT },
};

static void test_stat(void **state) {
        const struct stat_case *c = *state;
        struct proc_stat stat = { 'q', -7, 7, 7 };
        int r;

        r = proc_parse_stat(c->text, c->length > 0 ? c->length : strlen(c->text), &stat);
        if (c->stat.state == '\0') {
                assert_int_equal(r, -EBADMSG);
                assert_int_equal(stat.state, 'q');
                assert_int_equal(stat.start_time, 7);
                return;
        }

        assert_int_equal(r, 0);
        assert_int_equal(stat.state, c->stat.state);
        assert_int_equal(stat.ppid, c->stat.ppid);
        assert_int_equal(stat.flags, c->stat.flags);
        assert_int_equal(stat.start_time, c->stat.start_time);
}

/* ---- status ---- */

#define UIDS "Uid:\t1000\t1001\t1002\t1003\n"
#define GIDS "Gid:\t100\t101\t102\t103\n"
#define CAPS "CapPrm:\t0000000000800000\nCapEff:\t000001fffeffffff\n"
#define NEEDED "Tgid:\t3953\n" UIDS GIDS CAPS

#define TEXT_10 "0123456789"
#define TEXT_100 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10
#define TEXT_500 TEXT_100 TEXT_100 TEXT_100 TEXT_100 TEXT_100
#define TEXT_1000 TEXT_500 TEXT_500

#define PIDS_5 "\t4194304\t4194304\t4194304\t4194304\t4194304"
#define PIDS_10 PIDS_5 PIDS_5

#define IDS { 1000, 1001, 1002, 1003 }, { 100, 101, 102, 103 }
#define STATUS_IN(depth, pid) { 3953, IDS, depth, pid, 0x800000, 0x1fffeffffff, -1, 0 }
#define STATUS STATUS_IN(0, 0)

struct status_case {
        const char *name;
        const char *text;
        struct proc_status status;      /* .tgid 0: refused */
};

static const struct status_case status_cases[] = {
        { "status: what is needed", NEEDED, STATUS },
        { "status: no newline at the end",
          "Tgid:\t3953\n" UIDS GIDS "CapEff:\t000001fffeffffff\nCapPrm:\t0000000000800000",
          STATUS },
        { "status: in another order", CAPS GIDS UIDS "Tgid:\t3953\n", STATUS },
        { "status: a real one",
          "Name:\tjackd\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t3953\nNgid:\t0\n"
          "Pid:\t3954\nPPid:\t3907\n"
          "TracerPid:\t0\nUid:\t1000\t1001\t1002\t1003\nGid:\t100\t101\t102\t103\n"
          "FDSize:\t256\nGroups:\t4 29 100 \n"
          "NStgid:\t3953\nNSpid:\t3954\nNSpgid:\t3907\nNSsid:\t1779\nKthread:\t0\n"
          "VmPeak:\t   16564 kB\n"
          "Threads:\t1\nSigQ:\t1/96365\nCapInh:\t0000000000000000\nCapPrm:\t0000000000800000\n"
          "CapEff:\t000001fffeffffff\nCapBnd:\t000001fffeffffff\n"
          "CapAmb:\t0000000000000000\nNoNewPrivs:\t0\n"
          "Seccomp:\t2\nSeccomp_filters:\t3\nCpus_allowed_list:\t0-1\n",
          { 3953, IDS, 0, 3954, 0x800000, 0x1fffeffffff, 2, 3 } },
        { "status: ids of 32 bits",
          "Tgid:\t1\nUid:\t4294967295\t0\t0\t4294967295\nGid:\t4294967294\t0\t0\t0\n" CAPS,
          { 1, { UINT32_MAX, 0, 0, UINT32_MAX }, { UINT32_MAX - 1, 0, 0, 0 }, 0, 0, 0x800000,
            0x1fffeffffff, -1, 0 } },
        { "status: all capabilities", "Tgid:\t1\n" UIDS GIDS "CapPrm:\tffffffffffffffff\n",
          { 1, IDS, 0, 0, UINT64_MAX, 0, -1, 0 } },

        { "status: NSpid of our own namespace", NEEDED "NSpid:\t3953\n", STATUS_IN(0, 3953) },
        { "status: NSpid of a namespace below", NEEDED "NSpid:\t3953\t17\n", STATUS_IN(1, 17) },
        { "status: NSpid of two namespaces below", NEEDED "NSpid:\t3953\t17\t1\n",
          STATUS_IN(2, 1) },
        { "status: NSpid with a tab at the end", NEEDED "NSpid:\t3953\t17\t\n", STATUS_IN(1, 17) },
        { "status: NSpid of 32 namespaces below, the most there are",
          NEEDED "NSpid:" PIDS_10 PIDS_10 PIDS_10 "\t4194304\t4194304\t4194303\n",
          STATUS_IN(32, 4194303) },
        { "status: NSpid without a number", NEEDED "NSpid:\t\n", {} },

        { "status: a name with an escaped newline", "Name:\tx\\nTgid:\t1\\nUid:\\t0\n" NEEDED,
          STATUS },
        { "status: a name that is a line", "Name:\tTgid:\t1\n" NEEDED, STATUS },
        { "status: a name with colons", "Name:\t::Uid:\t0\t0\t0\t0\n" NEEDED, STATUS },
        { "status: lines without a colon", "\nnothing\n" NEEDED "\n\nTgid\t1\nUid\n", STATUS },
        { "status: a line of a colon", ":\n" NEEDED ":", STATUS },
        { "status: keys are whole words", "xTgid:\t1\nTgid2:\t2\nTgi:\t3\n Tgid:\t4\n" NEEDED,
          STATUS },
        { "status: a very long key", TEXT_1000 "Tgid:\t1\n" NEEDED, STATUS },
        { "status: a very long line without a colon", TEXT_1000 "\n" NEEDED, STATUS },
        { "status: a very long line of groups", "Groups:\t" TEXT_1000 " " TEXT_1000 "\n" NEEDED,
          STATUS },
        { "status: groups that look like a line",
          "Groups:\t" TEXT_100 TEXT_100 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10
          "12345Tgid:\t1\n" NEEDED,
          STATUS },
        { "status: seccomp that is no number", NEEDED "Seccomp:\tx\nSeccomp_filters:\n", STATUS },

        { "status: empty", "", {} },
        { "status: no Tgid", UIDS GIDS CAPS, {} },
        { "status: no Uid", "Tgid:\t3953\n" GIDS CAPS, {} },
        { "status: no Gid", "Tgid:\t3953\n" UIDS CAPS, {} },
        { "status: no CapPrm", "Tgid:\t3953\n" UIDS GIDS "CapEff:\t0\n", {} },
        { "status: an empty Tgid", "Tgid:\t\n" UIDS GIDS CAPS, {} },
        { "status: three uids", "Tgid:\t3953\nUid:\t0\t0\t0\n" GIDS CAPS, {} },
        { "status: three gids", "Tgid:\t3953\n" UIDS "Gid:\t0\t0\t0\n" CAPS, {} },
        { "status: uids that are words", "Tgid:\t3953\nUid:\troot\t0\t0\t0\n" GIDS CAPS, {} },
        { "status: CapPrm that is no number", "Tgid:\t3953\n" UIDS GIDS "CapPrm:\tx\n", {} },
        { "status: CapEff that is no number", "Tgid:\t3953\n" UIDS GIDS "CapPrm:\t0\nCapEff:\t\n",
          {} },
        { "status: ends within a line", "Tgid:\t3953\n" UIDS GIDS "CapPrm:", {} },
};

static void test_status(void **state) {
        const struct status_case *c = *state;
        struct proc_status status = { .tgid = -7 };
        int r;

        r = proc_parse_status(c->text, strlen(c->text), &status);
        if (c->status.tgid == 0) {
                assert_int_equal(r, -EBADMSG);
                assert_int_equal(status.tgid, -7);
                return;
        }

        assert_int_equal(r, 0);
        assert_int_equal(status.tgid, c->status.tgid);
        for (size_t i = 0; i < _PROC_IDS_MAX; i++) {
                assert_int_equal(status.uids[i], c->status.uids[i]);
                assert_int_equal(status.gids[i], c->status.gids[i]);
        }
        assert_int_equal(status.ns_depth, c->status.ns_depth);
        assert_int_equal(status.ns_pid, c->status.ns_pid);
        assert_int_equal(status.cap_permitted, c->status.cap_permitted);
        assert_int_equal(status.cap_effective, c->status.cap_effective);
        assert_int_equal(status.seccomp, c->status.seccomp);
        assert_int_equal(status.seccomp_filters, c->status.seccomp_filters);
}

/* Only what is within the length counts, whatever is behind it. */
static void test_status_is_bounded(void **state) {
        static const char text[] = NEEDED;
        struct proc_status status;
        size_t needed = strlen(text) - strlen("CapEff:\t000001fffeffffff\n");

        for (size_t length = 0; length < sizeof(text); length++) {
                char *copy = malloc(length + 1); /* of the very size, for the address sanitizer */
                int r;

                assert_non_null(copy);
                memcpy(copy, text, length);
                copy[length] = '\0';
                r = proc_parse_status(copy, length, &status);
                if (length >= needed && length != needed + strlen("CapEff:"))
                        assert_int_equal(r, length == needed + strlen("CapEff:\t") ? -EBADMSG : 0);
                free(copy);
        }
}

/* ---- uid_map ---- */

struct map_case {
        const char *name;
        const char *text;
        bool initial;
};

static const struct map_case map_cases[] = {
        { "uid_map: of the initial namespace", "         0          0 4294967295\n", true },
        { "uid_map: root is somebody", "         0       1000          1\n", false },
        { "uid_map: itself alone", "      1000       1000          1\n", false },
        { "uid_map: many, but not all", "         0          0      65536\n", false },
        { "uid_map: all but one", "         0          0 4294967294\n", false },
        { "uid_map: shifted", "         0     100000 4294867295\n", false },
        { "uid_map: all, shifted", "         0          1 4294967295\n", false },
        { "uid_map: all, shifted within", "         1          0 4294967295\n", false },
        { "uid_map: shifted within", "         1          0 4294967294\n", false },
        { "uid_map: several lines",
          "         0       1000          1\n         1     100000      65536\n", false },
        { "uid_map: not set yet", "", false },
        { "uid_map: half a line", "0 0", false },
        { "uid_map: words", "root root all\n", false },
};

static void test_map(void **state) {
        const struct map_case *c = *state;

        assert_int_equal(proc_uid_map_is_initial(c->text), c->initial);
}

/* ---- the real one ---- */

static void test_own_stat(void **state) {
        struct proc_stat stat, again;

        assert_int_equal(proc_read_stat(getpid(), getpid(), &stat), 0);
        assert_int_equal(stat.state, 'R');
        assert_int_equal(stat.ppid, getppid());
        assert_true(stat.start_time > 0);
        assert_false(stat.flags & PROC_FLAG_KTHREAD);
        assert_int_equal(proc_read_stat(getpid(), 0, &again), 0);
        assert_int_equal(again.start_time, stat.start_time);
}

/* Fact7: the start time cannot be forged by a name. */
static void test_evil_name(void **state) {
        static const char *const names[] = { "x) R 9 9\n",     "a) R 1 2 3", ")",
                                             ") S 0 0 0 0 -1", "\n\n\n",     "((((" };
        struct proc_stat before, after;
        struct proc_status status;
        struct test_child child;
        char comm[64];

        test_child_start(&child, NULL, 0, 0);
        assert_int_equal(proc_read_stat(child.pid, 0, &before), 0);

        for (size_t i = 0; i < ELEMENTS(names); i++) {
                test_child_rename(&child, names[i]);
                assert_int_equal(proc_read_stat(child.pid, child.pid, &after), 0);
                assert_int_equal(after.start_time, before.start_time);
                assert_int_equal(after.ppid, getpid());
                assert_int_equal(after.flags & PROC_FLAG_KTHREAD, 0);
                assert_int_equal(proc_read_status(child.pid, child.pid, &status), 0);
                assert_int_equal(status.tgid, child.pid);
        }

        test_child_rename(&child, "x) R 9 9\n");
        proc_read_comm(child.pid, child.pid, comm, sizeof(comm));
        assert_string_equal(comm, "x) R 9 9\\x0a");
        test_child_rename(&child, "a\nb");
        proc_read_comm(child.pid, child.pid, comm, sizeof(comm));
        assert_string_equal(comm, "a\\x0ab");
        test_child_end(&child);
}

static void test_kernel_thread(void **state) {
        struct proc_stat stat;

        if (proc_read_stat(2, 2, &stat) < 0 || stat.ppid != 0)
                test_skip("process 2 is not the kernel's here");

        assert_true(stat.flags & PROC_FLAG_KTHREAD);
        assert_int_equal(stat.ppid, 0);
}

static void test_own_status(void **state) {
        struct proc_status status;

        assert_int_equal(proc_read_status(getpid(), getpid(), &status), 0);
        assert_int_equal(status.tgid, getpid());
        assert_int_equal(status.uids[PROC_REAL], getuid());
        assert_int_equal(status.uids[PROC_EFFECTIVE], geteuid());
        assert_int_equal(status.gids[PROC_REAL], getgid());
        assert_int_equal(status.gids[PROC_EFFECTIVE], getegid());
}

/* Each of the four ids in its own place. */
static void test_status_of_ids(void **state) {
        static const struct test_ids ids = { 64001, 64002, 64003, 64011, 64012, 64013, false };
        struct proc_status status;
        struct test_child child;

        test_need_root();
        test_child_start(&child, &ids, 0, 0);
        assert_int_equal(proc_read_status(child.pid, child.pid, &status), 0);
        assert_int_equal(status.uids[PROC_REAL], 64001);
        assert_int_equal(status.uids[PROC_EFFECTIVE], 64002);
        assert_int_equal(status.uids[PROC_SAVED], 64003);
        assert_int_equal(status.uids[PROC_FS], 64002);
        assert_int_equal(status.gids[PROC_REAL], 64011);
        assert_int_equal(status.gids[PROC_EFFECTIVE], 64012);
        assert_int_equal(status.gids[PROC_SAVED], 64013);
        assert_int_equal(status.gids[PROC_FS], 64012);
        assert_int_equal(status.cap_permitted, 0);
        test_child_end(&child);
}

static void test_status_in_namespace(void **state) {
        struct proc_status status;
        struct test_child child;

        test_need_root();
        test_child_start(&child, NULL, 1, CLONE_NEWPID);
        assert_int_equal(child.tids[0], 1);
        assert_int_equal(proc_read_status(child.pid, 0, &status), 0);
        assert_int_equal(status.tgid, child.pid);
        assert_int_equal(status.ns_depth, 1);
        assert_int_equal(status.ns_pid, 1);
        test_child_end(&child);
}

/* A thread is found in its own process only. */
static void test_no_such(void **state) {
        struct proc_stat stat;
        struct test_child child;
        char comm[8] = "before", *text = NULL;
        pid_t pid;

        test_child_start(&child, NULL, 1, 0);
        assert_int_equal(proc_read_stat(child.pid, child.tids[1], &stat), 0);
        assert_int_equal(proc_read_stat(getpid(), child.tids[1], &stat), -ESRCH);
        pid = child.pid;
        test_child_end(&child);

        assert_int_equal(proc_read_stat(pid, 0, &stat), -ESRCH);
        assert_int_equal(proc_read_stat(pid, pid, &stat), -ESRCH);
        assert_int_equal(proc_read(pid, 0, "status", &text, NULL), -ESRCH);
        assert_null(text);
        proc_read_comm(pid, pid, comm, sizeof(comm));
        assert_string_equal(comm, "");
}

/* Mappings of one page each, with a line of some 50 bytes for each. */
static void make_mappings(size_t n) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        char *area = mmap(NULL, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(area != MAP_FAILED);
        for (size_t i = 0; i < n; i += 2)
                CHECK(mprotect(area + i * page, page, PROT_READ) == 0);
}

static void read_large(const void *userdata) {
        char *text = NULL;
        size_t length;

        make_mappings(4000);
        CHECK(proc_read(getpid(), 0, "maps", &text, &length) == 0);
        CHECK(length > 100000 && strlen(text) == length && text[length - 1] == '\n');
        free(text);
        text = NULL;
        make_mappings(30000);
        CHECK(proc_read(getpid(), 0, "maps", &text, &length) == -E2BIG);
        CHECK(!text);
}

static void test_large_files(void **state) {
        test_in_child(read_large, NULL);
}

static void test_initial_namespace(void **state) {
        uid_t owner = 7;

        if (proc_in_initial_userns(getpid()) != 1)
                test_skip("the test itself runs in a user namespace");

        assert_int_equal(proc_userns_owner(getpid(), &owner), 0);
        assert_int_equal(owner, 0);
        assert_int_equal(proc_in_initial_userns(0x3fffff), -ESRCH);
        assert_int_equal(proc_userns_owner(0x3fffff, &owner), -ESRCH);
}

static void write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
}

/* A namespace within one within the initial one: the quota is that of who made the outermost. */
static void nest_namespaces(int sync) {
        test_become(&TEST_IDS(UID_NOBODY));
        CHECK(prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        if (unshare(CLONE_NEWUSER) < 0)
                _exit(EXIT_SKIP);
        write_file("/proc/self/uid_map", "0 65534 1");
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/gid_map", "0 65534 1");
        CHECK(unshare(CLONE_NEWUSER) == 0);
        CHECK(write(sync, "x", 1) == 1);
        (void) pause();
}

static void test_owner_of_namespaces(void **state) {
        struct test_child child;
        uid_t owner = 7;
        int sync[2];
        char byte;
        pid_t pid;

        test_need_root();
        test_child_start(&child, &TEST_IDS(UID_NOBODY), 0, 0);
        assert_int_equal(proc_in_initial_userns(child.pid), 1);
        test_child_end(&child);

        assert_int_equal(pipe(sync), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) close(sync[0]);
                nest_namespaces(sync[1]);
        }
        (void) close(sync[1]);
        if (read(sync[0], &byte, 1) != 1)
                test_skip("no user namespaces can be made here");

        assert_int_equal(proc_in_initial_userns(pid), 0);
        assert_int_equal(proc_userns_owner(pid, &owner), 0);
        assert_int_equal(owner, UID_NOBODY);
        (void) close(sync[0]);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_status_is_bounded),
                cmocka_unit_test(test_own_stat),
                cmocka_unit_test(test_evil_name),
                cmocka_unit_test(test_kernel_thread),
                cmocka_unit_test(test_own_status),
                cmocka_unit_test(test_status_of_ids),
                cmocka_unit_test(test_status_in_namespace),
                cmocka_unit_test(test_no_such),
                cmocka_unit_test(test_large_files),
                cmocka_unit_test(test_initial_namespace),
                cmocka_unit_test(test_owner_of_namespaces),
        };
        struct CMUnitTest tests[ELEMENTS(stat_cases) + ELEMENTS(status_cases) +
                                ELEMENTS(map_cases) + ELEMENTS(others)];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(stat_cases); i++)
                tests[n++] = test_row(stat_cases[i].name, test_stat, &stat_cases[i]);
        for (size_t i = 0; i < ELEMENTS(status_cases); i++)
                tests[n++] = test_row(status_cases[i].name, test_status, &status_cases[i]);
        for (size_t i = 0; i < ELEMENTS(map_cases); i++)
                tests[n++] = test_row(map_cases[i].name, test_map, &map_cases[i]);
        memcpy(tests + n, others, sizeof(others));

        return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
