/* SPDX-License-Identifier: MIT */

#include "broker/broker1.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/broker1-holders.h"
#include "broker/broker1-replies.h"
#include "broker/broker1-values.h"
#include "broker/bus-peer.h"
#include "broker/cleanup.h"
#include "broker/explain.h"
#include "broker/method-rows.h"
#include "broker/text.h"
#include "broker/config.h"

#define ERROR_PREFIX "org.rtgrant.Error."

/* What waits to be sent is sent in order: answers are not to wait behind more signals than this. */
#define QUEUED_MAX 1024

struct broker1 {
        struct bus *bus;                /* borrowed; outlives this */
        struct holders *holders;        /* owned */
};

static const struct method {
        const char *member;
        enum wire_verb verb;
        size_t record_size;
} methods[] = {
#define X(verb, member, record, ...) { member, WIRE_##verb, sizeof(struct record) },
        BROKER_METHODS(X)
#undef X
};

static const struct method *find_method(sd_bus_message *message) {
        const char *member = sd_bus_message_get_member(message);

        for (size_t i = 0; i < ELEMENTS(methods); i++)
                if (member && strcmp(methods[i].member, member) == 0)
                        return &methods[i];
        return NULL;
}

/* "priority-limit" to org.rtgrant.Error.PriorityLimit */
static void error_name(enum reason reason, char *buffer, size_t size) {
        const char *word = reason_to_string(reason);
        size_t n = strlen(ERROR_PREFIX);
        bool start = true;

        text_copy(buffer, size, ERROR_PREFIX);
        for (; *word != '\0' && n + 1 < size; word++) {
                char c = *word;

                if (c == '-') {
                        start = true;
                        continue;
                }
                if (start)
                        c = (char) toupper((unsigned char) c);
                buffer[n++] = c;
                start = false;
        }
        buffer[n] = '\0';
}

static void reply_refusal(sd_bus_message *message, enum reason reason,
                          const struct wire_explanation *why) {
        char name[80], text[EXPLAIN_MESSAGE_SIZE];

        error_name(reason, name, sizeof(name));
        explain_message(text, why);
        (void) sd_bus_reply_method_errorf(message, name, "%s", text);
}

static void reply_plain(sd_bus_message *message, enum reason reason) {
        struct wire_explanation why = {};

        explain_wire(&why, reason);
        reply_refusal(message, reason, &why);
}

static int read_id(sd_bus_message *message, union wire_request *request,
                   char error[VALUES_ERROR_SIZE]) {
        uint8_t *id = request->header.verb == WIRE_UPDATE ? request->update.id : request->lease.id;
        const char *text;
        unsigned byte;
        int r;

        r = sd_bus_message_read(message, "s", &text);
        if (r < 0)
                return r;

        if (strlen(text) != LEASE_ID_STRING_SIZE - 1 ||
            strspn(text, "0123456789abcdef") != LEASE_ID_STRING_SIZE - 1) {
                (void) snprintf(error, VALUES_ERROR_SIZE,
                                "the id of a lease is 32 hexadecimal digits");
                return -EINVAL;
        }
        for (size_t i = 0; i < WIRE_LEASE_ID_SIZE; i++) {
                (void) sscanf(text + 2 * i, "%2x", &byte);
                id[i] = (uint8_t) byte;
        }
        return 0;
}

/* Errors: as values_read(). */
static int read_request(sd_bus_message *message, const struct method *method,
                        union wire_request *ret, char error[VALUES_ERROR_SIZE]) {
        enum wire_verb verb = method->verb;
        bool acquires = method->record_size == sizeof(struct wire_acquire);
        uint32_t *policy = acquires              ? &ret->acquire.policy
                           : verb == WIRE_UPDATE ? &ret->update.policy
                                                 : NULL;
        const uint32_t *want = acquires ? &ret->acquire.want : &ret->update.want;
        int r = 0;

        memset(ret, 0, sizeof(*ret));
        ret->header.size = (uint32_t) method->record_size;
        ret->header.version = WIRE_VERSION;
        ret->header.verb = (uint16_t) verb;

        if (policy)
                *policy = SCHED_FIFO; /* unless another one is named */
        if (verb == WIRE_UPDATE || method->record_size == sizeof(struct wire_lease_ref))
                r = read_id(message, ret, error);
        if (r >= 0)
                r = values_read(message, ret, error);
        if (r < 0)
                return r;
        if (policy && !(*want & WIRE_WANT_SCHED))
                *policy = 0;

        if (sd_bus_message_get_allow_interactive_authorization(message) > 0) {
                if (verb == WIRE_ACQUIRE)
                        ret->acquire.flags |= WIRE_ACQUIRE_MAY_ASK;
                else if (verb == WIRE_UPDATE)
                        ret->update.flags |= WIRE_ACQUIRE_MAY_ASK;
        }
        return 0;
}

