/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_JSON_H
#define RTGRANT_CLI_JSON_H

/* JSON as both programs print it. Strings are made printable on the way in, and so are UTF-8. */

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/rtgrant.h"

/* NULL becomes null. */
void json_add_string(json_object *object, const char *key, const char *string);

/* "" too becomes null. */
void json_add_text(json_object *object, const char *key, const char *string);

void json_add_int(json_object *object, const char *key, int64_t number);
void json_add_bool(json_object *object, const char *key, bool value);
void json_add_null(json_object *object, const char *key);

/* "SCHED_FIFO" */
void json_add_policy(json_object *object, const char *key, int policy);

/* Seconds since 1970 with three decimals; null for 0. */
void json_add_time(json_object *object, const char *key, uint64_t time_ms);

/* null if the id is all zero */
void json_add_id(json_object *object, const char *key, const struct rtgrant_id *id);

/* Why the broker refused: reason, rule, asked, limit, text, help. */
void json_add_refusal(json_object *object, const char *key, const struct rtgrant_answer *answer);

/* Prints on one line. Takes @value. */
void json_print_line(json_object *value);

/* Prints indented. Takes @value. */
void json_print(json_object *value);

#endif
