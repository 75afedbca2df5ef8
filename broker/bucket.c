/* SPDX-License-Identifier: MIT */

#include "broker/bucket.h"

void bucket_init(struct bucket *bucket, unsigned burst, uint64_t refill_us, uint64_t now_us) {
        *bucket = (struct bucket) {
                .burst = burst,
                .refill_us = refill_us,
                .tokens = burst,
                .since_us = now_us,
        };
}

static void bucket_refill(struct bucket *bucket, uint64_t now_us) {
        uint64_t n;

        if (now_us <= bucket->since_us)
                return;

        n = (now_us - bucket->since_us) / bucket->refill_us;
        if (n >= bucket->burst - bucket->tokens) {
                bucket->tokens = bucket->burst;
                bucket->since_us = now_us;
                return;
        }

        bucket->tokens += (unsigned) n;
        bucket->since_us += n * bucket->refill_us;
}

void bucket_change(struct bucket *bucket, unsigned burst, uint64_t refill_us, uint64_t now_us) {
        unsigned used;

        bucket_refill(bucket, now_us);
        used = bucket->burst - bucket->tokens;

        bucket->burst = burst;
        bucket->refill_us = refill_us;
        bucket->tokens = used < burst ? burst - used : 0;
        bucket->since_us = now_us;
}

unsigned bucket_tokens(struct bucket *bucket, uint64_t now_us) {
        bucket_refill(bucket, now_us);
        return bucket->tokens;
}

bool bucket_take(struct bucket *bucket, uint64_t now_us) {
        bucket_refill(bucket, now_us);
        if (bucket->tokens == 0)
                return false;

        bucket->tokens--;
        return true;
}

uint64_t bucket_wait_us(struct bucket *bucket, unsigned tokens, uint64_t now_us) {
        bucket_refill(bucket, now_us);

        if (tokens > bucket->burst)
                tokens = bucket->burst;
        if (bucket->tokens >= tokens)
                return 0;

        return bucket->since_us + (tokens - bucket->tokens) * bucket->refill_us - now_us;
}
