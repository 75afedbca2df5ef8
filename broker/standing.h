/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_STANDING_H
#define RTGRANT_BROKER_STANDING_H

/* Who stands where, for one who asked to stand above what it feeds. */

#include "broker/decide.h"

#define STANDING_SIZE 192

/*
 * "from the top: irq/16-snd_hda 86, jackd (4711) 75, this one 75": what the thread of @ask feeds,
 * what it asked for by @decision, and those threads of its user nearest to that.
 */
void standing_describe(const struct call *call, const struct ask *ask,
                       const struct decision *decision, char buffer[STANDING_SIZE]);

#endif
