/* SPDX-License-Identifier: MIT */

#include "client/rtgrant-report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"

void report_ranges(bool json) {
        json_object *ranges = json ? json_object_new_array() : NULL;
        int policy, min, max;

        for (size_t i = 0; policy_by_index(i, &policy); i++) {
                policy_range(policy, &min, &max);
                if (json) {
                        json_object *range = json_object_new_object();

                        json_add_policy(range, "policy", policy);
                        json_add_int(range, "priority_min", min);
                        json_add_int(range, "priority_max", max);
                        (void) json_object_array_add(ranges, range);
                } else
                        printf("%s min/max priority\t: %d/%d\n", policy_name(policy), min, max);
        }
        if (json)
                json_print(ranges);
}

int report_scheduling(pid_t tid, const char *word) {
        struct scheduling s;
        const char *name;
        int r;

        r = scheduling_read(tid, &s);
        if (r < 0)
                return r;

        name = policy_name(s.policy);
        printf("pid %d's %s scheduling policy: %s%s\n", (int) tid, word, name ? name : "unknown",
               s.reset_on_fork ? "|SCHED_RESET_ON_FORK" : "");
        printf("pid %d's %s scheduling priority: %d\n", (int) tid, word, s.priority);
        if (s.policy == POLICY_DEADLINE)
                printf("pid %d's %s runtime/deadline/period parameters: %" PRIu64 "/%" PRIu64
                       "/%" PRIu64 "\n",
                       (int) tid, word, s.runtime_ns, s.deadline_ns, s.period_ns);
        return 0;
}

static void add_thread(json_object *object, const struct thread *thread, const struct scheduling *s,
                       int nice) {
        json_add_int(object, "pid", thread->pid);
        json_add_int(object, "tid", thread->tid);
        json_add_string(object, "comm", thread->comm);
        json_add_policy(object, "policy", s->policy);
        json_add_int(object, "priority", s->priority);
        json_add_int(object, "nice", nice);
        json_add_bool(object, "reset_on_fork", s->reset_on_fork);
        if (s->policy == POLICY_DEADLINE) {
                json_add_int(object, "runtime_ns", (int64_t) s->runtime_ns);
                json_add_int(object, "deadline_ns", (int64_t) s->deadline_ns);
                json_add_int(object, "period_ns", (int64_t) s->period_ns);
        }
}

static void add_error(json_object *object, const struct broker *broker,
                      const struct change *change) {
        char why[BROKER_ERROR_SIZE];

        if (change->result == CHANGE_NO_BROKER)
                broker_error_text(broker, change->error, why, sizeof(why));
        else if (change->error < 0)
                (void) snprintf(why, sizeof(why), "%s", strerror(-change->error));
        json_add_string(object, "error", change->error < 0 ? why : NULL);
}

/* What --or-less came to. */
static const char *const rungs[] = {
        [RTGRANT_RUNG_AS_ASKED] = "as-asked", [RTGRANT_RUNG_RR] = "rr",
        [RTGRANT_RUNG_NICE] = "nice",         [RTGRANT_RUNG_SLICE] = "slice",
        [RTGRANT_RUNG_NOTHING] = "nothing",
};

static void add_change(json_object *object, const struct broker *broker,
                       const struct change *change) {
        static const char *const routes[] = {
                [CHANGE_DIRECT] = "direct",
                [CHANGE_GRANTED] = "broker",
                [CHANGE_RELEASED] = "released",
        };
        const struct rtgrant_answer *answer = &change->answer;
        bool granted = change->result == CHANGE_GRANTED;

        json_add_string(object, "route", change_is_done(change) ? routes[change->result] : NULL);
        if (granted)
                json_add_id(object, "lease", &answer->id);
        else
                json_add_null(object, "lease");
        json_add_text(object, "role", granted ? answer->role : NULL);
        json_add_bool(object, "clamped", granted && answer->clamped);
        json_add_string(object, "rung",
                        granted || answer->rung == RTGRANT_RUNG_NOTHING ? rungs[answer->rung]
                                                                        : NULL);
        json_add_text(object, "note", granted && answer->noted ? answer->text : NULL);
        explain_resources_json(object, granted ? answer : NULL);
        if (granted && answer->memlock_bytes != 0)
                json_add_int(object, "memlock_locked", (int64_t) answer->memlock_locked);
        else
                json_add_null(object, "memlock_locked");
        add_error(object, broker, change);
        if (change->result == CHANGE_REFUSED)
                json_add_refusal(object, "refusal", answer);
        else
                json_add_null(object, "refusal");
}

