/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_LIVE_H
#define RTGRANT_LATENCY_LIVE_H

/*
 * How far a run is, and the histogram of what is measured just now: on a terminal, and on nothing
 * else. Drawn by the thread that looks on, never by the measured one, and five times a second at
 * the most.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/latency/stats.h"

#define LIVE_NS 200000000ULL

struct loop;
struct row;

struct live {
        int fd;        /* borrowed: the terminal; -1: none */
        bool plain;    /* one that cannot move its cursor: a line alone */
        unsigned rows; /* on the screen now */
        uint64_t drawn_ns;
        uint64_t deadline_ns;
        size_t slice;  /* number of it, from 1; of what follows */
        size_t n_seen; /* of the loop's samples */
        struct histogram histogram;
        uint32_t worst_ns;
        uint64_t n, overruns;
};

/* @fd is drawn on if it is a terminal. */
void live_init(struct live *live, int fd, uint64_t deadline_ns);

/* Slice number @done of @all, of @row, as far as @loop is. Does nothing if it did a moment ago. */
void live_draw(struct live *live, const struct row *row, const struct loop *loop, size_t done,
               size_t all);

/* Leaves the terminal as it was. */
void live_end(struct live *live);

#endif
