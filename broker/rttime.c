/* SPDX-License-Identifier: MIT */

#include "broker/rttime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "broker/cleanup.h"

/* The kernel counts in scheduler ticks, of 10 ms at the longest, and kills at the first one after
 * the limit: below this no real-time thread lives long enough to do anything. */
#define LETHAL_US 5000

static const char *parse_limit(const char *text, uint64_t *ret) {
        static const char unlimited[] = "unlimited";
        char *end;

        text += strspn(text, " ");
        if (strncmp(text, unlimited, strlen(unlimited)) == 0) {
                *ret = RTTIME_UNLIMITED;
                return text + strlen(unlimited);
        }
        if (*text < '0' || *text > '9')
                return NULL;

        errno = 0;
        *ret = strtoull(text, &end, 10);
        return errno == 0 ? end : NULL;
}

int rttime_parse(const char *text, struct rttime *ret) {
        static const char name[] = "\nMax realtime timeout ";
        struct rttime rttime;
        const char *at;

        at = strstr(text, name);
        if (!at)
                return -EBADMSG;

        at = parse_limit(at + strlen(name), &rttime.soft_us);
        if (!at || *at != ' ')
                return -EBADMSG;
        at = parse_limit(at, &rttime.hard_us);
        if (!at || *at != ' ')
                return -EBADMSG;

        *ret = rttime;
        return 0;
}

/* In one go, on the stack: it is read for each new grant where prlimit(2) may not be used. */
static int read_proc(pid_t pid, struct rttime *ret) {
        _cleanup_close_ int fd = -1;
        char path[64], text[4096];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/limits", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;

        text[n] = '\0';
        return rttime_parse(text, ret);
}

int rttime_read(pid_t pid, struct rttime *ret) {
        struct rlimit now;

        if (prlimit(pid, RLIMIT_RTTIME, NULL, &now) < 0)
                return errno == ESRCH ? -ESRCH : read_proc(pid, ret);

        *ret = (struct rttime) { now.rlim_cur, now.rlim_max };
        return 0;
}

int rttime_write(pid_t pid, const struct rttime *rttime) {
        const struct rlimit next = { .rlim_cur = rttime->soft_us, .rlim_max = rttime->hard_us };

        return prlimit(pid, RLIMIT_RTTIME, &next, NULL) < 0 ? -errno : 0;
}

bool rttime_is_unset(pid_t pid) {
        struct rttime rttime;

        return rttime_read(pid, &rttime) >= 0 && rttime.hard_us == RTTIME_UNLIMITED;
}

enum reason rttime_judge(const struct policy *policy, const struct rttime *rttime, bool required) {
        if (rttime->soft_us < LETHAL_US || rttime->hard_us < LETHAL_US)
                return REASON_RTTIME_LETHAL;
        if (!required)
                return REASON_NONE;
        if (rttime->hard_us == RTTIME_UNLIMITED)
                return policy->realtimekit_rttime_unset ? REASON_NONE : REASON_RTTIME;

        return rttime->hard_us <= policy->realtimekit_rttime_us ? REASON_NONE : REASON_RTTIME;
}
