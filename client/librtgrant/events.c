/* SPDX-License-Identifier: MIT */

/* For event loops: calls that nobody waits for, and what the broker says unasked. */

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/librtgrant/acquire.h"

/* One call of rtgrant_process() reads no more than this, so that the loop's others have a turn. */
#define RECORDS_PER_TURN 64

/* ---- events ---- */

struct event {
        struct delivery delivery;       /* first */
        struct wire_event wire;
};

static void event_drop(struct delivery *delivery) {
        free(delivery);
}

static void event_deliver(struct rtgrant *handle, struct delivery *delivery) {
        struct event *event = (struct event *) delivery;
        struct rtgrant_lease lease;
        rtgrant_event_fn each;
        void *userdata;
        uint64_t n_lost;

        (void) pthread_mutex_lock(&handle->lock);
        handle->n_events--;
        n_lost = event->wire.n_lost + handle->n_events_lost;
        each = handle->closed ? NULL : handle->watch;
        userdata = handle->watch_userdata;
        (void) pthread_mutex_unlock(&handle->lock);

        if (each) {
                WIRE_STRING_END(event->wire.text);
                lease_decode(&event->wire.lease, &lease);
                each((enum rtgrant_event_kind) event->wire.kind, (int) event->wire.reason, &lease,
                     event->wire.text, n_lost, userdata);
        }

        free(event);
}

void event_queue(struct rtgrant *handle, const void *record, size_t size) {
        const struct wire_event *wire = record;
        struct event *event;

        if (size >= SIZE_THROUGH(struct wire_event, lease) &&
            (wire->kind == WIRE_EVENT_ENDED || wire->kind == WIRE_EVENT_REVOKED))
                bound_forget(handle, wire->lease.id);

        event = handle->n_events < EVENTS_MAX ? calloc(1, sizeof(*event)) : NULL;
        if (!event) {
                handle->n_events_lost++;
                return;
        }

        event->delivery = (struct delivery) { .deliver = event_deliver, .drop = event_drop };
        memcpy(&event->wire, record, size < sizeof(event->wire) ? size : sizeof(event->wire));
        handle->n_events++;
        handle_queue(handle, &event->delivery);
}

static void set_watch(struct rtgrant *handle, bool all, rtgrant_event_fn each, void *userdata) {
        (void) pthread_mutex_lock(&handle->lock);
        handle->watch_all = all;
        handle->watch = each;
        handle->watch_userdata = userdata;
        (void) pthread_mutex_unlock(&handle->lock);
}

int rtgrant_watch(struct rtgrant *handle, bool all, rtgrant_event_fn each, void *userdata) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct wire_answer reply;
        struct wire_list list = {
                .header = { .size = sizeof(list), .verb = WIRE_WATCH },
                .flags = all ? WIRE_LIST_ALL : 0,
        };
        struct call call = CALL_INIT(list, list, &reply);
        int r;

        if (!each)
                return -EINVAL;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;
        if (reply.reason != RTGRANT_REASON_NONE)
                return -EPERM;

        /* Events that came close behind the reply are delivered when we leave: not too late. */
        set_watch(handle, all, each, userdata);
        return 0;
}

/* ---- calls ---- */

static void async_drop(struct delivery *delivery) {
        struct async *async = (struct async *) delivery;

        cleanup_close(&async->pidfd);
        free(async);
}

static void async_deliver(struct rtgrant *handle, struct delivery *delivery) {
        struct async *async = (struct async *) delivery;
        struct rtgrant_answer answer;
        int r = async->call.error;

        if (r == 0) {
                answer_decode(&async->reply, &answer);
                if (async->call.request.header.verb == WIRE_ACQUIRE)
                        r = acquire_verify(&async->request, &answer);
                if (r == 0)
                        r = answer_to_result(&answer);
        }

        async->done(r, async->call.error == 0 ? &answer : NULL, async->userdata);
        async_drop(delivery);
}

