/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_LIBRTGRANT_PUBLIC_H
#define RTGRANT_CLIENT_LIBRTGRANT_PUBLIC_H

/*
 * The public header as the library itself includes it: what it declares is exported, all else is
 * hidden. And the rule for structures that may grow: those whose first member is `size`.
 */

#pragma GCC visibility push(default)
#include "client/rtgrant.h"
#pragma GCC visibility pop

/* The size of @type when @member was its last: that of the first version stays as it is. */
#define SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *) NULL)->member))

#define REQUEST_SIZE_FIRST SIZE_THROUGH(struct rtgrant_request, deadline_ns)
#define ANSWER_SIZE_FIRST SIZE_THROUGH(struct rtgrant_answer, help)
#define STATUS_SIZE_FIRST SIZE_THROUGH(struct rtgrant_status, offers)

/* More than any structure will have: beyond it `size` was never set. */
#define PUBLIC_SIZE_MAX 8192

/*
 * Copies the caller's @in to our @ret of @ret_size bytes: what the caller does not know is 0.
 * Errors: -EINVAL if it is no size at all, -E2BIG if the caller wants what we do not know.
 */
int public_copy_in(const void *in, size_t size_first, void *ret, size_t ret_size);

/* Errors: -EINVAL if `size` of @ret, which may be NULL, is no size at all. */
int public_check_out(const void *ret, size_t size_first);

/* Copies our @in to the caller's @ret, as far as that reaches; what we do not know is 0. */
void public_copy_out(const void *in, size_t in_size, void *ret);

#endif
