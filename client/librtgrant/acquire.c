/* SPDX-License-Identifier: MIT */

#include "client/librtgrant/acquire.h"

#include "client/librtgrant/thread.h"

/* A sixth of the kernel's own; it takes 0.1 to 100 ms. */
#define SLICE_NS UINT64_C(500000)

int answer_to_result(const struct rtgrant_answer *answer) {
        return answer->reason == RTGRANT_REASON_NONE ? 0 : -EPERM;
}

static bool is_so(const struct rtgrant_request *request, const struct rtgrant_answer *answer,
                  const struct thread_values *now) {
        if (request->wants_sched && answer->rung != RTGRANT_RUNG_NICE &&
            (now->policy != answer->policy || now->priority != answer->priority ||
             (policy_is_rt(now->policy) && !now->reset_on_fork)))
                return false;

        return !request->wants_nice || now->nice == answer->nice;
}

int acquire_verify(const struct rtgrant_request *request, struct rtgrant_answer *answer) {
        struct thread_values now;
        int r;

        if (answer->reason != RTGRANT_REASON_NONE || request->flags & RTGRANT_DRY_RUN)
                return 0;

        r = answer_check(answer, request);
        if (!request_is_own(request))
                return r;

        /* A sandbox may forbid to look, and another thread of ours may have ended: no proof. */
        if (thread_read(request->tid, &now) < 0 || (r == 0 && is_so(request, answer, &now)))
                return r;

        answer->policy = now.policy;
        answer->priority = now.priority;
        answer->nice = now.nice;
        answer->reset_on_fork = now.reset_on_fork;
        return -EPROTO;
}

/* The thread that is meant, as the kernel numbers it for this process; 0 if it cannot be told. */
static pid_t find_tid(const struct rtgrant_request *request) {
        if (request_is_own(request))
                return request->tid;
        if (request->tid == 0 && request->pidfd_plus_one > 0)
                return thread_of_pidfd(request->pidfd_plus_one - 1);

        return request->tid > 0 ? request->tid : request->pid;
}

/* The last rungs, for which nobody has to be asked: shorter time slices, or nothing. */
static void take_slice(const struct rtgrant_request *request, struct rtgrant_answer *answer) {
        pid_t tid = find_tid(request);
        struct thread_values now;

        answer->rung = RTGRANT_RUNG_NOTHING;
        if (tid <= 0 || request->flags & RTGRANT_DRY_RUN ||
            thread_write_slice(tid, SLICE_NS) < 0 || thread_read(tid, &now) < 0)
                return;

        answer->rung = RTGRANT_RUNG_SLICE;
        answer->reason = RTGRANT_REASON_NONE;
        answer->route = RTGRANT_ROUTE_DIRECT;
        answer->policy = answer->previous_policy = now.policy;
        answer->priority = answer->previous_priority = now.priority;
        answer->nice = answer->previous_nice = now.nice;
        answer->reset_on_fork = now.reset_on_fork;
}

static int acquire_from_broker(struct rtgrant *handle, const struct rtgrant_request *request,
                               struct rtgrant_answer *ret) {
        struct wire_answer reply;
        struct call call = { .reply = &reply, .reply_max = sizeof(reply) };
        int r;

        request_encode_acquire(request, &call.request.acquire);
        call.pidfd = request->pidfd_plus_one - 1;

        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        answer_decode(&reply, ret);
        r = acquire_verify(request, ret);
        if (r == 0 && ret->reason != RTGRANT_REASON_NONE && request->flags & RTGRANT_OR_LESS)
                take_slice(request, ret);
        return r < 0 ? r : answer_to_result(ret);
}

int acquire(struct rtgrant **handle, const struct rtgrant_request *request,
            struct rtgrant_answer *ret) {
        int r;

        r = acquire_directly(request, ret);
        if (r != 0)
                return r < 0 ? r : 0;

        if (!*handle) {
                r = rtgrant_open(handle, NULL, 0);
                if (r < 0)
                        return r;
        }

        return acquire_from_broker(*handle, request, ret);
}

static void close_handle(struct rtgrant **handle) {
        (void) rtgrant_close(*handle);
}

/* Without a handle: one is opened if need be, and the lease must outlive it. */
static int acquire_without_handle(struct rtgrant_request *request, struct rtgrant_answer *ret) {
        __attribute__((cleanup(close_handle))) struct rtgrant *handle = NULL;

        if (!(request->flags & RTGRANT_DIRECT))
                return -EINVAL;

        request->lifetime = RTGRANT_LIFETIME_THREAD;
        return acquire(&handle, request, ret);
}

int rtgrant_acquire(struct rtgrant *handle, const struct rtgrant_request *request,
                    struct rtgrant_answer *ret_answer) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct rtgrant_answer answer = { .size = 0 };
        struct rtgrant_request copy;
        int r;

        r = request_read(request, &copy);
        if (r < 0)
                return r;
        if (!copy.wants_sched && !copy.wants_nice && request_is_of_thread(&copy))
                return -EINVAL;
        r = public_check_out(ret_answer, ANSWER_SIZE_FIRST);
        if (r < 0)
                return r;

        if (handle) {
                r = handle_enter(handle, &entered);
                if (r < 0)
                        return r;
                r = acquire(&entered, &copy, &answer);
        } else
                r = acquire_without_handle(&copy, &answer);

        if (answer.size > 0)
                public_copy_out(&answer, sizeof(answer), ret_answer);
        return r;
}

int rtgrant_update(struct rtgrant *handle, const struct rtgrant_id *id,
                   const struct rtgrant_request *request, struct rtgrant_answer *ret_answer) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct rtgrant_answer answer;
        struct rtgrant_request copy;
        struct wire_answer reply;
        struct call call = { .pidfd = -1, .reply = &reply, .reply_max = sizeof(reply) };
        int r;

        if (!id)
                return -EINVAL;
        r = request_read(request, &copy);
        if (r < 0)
                return r;
        r = public_check_out(ret_answer, ANSWER_SIZE_FIRST);
        if (r < 0)
                return r;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        request_encode_update(&copy, id, &call.request.update);
        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        answer_decode(&reply, &answer);
        public_copy_out(&answer, sizeof(answer), ret_answer);
        r = copy.flags & RTGRANT_DRY_RUN ? 0 : answer_check(&answer, &copy);
        return r < 0 ? r : answer_to_result(&answer);
}
