/* SPDX-License-Identifier: MIT */

#include "broker/realtimekit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "broker/bus-peer.h"
#include "broker/cleanup.h"
#include "broker/demote.h"
#include "broker/explain.h"
#include "broker/rttime.h"
#include "broker/text.h"

/* PipeWire after 1.6 asks first, and limits its time then. */
#define LIMIT_IS_TO_COME_US 10000

/* The only names that its clients know; they do not read the text. */
static const char *error_name(enum reason reason) {
        switch (reason) {
        case REASON_MALFORMED:
        case REASON_VERSION:
        case REASON_INVALID:
        case REASON_UNSUPPORTED:
        case REASON_NO_SUCH_THREAD:
        case REASON_NAMESPACE:
        case REASON_TARGET_CHANGED:
        case REASON_KERNEL_OTHER:
        case REASON_KERNEL_MISMATCH:
                return SD_BUS_ERROR_FAILED;
        case REASON_RESOURCES:
                return SD_BUS_ERROR_NO_MEMORY;
        default:
                return SD_BUS_ERROR_ACCESS_DENIED;
        }
}

/* Many reasons share a name, so the text begins with the reason's own word. */
static void reply_reason(sd_bus_message *message, enum reason reason, const char *text) {
        if (reason == REASON_NONE)
                (void) sd_bus_reply_method_return(message, NULL);
        else
                (void) sd_bus_reply_method_errorf(message, error_name(reason), "%s: %s",
                                                  reason_to_string(reason), text);
}

static void reply_explained(sd_bus_message *message, enum reason reason,
                            const struct wire_explanation *why) {
        char text[EXPLAIN_MESSAGE_SIZE];

        explain_message(text, why);
        reply_reason(message, reason, text);
}

static void reply_plain(sd_bus_message *message, enum reason reason) {
        struct wire_explanation why = {};

        explain_wire(&why, reason);
        reply_explained(message, reason, &why);
}

static void reply_acquired(struct bus_peer *sender, sd_bus_message *message,
                           const union wire_response *response, void *userdata) {
        reply_explained(message, (enum reason) response->answer.reason,
                        &response->answer.explanation);
}

/* A method call of somebody who may call it. */
struct kit_call {
        struct realtimekit *realtimekit;
        struct bus_peer *sender;
        sd_bus_message *message;
        bool again;
        enum access access;             /* to the method */
};

static void serve_again(struct bus_peer *sender, sd_bus_message *message, void *userdata);

static struct broker *call_broker(const struct kit_call *c) {
        return bus_broker(c->realtimekit->bus);
}

static void acquire(const struct kit_call *c, const struct target_request *target,
                    struct wire_acquire *wanted, bool check_rttime) {
        const struct policy *policy = broker_policy(call_broker(c));
        const struct call call = {
                .transport = WIRE_TRANSPORT_REALTIMEKIT,
                .action = access_action(c->access),
                .check_rttime = check_rttime,
        };
        union wire_request request = { .acquire = *wanted };

        if (c->realtimekit->suspended) {
                reply_reason(c->message, REASON_DENIED,
                             "an administrator suspended RealtimeKit's interface");
                return;
        }

        request.header.size = sizeof(request.acquire);
        request.header.version = WIRE_VERSION;
        request.header.verb = WIRE_ACQUIRE;
        request.acquire.pid = target->pid;
        request.acquire.tid = target->tid;
        request.acquire.lifetime = WIRE_LIFETIME_THREAD; /* clients disconnect at once */
        text_copy(request.acquire.role, sizeof(request.acquire.role),
                  policy->roles[policy->realtimekit_role].name);
        bus_peer_ask(c->sender, c->message, &call, &request, reply_acquired, NULL);
}

/*
 * Only of the sender's own process: how long an answer takes must not tell about those of others.
 */
static bool wait_for_limit(const struct kit_call *c, const struct target_request *target) {
        pid_t own = c->sender->peer.pid;

        return !c->again && (target->pid == 0 || target->pid == (uint64_t) own) &&
               !broker_policy(call_broker(c))->realtimekit_rttime_unset && rttime_is_unset(own) &&
               bus_peer_delay(c->sender, c->message, LIMIT_IS_TO_COME_US, serve_again, c->realtimekit);
}

