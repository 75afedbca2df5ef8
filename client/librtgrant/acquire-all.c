/* SPDX-License-Identifier: MIT */

/* One request for every thread of a process, the new-born ones too. */

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "client/cleanup.h"
#include "client/librtgrant/acquire.h"
#include "client/librtgrant/thread.h"

#define PASSES_MAX 64
#define RATE_WAIT_MS_MAX 5000

/* Threads that had their turn: sorted are those of earlier passes. */
struct tid_set {
        pid_t *tids;            /* owned */
        size_t n_tids;
        size_t n_sorted;
        size_t n_allocated;
};

static void tid_set_done(struct tid_set *set) {
        free(set->tids);
}

static int compare_tids(const void *a, const void *b) {
        pid_t x = *(const pid_t *) a, y = *(const pid_t *) b;

        return (x > y) - (x < y);
}

static bool tid_set_has(const struct tid_set *set, pid_t tid) {
        return set->n_sorted > 0 &&
               bsearch(&tid, set->tids, set->n_sorted, sizeof(tid), compare_tids);
}

static int tid_set_add(struct tid_set *set, pid_t tid) {
        size_t n = set->n_allocated > 0 ? set->n_allocated * 2 : 64;
        pid_t *tids;

        if (set->n_tids == set->n_allocated) {
                tids = reallocarray(set->tids, n, sizeof(*tids));
                if (!tids)
                        return -ENOMEM;
                set->tids = tids;
                set->n_allocated = n;
        }

        set->tids[set->n_tids++] = tid;
        return 0;
}

static void tid_set_sort(struct tid_set *set) {
        if (set->n_tids > 0)
                qsort(set->tids, set->n_tids, sizeof(*set->tids), compare_tids);
        set->n_sorted = set->n_tids;
}

static int tid_set_take(pid_t tid, void *userdata) {
        struct tid_set *set = userdata;

        return tid_set_has(set, tid) ? 0 : tid_set_add(set, tid);
}

/* One run over all threads. */
struct sweep {
        struct rtgrant *handle;         /* owned if there was none to begin with */
        const struct rtgrant_request *request; /* borrowed */
        pid_t pid;
        unsigned wait_left_ms;
        rtgrant_thread_fn each;
        void *userdata;
        int n_granted;
        int n_refused;
};

static void sleep_ms(unsigned ms) {
        struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000) * 1000000 };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

/* Refusals for the rate are waited out, as long as there is time left for it. */
static int sweep_acquire(struct sweep *sweep, const struct rtgrant_request *request,
                         struct rtgrant_answer *ret) {
        unsigned wait_ms;
        int r;

        for (;;) {
                *ret = (struct rtgrant_answer) { .size = 0 };
                r = acquire(&sweep->handle, request, ret);
                if (r != -EPERM || ret->reason != RTGRANT_REASON_RATE)
                        return r;

                wait_ms = ret->retry_after_ms > 0 ? ret->retry_after_ms : 1;
                if (wait_ms > sweep->wait_left_ms)
                        return r;

                sleep_ms(wait_ms);
                sweep->wait_left_ms -= wait_ms;
        }
}

/* Returns 0 unless there is no sense in going on. */
static int sweep_thread(struct sweep *sweep, pid_t tid) {
        struct rtgrant_request request = *sweep->request;
        struct rtgrant_answer answer;
        int r;

        request.pid = sweep->pid;
        request.tid = tid;

        r = sweep_acquire(sweep, &request, &answer);
        if (r < 0 && !thread_exists(sweep->pid, tid))
                return 0;
        if (r < 0 && r != -EPERM && r != -ESRCH)
                return r;

        if (r == 0)
                sweep->n_granted++;
        else
                sweep->n_refused++;
        if (sweep->each)
                sweep->each(tid, r, &answer, sweep->userdata);
        return 0;
}

static int sweep_run(struct sweep *sweep) {
        _cleanup_(tid_set_done) struct tid_set set = {};
        int r;

        for (int pass = 0; pass < PASSES_MAX; pass++) {
                r = thread_for_each(sweep->pid, tid_set_take, &set);
                if (r == -ENOENT)
                        r = pass == 0 ? -ESRCH : 0;
                if (r < 0 || set.n_tids == set.n_sorted)
                        return r;

                for (size_t i = set.n_sorted; i < set.n_tids; i++) {
                        r = sweep_thread(sweep, set.tids[i]);
                        if (r < 0)
                                return r;
                }

                tid_set_sort(&set);
        }

        return -EAGAIN;
}

int rtgrant_acquire_all(struct rtgrant *handle, const struct rtgrant_request *request,
                        rtgrant_thread_fn each, void *userdata) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct rtgrant_request copy;
        struct sweep sweep = { .request = &copy, .each = each, .userdata = userdata };
        int r;

        r = request_read(request, &copy);
        if (r < 0)
                return r;
        if ((!copy.wants_sched && !copy.wants_nice) || copy.pidfd_plus_one != 0)
                return -EINVAL;

        if (handle) {
                r = handle_enter(handle, &entered);
                if (r < 0)
                        return r;
        } else if (copy.flags & RTGRANT_DIRECT)
                copy.lifetime = RTGRANT_LIFETIME_THREAD;
        else
                return -EINVAL;

        sweep.handle = handle;
        sweep.pid = copy.pid > 0 ? copy.pid : getpid();
        sweep.wait_left_ms = RATE_WAIT_MS_MAX;
        r = sweep_run(&sweep);
        if (!handle)
                (void) rtgrant_close(sweep.handle);
        if (r < 0)
                return r;

        if (sweep.n_granted > 0)
                return sweep.n_granted;

        return sweep.n_refused > 0 ? -EPERM : -ESRCH;
}
