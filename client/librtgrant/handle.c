/* SPDX-License-Identifier: MIT */

#include "client/librtgrant/handle.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static uint64_t clock_now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * NS_PER_S + (uint64_t) now.tv_nsec;
}

uint64_t deadline_from_now(int timeout_ms) {
        return clock_now_ns() + (uint64_t) timeout_ms * NS_PER_MS;
}

int deadline_left_ms(uint64_t deadline_ns) {
        uint64_t now_ns = clock_now_ns();

        if (deadline_ns <= now_ns)
                return 0;

        return (int) ((deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* Real-time threads wait here for others: the holder of the lock runs at the priority of those. */
static int lock_init(pthread_mutex_t *lock) {
        pthread_mutexattr_t attr;
        int r;

        r = pthread_mutexattr_init(&attr);
        if (r != 0)
                return -r;

        (void) pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
        r = pthread_mutex_init(lock, &attr);
        (void) pthread_mutexattr_destroy(&attr);
        return -r;
}

static int wake_init(pthread_cond_t *wake) {
        pthread_condattr_t attr;
        int r;

        r = pthread_condattr_init(&attr);
        if (r != 0)
                return -r;

        r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (r == 0)
                r = pthread_cond_init(wake, &attr);
        (void) pthread_condattr_destroy(&attr);
        return -r;
}

static int locks_init(struct rtgrant *handle) {
        int r;

        r = lock_init(&handle->lock);
        if (r < 0)
                return r;

        r = wake_init(&handle->wake);
        if (r < 0)
                (void) pthread_mutex_destroy(&handle->lock);
        return r;
}

int handle_new(int fd, const struct sockaddr_un *address, int timeout_ms, struct rtgrant **ret) {
        struct rtgrant *handle;
        int r;

        handle = calloc(1, sizeof(*handle));
        if (!handle)
                return -ENOMEM;

        r = locks_init(handle);
        if (r < 0) {
                free(handle);
                return r;
        }

        handle->owner = getpid();
        handle->fd = fd;
        handle->address = *address;
        handle->timeout_ms = timeout_ms;

        *ret = handle;
        return 0;
}

static void handle_free(struct rtgrant *handle) {
        (void) close(handle->fd);
        (void) pthread_cond_destroy(&handle->wake);
        (void) pthread_mutex_destroy(&handle->lock);
        free(handle->bound);
        free(handle);
}

int handle_enter(struct rtgrant *handle, struct rtgrant **ret) {
        if (!handle)
                return -EINVAL;
        if (handle->owner != getpid())
                return -ECHILD;

        (void) pthread_mutex_lock(&handle->lock);
        handle->n_users++;
        (void) pthread_mutex_unlock(&handle->lock);

        *ret = handle;
        return 0;
}

void handle_queue(struct rtgrant *handle, struct delivery *delivery) {
        struct delivery **end = &handle->deliveries;

        while (*end)
                end = &(*end)->next;

        delivery->next = NULL;
        *end = delivery;
}

/* In order and one at a time: a callback that calls the library again finds somebody delivering. */
static void handle_deliver(struct rtgrant *handle) {
        struct delivery *delivery;

        if (handle->delivering)
                return;

        handle->delivering = true;
        while ((delivery = handle->deliveries)) {
                handle->deliveries = delivery->next;
                (void) pthread_mutex_unlock(&handle->lock);
                delivery->deliver(handle, delivery);
                (void) pthread_mutex_lock(&handle->lock);
        }
        handle->delivering = false;
}

void handle_leave(struct rtgrant **handle) {
        struct rtgrant *h = *handle;
        bool last;

        if (!h)
                return;

        (void) pthread_mutex_lock(&h->lock);
        handle_deliver(h);
        last = --h->n_users == 0 && h->closed;
        (void) pthread_mutex_unlock(&h->lock);

        if (last)
                handle_free(h);
}

/*
 * After fork(2): no callback, and no lock that a thread of the parent may have held. What such a
 * thread was changing is left as it is.
 */
static void handle_free_in_child(struct rtgrant *handle) {
        struct delivery *delivery;
        struct call *call;

        (void) close(handle->fd);

        if (pthread_mutex_trylock(&handle->lock) == 0) {
                while ((call = handle->calls)) {
                        handle->calls = call->next;
                        if (call->async)
                                call->async->delivery.drop(&call->async->delivery);
                }
                while ((delivery = handle->deliveries)) {
                        handle->deliveries = delivery->next;
                        delivery->drop(delivery);
                }
                free(handle->bound);
        }

        free(handle);
}

struct rtgrant *rtgrant_close(struct rtgrant *handle) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        int r;

        r = handle_enter(handle, &entered);
        if (r == -ECHILD)
                handle_free_in_child(handle);
        if (r < 0)
                return NULL;

        (void) pthread_mutex_lock(&handle->lock);
        handle->closed = true;
        handle_break(handle, -ECANCELED);
        /* Ends the connection now, though another thread or a callback be still inside. */
        (void) shutdown(handle->fd, SHUT_RDWR);
        (void) pthread_mutex_unlock(&handle->lock);
        return NULL;
}