static int make_realtime(const struct kit_call *c, const struct target_request *target) {
        struct wire_acquire wanted = {
                .want = WIRE_WANT_SCHED,
                .policy = (uint32_t) broker_policy(call_broker(c))->realtimekit_policy,
        };
        uint32_t priority;
        int r;

        r = sd_bus_message_read(c->message, "u", &priority);
        if (r < 0)
                return r;

        if (wait_for_limit(c, target))
                return 0;
        wanted.priority = priority < INT_MAX ? (int) priority : INT_MAX;
        acquire(c, target, &wanted, /* check_rttime= */ true);
        return 0;
}

static int make_high_priority(const struct kit_call *c, const struct target_request *target) {
        struct wire_acquire wanted = {
                .want = WIRE_WANT_SCHED | WIRE_WANT_NICE,
                .policy = SCHED_OTHER,
        };
        enum reason reason;
        struct call call;
        int r;

        r = sd_bus_message_read(c->message, "i", &wanted.nice);
        if (r < 0)
                return r;

        /* this is how clients give back what they have */
        if (wanted.nice >= 0 && wanted.nice <= 19) {
                call = bus_peer_call(c->sender);
                if (demote_thread(&call, target, wanted.nice, &reason)) {
                        reply_plain(c->message, reason);
                        return 0;
                }
        }

        acquire(c, target, &wanted, /* check_rttime= */ false);
        return 0;
}

static void log_done(const struct kit_call *c, const char *what) {
        log_write(call_broker(c)->log, LOG_NOTICE, &(struct log_fields) { .event = "administered" },
                  "process %d of user %u, over RealtimeKit's interface: %s",
                  c->sender->peer.pid, c->sender->peer.uid, what);
}

static int reset_known(const struct kit_call *c, const struct target_request *target) {
        log_done(c, "all leases are ended");
        (void) broker_end_all(call_broker(c), REASON_REVOKED,
                              "all leases were ended by an administrator");
        return sd_bus_reply_method_return(c->message, NULL);
}

static int reset_all(const struct kit_call *c, const struct target_request *target) {
        log_done(c, "all leases are ended, and all users' threads leave real-time");
        (void) broker_end_all(call_broker(c), REASON_REVOKED,
                              "all leases were ended by an administrator");
        (void) demote_everybody();
        return sd_bus_reply_method_return(c->message, NULL);
}

static int end_daemon(const struct kit_call *c, const struct target_request *target) {
        log_done(c, "the broker is to stop");
        (void) sd_bus_reply_method_return(c->message, NULL);
        return sd_event_exit(call_broker(c)->event, 0);
}

static int suspend(const struct kit_call *c, const struct target_request *target) {
        struct broker *broker = call_broker(c);
        struct lease *lease;
        uint64_t seq = 0;

        log_done(c, "its grants are ended, and no more are given until it is resumed");
        c->realtimekit->suspended = true;
        while ((lease = lease_find_after(&broker->leases, seq))) {
                seq = lease->seq;
                if (lease->transport == WIRE_TRANSPORT_REALTIMEKIT)
                        lease_end(broker, lease, REASON_REVOKED,
                                  "an administrator suspended RealtimeKit's interface");
        }
        return sd_bus_reply_method_return(c->message, NULL);
}

static int resume(const struct kit_call *c, const struct target_request *target) {
        log_done(c, "grants are given again");
        c->realtimekit->suspended = false;
        return sd_bus_reply_method_return(c->message, NULL);
}

/* Which thread a method names. */
enum whose_thread {
        NO_THREAD,
        OWN_THREAD,             /* of the sender's process */
        ANY_THREAD,             /* of the process that comes first */
};

#define X(member, signature, names, whose, access, rate, handle) \
        static_assert(METHOD_IS_COMPLETE(access, rate), member ": every column");
REALTIMEKIT_METHODS(X)
#undef X

static const struct method {
        const char *member;
        enum whose_thread whose;
        enum access access;
        enum rate rate;
        int (*handle)(const struct kit_call *c, const struct target_request *target);
} methods[] = {
#define X(member, signature, names, whose, access, rate, handle) \
        { member, whose, access, rate, handle },
        REALTIMEKIT_METHODS(X)
#undef X
};

static const struct method *find_method(const char *member) {
        for (size_t i = 0; i < ELEMENTS(methods); i++)
                if (strcmp(methods[i].member, member) == 0)
                        return &methods[i];
        return NULL;
}

