/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/rtgrantctl-kernel.h"
#include "client/rtgrantctl-polkit.h"
#include "client/rtgrantctl.h"

#define WHY_PROGRAM CTL_PROGRAM " why"

/* What the broker would give for one request: the whole of it, or with clamp set, some of it. */
struct verdict {
        int error;                      /* 0, or negative errno of the call */
        struct rtgrant_answer answer;
};

static void ask(struct ctl *ctl, const struct options *options, const struct thread *thread,
                bool clamp, struct verdict *ret) {
        struct options asked = *options;
        struct rtgrant_request request;

        asked.dry_run = true;
        asked.clamp = clamp;
        broker_request(&asked, thread, &request);
        ret->answer = (struct rtgrant_answer) { .size = sizeof(ret->answer) };
        ret->error = rtgrant_acquire(ctl->broker.handle, &request, &ret->answer);
}

static bool polkit_decides(const struct verdict *v) {
        return v->error == -EPERM && v->answer.reason == RTGRANT_REASON_NEEDS_AUTHORIZATION;
}

static const char *verdict_word(const struct verdict *v) {
        if (polkit_decides(v))
                return "ask";

        return v->error < 0 ? "no" : v->answer.clamped ? "clipped" : "yes";
}

static void print_verdict(const struct ctl *ctl, const struct options *o, const char *who,
                          const struct verdict *v, const struct verdict *clamped) {
        enum style style = polkit_decides(v)   ? STYLE_WARNING
                           : v->error < 0      ? STYLE_BAD
                           : v->answer.clamped ? STYLE_WARNING
                                               : STYLE_GOOD;
        const struct rtgrant_answer *answer = &v->answer;
        struct values asked = options_values(o), given = explain_given(&asked, answer);
        char values[EXPLAIN_VALUES_SIZE], text[1500];

        explain_values(values, &given);
        text_printable(text, sizeof(text), answer->text);
        printf("%s%s%s: ", style_begin(ctl->colour, style), verdict_word(v),
               style_end(ctl->colour, style));
        if (v->error < 0)
                printf("%s\n", text);
        else
                printf("%s may have %s\n", who, values);
        if (v->error >= 0)
                explain_line(stdout, "why", answer->text);
        if (v->error < 0)
                explain_line(stdout, "reason", rtgrant_reason_to_string(answer->reason));
        explain_line(stdout, "role", answer->role);
        explain_line(stdout, "rule", answer->rule);
        if (answer->asked != answer->limit)
                printf("  asked: %" PRId64 "\n  limit: %" PRId64 "\n", answer->asked,
                       answer->limit);
        explain_line(stdout, "help", answer->help);
        if (clamped && clamped->error >= 0) {
                given = explain_given(&asked, &clamped->answer);
                explain_values(values, &given);
                printf("  with --clamp: %s\n", values);
        }
}

static void add_values(json_object *object, const char *key, const struct rtgrant_answer *answer) {
        json_object *values = json_object_new_object();

        json_add_policy(values, "policy", answer->policy);
        json_add_int(values, "priority", answer->priority);
        json_add_int(values, "nice", answer->nice);
        json_add_string(values, "role", answer->role);
        explain_resources_json(values, answer);
        (void) json_object_object_add(object, key, values);
}

static void print_verdict_json(const struct thread *thread, const struct verdict *v,
                               const struct verdict *clamped, json_object *steps,
                               const struct polkit_part *polkit, const char *remedy) {
        json_object *object = json_object_new_object();

        json_add_string(object, "verdict", verdict_word(v));
        json_add_int(object, "pid", thread->pid);
        json_add_int(object, "tid", thread->tid);
        json_add_string(object, "comm", thread->comm);
        json_add_text(object, "role", v->answer.role);
        json_add_text(object, "rule", v->answer.rule);
        if (v->error < 0) {
                json_add_null(object, "grant");
                json_add_refusal(object, "refusal", &v->answer);
        } else {
                add_values(object, "grant", &v->answer);
                json_add_null(object, "refusal");
        }
        if (clamped && clamped->error >= 0)
                add_values(object, "with_clamp", &clamped->answer);
        else
                json_add_null(object, "with_clamp");
        (void) json_object_object_add(object, "steps", steps);
        (void) json_object_object_add(object, "polkit", polkit_part_json(polkit));
        json_add_text(object, "remedy", remedy);
        (void) json_object_object_add(object, "kernel", kernel_part_json(thread->pid));
        json_print(object);
}

