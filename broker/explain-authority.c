/* SPDX-License-Identifier: MIT */

#include "broker/explain-authority.h"

#include <stdio.h>

#include "broker/cleanup.h"
#include "broker/resource.h"

#define TEXT(...) (void) snprintf(ret->text, sizeof(ret->text), __VA_ARGS__)
#define HELP(...) (void) snprintf(ret->help, sizeof(ret->help), __VA_ARGS__)

/* What else than a plain no it was, and what the user can do about that. */
static const struct {
        const char *cause;
        const char *help;
} answers[_AUTHORITY_MAX] = {
        [AUTHORITY_CHALLENGE] = {
                "polkit wants a password for it, and was not to ask for one",
                "let it ask: --ask of rtgrant and rtgrantctl, RTGRANT_MAY_ASK of librtgrant, "
                "interactive on D-Bus",
        },
        [AUTHORITY_NO_AGENT] = {
                "polkit wants a password for it, and there is nobody to ask: no authentication "
                "agent of polkit's runs in this session",
                "on a terminal pkttyagent is one, which --ask starts where it is installed; a "
                "desktop has one of its own",
        },
        [AUTHORITY_REJECTED] = {
                "polkit asked for a password, and was not given the right one",
                "try again, with the password of the user whom the question names",
        },
        [AUTHORITY_DISMISSED] = {
                "polkit asked for a password, and the question was dismissed",
                "ask again, and answer it",
        },
        [AUTHORITY_UNANSWERED] = {
                "polkit asked for a password, and nobody gave one in time",
                "ask again, and answer within 25 s",
        },
};

bool explain_answer(struct wire_explanation *ret, const char *what, enum authority_answer answer,
                    const char *action) {
        if (!answers[answer].cause)
                return false;

        TEXT("%s; %s (action %s)", what, answers[answer].cause, action);
        HELP("%s", answers[answer].help);
        return true;
}

static const char *session_words(enum session_state state) {
        switch (state) {
        case SESSION_REMOTE:
                return "it came from afar, by ssh or the like";
        case SESSION_INACTIVE:
                return "its session is not the one in front";
        default:
                return "it has no login session at all, as cron jobs and services";
        }
}

void explain_authority(struct wire_explanation *ret, const struct refusal *refusal,
                       const char *wanted) {
        const struct role *role = refusal->decision->role;
        const char *name = role ? role->name : "(none)";
        const char *action = refusal->decision->about_resource
                                     ? resource_action(refusal->decision->resource)
                             : refusal->action ? refusal->action
                             : role            ? role->action
                                               : "(none)";
        char what[200];
        bool asked = role && refusal->decision->rule.line == role->rules[ROLE_KEY_ACTION].line;

        switch (refusal->reason) {
        case REASON_NOT_AUTHORIZED:
                (void) snprintf(what, sizeof(what), "user %u asked for %s in role %s", refusal->uid,
                                wanted, name);
                if (explain_answer(ret, what, refusal->decision->authority, action))
                        break;
                TEXT("%s; polkit does not allow it (action %s)", what, action);
                HELP("log in at the machine itself rather than by ssh, or ask an administrator to "
                     "allow %s by a rule in /etc/polkit-1/rules.d/, or to add the user to a group "
                     "that the role allows",
                     action);
                break;
        case REASON_NO_ACTIVE_SESSION:
                TEXT("user %u asked for %s in role %s; %s%s%s, and the user has no active session: %s",
                     refusal->uid, wanted, name,
                     asked ? "polkit does not allow it (action " : "no list allows it",
                     asked ? action : "", asked ? ")" : "", session_words(refusal->session));
                HELP("log in at the machine itself; or an administrator adds the user to a group "
                     "that the role allows, or the kind of session to AllowSessions= of [Role %s]",
                     name);
                break;
        case REASON_AUTHORITY_UNAVAILABLE:
                TEXT("user %u asked for %s in role %s; polkit should decide, and did not answer "
                     "(action %s)",
                     refusal->uid, wanted, name, action);
                HELP("an administrator can look at systemctl status polkit; users and groups that "
                     "[Role %s] allows do not depend on it",
                     name);
                break;
        case REASON_AUTHORITY_BUSY:
                TEXT("user %u asked for %s in role %s; polkit should decide, and has too many "
                     "questions to answer already (action %s)",
                     refusal->uid, wanted, name, action);
                HELP("answer those that wait for a password, or try again in a moment");
                break;
        case REASON_NEEDS_AUTHORIZATION:
                TEXT("user %u may have %s in role %s if polkit allows it (action %s)", refusal->uid,
                     wanted, name, action);
                HELP("ask in earnest, and polkit decides; pkaction --verbose --action-id %s shows "
                     "whom it allows",
                     action);
                break;
        default:
                break;
        }
}
