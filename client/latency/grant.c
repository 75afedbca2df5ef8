/* SPDX-License-Identifier: MIT */

#include "client/latency/grant.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#define WAIT_MAX_MS 30000U

static void wait_ms(unsigned ms) {
        struct timespec duration = { ms / 1000, (long) (ms % 1000) * 1000000 };

        (void) nanosleep(&duration, NULL);
}

int grant_acquire(struct grant *grant, const struct grant_request *g, struct grant_result *ret) {
        struct rtgrant_request request = {
                .size = sizeof(request),
                .flags = g->direct ? RTGRANT_DIRECT : 0,
                .role = g->role,
                .reason = "rtgrant-latency",
                .wants_sched = g->priority > 0,
                .policy = g->policy,
                .priority = g->priority,
                .cpu_latency_us = g->cpu_latency_us,
                .irq = g->irq,
                .block = g->block,
                .block_max_sectors_kb = g->block_max_sectors_kb,
        };
        unsigned waited = 0;
        int r;

        ret->answer = (struct rtgrant_answer){ .size = sizeof(ret->answer) };
        r = g->direct ? 0 : rtgrant_open(&grant->handle, g->socket, 5000);
        while (r >= 0) {
                r = rtgrant_acquire(grant->handle, &request, &ret->answer);
                if (r != -EPERM || ret->answer.reason != RTGRANT_REASON_RATE ||
                    waited > WAIT_MAX_MS)
                        break;
                wait_ms(ret->answer.retry_after_ms + 1);
                waited += ret->answer.retry_after_ms + 1;
                r = 0;
        }
        ret->error = r;
        return r;
}

void grant_release(struct grant *grant) {
        grant->handle = rtgrant_close(grant->handle);
}

static const struct rtgrant_offer *choose(const struct rtgrant_status *status, const char *role) {
        const struct rtgrant_offer *best = NULL, *offer;

        for (unsigned i = 0; i < status->n_offers; i++) {
                offer = &status->offers[i];
                if (role && strcmp(offer->role, role) == 0)
                        return offer;
                if (!role && offer->reason == 0 && offer->priority_max > 0 &&
                    (!best || offer->priority_min > best->priority_min))
                        best = offer;
        }
        return best;
}

int grant_choose(struct grant_request *request, char role_buffer[32]) {
        struct rtgrant_status status = { .size = sizeof(status) };
        const struct rtgrant_offer *offer;
        struct rtgrant *handle = NULL;
        int r;

        if (request->direct && request->priority > 0)
                return 0;
        r = rtgrant_open(&handle, request->socket, 5000);
        if (r < 0)
                return r;
        r = rtgrant_get_status(handle, &status);
        (void) rtgrant_close(handle);
        if (r < 0)
                return r;

        offer = choose(&status, request->role);
        if (!offer)
                return request->role ? -ENOENT : -EACCES;
        if (request->priority == 0)
                request->priority = offer->priority_min;
        if (!(offer->policies & 1U << request->policy))
                request->policy = SCHED_RR;
        memcpy(role_buffer, offer->role, 32);
        request->role = role_buffer;
        return 0;
}
