/* SPDX-License-Identifier: MIT */

#include "broker/worker.h"

#include <limits.h>

int worker_start(void *(*run)(void *userdata), void *userdata, size_t stack_bytes,
                 pthread_t *ret_thread) {
        const size_t least = (size_t) PTHREAD_STACK_MIN;
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        r = -pthread_attr_init(&attr);
        if (r < 0)
                return r;
        (void) pthread_attr_setstacksize(&attr, stack_bytes < least ? least : stack_bytes);
        if (!ret_thread)
                (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = -pthread_create(&thread, &attr, run, userdata);
        (void) pthread_attr_destroy(&attr);
        if (r >= 0 && ret_thread)
                *ret_thread = thread;
        return r;
}

int worker_lock_init(pthread_mutex_t *lock) {
        pthread_mutexattr_t attr;
        int r;

        r = -pthread_mutexattr_init(&attr);
        if (r < 0)
                return r;
        r = -pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
        if (r >= 0)
                r = -pthread_mutex_init(lock, &attr);
        (void) pthread_mutexattr_destroy(&attr);
        return r;
}

int worker_condition_init(pthread_cond_t *condition) {
        pthread_condattr_t attr;
        int r;

        r = -pthread_condattr_init(&attr);
        if (r < 0)
                return r;
        r = -pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (r >= 0)
                r = -pthread_cond_init(condition, &attr);
        (void) pthread_condattr_destroy(&attr);
        return r;
}

struct timespec worker_deadline(unsigned ms) {
        struct timespec at;

        (void) clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_nsec += (long) (ms % 1000) * 1000000;
        at.tv_sec += ms / 1000 + at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        return at;
}
