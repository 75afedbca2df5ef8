/* SPDX-License-Identifier: MIT */

/* Sends requests, reads replies and events, and brings them together. */

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "client/librtgrant/handle.h"

/* Longer than the 25 s for which the broker waits for the user. */
/* The broker waits 25 s for a user to answer a question. */
#define QUESTION_MS 25000
#define ASKING_MS 2000

static void call_remove(struct rtgrant *handle, struct call *call) {
        for (struct call **p = &handle->calls; *p; p = &(*p)->next)
                if (*p == call) {
                        *p = call->next;
                        return;
                }
}

static void call_finish(struct rtgrant *handle, struct call *call, int error) {
        call_remove(handle, call);
        call->error = error;
        call->done = true;

        if (call->async) {
                handle->n_async--;
                handle_queue(handle, &call->async->delivery);
        } else
                (void) pthread_cond_broadcast(&handle->wake);
}

void handle_break(struct rtgrant *handle, int error) {
        if (handle->error == 0)
                handle->error = error;

        while (handle->calls)
                call_finish(handle, handle->calls, error);
}

static int call_send(struct rtgrant *handle, struct call *call) {
        union {
                struct cmsghdr header;
                char buffer[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct iovec iov = {
                .iov_base = &call->request,
                .iov_len = call->request.header.size,
        };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (call->pidfd >= 0) {
                control.header.cmsg_level = SOL_SOCKET;
                control.header.cmsg_type = SCM_RIGHTS;
                control.header.cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(&control.header), &call->pidfd, sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = sizeof(control.buffer);
        }

        if (sendmsg(handle->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                return -errno;

        return 0;
}

void handle_flush(struct rtgrant *handle) {
        struct call *next;
        int r;

        for (struct call *call = handle->calls; call; call = next) {
                next = call->next;
                if (call->sent)
                        continue;

                r = call_send(handle, call);
                if (r == -EAGAIN)
                        return;

                /* The broker may have said why before it went: that is still to be read. */
                if (r == 0 || r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN)
                        call->sent = true;
                else
                        call_finish(handle, call, r);
        }
}

int handle_start(struct rtgrant *handle, struct call *call) {
        struct call **end = &handle->calls;

        if (handle->error < 0)
                return handle->error;

        call->serial = ++handle->serial;
        call->request.header.version = WIRE_VERSION;
        call->request.header.serial = call->serial;

        while (*end)
                end = &(*end)->next;
        *end = call;

        handle_flush(handle);
        return 0;
}

static int handle_take_reply(struct rtgrant *handle, const struct wire_reply *record, size_t size) {
        struct call *call = handle->calls;

        if (size < SIZE_THROUGH(struct wire_reply, reason))
                return -EPROTO;

        /* Not to one request but to the connection: the broker is about to close it. */
        if (record->header.serial == 0)
                return reason_to_error(record->reason);

        while (call && call->serial != record->header.serial)
                call = call->next;

        /* Too late, nobody waits for it any more; but never before it was asked for. */
        if (!call)
                return record->header.serial <= handle->serial ? 0 : -EPROTO;

        if (record->header.verb != (call->request.header.verb | WIRE_REPLY))
                return -EPROTO;

        call->reply_size = size < call->reply_max ? size : call->reply_max;
        memset(call->reply, 0, call->reply_max);
        memcpy(call->reply, record, call->reply_size);
        bound_note(handle, call);
        call_finish(handle, call, 0);
        return 0;
}

static int handle_take(struct rtgrant *handle, size_t size) {
        const union wire_page *record = &handle->incoming;

        if (size < sizeof(record->header) || size > sizeof(*record) ||
            record->header.size != size || record->header.version != WIRE_VERSION)
                return -EPROTO;

        if (record->header.verb & WIRE_REPLY)
                return handle_take_reply(handle, (const struct wire_reply *) record, size);

        if (record->header.verb & WIRE_EVENT) {
                event_queue(handle, record, size);
                return 0;
        }

        return -EPROTO;
}

/* Returns the record's length, 0 at the end. Descriptors that came along are dropped by recv(). */
static ssize_t handle_read(struct rtgrant *handle) {
        bool reset = false;
        ssize_t n;

        for (;;) {
                n = recv(handle->fd, &handle->incoming, sizeof(handle->incoming),
                         MSG_DONTWAIT | MSG_TRUNC);
                if (n >= 0)
                        return n;

                /* Said once when the peer closed with something of ours unread; its own last words
                 * come after. */
                if (errno == ECONNRESET && !reset)
                        reset = true;
                else if (errno != EINTR)
                        return -errno;
        }
}

int handle_receive(struct rtgrant *handle, int max) {
        ssize_t n;
        int r;

        for (int i = 0; i < max; i++) {
                n = handle_read(handle);
                if (n == -EAGAIN)
                        return i;
                if (n < 0 && n != -ECONNRESET) {
                        handle_break(handle, (int) n);
                        return i;
                }
                if (n <= 0) {
                        handle_break(handle, RTGRANT_ABSENT);
                        return i;
                }

                r = handle_take(handle, (size_t) n);
                if (r < 0) {
                        handle_break(handle, r);
                        return i;
                }
        }

        return max;
}

/* Until the reader hands us our reply, or leaves its place to us. */
static int call_wait_for_reader(struct rtgrant *handle, uint64_t deadline_ns) {
        struct timespec deadline = {
                .tv_sec = (time_t) (deadline_ns / 1000000000),
                .tv_nsec = (long) (deadline_ns % 1000000000),
        };

        return -pthread_cond_timedwait(&handle->wake, &handle->lock, &deadline);
}

static int call_wait(struct rtgrant *handle, struct call *call, uint64_t deadline_ns) {
        struct pollfd poll_fd = { .fd = handle->fd };
        bool reader = !handle->reading;
        int r;

        if (call->sent && !reader)
                return call_wait_for_reader(handle, deadline_ns);

        poll_fd.events = (short) ((reader ? POLLIN : 0) | (call->sent ? 0 : POLLOUT));
        if (reader)
                handle->reading = true;

        (void) pthread_mutex_unlock(&handle->lock);
        r = poll(&poll_fd, 1, deadline_left_ms(deadline_ns));
        if (r < 0)
                r = errno == EINTR ? 1 : -errno;
        else if (r == 0)
                r = -ETIMEDOUT;
        (void) pthread_mutex_lock(&handle->lock);

        if (reader) {
                handle->reading = false;
                /* One record: whatever else is there is not worth a call to find out. */
                (void) handle_receive(handle, 1);
                (void) pthread_cond_broadcast(&handle->wake);
        }

        handle_flush(handle);
        return r;
}

int handle_call(struct rtgrant *handle, struct call *call, uint64_t deadline_ns) {
        int r;

        (void) pthread_mutex_lock(&handle->lock);

        r = handle_start(handle, call);
        while (r >= 0 && !call->done)
                r = call_wait(handle, call, deadline_ns);

        if (call->done)
                r = call->error;
        else
                call_remove(handle, call);

        (void) pthread_mutex_unlock(&handle->lock);
        return r;
}

/* How many questions the user may be asked: one about the role, and one about each resource. */
static int max_questions(const union wire_request *request) {
        uint32_t resources = WIRE_WANT_ALL & ~(uint32_t) (WIRE_WANT_SCHED | WIRE_WANT_NICE);

        switch (request->header.verb) {
        case WIRE_HELLO:
                return (request->hello.flags & WIRE_HELLO_MAY_ASK) != 0;
        case WIRE_ACQUIRE:
                return request->acquire.flags & WIRE_ACQUIRE_MAY_ASK
                               ? 1 + __builtin_popcount(request->acquire.want & resources)
                               : 0;
        case WIRE_UPDATE:
                return (request->update.flags & WIRE_ACQUIRE_MAY_ASK) != 0;
        case WIRE_OBSERVE:
                return (request->observe.flags & WIRE_OBSERVE_MAY_ASK) != 0;
        }
        return 0;
}

/* Where the user may be asked, the broker itself sets the limit. */
static int call_timeout_ms(const struct rtgrant *handle, const struct call *call) {
        int n = max_questions(&call->request);
        int asking_ms = n > 0 ? n * QUESTION_MS + ASKING_MS : 0;

        return handle->timeout_ms < asking_ms ? asking_ms : handle->timeout_ms;
}

int handle_call_now(struct rtgrant *handle, struct call *call) {
        return handle_call(handle, call, deadline_from_now(call_timeout_ms(handle, call)));
}
