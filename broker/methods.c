/* SPDX-License-Identifier: MIT */

#include "broker/guard/act.h"
#include "broker/methods.h"

#include <stdio.h>
#include <string.h>

#include "broker/acquire.h"
#include "broker/answer.h"
#include "broker/cleanup.h"
#include "broker/config.h"
#include "broker/connection.h"
#include "broker/decide.h"
#include "broker/explain-authority.h"
#include "broker/method-rows.h"
#include "broker/observe-method.h"
#include "broker/reload.h"
#include "broker/server.h"
#include "broker/text.h"
#include "broker/update.h"

/* Leases looked at for one LIST: others' are passed over, and there may be many. */
#define LIST_SCAN_MAX 1024

struct method {
        enum access access;
        enum rate rate;
        size_t (*handle)(const struct call *call, const union wire_request *request,
                         union wire_response *ret, struct authority_question *ret_question);
};

/* In place of a role, of polkit's answer about administering. */
#define ROLE_MANAGE   SIZE_MAX

enum administers {
        ADMINISTERS_YES,
        ADMINISTERS_NO,
        ADMINISTERS_ASK, /* polkit, the question */
};

/* root in the initial namespaces, or who polkit lets. Who is none finds the reason in *answer. */
static enum administers administers(const struct call *call, struct wire_answer *answer,
                                    struct authority_question *question) {
        const struct authority_question about = {
                .action = access_action(ACCESS_MANAGE),
                .bus_name = call->bus_name,
                .pid = call->peer->pid,
                .uid = call->peer->uid,
                .quota_uid = call->peer->quota_uid,
                .interactive = call->interactive,
                .role_index = ROLE_MANAGE,
                .resource = -1,
                .role = "",
                .policy = "other",
        };
        enum authority_answer said;

        if (call->peer->admin)
                return ADMINISTERS_YES;

        said = decide_without_role(call, &about);
        switch (said) {
        case AUTHORITY_YES:
                return ADMINISTERS_YES;
        case AUTHORITY_UNASKED:
                *question = about;
                return ADMINISTERS_ASK;
        case AUTHORITY_FAILED:
                answer->reason = REASON_AUTHORITY_UNAVAILABLE;
                break;
        case AUTHORITY_OVERRUN:
                answer->reason = REASON_AUTHORITY_BUSY;
                break;
        default:
                answer->reason = REASON_ADMIN_ONLY;
                (void) explain_answer(&answer->explanation, "only an administrator may do this", said,
                                      about.action);
        }
        return ADMINISTERS_NO;
}

static size_t answer_reason(const union wire_request *request, union wire_response *ret,
                            enum reason reason) {
        ret->answer.reason = reason;
        if (reason != REASON_NONE && ret->answer.explanation.text[0] == '\0')
                explain_wire(&ret->answer.explanation, reason);
        return wire_finish_answer(&ret->answer, &request->header);
}

static void offer_roles(const struct call *call, struct wire_hello_reply *hello) {
        const struct policy *policy = broker_policy(call->broker);
        struct situation now = decide_situation(call, call->user);

        for (size_t i = 0; i < policy->n_roles && i < WIRE_OFFERS_MAX; i++) {
                const struct role *role = &policy->roles[i];
                struct wire_offer *offer = &hello->offers[hello->n_offers++];
                struct rule rule;
                enum reason reason;

                reason = now.in_user_namespace && !policy->user_namespaces
                                 ? REASON_USER_NAMESPACE
                                 : policy_role_admits(policy, role, &now, &rule);
                *offer = (struct wire_offer){
                        .reason = reason,
                        .policies = role->policies,
                        .priority_min = role->priority_min,
                        .priority_max = role->priority_max,
                        .nice_min = role->nice_min,
                        .threads_held = call->user->threads_by_role[i],
                        .threads_max = role->threads_per_user_max,
                };
                text_copy(offer->role, sizeof(offer->role), role->name);
        }
}

