/* SPDX-License-Identifier: MIT */

#include "broker/rttime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/proc.h"

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

bool rttime_is_unset(pid_t pid) {
        _cleanup_free_ char *text = NULL;
        struct rttime rttime;

        return proc_read(pid, 0, "limits", &text, NULL) >= 0 && rttime_parse(text, &rttime) >= 0 &&
               rttime.hard_us == RTTIME_UNLIMITED;
}

enum reason rttime_check(const struct policy *policy, pid_t pid) {
        _cleanup_free_ char *text = NULL;
        struct rttime rttime;
        int r;

        r = proc_read(pid, 0, "limits", &text, NULL);
        if (r < 0)
                return r == -ESRCH ? REASON_NO_SUCH_THREAD : REASON_RESOURCES;
        if (rttime_parse(text, &rttime) < 0)
                return REASON_RTTIME;

        if (rttime.soft_us < LETHAL_US || rttime.hard_us < LETHAL_US)
                return REASON_RTTIME;
        if (rttime.hard_us == RTTIME_UNLIMITED)
                return policy->realtimekit_rttime_unset ? REASON_NONE : REASON_RTTIME;

        return rttime.hard_us <= policy->realtimekit_rttime_us ? REASON_NONE : REASON_RTTIME;
}
