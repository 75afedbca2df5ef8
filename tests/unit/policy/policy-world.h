/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_POLICY_WORLD_H
#define RTGRANT_TESTS_POLICY_WORLD_H

/* Policies, situations and requests that are made up, the same in every run. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy.h"

#define ROUNDS 60000
#define ROLES_MAX 4
#define IDS_MAX 3
#define ID_UNIVERSE 5

static const char *const names[ROLES_MAX + 1] = { "a", "b", "c", "d", "e" };

/* A policy with the memory it points to, so that it can be copied and changed. */
struct world {
        struct role roles[ROLES_MAX];
        uint32_t ids[ROLES_MAX][4][IDS_MAX];
        struct policy policy;
        gid_t gids[IDS_MAX];
        unsigned held[ROLES_MAX];
        struct situation now;
        struct request request;
};

/* splitmix64: the same numbers in every run. */
static inline uint64_t next(uint64_t *seed) {
        uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

static inline int between(uint64_t *seed, int low, int high) {
        return low + (int) (next(seed) % (uint64_t) (high - low + 1));
}

static inline bool one_in(uint64_t *seed, int n) {
        return between(seed, 1, n) == 1;
}

static inline struct id_list *list_of(struct role *role, size_t i) {
        struct id_list *const lists[] = {
                &role->allow_users, &role->allow_groups, &role->deny_users, &role->deny_groups,
        };

        return lists[i];
}

static inline void tie(struct world *w) {
        w->policy.roles = w->roles;
        for (size_t i = 0; i < ROLES_MAX; i++)
                for (size_t j = 0; j < 4; j++)
                        list_of(&w->roles[i], j)->ids = w->ids[i][j];
        w->now.gids = w->gids;
        w->now.threads_held_by_role = w->held;
}

static inline void make_role(struct world *w, size_t i, uint64_t *seed) {
        struct role *role = &w->roles[i];
        int low = between(seed, 1, 97);

        *role = (struct role) {
                .name = names[i],
                .description = "",
                .policies = (unsigned) between(seed, 0, 7) | (unsigned) between(seed, 0, 7),
                .nice_min = between(seed, -20, 0),
                .threads_per_user_max = (unsigned) between(seed, 1, 4),
                .lifetime_s_max = (unsigned) between(seed, 0, 20),
                .action = one_in(seed, 2) ? "org.example" : "",
        };
        if (!one_in(seed, 8)) {
                role->priority_min = low;
                role->priority_max = between(seed, low, 99);
        }

        for (size_t j = 0; j < 4; j++) {
                struct id_list *list = list_of(role, j);
                bool deny = j >= 2;

                list->n_ids = (size_t) between(seed, 0, deny ? 1 : IDS_MAX);
                list->everybody = one_in(seed, deny ? 30 : 4);
                for (size_t k = 0; k < IDS_MAX; k++)
                        w->ids[i][j][k] = (uint32_t) between(seed, 0, ID_UNIVERSE);
        }
}

static inline void make_now(struct world *w, uint64_t *seed) {
        w->now = (struct situation) {
                .authority = one_in(seed, 2) ? AUTHORITY_UNASKED
                                             : (enum authority_answer) between(seed, 1, _AUTHORITY_MAX - 1),
                .authority_role = (size_t) between(seed, 0, (int) w->policy.n_roles - 1),
                .uid = (uid_t) between(seed, 0, ID_UNIVERSE),
                .n_gids = (size_t) between(seed, 0, IDS_MAX),
                .in_user_namespace = one_in(seed, 10),
                .rt_possible = !one_in(seed, 10),
                .leased = one_in(seed, 4),
                .leased_role = (size_t) between(seed, 0, (int) w->policy.n_roles - 1),
                .threads_held = (unsigned) between(seed, 0, 8),
                .threads_total = (unsigned) between(seed, 0, 16),
                .grant_tokens = (unsigned) between(seed, 0, 4),
                .grant_wait_ms = (unsigned) between(seed, 1, 100),
        };
        for (size_t i = 0; i < IDS_MAX; i++)
                w->gids[i] = (gid_t) between(seed, 0, ID_UNIVERSE);
        for (size_t i = 0; i < ROLES_MAX; i++)
                w->held[i] = (unsigned) between(seed, 0, 3);
}

static inline void make_request(struct world *w, uint64_t *seed) {
        static const int policies[] = {
                SCHED_FIFO, SCHED_FIFO, SCHED_FIFO, SCHED_RR, SCHED_RR, SCHED_OTHER, SCHED_IDLE,
        };
        struct request *request = &w->request;

        *request = (struct request) {
                .role = one_in(seed, 2) ? "" : names[between(seed, 0, (int) w->policy.n_roles)],
                .wants_sched = !one_in(seed, 6),
                .policy = policies[between(seed, 0, 6)],
                .priority = between(seed, 0, 100),
                .wants_nice = one_in(seed, 3),
                .nice = between(seed, -21, 20),
                .lifetime = (enum lifetime) between(seed, 0, 2),
                .lifetime_s = (unsigned) between(seed, 0, 30),
                .clamp = one_in(seed, 2),
        };
        if (request->policy == SCHED_OTHER)
                request->priority = 0;
}

static inline void make_world(struct world *w, uint64_t *seed) {
        *w = (struct world) { 0 };
        w->policy = (struct policy) {
                .n_roles = (size_t) between(seed, 1, ROLES_MAX),
                .threads_max = (unsigned) between(seed, 4, 20),
                .threads_per_user_max = (unsigned) between(seed, 3, 10),
                .user_namespaces = one_in(seed, 2),
                .ask_polkit = one_in(seed, 2),
        };
        w->policy.default_role = (size_t) between(seed, 0, (int) w->policy.n_roles - 1);

        for (size_t i = 0; i < w->policy.n_roles; i++)
                make_role(w, i, seed);
        make_now(w, seed);
        make_request(w, seed);
        tie(w);
}

static inline struct decision evaluate(const struct world *w) {
        return policy_evaluate(&w->policy, &w->now, &w->request);
}

static inline bool is_realtime(const struct request *request) {
        return request->wants_sched && request->policy != SCHED_OTHER;
}

static inline void add_denial(struct world *w, size_t role, uint64_t *seed) {
        struct id_list *list = list_of(&w->roles[role], (size_t) between(seed, 2, 3));

        if (one_in(seed, 4) || list->n_ids == IDS_MAX)
                list->everybody = true;
        else
                ((uint32_t *) list->ids)[list->n_ids++] = (uint32_t) between(seed, 0, ID_UNIVERSE);
}

static inline void drop_allowance(struct world *w, size_t role, uint64_t *seed) {
        struct id_list *list = list_of(&w->roles[role], (size_t) between(seed, 0, 1));

        if (list->everybody)
                list->everybody = false;
        else if (list->n_ids > 0)
                list->n_ids--;
}

static inline void narrow_band(struct role *role, uint64_t *seed) {
        if (one_in(seed, 2))
                role->priority_max -= between(seed, 0, 20);
        else
                role->priority_min += between(seed, 0, 20);

        if (role->priority_min > role->priority_max || role->priority_max < 1)
                role->priority_min = role->priority_max = 0;
}

static inline void narrow_role(struct world *w, uint64_t *seed) {
        size_t i = (size_t) between(seed, 0, (int) w->policy.n_roles - 1);
        struct role *role = &w->roles[i];

        switch (between(seed, 0, 7)) {
        case 0:
                role->policies &= (unsigned) between(seed, 0, 7);
                break;
        case 1:
                if (role->priority_max > 0)
                        narrow_band(role, seed);
                break;
        case 2:
                role->nice_min = between(seed, role->nice_min, 0);
                break;
        case 3:
                role->lifetime_s_max = (unsigned) between(seed, 0, (int) role->lifetime_s_max);
                break;
        case 4:
                role->threads_per_user_max = 1;
                break;
        case 5:
                drop_allowance(w, i, seed);
                break;
        case 6:
                add_denial(w, i, seed);
                break;
        case 7:
                role->action = "";
                break;
        }
}

static inline void narrow_policy(struct world *w, uint64_t *seed) {
        switch (between(seed, 0, 9)) {
        case 0:
                w->policy.threads_max = 4;
                break;
        case 1:
                w->policy.threads_per_user_max = 3;
                break;
        case 2:
                w->policy.user_namespaces = false;
                break;
        case 3:
                w->policy.ask_polkit = false;
                break;
        default:
                narrow_role(w, seed);
        }
}

/* Whether @a gives more than @b: of anything if by one role, else of the first that differs. */
static inline bool gives_more(const struct decision *a, const struct decision *b, bool same_role) {
        if (a->verdict != VERDICT_GRANT || b->verdict != VERDICT_GRANT)
                return a->verdict == VERDICT_GRANT && b->verdict != VERDICT_GRANT;
        if (same_role)
                return a->priority > b->priority || a->nice < b->nice ||
                       a->lifetime_s > b->lifetime_s ||
                       (a->policy == SCHED_FIFO && b->policy == SCHED_RR);
        if (a->priority != b->priority)
                return a->priority > b->priority;
        if (a->policy != b->policy)
                return a->policy == SCHED_FIFO;
        if (a->nice != b->nice)
                return a->nice < b->nice;

        return a->lifetime_s > b->lifetime_s;
}

#endif
