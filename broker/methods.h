/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_METHODS_H
#define RTGRANT_BROKER_METHODS_H

/*
 * What can be asked of the broker, whichever way it came in: one handler for each row.
 */

#include "broker/authority.h"
#include "broker/broker.h"
#include "broker/method-rows.h"
#include "broker/wire.h"

struct call {
        struct broker *broker;
        const struct peer *peer;        /* who asks */
        struct user *user;              /* whose quota of messages it was */
        struct connection *connection;  /* for what lives as long as it; NULL if there is none */
        enum wire_transport transport;
        int pidfd;                      /* borrowed: the descriptor that came along; -1 */
        const char *bus_name;           /* borrowed: the caller's on the system bus; NULL elsewhere */
        const char *action;             /* of polkit, instead of the role's; NULL: the role's */
        bool interactive;               /* polkit may ask the user, where the request cannot say */
        bool check_rttime;              /* RealtimeKit's rule about RLIMIT_RTTIME holds */
        enum authority_answer authority; /* of polkit, when the call is made again with it */
        size_t authority_role;
        unsigned resources_answered;    /* likewise, of resources */
        enum authority_answer resource_answers[_RESOURCE_MAX];
};

/*
 * Carries out one request and fills in the reply. Returns how many bytes of it to send; 0 if polkit
 * has to be asked before: then *ret_question is what, and nothing has been done.
 */
size_t methods_call(const struct call *call, const union wire_request *request,
                    union wire_response *ret, struct authority_question *ret_question);

/* Takes what a call costs beyond the one token that its message was let in for. */
void methods_charge(const struct call *call, enum rate rate);

#endif
