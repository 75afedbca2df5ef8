/* SPDX-License-Identifier: MIT */

#include "broker/observe-method.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "broker/connection.h"
#include "broker/decide.h"
#include "broker/explain-authority.h"
#include "broker/method-rows.h"
#include "broker/observe.h"

#define TEXT(explanation, ...) \
        ((void) snprintf((explanation)->text, sizeof((explanation)->text), __VA_ARGS__))
#define HELP(explanation, ...) \
        ((void) snprintf((explanation)->help, sizeof((explanation)->help), __VA_ARGS__))

static void explain_no(const struct call *call, enum reason reason, const struct rule *rule,
                       enum authority_answer said, struct wire_explanation *e) {
        unsigned uid = call->peer->uid;
        char what[80];

        explain_wire(e, reason);
        if (rule->file)
                (void) snprintf(e->rule, sizeof(e->rule), "%s:%u", rule->file, rule->line);
        if (reason == REASON_NOT_ALLOWED) {
                TEXT(e, "user %u may not see which programs have a CPU", uid);
                HELP(e, "an administrator can name a group of the user in ObserveGroups= of "
                        "[Broker]");
        }
        if (reason == REASON_USER_NAMESPACE) {
                TEXT(e, "programs in a container may not see which others have a CPU");
                HELP(e, "measure outside of it");
        }
        (void) snprintf(what, sizeof(what), "user %u asked to see which programs have a CPU", uid);
        if (reason == REASON_NOT_AUTHORIZED &&
            !explain_answer(e, what, said, access_action(ACCESS_OBSERVE))) {
                TEXT(e, "polkit does not let user %u see which programs have a CPU "
                        "(%s)", uid, access_action(ACCESS_OBSERVE));
                HELP(e, "do it from a session at the machine itself and let it ask for a password, "
                        "or have an administrator name a group of the user in ObserveGroups= of "
                        "[Broker]");
        }
}

/* False if polkit has to be asked: *ret_question. Else the reason. */
static bool admit(const struct call *call, bool interactive, struct wire_answer *answer,
                  struct authority_question *ret_question) {
        const struct authority_question about = {
                .action = access_action(ACCESS_OBSERVE),
                .bus_name = call->bus_name,
                .pid = call->peer->pid,
                .uid = call->peer->uid,
                .quota_uid = call->peer->quota_uid,
                .interactive = interactive,
                .role_index = ROLE_OBSERVE,
                .resource = -1,
                .role = "",
                .policy = "other",
        };
        struct situation now = decide_situation(call, call->user);
        enum authority_answer said = AUTHORITY_NO;
        enum reason reason = REASON_NONE;
        struct rule rule = { 0 };

        if (!call->peer->admin &&
            policy_observe(broker_policy(call->broker), &now, &reason, &rule) == VERDICT_ASK) {
                said = decide_without_role(call, &about);
                if (said == AUTHORITY_UNASKED) {
                        *ret_question = about;
                        return false;
                }
                reason = authority_answer_reason(said);
        }
        answer->reason = reason;
        if (reason != REASON_NONE)
                explain_no(call, reason, &rule, said, &answer->explanation);
        return true;
}

/* The CPU that somebody measures is one that he can run on. */
static bool may_run_on(const struct peer *peer, uint32_t cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        return cpu < CPU_SETSIZE && sched_getaffinity(peer->pid, sizeof(set), &set) == 0 &&
               CPU_ISSET(cpu, &set);
}

