/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GUARD_CANARY_H
#define RTGRANT_BROKER_GUARD_CANARY_H

/*
 * The guard's second signal: a thread like everybody's, sent to a CPU where leased threads take nearly
 * all, to see whether it gets to run there at all. Before Linux 6.12 nothing but a throttle, which
 * sched_rt_runtime_us = -1 turns off, sees to that. It sleeps as long as no CPU is suspected.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct canary {
        pthread_t thread;
        pid_t tid;
        int wake_fd;                    /* owned */
        _Atomic uint32_t n_run;         /* as often as it was sent, unless it waits */
        _Atomic bool ending;
        /* the guard's */
        uint32_t n_sent;
        int cpu;                        /* where it was sent last; -1: nowhere */
        uint64_t sent_ns;               /* the guard's clock */
};

/* Errors: eventfd(2), pthread_create(3). */
int canary_start(struct canary *canary);
void canary_stop(struct canary *canary);

/* Sends it, if it is back. False if there is no such CPU for it. */
bool canary_send(struct canary *canary, int cpu, uint64_t now_ns);

/* Where it waits for the CPU since *ret_sent_ns; -1 if it has run. */
int canary_waits(const struct canary *canary, uint64_t *ret_sent_ns);

/* What it waited so far does not count. */
void canary_forgive(struct canary *canary, uint64_t now_ns);

#endif
