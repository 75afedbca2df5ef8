/* SPDX-License-Identifier: MIT */

/* Each test is a process of its own: what is locked and limited ends with it. */

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/lib/lib-test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#define MIB (UINT64_C(1) << 20)

/* Root may lock what it likes: as somebody else, the limit counts. */
static void drop_root(uint64_t limit_bytes) {
        struct rlimit limit = { .rlim_cur = limit_bytes, .rlim_max = limit_bytes };

        if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || (geteuid() == 0 && setuid(65534) < 0))
                _exit(77);
}

static void *map(size_t bytes) {
        return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int total_bytes(uint64_t *ret) {
        unsigned long pages;
        FILE *file = fopen("/proc/self/statm", "re");

        if (!file || fscanf(file, "%lu", &pages) != 1)
                return 1;
        (void) fclose(file);
        *ret = (uint64_t) pages * (uint64_t) sysconf(_SC_PAGESIZE);
        return 0;
}

/* 0, or which step was not as it should be. */
static int locks_what_is_there(void) {
        uint64_t locked, limit, total;

        if (total_bytes(&total) != 0)
                return 1;
        drop_root(total + MIB);
        if (rtgrant_lock_memory(&locked, &limit) != 0)
                return 2;
        return locked > 0 && locked <= limit && limit == total + MIB ? 0 : 3;
}

static int what_comes_later_is_not_refused(void) {
        uint64_t locked, again, total;
        void *more;

        if (total_bytes(&total) != 0)
                return 1;
        drop_root(total + MIB);
        if (rtgrant_lock_memory(&locked, NULL) != 0)
                return 2;
        /* more than the limit: with MCL_FUTURE this would fail */
        more = map(64 * MIB);
        if (more == MAP_FAILED)
                return 3;
        (void) munmap(more, 64 * MIB);

        more = map(MIB / 4);
        if (more == MAP_FAILED || rtgrant_lock_memory(&again, NULL) != 0)
                return 4;
        return again >= locked + MIB / 4 ? 0 : 5;
}

/* Somebody fell into it before: that ends too. */
static int an_earlier_trap_is_disarmed(void) {
        uint64_t total;

        if (total_bytes(&total) != 0)
                return 1;
        drop_root(total + MIB);
        if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
                return 2;
        if (map(64 * MIB) != MAP_FAILED)
                return 3;
        if (rtgrant_lock_memory(NULL, NULL) != 0)
                return 4;
        return map(64 * MIB) != MAP_FAILED ? 0 : 5;
}

static int too_small_a_limit_locks_nothing(void) {
        uint64_t locked, limit;

        drop_root(64 * 1024);
        if (rtgrant_lock_memory(&locked, &limit) != -ENOMEM)
                return 1;
        return locked == 0 && limit == 64 * 1024 ? 0 : 2;
}

static int no_limit_at_all(void) {
        uint64_t locked, limit;

        drop_root(0);
        return rtgrant_lock_memory(&locked, &limit) == -EPERM && limit == 0 ? 0 : 1;
}

static void run(int (*test)(void)) {
        int status;
        pid_t pid;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(test());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) {
                print_message("# not tried: RLIMIT_MEMLOCK cannot be raised here\n");
                return;
        }
        assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name)                              \
        static void test_##name(void **state) { \
                run(name);                      \
        }
TEST(locks_what_is_there)
TEST(what_comes_later_is_not_refused)
TEST(an_earlier_trap_is_disarmed)
TEST(too_small_a_limit_locks_nothing)
TEST(no_limit_at_all)

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_locks_what_is_there),
                cmocka_unit_test(test_what_comes_later_is_not_refused),
                cmocka_unit_test(test_an_earlier_trap_is_disarmed),
                cmocka_unit_test(test_too_small_a_limit_locks_nothing),
                cmocka_unit_test(test_no_limit_at_all),
        };

#ifdef SANITIZED
        (void) tests;
        printf("1..0 # SKIP the sanitizer maps terabytes and keeps mlockall from the kernel\n");
        return 0;
#else
        return cmocka_run_group_tests_name("lib-memory", tests, NULL, NULL);
#endif
}
