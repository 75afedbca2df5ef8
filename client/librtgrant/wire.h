/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_LIBRTGRANT_WIRE_H
#define RTGRANT_CLIENT_LIBRTGRANT_WIRE_H

/*
 * Between the public structures and the records of client/protocol.h. Pure: no input or output.
 * Strings from the wire are ended by force; numbers that are no ids become 0.
 */

#include "client/librtgrant/public.h"
#include "client/protocol.h"

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

/* A reply with an array at its end; as long as a record can be. */
union wire_page {
        struct wire_header header;
        struct wire_hello_reply hello;
        struct wire_list_reply list;
        struct wire_policy_reply policy;
        uint8_t bytes[WIRE_RECORD_MAX];
};

/* What opens every reply. */
struct wire_reply {
        struct wire_header header;
        uint32_t reason;
};

/*
 * Copies the caller's request, of whatever version it is, and checks its form; whether the values
 * make sense is the kernel's or the broker's to say. Errors: -EINVAL, -E2BIG.
 */
int request_read(const struct rtgrant_request *request, struct rtgrant_request *ret);

/* The target is a thread of the calling process. */
bool request_is_own(const struct rtgrant_request *request);

/* Whether it asks for nothing but the scheduling of its thread. */
bool request_is_of_thread(const struct rtgrant_request *request);

void request_encode_acquire(const struct rtgrant_request *request, struct wire_acquire *ret);
void request_encode_update(const struct rtgrant_request *request, const struct rtgrant_id *id,
                           struct wire_update *ret);

void answer_decode(const struct wire_answer *wire, struct rtgrant_answer *ret);

/* 0, or -EPROTO if @answer says yes to something else than @request asked. */
int answer_check(const struct rtgrant_answer *answer, const struct rtgrant_request *request);

/* *@wire is changed, and must live as long as *ret, which borrows its strings. */
/*
 * The device to name to the broker for @block, a path or the name of a device; "" where not NULL.
 * Errors: stat(2); -ENODEV if there is no block device behind it, -EINVAL.
 */
int block_find(const char *block, char ret[WIRE_DEVICE_SIZE]);

void lease_decode(struct wire_lease *wire, struct rtgrant_lease *ret);

void status_decode(const struct wire_hello_reply *wire, struct rtgrant_status *ret);
void offer_decode(const struct wire_offer *wire, struct rtgrant_offer *ret);

/* The errno of a connection that the broker will not serve. */
int reason_to_error(uint32_t reason);

/*
 * Element @index of an array of @n elements of @stride bytes each, at @offset of a record of
 * @size bytes: to @ret of @ret_size bytes, cut or zero-extended. Errors: -EPROTO.
 */
int wire_element(const void *record, size_t size, size_t offset, uint32_t n, uint32_t stride,
                 uint32_t index, void *ret, size_t ret_size);

#define WIRE_STRING_END(array) ((array)[sizeof(array) - 1] = '\0')

#endif
