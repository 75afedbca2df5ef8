/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_SLICE_H
#define RTGRANT_LATENCY_SLICE_H

/*
 * A second or so of one variant under a load. While the measured thread runs, this one looks on
 * every 10 ms: who had the CPU, what the kernel counted, where a culprit hangs in the kernel; and
 * shows how far it is.
 */

#include "client/latency/run.h"

/* @done of @all slices were before it. Errors: -ENOMEM, pthread_create(3). */
int slice_run(struct run *run, struct row *row, struct variant *variant, uint64_t duration_ns,
              size_t done, size_t all);

#endif
