/* SPDX-License-Identifier: MIT */

/* What is answered by a plain answer: what is done with a lease by its id, verbs without one. */

#include <string.h>

#include "client/librtgrant/acquire.h"

static int call_for_answer(struct rtgrant *handle, const union wire_request *request,
                           struct rtgrant_answer *ret_answer) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct rtgrant_answer answer;
        struct wire_answer reply;
        struct call call = {
                .request = *request,
                .pidfd = -1,
                .reply = &reply,
                .reply_max = sizeof(reply),
        };
        int r;

        r = public_check_out(ret_answer, ANSWER_SIZE_FIRST);
        if (r < 0)
                return r;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        answer_decode(&reply, &answer);
        public_copy_out(&answer, sizeof(answer), ret_answer);
        return answer_to_result(&answer);
}

static int call_lease(struct rtgrant *handle, enum wire_verb verb, const struct rtgrant_id *id,
                      uint32_t lifetime_s, struct rtgrant_answer *ret_answer) {
        union wire_request request = {
                .lease.header.size = sizeof(request.lease),
                .lease.header.verb = (uint16_t) verb,
                .lease.lifetime_s = lifetime_s,
        };

        if (!id)
                return -EINVAL;

        memcpy(request.lease.id, id->bytes, sizeof(id->bytes));
        return call_for_answer(handle, &request, ret_answer);
}

static int call_plain(struct rtgrant *handle, enum wire_verb verb,
                      struct rtgrant_answer *ret_answer) {
        union wire_request request = {
                .plain.header.size = sizeof(request.plain),
                .plain.header.verb = (uint16_t) verb,
        };

        return call_for_answer(handle, &request, ret_answer);
}

int rtgrant_renew(struct rtgrant *handle, const struct rtgrant_id *id, unsigned lifetime_s,
                  struct rtgrant_answer *ret_answer) {
        return call_lease(handle, WIRE_RENEW, id, lifetime_s, ret_answer);
}

int rtgrant_release(struct rtgrant *handle, const struct rtgrant_id *id,
                    struct rtgrant_answer *ret_answer) {
        return call_lease(handle, WIRE_RELEASE, id, 0, ret_answer);
}

int rtgrant_revoke(struct rtgrant *handle, const struct rtgrant_id *id,
                   struct rtgrant_answer *ret_answer) {
        return call_lease(handle, WIRE_REVOKE, id, 0, ret_answer);
}

int rtgrant_reload(struct rtgrant *handle, struct rtgrant_answer *ret_answer) {
        return call_plain(handle, WIRE_RELOAD, ret_answer);
}

int rtgrant_restore_all(struct rtgrant *handle, struct rtgrant_answer *ret_answer) {
        return call_plain(handle, WIRE_RESTORE_ALL, ret_answer);
}

int rtgrant_authenticate(struct rtgrant *handle, struct rtgrant_answer *ret_answer) {
        union wire_request request = {
                .hello.header.size = sizeof(request.hello),
                .hello.header.verb = WIRE_HELLO,
                .hello.flags = WIRE_HELLO_ADMIN | WIRE_HELLO_MAY_ASK,
        };
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        int r;

        r = public_check_out(ret_answer, ANSWER_SIZE_FIRST);
        if (r < 0)
                return r;
        r = call_for_answer(handle, &request, &answer);
        if (r >= 0) /* it came as the whole of a status */
                answer = (struct rtgrant_answer) { .size = sizeof(answer) };
        public_copy_out(&answer, sizeof(answer), ret_answer);
        return r;
}

int rtgrant_observe(struct rtgrant *handle, int cpu, unsigned flags,
                    struct rtgrant_answer *ret_answer) {
        union wire_request request = {
                .observe.header.size = sizeof(request.observe),
                .observe.header.verb = WIRE_OBSERVE,
                .observe.flags = flags & RTGRANT_MAY_ASK ? WIRE_OBSERVE_MAY_ASK : 0,
                .observe.cpu = (uint32_t) cpu,
        };

        if (cpu < 0 || (flags & ~(unsigned) RTGRANT_MAY_ASK) != 0)
                return -EINVAL;

        return call_for_answer(handle, &request, ret_answer);
}
