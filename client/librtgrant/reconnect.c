/* SPDX-License-Identifier: MIT */

/* A broker that was killed, and its successor, which keeps what was bound to connections for a while. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cleanup.h"
#include "client/librtgrant/handle.h"

/* ---- which leases those are ---- */

void bound_forget(struct rtgrant *handle, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        for (size_t i = 0; i < handle->n_bound; i++)
                if (memcmp(handle->bound[i].bytes, id, sizeof(handle->bound[i].bytes)) == 0) {
                        handle->n_bound--;
                        memmove(&handle->bound[i], &handle->bound[i + 1],
                                (handle->n_bound - i) * sizeof(*handle->bound));
                        return;
                }
}

static void bound_remember(struct rtgrant *handle, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        if (handle->n_bound == BOUND_MAX)
                bound_forget(handle, handle->bound[0].bytes);

        if (handle->n_bound == handle->max_bound) {
                size_t max = handle->max_bound > 0 ? 2 * handle->max_bound : 8;
                struct rtgrant_id *bound = realloc(handle->bound, max * sizeof(*bound));

                if (!bound)
                        return; /* it is in force all the same, but ends with this connection */
                handle->bound = bound;
                handle->max_bound = max;
        }
        memcpy(handle->bound[handle->n_bound++].bytes, id, WIRE_LEASE_ID_SIZE);
}

void bound_note(struct rtgrant *handle, const struct call *call) {
        const union wire_request *request = &call->request;
        const struct wire_answer *answer = call->reply;

        switch (request->header.verb) {
        case WIRE_RELEASE:
                bound_forget(handle, request->lease.id);
                return;

        case WIRE_ACQUIRE:
                if (answer->reason != RTGRANT_REASON_NONE ||
                    (request->acquire.flags & WIRE_ACQUIRE_DRY_RUN))
                        return;
                bound_forget(handle, answer->id);
                if (request->acquire.lifetime == WIRE_LIFETIME_CONNECTION)
                        bound_remember(handle, answer->id);
        }
}

/* ---- to the successor ---- */

static int watch_again(struct rtgrant *handle) {
        struct wire_answer reply;
        struct wire_list list = {
                .header = { .size = sizeof(list), .verb = WIRE_WATCH },
                .flags = handle->watch_all ? WIRE_LIST_ALL : 0,
        };
        struct call call = CALL_INIT(list, list, &reply);
        int r;

        if (!handle->watch)
                return 0;

        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        return reply.reason == RTGRANT_REASON_NONE ? 0 : -EPERM;
}

/* Takes them away from @handle. NULL if there are none. */
static struct rtgrant_id *bound_steal(struct rtgrant *handle, size_t *ret_n) {
        struct rtgrant_id *bound;

        (void) pthread_mutex_lock(&handle->lock);
        bound = handle->bound;
        *ret_n = handle->n_bound;
        handle->bound = NULL;
        handle->n_bound = handle->max_bound = 0;
        (void) pthread_mutex_unlock(&handle->lock);
        return bound;
}

/* Returns how many. */
static int take_up(struct rtgrant *handle) {
        _cleanup_free_ struct rtgrant_id *bound = NULL;
        size_t n_bound;
        int n = 0, r;

        bound = bound_steal(handle, &n_bound);
        for (size_t i = 0; i < n_bound; i++) {
                struct wire_answer reply = { .reason = RTGRANT_REASON_NONE };
                struct wire_lease_ref renew = {
                        .header = { .size = sizeof(renew), .verb = WIRE_RENEW },
                };
                struct call call = CALL_INIT(lease, renew, &reply);

                memcpy(call.request.lease.id, bound[i].bytes, sizeof(bound[i].bytes));
                r = handle_call_now(handle, &call);
                if (r < 0)
                        return r;
                if (reply.reason != RTGRANT_REASON_NONE)
                        continue;

                (void) pthread_mutex_lock(&handle->lock);
                bound_remember(handle, bound[i].bytes);
                (void) pthread_mutex_unlock(&handle->lock);
                n++;
        }
        return n;
}

/* False if another thread was quicker. The descriptor keeps its number. */
static int replace_connection(struct rtgrant *handle, int fd, bool *ret_replaced) {
        int r = 0;

        (void) pthread_mutex_lock(&handle->lock);
        *ret_replaced = handle->error < 0;
        if (handle->closed)
                r = -ECANCELED;
        else if (handle->reading)
                r = -EBUSY;
        else if (*ret_replaced && dup3(fd, handle->fd, O_CLOEXEC) < 0)
                r = -errno;
        else
                handle->error = 0;
        (void) pthread_mutex_unlock(&handle->lock);
        return r;
}

int rtgrant_reconnect(struct rtgrant *handle) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        _cleanup_close_ int fd = -1;
        uint64_t deadline_ns;
        bool connected, replaced;
        int r, n;

        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;
        (void) pthread_mutex_lock(&handle->lock);
        if (!handle->reading && handle->error == 0)
                (void) handle_receive(handle, EVENTS_MAX); /* its end may not have been read yet */
        connected = handle->error == 0;
        (void) pthread_mutex_unlock(&handle->lock);
        if (connected)
                return 0;

        deadline_ns = deadline_from_now(handle->timeout_ms);
        fd = handle_connect(&handle->address, deadline_ns);
        if (fd < 0)
                return fd;
        r = replace_connection(handle, fd, &replaced);
        if (r < 0 || !replaced)
                return r;

        r = handle_say_hello(handle, deadline_ns);
        if (r < 0) {
                (void) pthread_mutex_lock(&handle->lock);
                handle_break(handle, r);
                (void) pthread_mutex_unlock(&handle->lock);
                return r;
        }

        n = take_up(handle);
        r = n < 0 ? n : watch_again(handle);
        return r < 0 ? r : n;
}