static size_t method_hello(const struct call *call, const union wire_request *request,
                           union wire_response *ret, struct authority_question *ret_question) {
        struct broker *broker = call->broker;
        struct wire_hello_reply *hello = &ret->hello;
        bool may_ask = request->hello.flags & WIRE_HELLO_MAY_ASK;
        struct call asking = *call;
        enum administers may;

        if ((request->hello.flags & ~(uint64_t) WIRE_HELLO_FLAGS_ALL) != 0)
                return answer_reason(request, ret, REASON_INVALID);
        asking.interactive |= may_ask;
        may = administers(&asking, &ret->answer, ret_question);
        if (may == ADMINISTERS_ASK && (request->hello.flags & (WIRE_HELLO_ADMIN | WIRE_HELLO_MAY_ASK)))
                return 0;
        if (may == ADMINISTERS_NO && may_ask)
                return answer_reason(request, ret, (enum reason) ret->answer.reason);

        *hello = (struct wire_hello_reply){
                .state = (broker->self.broken != REASON_NONE ? WIRE_STATE_DEGRADED : 0) |
                         (may == ADMINISTERS_YES ? WIRE_STATE_ADMIN : 0) |
                         (broker->policy_error[0] != '\0' ? WIRE_STATE_POLICY_BROKEN : 0) |
                         (!broker->kernel.thread_pidfd ? WIRE_STATE_OLD_KERNEL : 0),
                .features = WIRE_FEATURE_POLICY_VERB,
                .kinds = WIRE_WANT_SCHED | WIRE_WANT_NICE |
                         resource_kinds_served(&broker->resources),
                .uid = call->peer->uid,
                .pid = (uint64_t) call->peer->pid,
                .n_leases = lease_table_size(&broker->leases),
                .n_users = user_table_n_holders(&broker->users),
                .n_leases_own = call->user->n_leases,
                .n_leases_max = broker_policy(broker)->threads_max,
                .n_connections = server_n_connections(broker->server),
                .policy_generation = broker->policy_generation,
                .started_ms = broker->started_ms,
                .version = RTGRANT_VERSION,
                .offer_size = sizeof(struct wire_offer),
                .back_off_ms = guard_act_back_off_ms(broker, call->user),
                .n_users_in_back_off =
                        user_table_n_in_back_off(&broker->users, broker_now_us(broker)),
        };
        text_copy(hello->policy_error, sizeof(hello->policy_error), broker->policy_error);
        offer_roles(call, hello);

        wire_finish(&hello->header, &request->header, sizeof(*hello));
        return sizeof(*hello);
}

/*
 * One line for a refusal, unless the same was just said of this user: a client that tries again in
 * a loop is worth one line. What was left out is counted in the next.
 */
static void log_refusal(const struct call *call, const struct wire_answer *answer) {
        const struct log_fields fields = {
                .event = "refused",
                .reason = reason_to_string(answer->reason),
                .role = answer->role[0] != '\0' ? answer->role : NULL,
                .pid = call->peer->pid,
                .uid_plus_one = call->peer->uid + 1,
        };
        struct user *user = call->user;
        uint64_t now_us = broker_now_us(call->broker);
        char more[64] = "";

        /* Threads end all the time; and that the broker is degraded was said when it became so. */
        if (answer->reason == REASON_NO_SUCH_THREAD || answer->reason == REASON_DEGRADED)
                return;
        if ((answer->reason == user->last_refusal &&
             now_us < user->last_refusal_us + USER_LOG_REFILL_US) ||
            !bucket_take(&user->lines, now_us)) {
                user->n_lines_suppressed++;
                return;
        }
        if (user->n_lines_suppressed > 0)
                (void) snprintf(more, sizeof(more), " (%u refusals before were not logged)",
                                user->n_lines_suppressed);

        user->n_lines_suppressed = 0;
        user->last_refusal = answer->reason;
        user->last_refusal_us = now_us;
        log_write(call->broker->log, LOG_NOTICE, &fields,
                  "refused process %d of user %u (%s): %s%s%s%s%s", call->peer->pid,
                  call->peer->uid, fields.reason, answer->explanation.text,
                  answer->explanation.rule[0] != '\0' ? " [" : "", answer->explanation.rule,
                  answer->explanation.rule[0] != '\0' ? "]" : "", more);
}

