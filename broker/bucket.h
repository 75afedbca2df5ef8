/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BUCKET_H
#define RTGRANT_BROKER_BUCKET_H

/*
 * A token bucket: so many at once, then one back every so often. No clock of its own: the time, in
 * µs of CLOCK_MONOTONIC, is passed in. No timer either: it is brought up to date when looked at.
 */

#include <stdbool.h>
#include <stdint.h>

struct bucket {
        unsigned burst;         /* tokens when full, at least 1 */
        uint64_t refill_us;     /* one token comes back in this time, at least 1 */
        unsigned tokens;
        uint64_t since_us;      /* when the token that is on its way began to come back */
};

/* A full bucket. */
void bucket_init(struct bucket *bucket, unsigned burst, uint64_t refill_us, uint64_t now_us);

/* New limits; what was used up stays used up, as far as the new burst knows it. */
void bucket_change(struct bucket *bucket, unsigned burst, uint64_t refill_us, uint64_t now_us);

/* Tokens there are now. */
unsigned bucket_tokens(struct bucket *bucket, uint64_t now_us);

/* Takes one; false if there is none. */
bool bucket_take(struct bucket *bucket, uint64_t now_us);

/* Time until there are at least @tokens, in µs; 0 if there are. */
uint64_t bucket_wait_us(struct bucket *bucket, unsigned tokens, uint64_t now_us);

#endif
