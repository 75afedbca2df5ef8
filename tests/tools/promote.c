/* SPDX-License-Identifier: MIT */

/*
 * A program that uses librtgrant: on each line "PRIORITY" on stdin it asks for SCHED_FIFO for its
 * main thread, and prints "RESULT REASON ROUTE MICROSECONDS". It goes on, whatever the answer.
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/rtgrant.h"

static long now_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int run(void) {
        char line[64];

        while (fgets(line, sizeof(line), stdin)) {
                struct rtgrant_answer answer = { .size = sizeof(answer) };
                long begin_us = now_us();
                int r;

                r = rtgrant_promote_self(NULL, SCHED_FIFO, atoi(line), &answer);
                printf("%d %s %s %ld\n", r, rtgrant_reason_to_string(answer.reason),
                       answer.route == RTGRANT_ROUTE_DIRECT ? "direct" : "broker",
                       now_us() - begin_us);
                fflush(stdout);
        }

        return 0;
}

int main(void) {
        return run();
}
