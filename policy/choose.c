/* SPDX-License-Identifier: MIT */

/* Which role serves where none is named: the nearest, by what each would answer. */

#include <string.h>

#include "policy/trial.h"

/* Whether @word, which may end in "*", is @text or its beginning. */
static bool word_matches(const char *word, const char *text) {
        size_t length = strlen(word);

        if (length > 0 && word[length - 1] == '*')
                return strlen(text) >= length - 1 && memcmp(word, text, length - 1) == 0;

        return strcmp(word, text) == 0;
}

static bool words_match(const struct word_list *list, const char *text) {
        for (size_t i = 0; text && i < list->n_words; i++)
                if (word_matches(list->words[i], text))
                        return true;

        return false;
}

/* The name in a path; a path itself has its chance before. */
static const char *base_name(const char *path) {
        const char *name = path;

        for (const char *c = path; c && *c; c++)
                if (*c == '/')
                        name = c + 1;
        return name;
}

/* Whether a hint of @role speaks of this program; never whether it may. */
static enum pick role_hint(const struct role *role, const struct situation *now) {
        if (words_match(&role->units, now->unit))
                return PICK_UNIT;
        if (words_match(&role->executables, now->executable) ||
            words_match(&role->executables, base_name(now->executable)))
                return PICK_EXECUTABLE;

        return PICK_NONE;
}

static unsigned count_resources(unsigned resources) {
        unsigned n = 0;

        for (; resources != 0; resources &= resources - 1)
                n++;
        return n;
}

static unsigned missing_resources(const struct role *role, const struct request *request) {
        unsigned given = 0;

        for (int i = 0; i < _RESOURCE_MAX; i++)
                given |= role->resources[i].given ? 1U << i : 0;
        return count_resources(request->resources & ~given);
}

/* How far the request is outside of what the role gives; 0: within. */
static unsigned thread_distance(const struct role *role, const struct request *request) {
        int max = role_priority_max(role), nice_min = role->nice_min;

        if (!is_realtime(request))
                return request->wants_nice && request->nice < nice_min
                               ? (unsigned) (nice_min - request->nice)
                               : 0;
        if (!role_has_band(role))
                return UINT32_MAX;
        if (request->is_relative)
                return 0;
        if (request->priority < role->priority_min)
                return (unsigned) (role->priority_min - request->priority);

        return request->priority > max ? (unsigned) (request->priority - max) : 0;
}

static unsigned role_distance(const struct role *role, const struct request *request) {
        enum { MISSING = 1000 }; /* more than priorities or nice can be apart */
        unsigned distance = thread_distance(role, request);

        return distance == UINT32_MAX ? distance
                                      : distance + MISSING * missing_resources(role, request);
}

/* Whether grant @a gives more than grant @b; likewise of what a yes of polkit would give. */
static bool grant_is_better(const struct decision *a, const struct decision *b,
                            const struct request *request) {
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->policy != b->policy)
                return a->policy == request->policy;
        if (a->nice != b->nice)
                return a->nice < b->nice;
        if (count_resources(a->resources) != count_resources(b->resources))
                return count_resources(a->resources) > count_resources(b->resources);

        return a->lifetime_s > b->lifetime_s;
}

static bool is_hinted(const struct trial *t, const struct decision *d) {
        return role_hint(d->role, t->now) != PICK_NONE;
}

/* How far the caller got with the role that refused. */
static int denial_rank(const struct trial *t, const struct decision *denial) {
        switch (denial->reason) {
        case REASON_NOT_ALLOWED:
        case REASON_DENIED:
                return 0;
        case REASON_NO_ACTIVE_SESSION:
        case REASON_NOT_AUTHORIZED:
        case REASON_AUTHORITY_UNAVAILABLE:
        case REASON_AUTHORITY_BUSY:
                /* About other roles polkit was not asked: it is not they that it refused. */
                return authority_is_answered(t->policy, denial->role, t->now) ? 2 : 0;
        default:
                return 1;
        }
}

/* Whether refusal @a came nearer to a grant than refusal @b. */
static bool denial_is_nearer(const struct trial *t, const struct decision *a,
                             const struct decision *b) {
        int a_rank = denial_rank(t, a), b_rank = denial_rank(t, b);
        unsigned a_distance = role_distance(a->role, t->request);
        unsigned b_distance = role_distance(b->role, t->request);

        if (a_rank != b_rank)
                return a_rank > b_rank;
        if (is_hinted(t, a) != is_hinted(t, b))
                return is_hinted(t, a);
        if (a_distance != b_distance)
                return a_distance < b_distance;

        return a->role == &t->policy->roles[t->policy->default_role];
}

static bool decision_is_better(const struct trial *t, const struct decision *a,
                               const struct decision *b) {
        if (a->verdict != b->verdict)
                return a->verdict > b->verdict;
        if (a->verdict == VERDICT_DENY)
                return denial_is_nearer(t, a, b);

        /* The role meant for the program, unless another gives more of what was asked. */
        if (a->clamped == b->clamped && is_hinted(t, a) != is_hinted(t, b))
                return is_hinted(t, a);
        if (t->request->is_relative && a->clamped == b->clamped)
                return false; /* a place in any band is as good: the first */

        return grant_is_better(a, b, t->request);
}

/* What is given whole is better than what is clamped, so the first that gives it serves. */
struct decision evaluate_every_role(const struct trial *t) {
        const struct policy *policy = t->policy;
        struct decision best, d;

        best = evaluate_role(t, &policy->roles[0]);
        for (size_t i = 1; i < policy->n_roles; i++) {
                d = evaluate_role(t, &policy->roles[i]);
                if (decision_is_better(t, &d, &best))
                        best = d;
        }

        best.pick = role_hint(best.role, t->now);
        if (best.pick == PICK_UNIT)
                best.pick_rule = best.role->rules[ROLE_KEY_UNITS];
        else if (best.pick == PICK_EXECUTABLE)
                best.pick_rule = best.role->rules[ROLE_KEY_EXECUTABLES];
        else
                best.pick = best.clamped ? PICK_MOST : PICK_FIRST;
        return best;
}
