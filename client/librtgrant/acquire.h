/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_LIBRTGRANT_ACQUIRE_H
#define RTGRANT_CLIENT_LIBRTGRANT_ACQUIRE_H

/* How a request, read by request_read(), becomes a grant. */

#include "client/librtgrant/handle.h"

/*
 * By the caller's own right: 1 if it is in force, 0 if only a broker can help, negative if none
 * could. The thread is left as it was unless it is 1.
 */
int acquire_directly(const struct rtgrant_request *request, struct rtgrant_answer *ret);

/*
 * Directly if @request says so, else by the broker. A NULL *@handle is opened when it is needed,
 * and is then the caller's to close.
 */
int acquire(struct rtgrant **handle, const struct rtgrant_request *request,
            struct rtgrant_answer *ret);

/*
 * Never success without reading back: what @answer says of a thread of ours is compared with the
 * request and the kernel. If it is not so, -EPROTO, and @answer then says what is.
 */
int acquire_verify(const struct rtgrant_request *request, struct rtgrant_answer *answer);

/* 0 if @answer says yes, else -EPERM. */
int answer_to_result(const struct rtgrant_answer *answer);

#endif