static size_t method_acquire(const struct call *call, const union wire_request *request,
                             union wire_response *ret, struct authority_question *ret_question) {
        if (!acquire_lease(call, &request->acquire, &ret->answer, ret_question))
                return 0;

        if (ret->answer.reason != REASON_NONE && !(request->acquire.flags & WIRE_ACQUIRE_DRY_RUN))
                log_refusal(call, &ret->answer);
        return wire_finish_answer(&ret->answer, &request->header);
}

/* The caller's own lease; others' are as if they were not there. */
static struct lease *find_own(const struct call *call, const uint8_t id[WIRE_LEASE_ID_SIZE]) {
        struct lease *lease = lease_find(&call->broker->leases, id);

        return lease && lease->uid == call->peer->uid ? lease : NULL;
}

static size_t method_update(const struct call *call, const union wire_request *request,
                            union wire_response *ret, struct authority_question *ret_question) {
        struct lease *lease = find_own(call, request->update.id);

        if (!lease)
                return answer_reason(request, ret, REASON_NO_SUCH_LEASE);

        if (!update_lease(call, lease, &request->update, &ret->answer, ret_question))
                return 0;
        if (ret->answer.reason != REASON_NONE && !(request->update.flags & WIRE_ACQUIRE_DRY_RUN))
                log_refusal(call, &ret->answer);
        return wire_finish_answer(&ret->answer, &request->header);
}

static size_t method_renew(const struct call *call, const union wire_request *request,
                           union wire_response *ret, struct authority_question *ret_question) {
        struct lease *lease = find_own(call, request->lease.id);

        if (!lease)
                return answer_reason(request, ret, REASON_NO_SUCH_LEASE);

        update_renew(call, lease, request->lease.lifetime_s, &ret->answer);
        if (ret->answer.reason == REASON_NONE && call->connection && lease_is_orphan(lease))
                lease_take_up(call->broker, lease, call->connection);
        return wire_finish_answer(&ret->answer, &request->header);
}

static size_t end_one(const struct call *call, struct lease *lease,
                      const union wire_request *request, union wire_response *ret,
                      enum reason reason, const char *text) {
        struct lease after = *lease;

        after.n_holds = 0;
        answer_describe(lease, &ret->answer);
        ret->answer.previous_policy = ret->answer.policy;
        ret->answer.previous_priority = ret->answer.priority;
        ret->answer.previous_nice = ret->answer.nice;

        lease_end(call->broker, lease, reason, text);
        answer_describe(&after, &ret->answer);
        return wire_finish_answer(&ret->answer, &request->header);
}

static size_t method_release(const struct call *call, const union wire_request *request,
                             union wire_response *ret, struct authority_question *ret_question) {
        struct lease *lease = find_own(call, request->lease.id);

        if (!lease)
                return answer_reason(request, ret, REASON_NO_SUCH_LEASE);

        return end_one(call, lease, request, ret, REASON_RELEASED, "released by its holder");
}

static size_t method_revoke(const struct call *call, const union wire_request *request,
                            union wire_response *ret, struct authority_question *ret_question) {
        struct lease *lease = lease_find(&call->broker->leases, request->lease.id);

        if (!lease)
                return answer_reason(request, ret, REASON_NO_SUCH_LEASE);

        return end_one(call, lease, request, ret, REASON_REVOKED, "revoked by an administrator");
}