struct steps {
        json_object *array;     /* with --json */
        unsigned n;
        const char *role;       /* of the verdict */
        bool asks_polkit;       /* about it */
};

static const char *step_word(const struct rtgrant_step *step) {
        return step->reason != RTGRANT_REASON_NONE ? rtgrant_reason_to_string(step->reason)
               : step->asks_polkit                 ? "polkit decides"
               : step->clamped                     ? "lowered"
                                                   : "passed";
}

static int on_step(const struct rtgrant_step *step, void *userdata) {
        struct steps *steps = userdata;
        bool limited = step->asked != step->limit;
        char rule[256], role[64];

        steps->n++;
        if (step->asks_polkit && strcmp(step->role, steps->role) == 0)
                steps->asks_polkit = true;
        if (steps->array) {
                json_object *object = json_object_new_object();

                json_add_string(object, "role", step->role);
                json_add_text(object, "rule", step->rule);
                json_add_string(object, "says", step_word(step));
                json_add_int(object, "asked", step->asked);
                json_add_int(object, "limit", step->limit);
                (void) json_object_array_add(steps->array, object);
                return 0;
        }

        text_printable(role, sizeof(role), step->role);
        text_printable(rule, sizeof(rule), step->rule[0] ? step->rule : "default");
        printf("  %2u. role %s, %s: %s", steps->n, role, rule, step_word(step));
        if (limited)
                printf(" (asked %" PRId64 ", limit %" PRId64 ")", step->asked, step->limit);
        putchar('\n');
        return 0;
}

/* Each rule that spoke. An older broker does not tell. */
static void tell_steps(struct ctl *ctl, const struct options *options, const struct thread *thread,
                       struct steps *steps) {
        struct rtgrant_request request;

        broker_request(options, thread, &request);
        (void) rtgrant_get_steps(ctl->broker.handle, &request, on_step, steps);
}

/* Which action is asked about a role. */
struct action {
        char section[64];
        char action[POLKIT_ACTION_SIZE];
};

static int on_policy_entry(const char *section, const char *key, const char *value,
                           const char *origin, void *userdata) {
        struct action *action = userdata;

        if (strcmp(section, action->section) == 0 && strcmp(key, "PolkitAction") == 0)
                (void) snprintf(action->action, sizeof(action->action), "%s", value);
        return action->action[0] != '\0';
}

/* What polkit has to say about the verdict; nothing if it is not asked about that role. */
static void find_polkit(struct ctl *ctl, const struct verdict *v, const struct steps *steps,
                        struct polkit_part *ret) {
        struct action action = { .action = "" };

        *ret = (struct polkit_part) { .action = "" };
        if (!steps->asks_polkit)
                return;

        (void) snprintf(action.section, sizeof(action.section), "Role %s", v->answer.role);
        (void) rtgrant_get_policy(ctl->broker.handle, on_policy_entry, &action);
        if (action.action[0] != '\0')
                polkit_part_read(action.action, ret);
}

static bool is_about_polkit(int reason) {
        return reason == RTGRANT_REASON_NEEDS_AUTHORIZATION ||
               reason == RTGRANT_REASON_NOT_AUTHORIZED ||
               reason == RTGRANT_REASON_NO_ACTIVE_SESSION;
}

#define REMEDY_SIZE 400

