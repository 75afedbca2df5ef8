/* SPDX-License-Identifier: MIT */

/*
 * RLIMIT_MEMLOCK and RLIMIT_RTTIME of processes for a broker that may not set them, as in most
 * containers: kept in files, "SOFT HARD", in $RTGRANT_TEST_LIMITS: PID and PID.rttime. What has none
 * has the limits that it really has. Everything else is the kernel's.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int __real_prlimit64(pid_t pid, int resource, const struct rlimit *new_limit,
                     struct rlimit *old_limit);
int __wrap_prlimit64(pid_t pid, int resource, const struct rlimit *new_limit,
                     struct rlimit *old_limit);

static rlim_t parse(const char *text) {
        return strcmp(text, "unlimited") == 0 ? RLIM_INFINITY : strtoull(text, NULL, 10);
}

/* What the process really has; another user's may be read here, but not by prlimit(2). */
static int read_real(pid_t pid, const char *name, struct rlimit *ret) {
        char path[64], line[256], soft[32], hard[32];
        int r = -1;
        FILE *file;

        (void) snprintf(path, sizeof(path), "/proc/%d/limits", (int) pid);
        file = fopen(path, "re");
        if (!file) {
                errno = ESRCH;
                return -1;
        }
        while (r < 0 && fgets(line, sizeof(line), file))
                if (strncmp(line, name, strlen(name)) == 0 &&
                    sscanf(line + strlen(name), "%31s %31s", soft, hard) == 2) {
                        ret->rlim_cur = parse(soft);
                        ret->rlim_max = parse(hard);
                        r = 0;
                }
        (void) fclose(file);
        if (r < 0)
                errno = ESRCH;
        return r;
}

static int read_kept(const char *path, struct rlimit *ret) {
        uint64_t soft, hard;
        FILE *file;
        int n;

        file = fopen(path, "re");
        if (!file)
                return -1;
        n = fscanf(file, "%" SCNu64 " %" SCNu64, &soft, &hard);
        (void) fclose(file);
        if (n != 2)
                return -1;

        ret->rlim_cur = soft;
        ret->rlim_max = hard;
        return 0;
}

static int keep(const char *path, const struct rlimit *limit) {
        FILE *file;

        file = fopen(path, "we");
        if (!file)
                return -1;
        fprintf(file, "%" PRIu64 " %" PRIu64 "\n", (uint64_t) limit->rlim_cur,
                (uint64_t) limit->rlim_max);
        return fclose(file);
}

int __wrap_prlimit64(pid_t pid, int resource, const struct rlimit *new_limit,
                     struct rlimit *old_limit) {
        const char *dir = getenv("RTGRANT_TEST_LIMITS");
        struct rlimit now;
        char path[512];

        if ((resource != RLIMIT_MEMLOCK && resource != RLIMIT_RTTIME) || !dir)
                return __real_prlimit64(pid, resource, new_limit, old_limit);

        if (read_real(pid, resource == RLIMIT_RTTIME ? "Max realtime timeout" : "Max locked memory",
                      &now) < 0)
                return -1;
        (void) snprintf(path, sizeof(path), "%s/%d%s", dir, (int) pid,
                        resource == RLIMIT_RTTIME ? ".rttime" : "");
        (void) read_kept(path, &now);
        if (old_limit)
                *old_limit = now;
        return new_limit ? keep(path, new_limit) : 0;
}
