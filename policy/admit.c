/* SPDX-License-Identifier: MIT */

/* Who may use a role: its lists, its sessions, then polkit. */

#include "policy/trial.h"

bool check_namespace(struct trial *t) {
        if (t->now->in_user_namespace && !t->policy->user_namespaces)
                return refuse(t, REASON_USER_NAMESPACE,
                              t->policy->rules[BROKER_KEY_USER_NAMESPACES]);

        return true;
}

/* Whether polkit's answer is about @role. */
bool authority_is_answered(const struct policy *policy, const struct role *role,
                        const struct situation *now) {
        return now->authority != AUTHORITY_UNASKED &&
               (size_t) (role - policy->roles) == now->authority_role;
}

bool id_list_has(const struct id_list *list, uint32_t id) {
        for (size_t i = 0; i < list->n_ids; i++)
                if (list->ids[i] == id)
                        return true;

        return list->everybody;
}

static bool id_list_has_any(const struct id_list *list, const gid_t *gids, size_t n_gids) {
        if (list->everybody)
                return true;

        for (size_t i = 0; i < n_gids; i++)
                if (id_list_has(list, gids[i]))
                        return true;

        return false;
}

static bool is_listed(const struct role *role, const struct situation *now) {
        return id_list_has(&role->allow_users, now->uid) ||
               id_list_has_any(&role->allow_groups, now->gids, now->n_gids) ||
               role->sessions & 1U << now->session;
}

enum reason authority_answer_reason(enum authority_answer answer) {
        switch (answer) {
        case AUTHORITY_UNASKED:
                return REASON_NEEDS_AUTHORIZATION;
        case AUTHORITY_YES:
                return REASON_NONE;
        case AUTHORITY_OVERRUN:
                return REASON_AUTHORITY_BUSY;
        case AUTHORITY_FAILED:
                return REASON_AUTHORITY_UNAVAILABLE;
        default:
                return REASON_NOT_AUTHORIZED;
        }
}

/* Of a role about which polkit is to be asked. */
static enum reason authority_reason(const struct policy *policy, const struct role *role,
                                    const struct situation *now) {
        if (now->authority == AUTHORITY_UNASKED)
                return REASON_NEEDS_AUTHORIZATION;
        if (!authority_is_answered(policy, role, now))
                return REASON_NOT_AUTHORIZED;

        return authority_answer_reason(now->authority);
}

static bool session_is_lacking(const struct situation *now) {
        return now->session != SESSION_UNREAD && now->session != SESSION_ACTIVE;
}

enum reason policy_role_admits(const struct policy *policy, const struct role *role,
                               const struct situation *now, struct rule *ret_rule) {
        const struct rule *rules = role->rules;

        if (id_list_has(&role->deny_users, now->uid)) {
                *ret_rule = rules[ROLE_KEY_DENY_USERS];
                return REASON_DENIED;
        }
        if (id_list_has_any(&role->deny_groups, now->gids, now->n_gids)) {
                *ret_rule = rules[ROLE_KEY_DENY_GROUPS];
                return REASON_DENIED;
        }
        if (id_list_has(&role->allow_users, now->uid)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_USERS];
                return REASON_NONE;
        }
        if (id_list_has_any(&role->allow_groups, now->gids, now->n_gids)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_GROUPS];
                return REASON_NONE;
        }
        if (role->sessions & 1U << now->session) {
                *ret_rule = rules[ROLE_KEY_ALLOW_SESSIONS];
                return REASON_NONE;
        }
        if (policy->ask_polkit && role->action[0] != '\0') {
                enum reason reason = authority_reason(policy, role, now);

                *ret_rule = rules[ROLE_KEY_ACTION];
                /* The commonest cause of a plain no, and polkit does not say it. */
                return reason == REASON_NOT_AUTHORIZED && authority_is_answered(policy, role, now) &&
                                       now->authority == AUTHORITY_NO && session_is_lacking(now)
                               ? REASON_NO_ACTIVE_SESSION
                               : reason;
        }
        if (role->sessions != 0 && session_is_lacking(now)) {
                *ret_rule = rules[ROLE_KEY_ALLOW_SESSIONS];
                return REASON_NO_ACTIVE_SESSION;
        }

        /* The list that the caller would have to be put on. */
        *ret_rule = rules[ROLE_KEY_ALLOW_GROUPS].file ? rules[ROLE_KEY_ALLOW_GROUPS]
                                                      : rules[ROLE_KEY_ALLOW_USERS];
        return REASON_NOT_ALLOWED;
}

bool check_admission(struct trial *t) {
        enum reason reason;

        reason = policy_role_admits(t->policy, t->role, t->now, &t->decision.rule);
        t->by_polkit = !is_listed(t->role, t->now);
        if (reason == REASON_NEEDS_AUTHORIZATION) {
                /* All else is checked first: nobody is asked for what would be refused anyway. */
                t->decision.verdict = VERDICT_ASK;
                t->decision.reason = reason;
                return true;
        }
        if (reason == REASON_NONE)
                return true;

        (void) refuse(t, reason, t->decision.rule);
        if (reason == REASON_NOT_AUTHORIZED && authority_is_answered(t->policy, t->role, t->now))
                t->decision.authority = t->now->authority;
        return false;
}

enum verdict policy_observe(const struct policy *policy, const struct situation *now,
                            enum reason *ret_reason, struct rule *ret_rule) {
        *ret_rule = policy->rules[BROKER_KEY_OBSERVE_GROUPS];
        *ret_reason = REASON_NONE;
        if (now->in_user_namespace) {
                *ret_reason = REASON_USER_NAMESPACE;
                *ret_rule = no_rule;
                return VERDICT_DENY;
        }
        if (id_list_has_any(&policy->observe_groups, now->gids, now->n_gids))
                return VERDICT_GRANT;
        *ret_reason = policy->ask_polkit ? REASON_NEEDS_AUTHORIZATION : REASON_NOT_ALLOWED;
        return policy->ask_polkit ? VERDICT_ASK : VERDICT_DENY;
}