static void start(const struct call *call, uint32_t cpu, struct wire_answer *answer) {
        struct observe *observe = call->broker->observe;
        struct wire_explanation *e = &answer->explanation;
        uint64_t now_ns = broker_now_us(call->broker) * 1000;
        int number = connection_observed(call->connection);

        if (number >= 0 && observe_renew(observe, number, (int) cpu, now_ns))
                return;
        connection_set_observed(call->connection, -1);
        number = observe_start(observe, call->peer->quota_uid, (int) cpu, now_ns);
        if (number >= 0) {
                connection_set_observed(call->connection, number);
                log_write(call->broker->log, LOG_INFO,
                          &(struct log_fields) { .event = "observe",
                                                 .pid = call->peer->pid,
                                                 .uid_plus_one = call->peer->uid + 1 },
                          "process %d of user %u observes who has CPU %u", call->peer->pid,
                          call->peer->uid, cpu);
                return;
        }

        answer->reason = REASON_RESOURCES;
        explain_wire(e, answer->reason);
        if (number == -EUSERS)
                TEXT(e, "user %u observes as many CPUs already as may be, %d", call->peer->uid,
                     OBSERVED_PER_USER_MAX);
        if (number == -EBUSY)
                TEXT(e, "as many CPUs are observed already as may be, %d", OBSERVED_MAX);
}

bool observe_method_start(const struct call *call, const struct wire_observe *request,
                          struct wire_answer *answer, struct authority_question *ret_question) {
        bool may_ask = call->interactive || (request->flags & WIRE_OBSERVE_MAY_ASK);

        answer->reason = REASON_NONE;
        if (!call->connection) {
                answer->reason = REASON_UNSUPPORTED; /* there is nothing that it could end with */
                return true;
        }
        if ((request->flags & ~(uint64_t) WIRE_OBSERVE_FLAGS_ALL) != 0 || request->padding != 0) {
                answer->reason = REASON_INVALID;
                return true;
        }
        if (!admit(call, may_ask, answer, ret_question))
                return false;
        if (answer->reason != REASON_NONE)
                return true;
        if (!may_run_on(call->peer, request->cpu)) {
                answer->reason = REASON_NO_SUCH_DEVICE;
                explain_wire(&answer->explanation, answer->reason);
                TEXT(&answer->explanation, "CPU %u is none that process %d may run on",
                     request->cpu, call->peer->pid);
                HELP(&answer->explanation, "taskset -pc PID shows those it may");
                return true;
        }
        start(call, request->cpu, answer);
        return true;
}

/* A reload may have taken it away; what polkit allowed stays allowed for as long as it lasts. */
static enum reason still_admitted(const struct call *call, struct wire_explanation *e) {
        struct situation now = decide_situation(call, call->user);
        enum reason reason = REASON_NONE;
        struct rule rule;

        if (call->peer->admin || policy_observe(broker_policy(call->broker), &now, &reason, &rule) !=
                                         VERDICT_DENY)
                return REASON_NONE;

        connection_set_observed(call->connection, -1);
        explain_no(call, reason, &rule, AUTHORITY_NO, e);
        return reason;
}

enum reason observe_method_ask(const struct call *call, const struct wire_occupants *request,
                               union wire_response *ret) {
        int number = call->connection ? connection_observed(call->connection) : -1, r;
        struct wire_explanation *e = &ret->answer.explanation;
        struct wire_occupants_reply reply;
        enum reason reason;

        if (number < 0) {
                explain_wire(e, REASON_RESOURCE_UNAVAILABLE);
                TEXT(e, "this connection observes no CPU");
                HELP(e, "ask for that first");
                return REASON_RESOURCE_UNAVAILABLE;
        }
        reason = still_admitted(call, e);
        if (reason != REASON_NONE)
                return reason;
        r = observe_ask(call->broker->observe, number, request->from_ns, request->to_ns, &reply);
        if (r >= 0) {
                ret->occupants = reply;
                return REASON_NONE;
        }
        if (r == -EINVAL)
                return REASON_INVALID;
        explain_wire(e, REASON_RESOURCE_UNAVAILABLE);
        if (r == -ETIME)
                TEXT(e, "the time for which a CPU may be observed is over");
        else
                TEXT(e, "the kernel does not record who has the CPU: %s", strerror(-r));
        HELP(e, r == -ETIME ? "ask for it again" : "see perf_event_open(2)");
        return REASON_RESOURCE_UNAVAILABLE;
}
