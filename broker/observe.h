/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_OBSERVE_H
#define RTGRANT_BROKER_OBSERVE_H

/*
 * Records who has a CPU, for those who may see that; nothing is recorded, and no thread runs, while
 * nobody does. A thread of normal priority opens, reads and closes the kernel's rings; what is asked
 * of them takes the dispatcher a bounded time.
 *
 * At most 8 CPUs at a time, 2 for a user; each for 10 minutes, the last 65536 switches of it (at least half of them), and
 * 512 KiB of the kernel's.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/protocol.h"

#define OBSERVED_MAX          8
#define OBSERVED_PER_USER_MAX 2
#define OBSERVED_NS           UINT64_C(600000000000)
#define OBSERVED_WINDOW_NS    UINT64_C(100000000)

struct observe;

/* Errors: -ENOMEM. */
int observe_new(struct observe **ret);

/* Waits for its thread, for a second at most. May be NULL. Returns NULL. */
struct observe *observe_free(struct observe *observe);

/*
 * Begins to record @cpu for @quota_uid, from a moment later on. Returns its number, for the two
 * below. Errors: -EUSERS (the user has as many as may be), -EBUSY (all together have), -EAGAIN or
 * -ENOMEM (no thread can be made).
 */
int observe_start(struct observe *observe, uid_t quota_uid, int cpu, uint64_t now_ns);

/* Lets it last as long as from anew; false if it is not of @cpu, or over. */
bool observe_renew(struct observe *observe, int number, int cpu, uint64_t now_ns);

void observe_stop(struct observe *observe, int number);

/*
 * Who had that CPU from @from_ns to @to_ns, at most OBSERVED_WINDOW_NS, by name: fills in all of
 * @ret but its header. Errors: -EINVAL (the window), -ETIME (its time is over), those of
 * perf_event_open(2).
 */
int observe_ask(struct observe *observe, int number, uint64_t from_ns, uint64_t to_ns,
                struct wire_occupants_reply *ret);

#endif
