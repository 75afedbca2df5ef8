/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_REPORT_H
#define RTGRANT_LATENCY_REPORT_H

/* What a run has shown: for people, for scripts, as a picture, and beside an older run. */

#include <json-c/json.h>

#include "client/latency/run.h"

void report_text(const struct run *run);
void report_csv(const struct run *run);

/* The caller puts it. */
json_object *report_json(const struct run *run);

/* Writes FILE.svg or FILE.png. Errors: -EIO, -ENOMEM. */
int report_plot(const struct run *run, const char *path);

/*
 * Prints what became of each row that both runs have. Returns how many more overruns there are
 * with the grant; errors: those of open(2); -EINVAL if it is no output of --json.
 */
int64_t report_compare(const struct run *run, const char *path, FILE *out);

#endif
