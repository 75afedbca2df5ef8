/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_WORKER_H
#define RTGRANT_BROKER_WORKER_H

/*
 * What threads beside the dispatcher's are made of: a small stack, a lock that lends its holder the
 * priority of who waits for it, and a condition that is waited for by CLOCK_MONOTONIC.
 */

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define WORKER_STACK_BYTES (64U * 1024)

/*
 * The dispatcher may run real-time just now; by RESET_ON_FORK a thread that it starts does not.
 *
 * @stack_bytes         the system's least is taken if that is more
 * @ret_thread          NULL: nobody will join it
 *
 * Errors: pthread_create(3).
 */
int worker_start(void *(*run)(void *userdata), void *userdata, size_t stack_bytes,
                 pthread_t *ret_thread);

/* Errors: pthread_mutex_init(3). */
int worker_lock_init(pthread_mutex_t *lock);

/* Errors: pthread_cond_init(3). */
int worker_condition_init(pthread_cond_t *condition);

/* So many milliseconds from now, for pthread_cond_timedwait(3) with such a condition. */
struct timespec worker_deadline(unsigned ms);

#endif
