/* SPDX-License-Identifier: MIT */

/* What kinds of resource are called. */

#include <stdio.h>

#include "broker/resource.h"
#include "broker/text.h"

const char *resource_action(enum resource_index index) {
        static const char *const actions[_RESOURCE_MAX] = {
                [RESOURCE_MEMLOCK] = "org.rtgrant.memlock",
                [RESOURCE_CPU_LATENCY] = "org.rtgrant.cpu-latency",
                [RESOURCE_BLOCK_QUEUE] = "org.rtgrant.block-queue",
                [RESOURCE_IRQ] = "org.rtgrant.irq",
        };

        return actions[index];
}

void resource_to_string(enum resource_index index, int64_t value, char *buffer, size_t size) {
        switch (index) {
        case RESOURCE_MEMLOCK:
                (void) snprintf(buffer, size, "%lld %s of locked memory",
                                (long long) (value < 1024 ? value : value / 1024),
                                value < 1024 ? "bytes" : "KiB");
                return;
        case RESOURCE_CPU_LATENCY:
                (void) snprintf(buffer, size, "wake-up latency %lld us", (long long) value);
                return;
        case RESOURCE_BLOCK_QUEUE:
                (void) snprintf(buffer, size, "disk requests of %lld KiB", (long long) value);
                return;
        case RESOURCE_IRQ:
                (void) snprintf(buffer, size, "interrupt priority %lld", (long long) value);
                return;
        case _RESOURCE_MAX:
                break;
        }
        text_copy(buffer, size, "nothing");
}