static size_t method_list(const struct call *call, const union wire_request *request,
                          union wire_response *ret, struct authority_question *ret_question) {
        bool all = request->list.flags & WIRE_LIST_ALL;
        struct wire_list_reply *list = &ret->list;
        struct lease *lease;
        uint64_t seq = request->list.after;
        enum administers may = ADMINISTERS_YES;
        unsigned n = 0;

        if ((request->list.flags & ~(uint64_t) WIRE_LIST_FLAGS_ALL) != 0)
                return answer_reason(request, ret, REASON_INVALID);
        if (all)
                may = administers(call, &ret->answer, ret_question);
        if (may != ADMINISTERS_YES)
                return may == ADMINISTERS_ASK
                               ? 0
                               : answer_reason(request, ret, (enum reason) ret->answer.reason);

        memset(list, 0, offsetof(struct wire_list_reply, leases));
        list->lease_size = sizeof(struct wire_lease);

        while ((lease = lease_find_after(&call->broker->leases, seq))) {
                if (list->n_leases == WIRE_LEASES_MAX || n++ == LIST_SCAN_MAX) {
                        list->next = seq;
                        break;
                }
                seq = lease->seq;
                if (all || lease->uid == call->peer->uid)
                        lease_describe(call->broker, lease, &list->leases[list->n_leases++]);
        }

        wire_finish(&list->header, &request->header,
                    offsetof(struct wire_list_reply, leases) +
                            list->n_leases * sizeof(struct wire_lease));
        return list->header.size;
}

static size_t method_watch(const struct call *call, const union wire_request *request,
                           union wire_response *ret, struct authority_question *ret_question) {
        bool all = request->list.flags & WIRE_LIST_ALL;
        enum administers may = ADMINISTERS_YES;

        if ((request->list.flags & ~(uint64_t) WIRE_LIST_FLAGS_ALL) != 0 ||
            request->list.after != 0)
                return answer_reason(request, ret, REASON_INVALID);
        if (all)
                may = administers(call, &ret->answer, ret_question);
        if (may != ADMINISTERS_YES)
                return may == ADMINISTERS_ASK
                               ? 0
                               : answer_reason(request, ret, (enum reason) ret->answer.reason);
        /* on the bus the transport itself sends the events */
        if (!call->connection && call->transport != WIRE_TRANSPORT_BROKER1)
                return answer_reason(request, ret, REASON_UNSUPPORTED);

        if (call->connection)
                connection_watch(call->connection, all);
        return answer_reason(request, ret, REASON_NONE);
}

static size_t method_reload(const struct call *call, const union wire_request *request,
                            union wire_response *ret, struct authority_question *ret_question) {
        enum reason reason;

        reason = broker_reload(call->broker, &ret->answer.count);
        broker_notify_status(call->broker);
        if (reason != REASON_NONE) {
                explain_wire(&ret->answer.explanation, reason);
                (void) snprintf(ret->answer.explanation.text, sizeof(ret->answer.explanation.text),
                                "%s", call->broker->policy_error);
        }
        return answer_reason(request, ret, reason);
}

static size_t method_restore_all(const struct call *call, const union wire_request *request,
                                 union wire_response *ret,
                                 struct authority_question *ret_question) {
        ret->answer.count = broker_end_all(call->broker, REASON_REVOKED,
                                           "all leases were ended by an administrator");
        return answer_reason(request, ret, REASON_NONE);
}

static size_t method_policy(const struct call *call, const union wire_request *request,
                            union wire_response *ret, struct authority_question *ret_question) {
        struct wire_policy_reply *policy = &ret->policy;
        struct policy_entry entry;
        uint64_t index = request->list.after;

        if (request->list.flags != 0)
                return answer_reason(request, ret, REASON_INVALID);

        memset(policy, 0, offsetof(struct wire_policy_reply, entries));
        policy->entry_size = sizeof(struct wire_policy_entry);
        policy->policy_generation = call->broker->policy_generation;

        while (index < SIZE_MAX &&
               policy_store_entry(call->broker->policy, (size_t) index, &entry)) {
                struct wire_policy_entry *to = &policy->entries[policy->n_entries];

                if (policy->n_entries == WIRE_POLICY_ENTRIES_MAX) {
                        policy->next = index;
                        break;
                }
                *to = (struct wire_policy_entry){};
                text_copy(to->section, sizeof(to->section), entry.section);
                text_copy(to->key, sizeof(to->key), entry.key);
                text_escape(to->value, sizeof(to->value), entry.value, strlen(entry.value));
                if (entry.rule.file)
                        (void) snprintf(to->origin, sizeof(to->origin), "%s:%u", entry.rule.file,
                                        entry.rule.line);
                policy->n_entries++;
                index++;
        }

        wire_finish(&policy->header, &request->header,
                    offsetof(struct wire_policy_reply, entries) +
                            policy->n_entries * sizeof(struct wire_policy_entry));
        return policy->header.size;
}