int report_scheduling_json(const struct thread *thread, json_object **ret) {
        json_object *object;
        struct scheduling s;
        int nice;
        int r;

        r = scheduling_read(thread->tid, &s);
        if (r >= 0)
                r = scheduling_read_nice(thread->tid, &nice);
        if (r < 0)
                return r;

        object = json_object_new_object();
        add_thread(object, thread, &s, nice);
        *ret = object;
        return 0;
}

int report_change_json(const struct broker *broker, const struct options *o,
                       const struct thread *thread, const struct change *change,
                       json_object **ret) {
        const struct rtgrant_answer *answer = &change->answer;
        int r;

        if (o->dry_run && change_is_done(change)) { /* as it would be */
                struct scheduling s = {
                        .policy = answer->policy,
                        .priority = answer->priority,
                        .reset_on_fork = answer->reset_on_fork,
                };

                *ret = json_object_new_object();
                add_thread(*ret, thread, &s, answer->nice);
        } else {
                r = report_scheduling_json(thread, ret);
                if (r < 0)
                        return r;
        }

        add_change(*ret, broker, change);
        json_add_bool(*ret, "dry_run", o->dry_run);
        return 0;
}

/* Done by the broker: what is worth a word even without --verbose. */
static void report_grant(const struct options *o, const char *who,
                         const struct rtgrant_answer *answer) {
        struct values asked = options_values(o), given = explain_given(&asked, answer);
        char wish[EXPLAIN_VALUES_SIZE], have[EXPLAIN_VALUES_SIZE];

        explain_values(wish, &asked);
        explain_values(have, &given);

        if (o->dry_run)
                printf("%s would get %s of role %s%s%s\n", who, have, answer->role,
                       answer->clamped ? " instead of " : "", answer->clamped ? wish : "");
        else if (answer->rung == RTGRANT_RUNG_SLICE)
                fprintf(stderr, "%s: %s: got shorter time slices instead of %s\n", o->program,
                        who, wish);
        else if (answer->rung != RTGRANT_RUNG_AS_ASKED)
                fprintf(stderr, "%s: %s: got %s of role %s instead of %s\n", o->program, who, have,
                        answer->role, wish);
        else if (answer->clamped)
                fprintf(stderr, "%s: %s: got %s instead of %s: role %s gives no more\n", o->program,
                        who, have, wish, answer->role);
        if (answer->noted)
                fprintf(stderr, "%s: %s: %s\n", o->program, who, answer->text);
}

static int report_no_broker(const struct broker *broker, const struct options *o, const char *who,
                            const char *wish, int error) {
        char why[BROKER_ERROR_SIZE];

        broker_error_text(broker, error, why, sizeof(why));
        if (o->dry_run)
                fprintf(stderr, "%s: %s: %s\n", o->program, who, why);
        else
                fprintf(stderr, "%s: %s: the kernel refuses %s to this user, and %s\n", o->program,
                        who, wish, why);
        if (error == RTGRANT_ABSENT)
                fprintf(stderr, "  help: start the broker (systemctl start rtgrantd), or name its "
                                "socket by "
                                "--socket or RTGRANT_SOCKET\n");
        return STATUS_NO_BROKER;
}

int report_change(const struct broker *broker, const struct options *o, const struct thread *thread,
                  const struct change *change) {
        struct values asked = options_values(o);
        char who[THREAD_LABEL_SIZE], wish[EXPLAIN_VALUES_SIZE];

        thread_label(thread, who, sizeof(who));
        explain_values(wish, &asked);

        switch (change->result) {
        case CHANGE_GRANTED:
                if (!o->json)
                        report_grant(o, who, &change->answer);
                return STATUS_DONE;
        case CHANGE_DIRECT:
        case CHANGE_RELEASED:
                return STATUS_DONE;
        case CHANGE_REFUSED:
                explain_refusal(stderr, o->program, who, &change->answer);
                return o->or_less ? STATUS_DONE : STATUS_REFUSED;
        case CHANGE_NO_BROKER:
                return report_no_broker(broker, o, who, wish, change->error);
        case CHANGE_FAILED:
                break;
        }

        fprintf(stderr, "%s: %s: cannot set %s: %s\n", o->program, who, wish,
                strerror(-change->error));
        return STATUS_FAILED;
}