static void reply_done(sd_bus_message *message, enum wire_verb verb,
                       const union wire_response *response) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(message, &reply);
        if (r >= 0)
                r = values_append_reply(reply, verb, response);
        if (r >= 0)
                r = sd_bus_message_send(reply);
        if (r < 0)
                (void) sd_bus_reply_method_errno(message, r, NULL);
}

/* Whether something is to last as long as the sender's name. */
static bool needs_holder(const union wire_request *request) {
        return request->header.verb == WIRE_WATCH ||
               (request->header.verb == WIRE_ACQUIRE &&
                request->acquire.lifetime == WIRE_LIFETIME_CONNECTION &&
                !(request->acquire.flags & WIRE_ACQUIRE_DRY_RUN));
}

static void note_holder(struct broker1 *broker1, struct bus_peer *sender,
                        const union wire_request *request, const union wire_response *response) {
        if (request->header.verb == WIRE_ACQUIRE && !(response->answer.flags & WIRE_ANSWER_DRY_RUN))
                holders_take(broker1->holders, sender->name, response->answer.id);
        if (request->header.verb == WIRE_WATCH)
                holders_watch(broker1->holders, sender->name, request->list.flags & WIRE_LIST_ALL);
}

static void on_reply(struct bus_peer *sender, sd_bus_message *message,
                     const union wire_response *response, void *userdata) {
        const struct method *method = find_method(message);
        struct broker1 *broker1 = userdata;
        char error[VALUES_ERROR_SIZE];
        union wire_request request;

        /* what was asked for is remembered by the message itself */
        if (sd_bus_message_rewind(message, true) < 0 ||
            read_request(message, method, &request, error) < 0)
                return;

        if (response->answer.reason == REASON_NONE) {
                note_holder(broker1, sender, &request, response);
                reply_done(message, method->verb, response);
        } else {
                reply_refusal(message, (enum reason) response->answer.reason,
                              &response->answer.explanation);
        }
        if (needs_holder(&request))
                holders_settle(broker1->holders, sender->name);
}

static void serve(struct bus_peer *sender, sd_bus_message *message, void *userdata) {
        const struct method *method = find_method(message);
        const struct call call = {
                .transport = WIRE_TRANSPORT_BROKER1,
                .interactive = sd_bus_message_get_allow_interactive_authorization(message) > 0,
        };
        struct broker1 *broker1 = userdata;
        struct wire_explanation why = {};
        union wire_request request;
        enum reason reason;
        int r;

        r = method ? read_request(message, method, &request, why.text) : -EBADR;
        if (r < 0) {
                if (why.text[0] != '\0')
                        reply_refusal(message, REASON_INVALID, &why);
                else
                        (void) sd_bus_reply_method_errno(message, r, NULL);
                return;
        }

        /* Known before it is carried out, so that its end cannot be missed. */
        if (needs_holder(&request)) {
                reason = holders_add(broker1->holders, bus_connection(broker1->bus), sender->name,
                                     sender->peer.uid);
                if (reason != REASON_NONE) {
                        reply_plain(message, reason);
                        return;
                }
        }

        bus_peer_ask(sender, message, &call, &request, on_reply, broker1);
}

static int on_method(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct broker1 *broker1 = userdata;

        return bus_peers_dispatch(bus_peers(broker1->bus), message, serve, broker1);
}

static int get_version(sd_bus *connection, const char *path, const char *interface,
                       const char *property, sd_bus_message *reply, void *userdata,
                       sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", RTGRANT_VERSION);
}

static int get_degraded(sd_bus *connection, const char *path, const char *interface,
                        const char *property, sd_bus_message *reply, void *userdata,
                        sd_bus_error *error) {
        const struct broker1 *broker1 = userdata;

        return sd_bus_message_append(reply, "b",
                                     bus_broker(broker1->bus)->self.broken != REASON_NONE);
}

static int get_generation(sd_bus *connection, const char *path, const char *interface,
                          const char *property, sd_bus_message *reply, void *userdata,
                          sd_bus_error *error) {
        const struct broker1 *broker1 = userdata;

        return sd_bus_message_append(reply, "u", bus_broker(broker1->bus)->policy_generation);
}

