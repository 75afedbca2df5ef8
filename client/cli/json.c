/* SPDX-License-Identifier: MIT */

#include "client/cli/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/scheduling.h"
#include "client/cli/text.h"

/* Every string of the protocol fits, even if each byte becomes \xNN. */
#define STRING_SIZE 2048

void json_add_string(json_object *object, const char *key, const char *string) {
        char printable[STRING_SIZE];

        if (!string) {
                json_add_null(object, key);
                return;
        }
        text_printable(printable, sizeof(printable), string);
        (void) json_object_object_add(object, key, json_object_new_string(printable));
}

void json_add_text(json_object *object, const char *key, const char *string) {
        json_add_string(object, key, string && string[0] ? string : NULL);
}

void json_add_int(json_object *object, const char *key, int64_t number) {
        (void) json_object_object_add(object, key, json_object_new_int64(number));
}

void json_add_bool(json_object *object, const char *key, bool value) {
        (void) json_object_object_add(object, key, json_object_new_boolean(value));
}

void json_add_null(json_object *object, const char *key) {
        (void) json_object_object_add(object, key, NULL);
}

void json_add_policy(json_object *object, const char *key, int policy) {
        const char *name = policy_name(policy);

        if (name)
                json_add_string(object, key, name);
        else
                json_add_int(object, key, policy);
}

void json_add_time(json_object *object, const char *key, uint64_t time_ms) {
        char digits[32];

        if (time_ms == 0) {
                json_add_null(object, key);
                return;
        }
        (void) snprintf(digits, sizeof(digits), "%" PRIu64 ".%03u", time_ms / 1000,
                        (unsigned) (time_ms % 1000));
        (void) json_object_object_add(object, key,
                                      json_object_new_double_s((double) time_ms / 1000, digits));
}

void json_add_id(json_object *object, const char *key, const struct rtgrant_id *id) {
        static const struct rtgrant_id none;
        char string[RTGRANT_ID_STRING_SIZE];

        rtgrant_id_to_string(id, string);
        json_add_string(object, key, memcmp(id, &none, sizeof(none)) == 0 ? NULL : string);
}

void json_add_refusal(json_object *object, const char *key, const struct rtgrant_answer *answer) {
        json_object *refusal = json_object_new_object();

        json_add_string(refusal, "reason", rtgrant_reason_to_string(answer->reason));
        json_add_text(refusal, "rule", answer->rule);
        json_add_int(refusal, "asked", answer->asked);
        json_add_int(refusal, "limit", answer->limit);
        json_add_int(refusal, "retry_after_ms", answer->retry_after_ms);
        json_add_text(refusal, "text", answer->text);
        json_add_text(refusal, "help", answer->help);
        (void) json_object_object_add(object, key, refusal);
}

static void print(json_object *value, int flags) {
        puts(json_object_to_json_string_ext(value, flags | JSON_C_TO_STRING_NOSLASHESCAPE));
        (void) json_object_put(value);
}

void json_print_line(json_object *value) {
        print(value, JSON_C_TO_STRING_SPACED);
}

void json_print(json_object *value) {
        print(value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}
