/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_VALUES_H
#define RTGRANT_POLICY_READER_VALUES_H

/*
 * Reads one value into struct policy or struct role @base, strictly; see struct key. @value is
 * valid UTF-8 without control characters or surrounding blanks. False: reported, nothing stored.
 */

#include "policy/reader/keys.h"

/* Reports that @value is not what is @expected. False, so that a parser can end with it. */
bool value_fault(const struct value_context *context, const char *value, const char *expected);

bool parse_count(const struct value_context *context, const char *value, void *base);
bool parse_percent(const struct value_context *context, const char *value, void *base);
bool parse_time(const struct value_context *context, const char *value, void *base);
bool parse_bool(const struct value_context *context, const char *value, void *base);
bool parse_realtime_policy(const struct value_context *context, const char *value, void *base);
bool parse_log_level(const struct value_context *context, const char *value, void *base);
bool parse_role_name(const struct value_context *context, const char *value, void *base);
bool parse_description(const struct value_context *context, const char *value, void *base);
bool parse_policies(const struct value_context *context, const char *value, void *base);
bool parse_band(const struct value_context *context, const char *value, void *base);
bool parse_nice(const struct value_context *context, const char *value, void *base);
bool parse_users(const struct value_context *context, const char *value, void *base);
bool parse_groups(const struct value_context *context, const char *value, void *base);
bool parse_action(const struct value_context *context, const char *value, void *base);
bool parse_size(const struct value_context *context, const char *value, void *base);
bool parse_memlock(const struct value_context *context, const char *value, void *base);
bool parse_cpu_latency(const struct value_context *context, const char *value, void *base);
bool parse_block_scheduler(const struct value_context *context, const char *value, void *base);
bool parse_block_queue(const struct value_context *context, const char *value, void *base);

/* reader/words.c */
bool parse_count_or_none(const struct value_context *context, const char *value, void *base);
bool parse_sessions(const struct value_context *context, const char *value, void *base);
bool parse_rttime(const struct value_context *context, const char *value, void *base);
bool parse_words(const struct value_context *context, const char *value, void *base);

/* reader/irq.c */
bool parse_irq_priority(const struct value_context *context, const char *value, void *base);
bool parse_irq_devices(const struct value_context *context, const char *value, void *base);
bool parse_cpus(const struct value_context *context, const char *value, void *base);
bool parse_irq_device(const struct value_context *context, const char *value, void *base);

#endif