static int get_n_leases(sd_bus *connection, const char *path, const char *interface,
                        const char *property, sd_bus_message *reply, void *userdata,
                        sd_bus_error *error) {
        const struct broker1 *broker1 = userdata;

        return sd_bus_message_append(reply, "u",
                                     lease_table_size(&bus_broker(broker1->bus)->leases));
}

/* What the rows say of arguments: two for SD_BUS_METHOD_WITH_NAMES() each. */
#define ID_OPTIONS "sa{sv}", SD_BUS_PARAM(id) SD_BUS_PARAM(options)
#define OPTIONS "a{sv}", SD_BUS_PARAM(options)
#define ANSWER "a{sv}", SD_BUS_PARAM(answer)
#define LEASES "aa{sv}t", SD_BUS_PARAM(leases) SD_BUS_PARAM(next)
#define ENTRIES "a(ssss)t", SD_BUS_PARAM(entries) SD_BUS_PARAM(next)
#define STEPS "aa{sv}", SD_BUS_PARAM(steps)

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
#define X(verb, member, record, in, out, ...) \
        SD_BUS_METHOD_WITH_NAMES(member, in, out, on_method, SD_BUS_VTABLE_UNPRIVILEGED),
        BROKER_METHODS(X)
#undef X
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Degraded", "b", get_degraded, 0, 0),
        SD_BUS_PROPERTY("PolicyGeneration", "u", get_generation, 0, 0),
        SD_BUS_PROPERTY("Leases", "u", get_n_leases, 0, 0),
        SD_BUS_SIGNAL_WITH_NAMES("LeaseChanged", "sssa{sv}",
                                 SD_BUS_PARAM(event) SD_BUS_PARAM(reason) SD_BUS_PARAM(text)
                                         SD_BUS_PARAM(lease),
                                 0),
        SD_BUS_VTABLE_END,
};

int broker1_new(struct bus *bus, struct broker1 **ret) {
        struct broker1 *broker1;
        int r;

        broker1 = calloc(1, sizeof(*broker1));
        if (!broker1)
                return -ENOMEM;

        broker1->bus = bus;
        r = holders_new(bus_broker(bus), &broker1->holders);
        if (r < 0) {
                free(broker1);
                return r;
        }

        *ret = broker1;
        return 0;
}

struct broker1 *broker1_free(struct broker1 *broker1) {
        if (!broker1)
                return NULL;

        broker1->holders = holders_free(broker1->holders);
        free(broker1);
        return NULL;
}

int broker1_add(struct broker1 *broker1) {
        return sd_bus_add_object_vtable(bus_connection(broker1->bus), NULL, BROKER1_PATH,
                                        BROKER1_NAME, vtable, broker1);
}

void broker1_clear(struct broker1 *broker1) {
        holders_clear(broker1->holders);
}

static const char *event_to_string(uint32_t kind) {
        static const char *const words[] = {
                [WIRE_EVENT_GRANTED] = "granted",   [WIRE_EVENT_UPDATED] = "updated",
                [WIRE_EVENT_ENDED] = "ended",       [WIRE_EVENT_REVOKED] = "revoked",
                [WIRE_EVENT_CHANGED] = "changed",   [WIRE_EVENT_LOWERED] = "lowered",
                [WIRE_EVENT_DEMOTED] = "demoted",   [WIRE_EVENT_RESTORED] = "restored",
                [WIRE_EVENT_OVER_BUDGET] = "over-budget",
        };

        return kind < ELEMENTS(words) && words[kind] ? words[kind] : "unknown";
}

static bool send_event(const char *name, const struct wire_event *event, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
        struct broker1 *broker1 = userdata;
        sd_bus *bus = bus_connection(broker1->bus);
        uint64_t n_queued;
        int r;

        r = sd_bus_get_n_queued_write(bus, &n_queued);
        if (r >= 0 && n_queued >= QUEUED_MAX)
                return false;

        r = sd_bus_message_new_signal(bus, &signal, BROKER1_PATH, BROKER1_NAME, "LeaseChanged");
        if (r >= 0)
                r = sd_bus_message_append(signal, "sss", event_to_string(event->kind),
                                          reason_to_string((enum reason) event->reason),
                                          event->text);
        if (r >= 0)
                r = values_append_event(signal, event);
        if (r >= 0)
                r = sd_bus_send_to(bus, signal, name, NULL);
        return r >= 0;
}

void broker1_tell(struct broker1 *broker1, const struct wire_event *event) {
        if (bus_connection(broker1->bus))
                holders_tell(broker1->holders, event, send_event, broker1);
}
