/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_LIBRTGRANT_HANDLE_H
#define RTGRANT_CLIENT_LIBRTGRANT_HANDLE_H

/*
 * A connection and those who use it: calls under way, one reader at a time, callbacks after.
 *
 * Any number of threads may have a call under way. One of them reads for all, and hands each its
 * reply by the serial; the others sleep. The lock is never held while somebody sleeps or while a
 * callback runs.
 */

#include <pthread.h>
#include <sys/un.h>

#include "client/librtgrant/wire.h"

#define ASYNC_MAX 16            /* as the public header promises */
#define EVENTS_MAX 128          /* that wait to be delivered; more are counted as lost */
#define TIMEOUT_MS_DEFAULT 1000
#define BOUND_MAX 1024          /* leases of the connection that are remembered; then the latest */

/* One request and what becomes of it. Its owner keeps it until `done`, or removes it. */
struct call {
        struct call *next;      /* of handle->calls */
        uint64_t serial;
        union wire_request request;
        int pidfd;              /* borrowed; goes along; -1: none */
        bool sent;
        bool done;
        int error;              /* with done: 0 if there is a reply */
        void *reply;            /* borrowed; zero-extended to reply_max */
        size_t reply_max;
        size_t reply_size;      /* what came of it */
        struct async *async;    /* of which it is part; NULL: somebody waits for it */
};

/* A callback that is due. */
struct delivery {
        struct delivery *next;
        /* Calls back and frees. @handle may be closed, and the lock is not held. */
        void (*deliver)(struct rtgrant *handle, struct delivery *delivery);
        void (*drop)(struct delivery *delivery); /* only frees */
};

/* A call that nobody waits for. */
struct async {
        struct delivery delivery;       /* first */
        struct call call;
        struct wire_answer reply;
        struct rtgrant_request request; /* without its strings, for the check of the answer */
        int pidfd;                      /* owned; -1: none */
        rtgrant_answer_fn done;
        void *userdata;
};

struct rtgrant {
        pid_t owner;
        int fd;                         /* owned; the same number after rtgrant_reconnect() */
        int timeout_ms;
        struct sockaddr_un address;

        pthread_mutex_t lock;           /* of all that follows */
        pthread_cond_t wake;            /* the reader changed, or a call is done */
        unsigned n_users;               /* threads that are inside the library with this handle */
        bool closed;
        int error;                      /* the connection is of no more use: 0 or negative errno */
        bool reading;                   /* a thread polls and reads for all */
        bool delivering;                /* a thread runs callbacks */
        uint64_t serial;                /* the last one given out */
        struct call *calls;             /* oldest first */
        unsigned n_async;
        struct delivery *deliveries;    /* owned; oldest first */
        unsigned n_events;              /* of these */
        uint64_t n_events_lost;
        rtgrant_event_fn watch;
        void *watch_userdata;
        bool watch_all;
        struct rtgrant_id *bound;       /* owned; leases that last as long as the connection */
        size_t n_bound;
        size_t max_bound;
        union wire_page incoming;
};

/* Takes @fd, which is connected to @address. Errors: -ENOMEM. */
int handle_new(int fd, const struct sockaddr_un *address, int timeout_ms, struct rtgrant **ret);

/* A socket that is connected to @address, the caller's to close. Errors: as rtgrant_open(). */
int handle_connect(const struct sockaddr_un *address, uint64_t deadline_ns);

/* Errors: as rtgrant_open(). */
int handle_say_hello(struct rtgrant *handle, uint64_t deadline_ns);

/*
 * To be done around all use of a handle: keeps it alive, and runs the callbacks that became due.
 * Errors: -EINVAL without a handle, -ECHILD after fork(2).
 */
int handle_enter(struct rtgrant *handle, struct rtgrant **ret);
void handle_leave(struct rtgrant **handle);

#define _cleanup_handle_leave_ __attribute__((cleanup(handle_leave)))

/* Sends and waits. Returns 0 if call->reply was filled in. */
int handle_call(struct rtgrant *handle, struct call *call, uint64_t deadline_ns);

/* The same with the handle's own time-out. */
int handle_call_now(struct rtgrant *handle, struct call *call);

/* ---- with the lock held ---- */

/* Puts @call on its way. Errors: why the connection is of no more use. */
int handle_start(struct rtgrant *handle, struct call *call);

/* Sends what can be sent. */
void handle_flush(struct rtgrant *handle);

/* Reads at most @max records. Returns their number. */
int handle_receive(struct rtgrant *handle, int max);

/* Nothing can be had from this connection any more: every call ends with @error. */
void handle_break(struct rtgrant *handle, int error);

void handle_queue(struct rtgrant *handle, struct delivery *delivery);

/* Takes in one event. */
void event_queue(struct rtgrant *handle, const void *record, size_t size);

/* Remembers which leases are bound to the connection, from a call that got its reply. */
void bound_note(struct rtgrant *handle, const struct call *call);
void bound_forget(struct rtgrant *handle, const uint8_t id[WIRE_LEASE_ID_SIZE]);

/* ---- time ---- */

uint64_t deadline_from_now(int timeout_ms);

/* Rounded up; 0 when it has passed. */
int deadline_left_ms(uint64_t deadline_ns);

#define CALL_INIT(field, value, ret_reply)                                                        \
        {                                                                                         \
                .request.field = value, .pidfd = -1, .reply = (ret_reply),                        \
                .reply_max = sizeof(*(ret_reply)),                                                \
        }

#endif
