/* SPDX-License-Identifier: MIT */

/* A child in a sandbox names its thread, its parent asks for it, the broker checks. */

#include <limits.h>
#include <unistd.h>

#include "client/cleanup.h"
#include "client/librtgrant/thread.h"
#include "client/librtgrant/wire.h"

#define HANDOVER_VERSION 1

int rtgrant_handover_init(struct rtgrant_handover *ret_handover) {
        struct rtgrant_handover handover = {
                .size = sizeof(handover),
                .version = HANDOVER_VERSION,
                .pid = (uint64_t) getpid(),
                .tid = (uint64_t) thread_self(),
        };

        if (!ret_handover)
                return -EINVAL;

        if (thread_read_own_start_time(&handover.start_time) < 0)
                handover.start_time = 0;

        *ret_handover = handover;
        return 0;
}

static bool handover_is_whole(const struct rtgrant_handover *handover) {
        if (handover->size != sizeof(*handover) || handover->version != HANDOVER_VERSION)
                return false;
        for (size_t i = 0; i < ELEMENTS(handover->reserved); i++)
                if (handover->reserved[i] != 0)
                        return false;

        return handover->pid >= 1 && handover->pid <= INT_MAX && handover->tid >= 1 &&
               handover->tid <= INT_MAX;
}

/*
 * The record has the child's own numbers, which are others than ours if it lives in a pid namespace
 * of its own. Where /proc does not tell, they are taken as they are: the broker checks.
 */
static int find_thread(const struct rtgrant_handover *handover, pid_t child_pid, pid_t *ret_tid) {
        pid_t inner;
        int r;

        if (thread_read_inner_tid(child_pid, child_pid, &inner) < 0)
                inner = child_pid;
        if (inner != (pid_t) handover->pid)
                return -ESRCH;

        r = thread_find_inner_tid(child_pid, (pid_t) handover->tid, ret_tid);
        if (r == -ESRCH)
                return r;
        if (r < 0)
                *ret_tid = (pid_t) handover->tid;

        return 0;
}

static bool is_replaced(const struct rtgrant_handover *handover, pid_t pid, pid_t tid) {
        uint64_t start_time;

        return handover->start_time != 0 && thread_read_start_time(pid, tid, &start_time) == 0 &&
               start_time != handover->start_time;
}

int rtgrant_handover_acquire(struct rtgrant *handle, const struct rtgrant_handover *handover,
                             pid_t child_pid, const struct rtgrant_request *request,
                             struct rtgrant_answer *ret_answer) {
        struct rtgrant_request copy;
        int r;

        if (!handover || child_pid < 0 || !handover_is_whole(handover))
                return -EINVAL;
        r = request_read(request, &copy);
        if (r < 0)
                return r;

        copy.size = sizeof(copy);
        copy.pid = child_pid > 0 ? child_pid : (pid_t) handover->pid;
        copy.tid = (pid_t) handover->tid;

        if (child_pid > 0) {
                r = find_thread(handover, child_pid, &copy.tid);
                if (r < 0)
                        return r;
        }
        if (is_replaced(handover, copy.pid, copy.tid))
                return -ESRCH;

        return rtgrant_acquire(handle, &copy, ret_answer);
}