static int async_new(rtgrant_answer_fn done, void *userdata, struct async **ret) {
        struct async *async;

        async = calloc(1, sizeof(*async));
        if (!async)
                return -ENOMEM;

        async->delivery = (struct delivery) { .deliver = async_deliver, .drop = async_drop };
        async->call = (struct call) {
                .pidfd = -1,
                .reply = &async->reply,
                .reply_max = sizeof(async->reply),
                .async = async,
        };
        async->pidfd = -1;
        async->done = done;
        async->userdata = userdata;

        *ret = async;
        return 0;
}

/* Takes @async on success. */
static int async_start(struct rtgrant *handle, struct async *async) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        int r;

        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        (void) pthread_mutex_lock(&handle->lock);
        if (handle->n_async >= ASYNC_MAX)
                r = -EBUSY;
        else {
                handle->n_async++;
                r = handle_start(handle, &async->call);
                if (r < 0)
                        handle->n_async--;
        }
        (void) pthread_mutex_unlock(&handle->lock);
        return r;
}

/* The caller may close its pidfd before the record is on its way. */
static int async_take_pidfd(struct async *async, int pidfd) {
        if (pidfd < 0)
                return 0;

        async->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
        if (async->pidfd < 0)
                return -errno;

        async->call.pidfd = async->pidfd;
        return 0;
}

int rtgrant_send_acquire(struct rtgrant *handle, const struct rtgrant_request *request,
                         rtgrant_answer_fn done, void *userdata) {
        struct rtgrant_request copy;
        struct async *async;
        int r;

        if (!done)
                return -EINVAL;
        r = request_read(request, &copy);
        if (r < 0)
                return r;
        if ((!copy.wants_sched && !copy.wants_nice && request_is_of_thread(&copy)) || copy.flags & RTGRANT_DIRECT)
                return -EINVAL;

        r = async_new(done, userdata, &async);
        if (r < 0)
                return r;

        request_encode_acquire(&copy, &async->call.request.acquire);
        async->request = copy;
        async->request.role = async->request.reason = NULL;

        r = async_take_pidfd(async, copy.pidfd_plus_one - 1);
        if (r == 0)
                r = async_start(handle, async);
        if (r < 0)
                async_drop(&async->delivery);
        return r;
}

int rtgrant_send_release(struct rtgrant *handle, const struct rtgrant_id *id,
                         rtgrant_answer_fn done, void *userdata) {
        struct async *async;
        int r;

        if (!done || !id)
                return -EINVAL;
        r = async_new(done, userdata, &async);
        if (r < 0)
                return r;

        async->call.request.lease.header = (struct wire_header) {
                .size = sizeof(struct wire_lease_ref),
                .verb = WIRE_RELEASE,
        };
        memcpy(async->call.request.lease.id, id->bytes, sizeof(id->bytes));

        r = async_start(handle, async);
        if (r < 0)
                async_drop(&async->delivery);
        return r;
}

/* ---- the loop ---- */

int rtgrant_get_fd(struct rtgrant *handle) {
        if (!handle)
                return -EINVAL;

        return handle->owner == getpid() ? handle->fd : -ECHILD;
}

short rtgrant_get_events(struct rtgrant *handle) {
        short events = POLLIN;

        if (!handle || handle->owner != getpid())
                return 0;

        (void) pthread_mutex_lock(&handle->lock);
        for (const struct call *call = handle->calls; call; call = call->next)
                if (call->async && !call->sent)
                        events |= POLLOUT;
        (void) pthread_mutex_unlock(&handle->lock);
        return events;
}

int rtgrant_process(struct rtgrant *handle) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        int r;

        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        (void) pthread_mutex_lock(&handle->lock);
        handle_flush(handle);
        /* A thread that waits in a call reads for us too, and calls back. */
        r = handle->reading || handle->error < 0 ? 0 : handle_receive(handle, RECORDS_PER_TURN);
        if (r == 0)
                r = handle->error;
        (void) pthread_mutex_unlock(&handle->lock);
        return r;
}
