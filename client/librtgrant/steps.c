/* SPDX-License-Identifier: MIT */

/* Which rules of the policy speak of a request. */

#include <string.h>

#include "client/librtgrant/handle.h"

static int step_page(const union wire_page *page, size_t size, rtgrant_step_fn each,
                     void *userdata) {
        const struct wire_why_reply *why = (const void *) page->bytes;
        struct wire_step wire;
        int r = 0;

        for (uint32_t i = 0; i < why->n_steps && r == 0; i++) {
                struct rtgrant_step step;

                r = wire_element(page, size, offsetof(struct wire_why_reply, steps), why->n_steps,
                                 why->step_size, i, &wire, sizeof(wire));
                if (r < 0)
                        return r;

                WIRE_STRING_END(wire.role);
                WIRE_STRING_END(wire.rule);
                step = (struct rtgrant_step) {
                        .size = sizeof(step),
                        .role = wire.role,
                        .rule = wire.rule,
                        .reason = (int) wire.reason,
                        .clamped = wire.flags & WIRE_STEP_CLAMPED,
                        .asks_polkit = wire.flags & WIRE_STEP_ASK,
                        .asked = wire.asked,
                        .limit = wire.limit,
                };
                r = each(&step, userdata);
        }

        return r;
}

int rtgrant_get_steps(struct rtgrant *handle, const struct rtgrant_request *request,
                      rtgrant_step_fn each, void *userdata) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct rtgrant_request copy;
        union wire_page page;
        struct call call = { .reply = &page, .reply_max = sizeof(page) };
        int r;

        if (!each)
                return -EINVAL;
        r = request_read(request, &copy);
        if (r < 0)
                return r;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        request_encode_acquire(&copy, &call.request.acquire);
        call.request.acquire.header.verb = WIRE_WHY;
        call.pidfd = copy.pidfd_plus_one - 1;
        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;
        if (((const struct wire_reply *) (const void *) page.bytes)->reason != RTGRANT_REASON_NONE)
                return -EPERM;

        return step_page(&page, call.reply_size, each, userdata);
}
