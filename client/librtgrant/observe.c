/* SPDX-License-Identifier: MIT */

/* Who has a CPU, as the broker records it. */

#include <string.h>

#include "client/librtgrant/handle.h"

/* Returns what @each returned last. */
static int tell_each(const union wire_page *page, size_t size, rtgrant_occupant_fn each,
                     void *userdata) {
        const struct wire_occupants_reply *reply = (const void *) page->bytes;
        struct wire_occupant wire;
        int r = 0;

        for (uint32_t i = 0; i < reply->n_occupants && r == 0; i++) {
                r = wire_element(page, size, offsetof(struct wire_occupants_reply, occupants),
                                 reply->n_occupants, reply->occupant_size, i, &wire, sizeof(wire));
                if (r < 0)
                        return r;

                WIRE_STRING_END(wire.comm);
                r = each(wire.comm, wire.ns, userdata);
        }
        return r;
}

int rtgrant_get_occupants(struct rtgrant *handle, uint64_t from_ns, uint64_t to_ns,
                          rtgrant_occupant_fn each, void *userdata, uint64_t *ret_since_ns,
                          uint64_t *ret_until_ns) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct wire_occupants occupants = {
                .header = { .size = sizeof(occupants), .verb = WIRE_OCCUPANTS },
                .from_ns = from_ns,
                .to_ns = to_ns,
        };
        const struct wire_occupants_reply *reply;
        union wire_page page;
        struct call call = CALL_INIT(occupants, occupants, &page);
        int r;

        if (!each || to_ns < from_ns)
                return -EINVAL;
        r = handle_enter(handle, &entered);
        if (r >= 0)
                r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        reply = (const void *) page.bytes;
        if (reply->reason != RTGRANT_REASON_NONE)
                return -EPERM;
        if (ret_since_ns)
                *ret_since_ns = reply->since_ns;
        if (ret_until_ns)
                *ret_until_ns = reply->until_ns;
        return tell_each(&page, call.reply_size, each, userdata);
}