static size_t method_why(const struct call *call, const union wire_request *request,
                         union wire_response *ret, struct authority_question *ret_question) {
        enum reason reason = acquire_why(call, &request->acquire, &ret->why);

        if (reason != REASON_NONE) {
                memset(&ret->answer, 0, sizeof(ret->answer));
                return answer_reason(request, ret, reason);
        }
        wire_finish(&ret->why.header, &request->header,
                    offsetof(struct wire_why_reply, steps) +
                            ret->why.n_steps * sizeof(struct wire_step));
        return ret->why.header.size;
}

static size_t method_observe(const struct call *call, const union wire_request *request,
                             union wire_response *ret, struct authority_question *ret_question) {
        if (!observe_method_start(call, &request->observe, &ret->answer, ret_question))
                return 0;

        if (ret->answer.reason != REASON_NONE)
                log_refusal(call, &ret->answer);
        return answer_reason(request, ret, ret->answer.reason);
}

static size_t method_occupants(const struct call *call, const union wire_request *request,
                               union wire_response *ret, struct authority_question *ret_question) {
        enum reason reason = observe_method_ask(call, &request->occupants, ret);

        if (reason != REASON_NONE)
                return answer_reason(request, ret, reason);
        wire_finish(&ret->occupants.header, &request->header, sizeof(ret->occupants));
        return sizeof(ret->occupants);
}

#define X(verb, member, record, in, out, access, rate, handle)              \
        static_assert(METHOD_IS_COMPLETE(access, rate), member ": every column");
BROKER_METHODS(X)
#undef X

#define X(verb, record, access, rate, handle) \
        static_assert(METHOD_IS_COMPLETE(access, rate), #verb ": every column");
SOCKET_METHODS(X)
#undef X

#define X(...) +1 /* NOLINT(bugprone-macro-parentheses): a term of the sum below */
static_assert(1 BROKER_METHODS(X) SOCKET_METHODS(X) == _WIRE_VERB_END, "a row for each verb");
#undef X

static const struct method methods[] = {
#define X(verb, member, record, in, out, access, rate, handle) \
        [WIRE_##verb] = { access, rate, handle },
        BROKER_METHODS(X)
#undef X
#define X(verb, record, access, rate, handle) [WIRE_##verb] = { access, rate, handle },
        SOCKET_METHODS(X)
#undef X
};

void methods_charge(const struct call *call, enum rate rate) {
        for (enum rate taken = RATE_LIGHT; taken < rate; taken++)
                (void) bucket_take(&call->user->messages, broker_now_us(call->broker));
}

size_t methods_call(const struct call *call, const union wire_request *request,
                    union wire_response *ret, struct authority_question *ret_question) {
        const struct method *method = &methods[request->header.verb];
        enum administers may = ADMINISTERS_YES;

        memset(&ret->answer, 0, sizeof(ret->answer));

        /* once, also if polkit is asked in between */
        if (call->authority == AUTHORITY_UNASKED && call->resources_answered == 0)
                methods_charge(call, method->rate);
        if (method->access == ACCESS_MANAGE)
                may = administers(call, &ret->answer, ret_question);
        if (may == ADMINISTERS_ASK)
                return 0;
        if (may == ADMINISTERS_NO) {
                size_t size = answer_reason(request, ret, (enum reason) ret->answer.reason);

                log_refusal(call, &ret->answer);
                return size;
        }

        /* Only these know what to do with a descriptor. */
        if (call->pidfd >= 0 && request->header.verb != WIRE_ACQUIRE &&
            request->header.verb != WIRE_WHY)
                return answer_reason(request, ret, REASON_INVALID);

        return method->handle(call, request, ret, ret_question);
}
