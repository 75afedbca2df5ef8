/* SPDX-License-Identifier: MIT */

/*
 * A program that uses librtgrant: on each line of stdin it asks for its main thread, and prints
 * "RESULT REASON ROUTE MICROSECONDS". It goes on, whatever the answer.
 *
 *	PRIORITY	SCHED_FIFO, by the shortest way
 *	hold PRIORITY	SCHED_FIFO for as long as a handle is open, with a watch on it
 *	reconnect	that handle
 */

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/rtgrant.h"

static struct rtgrant *handle;

static long now_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void ignore_event(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                         const char *text, uint64_t n_lost, void *userdata) {
}

static int hold(int priority, struct rtgrant_answer *answer) {
        struct rtgrant_request request = {
                .size = sizeof(request),
                .wants_sched = true,
                .policy = SCHED_FIFO,
                .priority = priority,
        };
        int r;

        r = rtgrant_open(&handle, NULL, 0);
        if (r >= 0)
                r = rtgrant_watch(handle, false, ignore_event, NULL);
        return r < 0 ? r : rtgrant_acquire(handle, &request, answer);
}

static int obey(const char *line, struct rtgrant_answer *answer) {
        if (strncmp(line, "hold ", 5) == 0)
                return hold(atoi(line + 5), answer);
        if (strcmp(line, "reconnect\n") == 0)
                return rtgrant_reconnect(handle);

        return rtgrant_promote_self(NULL, SCHED_FIFO, atoi(line), answer);
}

static int run(void) {
        char line[64];

        while (fgets(line, sizeof(line), stdin)) {
                struct rtgrant_answer answer = { .size = sizeof(answer) };
                long begin_us = now_us();
                int r = obey(line, &answer);

                printf("%d %s %s %ld\n", r, rtgrant_reason_to_string(answer.reason),
                       answer.route == RTGRANT_ROUTE_DIRECT ? "direct" : "broker",
                       now_us() - begin_us);
                fflush(stdout);
        }
        (void) rtgrant_close(handle);

        return 0;
}

int main(void) {
        return run();
}
