/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_INQUIRY_H
#define RTGRANT_BROKER_INQUIRY_H

/*
 * A request that waits for polkit. When the answer is there the request is carried out from its
 * beginning: whose thread it is and what the policy says may have changed meanwhile.
 */

#include "broker/methods.h"

struct inquiry;

typedef void (*inquiry_reply_fn)(const union wire_response *response, size_t size, void *userdata);

/*
 * methods_call(), and polkit if need be. Returns how many bytes of *ret to send now; 0 if they come
 * later: then *ret_inquiry is good until @reply is called once from the main loop, or it is
 * cancelled. What @call borrows must live as long, but for the descriptor.
 */
size_t inquiry_call(const struct call *call, const union wire_request *request,
                    union wire_response *ret, inquiry_reply_fn reply, void *userdata,
                    struct inquiry **ret_inquiry);

/* Who asked is gone. May be NULL. Returns NULL. */
struct inquiry *inquiry_cancel(struct inquiry *inquiry);

#endif
