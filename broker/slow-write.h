/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SLOW_WRITE_H
#define RTGRANT_BROKER_SLOW_WRITE_H

/*
 * Attributes of the kernel's whose writing may take as long as a disk takes to finish what it has
 * begun. A thread of its own writes; what does not get done soon is given up, and put back whenever
 * it has got done.
 */

#include <stdbool.h>
#include <stdint.h>

struct slow_writer;

struct slow_step {
        char path[96];
        char text[24];
        bool optional; /* that it fails is no failure, see is_done */
        bool is_done;
};

#define SLOW_STEPS_MAX 3

struct slow_job {
        uint64_t key; /* of the device: only one job for each is under way at a time */
        struct slow_step steps[SLOW_STEPS_MAX];
        unsigned n_steps;
        struct slow_step undo[SLOW_STEPS_MAX]; /* if a step fails, or it takes too long */
        unsigned n_undo;
};

/* Errors: -ENOMEM. */
int slow_writer_new(struct slow_writer **ret);

/* Waits for what is under way, at most a second. May be NULL. Returns NULL. */
struct slow_writer *slow_writer_free(struct slow_writer *writer);

/*
 * Writes the steps, one after the other, and tells which are done. Without a @writer at once, however
 * long it takes. Errors: -EBUSY if it takes longer than a second, or a job before does;
 * open(2), write(2).
 */
int slow_write(struct slow_writer *writer, struct slow_job *job);

#endif
