/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_METHODS_H
#define RTGRANT_BROKER_METHODS_H

/*
 * What can be asked of the broker, whichever way it came in: one table, one handler a verb.
 */

#include "broker/broker.h"
#include "broker/wire.h"

struct call {
        struct broker *broker;
        const struct peer *peer;        /* who asks */
        struct user *user;              /* whose quota of messages it was */
        struct connection *connection;  /* for what lives as long as it; NULL if there is none */
        enum wire_transport transport;
        int pidfd;                      /* borrowed: the descriptor that came along; -1 */
};

/* Carries out one request and fills in the reply. Returns how many bytes of it to send. */
size_t methods_call(const struct call *call, const union wire_request *request,
                    union wire_response *ret);

#endif