/* What the caller can do at once, before what others would have to do for it; "" if nothing. */
static void find_remedy(struct ctl *ctl, const struct options *o, const struct thread *thread,
                        const struct verdict *v, const struct verdict *clamped,
                        const struct polkit_part *polkit, char ret[REMEDY_SIZE]) {
        struct values asked = options_values(o), given;
        struct options elsewhere = *o;
        char values[EXPLAIN_VALUES_SIZE];
        struct verdict other;

        ret[0] = '\0';
        if (v->error >= 0)
                return;

        elsewhere.role = NULL;
        if (o->role) {
                ask(ctl, &elsewhere, thread, o->clamp, &other);
                if (other.error >= 0 && !other.answer.clamped) {
                        (void) snprintf(ret, REMEDY_SIZE, "leave out --role: %s gives it",
                                        other.answer.role);
                        return;
                }
        }
        if (clamped && clamped->error >= 0) {
                given = explain_given(&asked, &clamped->answer);
                explain_values(values, &given);
                (void) snprintf(ret, REMEDY_SIZE, "add --clamp: %s", values);
                return;
        }
        if (is_about_polkit(v->answer.reason))
                polkit_part_remedy(polkit, ret, REMEDY_SIZE);
        if (ret[0] == '\0')
                (void) snprintf(ret, REMEDY_SIZE, "%.*s", (int) strcspn(v->answer.help, ";"),
                                v->answer.help);
}

/* Asks for the whole, and if that is refused, for what --clamp would bring. */
static int judge(struct ctl *ctl, const struct options *o, const struct thread *thread) {
        struct verdict v, clamped;
        struct steps steps = {};
        struct polkit_part polkit;
        char remedy[REMEDY_SIZE];
        bool ask_again;
        char who[THREAD_LABEL_SIZE] = "you";

        if (thread->tid != gettid())
                thread_label(thread, who, sizeof(who));
        ask(ctl, o, thread, o->clamp, &v);
        if (v.error < 0 && v.error != -EPERM)
                return ctl_fail(ctl, v.error, NULL);
        ask_again = v.error == -EPERM && !o->clamp;
        if (ask_again)
                ask(ctl, o, thread, true, &clamped);

        steps.role = v.answer.role;
        if (ctl->json)
                steps.array = json_object_new_array();
        else
                print_verdict(ctl, o, who, &v, ask_again ? &clamped : NULL);
        tell_steps(ctl, o, thread, &steps);
        find_polkit(ctl, &v, &steps, &polkit);
        find_remedy(ctl, o, thread, &v, ask_again ? &clamped : NULL, &polkit, remedy);

        if (ctl->json) {
                print_verdict_json(thread, &v, ask_again ? &clamped : NULL, steps.array, &polkit,
                                   remedy);
        } else {
                polkit_part_print(&polkit);
                kernel_part_print(thread->pid);
                explain_line(stdout, "remedy", remedy);
        }
        return v.error < 0 ? STATUS_REFUSED : STATUS_DONE;
}

int ctl_why(struct ctl *ctl, char **argv) {
        _cleanup_(thread_done) struct thread thread = { .pidfd = -1 };
        struct options o;
        int argc = 0, r, status;

        while (argv[argc])
                argc++;
        status = options_parse(&o, WHY_PROGRAM, /* needs_command= */ false, argc, argv);
        if (status != 0)
                return STATUS_USAGE;
        if (o.action == ACTION_HELP)
                return ctl_help();
        if (o.action != ACTION_CHANGE && o.action != ACTION_RUN)
                return ctl_misuse("why: say what to ask for, as in: rtgrantctl why -f 80 -p 1234");
        if (o.all_threads)
                return ctl_misuse("why: ask about one thread at a time, without -a");

        o.ask = false; /* nothing is done: nobody need be asked */
        ctl->json = ctl->json || o.json;
        if (o.socket)
                ctl->broker.socket = o.socket;
        status = ctl_connect(ctl);
        if (status == 0)
                status = broker_complete_options(&ctl->broker, &o);
        if (status != 0)
                return status == STATUS_FAILED ? STATUS_USAGE : status;

        r = thread_init(o.pid > 0 ? o.pid : gettid(), &thread);
        if (r < 0)
                return ctl_misuse("there is no process or thread %d", (int) o.pid);
        return judge(ctl, &o, &thread);
}
