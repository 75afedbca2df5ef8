/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANT_REPORT_H
#define RTGRANT_CLIENT_RTGRANT_REPORT_H

/* What rtgrant prints: the lines of chrt(1) to the byte, JSON objects, and what went wrong. */

#include <json-c/json.h>

#include "client/rtgrant-change.h"

/* `rtgrant --help` */
void report_help(void);

/* `rtgrant --max` */
void report_ranges(bool json);

/* The lines of one thread; @word is "current" or "new". Errors: -ESRCH. */
int report_scheduling(pid_t tid, const char *word);

/* The same as an object, owned by the caller. Errors: -ESRCH. */
int report_scheduling_json(const struct thread *thread, json_object **ret);

/* And with it what came of @change. */
int report_change_json(const struct broker *broker, const struct options *options,
                       const struct thread *thread, const struct change *change, json_object **ret);

/* Says what came of @change, if anything is to be said. Returns the exit status. */
int report_change(const struct broker *broker, const struct options *options,
                  const struct thread *thread, const struct change *change);

#endif