static int call_method(struct kit_call *c) {
        const struct method *method = find_method(sd_bus_message_get_member(c->message));
        const struct call call = bus_peer_call(c->sender);
        struct target_request target = { .pidfd = -1 };
        int r = 0;

        if (!method)
                return -EBADR;
        if (!call.user)
                return -ENOMEM;

        c->access = method->access;
        methods_charge(&call, method->rate);
        if (method->access == ACCESS_ROOT && !c->sender->peer.admin) {
                reply_plain(c->message, REASON_ADMIN_ONLY);
                return 0;
        }

        if (method->whose == ANY_THREAD) {
                r = sd_bus_message_read(c->message, "t", &target.pid);
                if (r >= 0 && target.pid == 0) {
                        reply_plain(c->message, REASON_NO_SUCH_THREAD);
                        return 0;
                }
        }
        if (r >= 0 && method->whose != NO_THREAD)
                r = sd_bus_message_read(c->message, "t", &target.tid);
        return r < 0 ? r : method->handle(c, &target);
}

static void serve_call(struct kit_call *c) {
        int r;

        r = call_method(c);
        if (r < 0)
                (void) sd_bus_reply_method_errno(c->message, r, NULL);
}

static void serve(struct bus_peer *sender, sd_bus_message *message, void *userdata) {
        struct kit_call c = { userdata, sender, message, .again = false };

        serve_call(&c);
}

static void serve_again(struct bus_peer *sender, sd_bus_message *message, void *userdata) {
        struct kit_call c = { userdata, sender, message, .again = true };

        serve_call(&c);
}

static int on_method(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct realtimekit *realtimekit = userdata;

        return bus_peers_dispatch(bus_peers(realtimekit->bus), message, serve, realtimekit);
}

/* Clients take 0 or less for failure, or do worse with it. */
static int get_priority_max(sd_bus *connection, const char *path, const char *interface,
                            const char *property, sd_bus_message *reply, void *userdata,
                            sd_bus_error *error) {
        const struct realtimekit *realtimekit = userdata;
        const struct policy *policy = broker_policy(bus_broker(realtimekit->bus));
        int priority = policy->roles[policy->realtimekit_role].priority_max;

        return sd_bus_message_append(reply, "i", priority > 0 ? priority : 1);
}

static int get_nice_min(sd_bus *connection, const char *path, const char *interface,
                        const char *property, sd_bus_message *reply, void *userdata,
                        sd_bus_error *error) {
        const struct realtimekit *realtimekit = userdata;
        const struct policy *policy = broker_policy(bus_broker(realtimekit->bus));

        return sd_bus_message_append(reply, "i", policy->roles[policy->realtimekit_role].nice_min);
}

static int get_rttime(sd_bus *connection, const char *path, const char *interface,
                      const char *property, sd_bus_message *reply, void *userdata,
                      sd_bus_error *error) {
        const struct realtimekit *realtimekit = userdata;

        return sd_bus_message_append(
                reply, "x",
                (int64_t) broker_policy(bus_broker(realtimekit->bus))->realtimekit_rttime_us);
}

/* sd-bus itself would ask the bus who calls, and wait: who may do what is for call_method(). */
static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
#define X(member, signature, names, ...)                                      \
        SD_BUS_METHOD_WITH_NAMES(member, signature, names, "", "", on_method, \
                                 SD_BUS_VTABLE_UNPRIVILEGED),
        REALTIMEKIT_METHODS(X)
#undef X
        SD_BUS_PROPERTY("RTTimeUSecMax", "x", get_rttime, 0, 0),
        SD_BUS_PROPERTY("MaxRealtimePriority", "i", get_priority_max, 0, 0),
        SD_BUS_PROPERTY("MinNiceLevel", "i", get_nice_min, 0, 0),
        /* an older name of RTTimeUSecMax, in µs too, by which FluidSynth asks to this day */
        SD_BUS_PROPERTY("RTTimeNSecMax", "x", get_rttime, 0, 0),
        SD_BUS_VTABLE_END,
};

int realtimekit_add(struct bus *bus, struct realtimekit *realtimekit) {
        realtimekit->bus = bus;
        return sd_bus_add_object_vtable(bus_connection(bus), NULL, REALTIMEKIT_PATH,
                                        REALTIMEKIT_NAME, vtable, realtimekit);
}
