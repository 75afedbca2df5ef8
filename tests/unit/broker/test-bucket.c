/* SPDX-License-Identifier: MIT */

/* Token buckets, by tables of what is done when. */

#include "broker/bucket.h"
#include "tests/unit/broker/broker-test.h"

enum act {
        END,
        TAKE,           /* @result: whether there was one */
        TOKENS,         /* @result: how many */
        WAIT,           /* for @value tokens; @result: µs */
        CHANGE_BURST,   /* to @value */
        CHANGE_REFILL,  /* to @value µs */
};

struct step {
        enum act act;
        uint64_t now_us;
        uint64_t value;
        uint64_t result;
};

struct bucket_case {
        const char *name;
        unsigned burst;
        uint64_t refill_us;
        uint64_t start_us;
        struct step steps[12];
};

static const struct bucket_case cases[] = {
        { "a full one gives its burst at once", 3, 1000, 50,
          { { TAKE, 50, 0, 1 }, { TAKE, 50, 0, 1 }, { TAKE, 50, 0, 1 }, { TAKE, 50, 0, 0 },
            { TAKE, 50, 0, 0 } } },
        { "a burst of one", 1, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 0 }, { TAKE, 1000, 0, 1 }, { TAKE, 1999, 0, 0 } } },
        { "one comes back after its time, not before", 2, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 999, 0, 0 }, { TAKE, 1000, 0, 1 },
            { TAKE, 1001, 0, 0 } } },
        { "several come back together", 4, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 },
            { TOKENS, 3500, 0, 3 } } },
        { "never more than the burst", 3, 1000, 0,
          { { TOKENS, 0, 0, 3 }, { TOKENS, 1000000, 0, 3 }, { TAKE, 1000000, 0, 1 },
            { TOKENS, 9000000, 0, 3 } } },
        { "a full one saves nothing up", 1, 1000, 0,
          { { TAKE, 5900, 0, 1 }, { TAKE, 6000, 0, 0 }, { TAKE, 6899, 0, 0 },
            { TAKE, 6900, 0, 1 } } },
        { "a half token is not forgotten", 2, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 1500, 0, 1 }, { TAKE, 1999, 0, 0 },
            { TAKE, 2000, 0, 1 } } },
        { "looking does not hinder what is on its way", 2, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TOKENS, 400, 0, 0 }, { TOKENS, 800, 0, 0 },
            { TOKENS, 999, 0, 0 }, { TOKENS, 1000, 0, 1 } } },
        { "no wait where there are enough", 3, 1000, 0,
          { { WAIT, 0, 1, 0 }, { WAIT, 0, 3, 0 }, { WAIT, 0, 0, 0 } } },
        { "the wait for one and for more", 3, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { WAIT, 0, 1, 1000 },
            { WAIT, 0, 3, 3000 }, { WAIT, 300, 1, 700 }, { WAIT, 1300, 2, 700 },
            { WAIT, 1300, 1, 0 } } },
        { "more than the burst is not waited for", 2, 1000, 0,
          { { WAIT, 0, 9, 0 }, { TAKE, 0, 0, 1 }, { WAIT, 0, 9, 1000 },
            { WAIT, 0, 4294967295, 1000 } } },
        { "after the wait there is one", 1, 777, 0,
          { { TAKE, 0, 0, 1 }, { WAIT, 100, 1, 677 }, { TAKE, 776, 0, 0 }, { TAKE, 777, 0, 1 } } },
        { "a clock that stands still", 1, 1, 5000,
          { { TAKE, 5000, 0, 1 }, { TAKE, 5000, 0, 0 }, { TOKENS, 5000, 0, 0 },
            { WAIT, 5000, 1, 1 } } },
        { "a clock that goes back", 2, 1000, 5000,
          { { TAKE, 5000, 0, 1 }, { TAKE, 4000, 0, 1 }, { TAKE, 0, 0, 0 }, { WAIT, 4000, 1, 2000 },
            { TAKE, 5999, 0, 0 }, { TAKE, 6000, 0, 1 } } },
        { "the end of time", 4294967295, 1, 0,
          { { TAKE, 0, 0, 1 }, { TOKENS, UINT64_MAX, 0, 4294967295 },
            { TAKE, UINT64_MAX, 0, 1 } } },
        { "a larger burst: what was used stays used", 2, 1000, 0,
          { { TAKE, 0, 0, 1 }, { CHANGE_BURST, 0, 5, 0 }, { TOKENS, 0, 0, 4 },
            { TOKENS, 1000, 0, 5 }, { TOKENS, 9000, 0, 5 } } },
        { "a smaller burst: what was used stays used", 5, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { CHANGE_BURST, 0, 3, 0 },
            { TOKENS, 0, 0, 1 } } },
        { "a burst smaller than what was used", 5, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { CHANGE_BURST, 0, 2, 0 },
            { TOKENS, 0, 0, 0 }, { TOKENS, 1000, 0, 1 }, { TOKENS, 3000, 0, 2 } } },
        { "what came back before the change counts", 3, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { CHANGE_BURST, 2000, 3, 0 },
            { TOKENS, 2000, 0, 2 } } },
        { "another speed", 2, 1000, 0,
          { { TAKE, 0, 0, 1 }, { TAKE, 0, 0, 1 }, { CHANGE_REFILL, 0, 10, 0 }, { TAKE, 9, 0, 0 },
            { TAKE, 10, 0, 1 }, { WAIT, 10, 2, 20 } } },
};

static void test_bucket(void **state) {
        const struct bucket_case *c = *state;
        struct bucket bucket;

        bucket_init(&bucket, c->burst, c->refill_us, c->start_us);

        for (const struct step *s = c->steps; s->act != END; s++)
                switch (s->act) {
                case TAKE:
                        assert_int_equal(bucket_take(&bucket, s->now_us), s->result);
                        break;
                case TOKENS:
                        assert_int_equal(bucket_tokens(&bucket, s->now_us), s->result);
                        break;
                case WAIT:
                        assert_int_equal(bucket_wait_us(&bucket, (unsigned) s->value, s->now_us),
                                         s->result);
                        break;
                case CHANGE_BURST:
                        bucket_change(&bucket, (unsigned) s->value, bucket.refill_us, s->now_us);
                        break;
                case CHANGE_REFILL:
                        bucket_change(&bucket, bucket.burst, s->value, s->now_us);
                        break;
                case END:
                        break;
                }
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases)];

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[i] = test_row(cases[i].name, test_bucket, &cases[i]);

        return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
