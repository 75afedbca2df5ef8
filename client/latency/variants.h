/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_VARIANTS_H
#define RTGRANT_LATENCY_VARIANTS_H

/* What is compared in a run: nothing granted, the priority, and what --compare and --sweep add. */

#include "client/latency/run.h"

/* Asks the broker for the role to use. What cannot be had is there, as unusable. */
void variants_make(struct run *run);

/* Marks @variant as not to be had, with the broker's words. */
void variant_refused(struct variant *variant, const struct grant_result *result);

#endif
