/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_WIRE_H
#define RTGRANT_BROKER_WIRE_H

/*
 * Records as they arrive and leave: their sizes, versions and strings. What passes here is a
 * request of known form; whether its values make sense is for methods.c.
 */

#include <stddef.h>

#include "client/protocol.h"
#include "policy/reason.h"

union wire_request {
        struct wire_header header;
        struct wire_hello hello;
        struct wire_acquire acquire;
        struct wire_update update;
        struct wire_lease_ref lease;
        struct wire_plain plain;
        struct wire_list list;
        struct wire_observe observe;
        struct wire_occupants occupants;
};

union wire_response {
        struct wire_header header;
        struct wire_answer answer;
        struct wire_hello_reply hello;
        struct wire_list_reply list;
        struct wire_policy_reply policy;
        struct wire_why_reply why;
        struct wire_occupants_reply occupants;
};

/*
 * Takes a record of @length bytes apart. @ret is complete: fields that a shorter record does not
 * have are zero. Its header is set in either case, as far as it could be read, for the answer.
 *
 * REASON_NONE; REASON_MALFORMED, REASON_VERSION: the connection is not worth going on with;
 * REASON_UNSUPPORTED: a verb that this broker does not know.
 */
enum reason wire_decode(const void *data, size_t length, union wire_request *ret);

/* Finishes an answer to @request; returns how many bytes of it to send. */
size_t wire_finish_answer(struct wire_answer *answer, const struct wire_header *request);

/* Sets the header of a reply of @size bytes to @request. */
void wire_finish(struct wire_header *reply, const struct wire_header *request, size_t size);

#endif
