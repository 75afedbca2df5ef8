/* SPDX-License-Identifier: MIT */

#include "broker/wire.h"

#include <stdbool.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/method-rows.h"

struct form {
        size_t fixed;           /* bytes that must be there: all of the first version */
        size_t size;            /* bytes known to this broker */
};

static const struct form forms[] = {
#define X(verb, member, record, ...) [WIRE_##verb] = { sizeof(struct record), sizeof(struct record) },
        BROKER_METHODS(X)
#undef X
#define X(verb, record, ...) [WIRE_##verb] = { sizeof(struct record), sizeof(struct record) },
        SOCKET_METHODS(X)
#undef X
};

static bool is_zero(const uint8_t *bytes, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (bytes[i] != 0)
                        return false;

        return true;
}

static bool is_terminated(const char *array, size_t size) {
        return memchr(array, '\0', size);
}

enum reason wire_decode(const void *data, size_t length, union wire_request *ret) {
        const struct form *form;

        memset(ret, 0, sizeof(*ret));
        memcpy(&ret->header, data, length < sizeof(ret->header) ? length : sizeof(ret->header));

        if (length < sizeof(ret->header) || length > WIRE_RECORD_MAX || ret->header.size != length)
                return REASON_MALFORMED;
        if (ret->header.version != WIRE_VERSION)
                return REASON_VERSION;
        if (ret->header.verb == 0 || ret->header.verb >= ELEMENTS(forms))
                return REASON_UNSUPPORTED;

        form = &forms[ret->header.verb];
        if (length < form->fixed)
                return REASON_MALFORMED;
        if (length > form->size &&
            !is_zero((const uint8_t *) data + form->size, length - form->size))
                return REASON_MALFORMED;

        memcpy(ret, data, length < form->size ? length : form->size);

        if ((ret->header.verb == WIRE_ACQUIRE || ret->header.verb == WIRE_WHY) &&
            (!is_terminated(ret->acquire.role, sizeof(ret->acquire.role)) ||
             !is_terminated(ret->acquire.reason, sizeof(ret->acquire.reason)) ||
             !is_terminated(ret->acquire.irq, sizeof(ret->acquire.irq)) ||
             !is_terminated(ret->acquire.block, sizeof(ret->acquire.block)) ||
             !is_terminated(ret->acquire.feeds, sizeof(ret->acquire.feeds))))
                return REASON_MALFORMED;

        return REASON_NONE;
}

void wire_finish(struct wire_header *reply, const struct wire_header *request, size_t size) {
        *reply = (struct wire_header) {
                .size = (uint32_t) size,
                .version = WIRE_VERSION,
                .verb = (uint16_t) (request->verb | WIRE_REPLY),
                .serial = request->serial,
        };
}

size_t wire_finish_answer(struct wire_answer *answer, const struct wire_header *request) {
        size_t size = answer->reason == REASON_NONE && answer->explanation.text[0] == '\0'
                              ? offsetof(struct wire_answer, explanation)
                              : sizeof(*answer);

        wire_finish(&answer->header, request, size);
        return size;
}
