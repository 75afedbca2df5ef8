/* SPDX-License-Identifier: MIT */

#include "tests/unit/policy/policy-cases.h"

static const struct evaluate_case cases[] = {
        /* granted as asked */
        { "fifo in the first role", { A_POLICY }, { NOW }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "the first role that gives it serves", { A_POLICY }, { NOW }, { ASK, .priority = 70 },
          { GRANTED(STAGE, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 70 } },
        { "a user's own rule", { A_POLICY }, { NOW },
          { ASK, .policy = SCHED_RR, .priority = 35 },
          { GRANTED(CALM, ALLOW_USERS), .policy = SCHED_RR, .priority = 35 } },
        { "a named role", { A_POLICY }, { NOW }, { ASK, .role = "stage", .priority = 61 },
          { GRANTED(STAGE, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 61 } },
        { "an empty role name is none", { A_POLICY }, { NOW }, { ASK, .role = "" },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "real-time and nice together", { A_POLICY }, { NOW },
          { ASK, .wants_nice = true, .nice = -15 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10, .nice = -15 } },
        { "nice", { A_POLICY }, { NOW }, { ASK_NICE, .nice = -11 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_OTHER, .nice = -11 } },
        { "nice without a policy", { A_POLICY }, { NOW }, { .wants_nice = true, .nice = -11 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_OTHER, .nice = -11 } },
        { "nice that is not wanted is not looked at", { A_POLICY }, { NOW }, { ASK, .nice = -99 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "for a time", { A_POLICY }, { NOW },
          { ASK, .lifetime = LIFETIME_SECONDS, .lifetime_s = 60 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10,
            .lifetime_s = 60 } },
        { "seconds count only for seconds", { A_POLICY }, { NOW },
          { ASK, .lifetime = LIFETIME_CONNECTION, .lifetime_s = 999999 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "back to other, by everybody's role", { A_POLICY }, { NOW, .uid = 7, .n_gids = 0 },
          { .wants_sched = true, .policy = SCHED_OTHER },
          { GRANTED(OFFICE, ALLOW_USERS), .policy = SCHED_OTHER } },

        /* what the kernel knows */
        { "nothing wanted", { A_POLICY }, { NOW }, { .priority = 10 },
          { DENIED(INVALID, NO_ROLE) } },
        { "priority 0 is not real-time", { A_POLICY }, { NOW }, { ASK, .priority = 0 },
          { DENIED(INVALID, NO_ROLE), RANGE(0, 1, 99) } },
        { "priority 100 is unknown", { A_POLICY }, { NOW }, { ASK, .priority = 100 },
          { DENIED(INVALID, NO_ROLE), RANGE(100, 1, 99) } },
        { "negative priority", { A_POLICY }, { NOW },
          { ASK, .policy = SCHED_RR, .priority = INT32_MIN },
          { DENIED(INVALID, NO_ROLE), RANGE(INT32_MIN, 1, 99) } },
        { "clamp does not save what is no priority", { A_POLICY }, { NOW },
          { ASK, .priority = 100, .clamp = true },
          { DENIED(INVALID, NO_ROLE), RANGE(100, 1, 99) } },
        { "priority 1 is known", { A_POLICY }, { NOW }, { ASK, .role = "desktop", .priority = 1 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(1, 5, 20) } },
        { "priority 99 is known", { A_POLICY }, { NOW },
          { ASK, .role = "desktop", .priority = 99 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(99, 5, 20) } },
        { "other with a priority", { A_POLICY }, { NOW },
          { .wants_sched = true, .policy = SCHED_OTHER, .priority = 1 },
          { DENIED(INVALID, NO_ROLE), RANGE(1, 0, 0) } },
        { "unknown policy", { A_POLICY }, { NOW }, { ASK, .policy = 8 },
          { DENIED(INVALID, NO_ROLE) } },
        { "negative policy", { A_POLICY }, { NOW }, { ASK, .policy = -1 },
          { DENIED(INVALID, NO_ROLE) } },
        { "a flag in the policy", { A_POLICY }, { NOW },
          { ASK, .policy = SCHED_FIFO | SCHED_RESET_ON_FORK }, { DENIED(INVALID, NO_ROLE) } },
        { "deadline", { A_POLICY }, { NOW }, { ASK, .policy = SCHED_DEADLINE, .priority = 0 },
          { DENIED(UNSUPPORTED, NO_ROLE) } },
        { "batch", { A_POLICY }, { NOW }, { ASK, .policy = SCHED_BATCH, .priority = 0 },
          { DENIED(UNSUPPORTED, NO_ROLE) } },
        { "idle", { A_POLICY }, { NOW }, { ASK, .policy = SCHED_IDLE, .priority = 0 },
          { DENIED(UNSUPPORTED, NO_ROLE) } },
        { "ext", { A_POLICY }, { NOW }, { ASK, .policy = 7, .priority = 0 },
          { DENIED(UNSUPPORTED, NO_ROLE) } },
        { "nice -21", { A_POLICY }, { NOW }, { ASK_NICE, .nice = -21 },
          { DENIED(INVALID, NO_ROLE), RANGE(-21, -20, 19) } },
        { "nice -20 is known", { A_POLICY }, { NOW }, { ASK_NICE, .role = "calm", .nice = -20 },
          { DENIED(NICE_LIMIT, CALM), LINE(CALM, NICE), LIMIT(-20, -10) } },
        { "nice 20", { A_POLICY }, { NOW }, { ASK_NICE, .nice = 20 },
          { DENIED(INVALID, NO_ROLE), RANGE(20, -20, 19) } },
        { "nice 19 is within every role", { A_POLICY }, { NOW },
          { ASK_NICE, .role = "office", .nice = 19 },
          { GRANTED(OFFICE, ALLOW_USERS), .policy = SCHED_OTHER, .nice = 19 } },
        { "for no time", { A_POLICY }, { NOW }, { ASK, .lifetime = LIFETIME_SECONDS },
          { DENIED(INVALID, NO_ROLE) } },
        { "a lifetime that is none", { A_POLICY }, { NOW },
          { ASK, .lifetime = (enum lifetime) 3, .lifetime_s = 1 }, { DENIED(INVALID, NO_ROLE) } },
        { "the request is looked at before the caller", { A_POLICY },
          { NOW, .in_user_namespace = true }, { ASK, .priority = 0 },
          { DENIED(INVALID, NO_ROLE), RANGE(0, 1, 99) } },

        /* who asks */
        { "user namespace", { A_POLICY }, { NOW, .in_user_namespace = true },
          { ASK, .role = "nonsense" },
          { DENIED(USER_NAMESPACE, NO_ROLE), BROKER_LINE(USER_NAMESPACES) } },
        { "user namespace, served", { A_POLICY, .user_namespaces = true },
          { NOW, .in_user_namespace = true }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "no such role", { A_POLICY }, { NOW }, { ASK, .role = "deskto" },
          { DENIED(NO_SUCH_ROLE, NO_ROLE) } },
        { "roles have their case", { A_POLICY }, { NOW }, { ASK, .role = "Desktop" },
          { DENIED(NO_SUCH_ROLE, NO_ROLE) } },
        { "a denied user of an allowed group", { A_POLICY }, { NOW, .uid = 1667 },
          { ASK, .role = "desktop" }, { DENIED(DENIED, DESKTOP), LINE(DESKTOP, DENY_USERS) } },
        { "an allowed user of a denied group", { A_POLICY },
          { NOW, .gids = (const gid_t[]) { 3, 166 } }, { ASK, .role = "calm" },
          { DENIED(DENIED, CALM), LINE(CALM, DENY_GROUPS) } },
        { "everybody denied", { A_POLICY }, { NOW }, { ASK, .role = "closed" },
          { DENIED(DENIED, CLOSED), LINE(CLOSED, DENY_USERS) } },
        { "not on the list of groups", { A_POLICY }, { NOW, .gids = (const gid_t[]) { 99, 102 } },
          { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "only the last of the groups counts", { A_POLICY },
          { NOW, .gids = (const gid_t[]) { 99, 100 } }, { ASK, .role = "desktop" },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "a group past the count is not the caller's", { A_POLICY }, { NOW, .n_gids = 0 },
          { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "a user id is no group id", { A_POLICY }, { NOW, .uid = 100, .n_gids = 0 },
          { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "root is a user", { A_POLICY }, { NOW, .uid = 0, .gids = (const gid_t[]) { 0, 0 } },
          { ASK, .role = "desktop" },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "who is not let in learns no limit", { A_POLICY }, { NOW, .n_gids = 0 },
          { ASK, .role = "stage", .policy = SCHED_RR, .priority = 99 },
          { DENIED(NOT_ALLOWED, STAGE), LINE(STAGE, ALLOW_GROUPS) } },

        /* the role */
        { "rr is not in the role", { A_POLICY }, { NOW },
          { ASK, .role = "stage", .policy = SCHED_RR, .priority = 70 },
          { DENIED(POLICY_NOT_IN_ROLE, STAGE), LINE(STAGE, POLICY) } },
        { "fifo is not in the role", { A_POLICY }, { NOW }, { ASK, .role = "calm", .priority = 35 },
          { DENIED(POLICY_NOT_IN_ROLE, CALM), LINE(CALM, POLICY) } },
        { "other is not in the role", { A_POLICY }, { NOW }, { ASK_NICE, .role = "stage" },
          { DENIED(POLICY_NOT_IN_ROLE, STAGE), LINE(STAGE, POLICY) } },
        { "no band in the role", { A_POLICY }, { NOW }, { ASK, .role = "office" },
          { DENIED(POLICY_NOT_IN_ROLE, OFFICE), LINE(OFFICE, PRIORITY) } },
        { "a band above the ceiling is none", { A_POLICY }, { NOW, .uid = 0 },
          { ASK, .role = "greedy", .priority = 95 },
          { DENIED(POLICY_NOT_IN_ROLE, GREEDY), LINE(GREEDY, PRIORITY) } },
        { "the policy comes before the priority", { A_POLICY }, { NOW },
          { ASK, .role = "stage", .policy = SCHED_RR, .priority = 1 },
          { DENIED(POLICY_NOT_IN_ROLE, STAGE), LINE(STAGE, POLICY) } },
        { "lowest of the band", { A_POLICY }, { NOW }, { ASK, .role = "desktop", .priority = 5 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 5 } },
        { "below the band", { A_POLICY }, { NOW }, { ASK, .role = "desktop", .priority = 4 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(4, 5, 20) } },
        { "highest of the band", { A_POLICY }, { NOW }, { ASK, .role = "desktop", .priority = 20 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 20 } },
        { "above the band", { A_POLICY }, { NOW }, { ASK, .role = "desktop", .priority = 21 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(21, 5, 20) } },
        { "the ceiling", { A_POLICY }, { NOW }, { ASK, .role = "stage", .priority = 94 },
          { GRANTED(STAGE, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 94 } },
        { "above the ceiling", { A_POLICY }, { NOW }, { ASK, .role = "stage", .priority = 95 },
          { DENIED(PRIORITY_LIMIT, STAGE), LINE(STAGE, PRIORITY), RANGE(95, 61, 94) } },
        { "at the nice floor", { A_POLICY }, { NOW }, { ASK_NICE, .role = "desktop", .nice = -15 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_OTHER, .nice = -15 } },
        { "below the nice floor", { A_POLICY }, { NOW },
          { ASK_NICE, .role = "desktop", .nice = -16 },
          { DENIED(NICE_LIMIT, DESKTOP), LINE(DESKTOP, NICE), LIMIT(-16, -15) } },
        { "no favour is within a floor of 0", { A_POLICY }, { NOW }, { ASK_NICE, .role = "office" },
          { GRANTED(OFFICE, ALLOW_USERS), .policy = SCHED_OTHER } },
        { "a favour is not", { A_POLICY }, { NOW }, { ASK_NICE, .role = "office", .nice = -1 },
          { DENIED(NICE_LIMIT, OFFICE), LINE(OFFICE, NICE), LIMIT(-1, 0) } },
        { "nice along with real-time has its floor", { A_POLICY }, { NOW },
          { ASK, .wants_nice = true, .nice = -16 },
          { DENIED(NICE_LIMIT, DESKTOP), LINE(DESKTOP, NICE), LIMIT(-16, -15) } },
        { "longest time", { A_POLICY }, { NOW },
          { ASK, .lifetime = LIFETIME_SECONDS, .lifetime_s = 3600 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10,
            .lifetime_s = 3600 } },
        { "too long", { A_POLICY }, { NOW },
          { ASK, .lifetime = LIFETIME_SECONDS, .lifetime_s = 3601 },
          { DENIED(LIFETIME_LIMIT, DESKTOP), LINE(DESKTOP, LIFETIME_MAX), LIMIT(3601, 3600) } },

        /* the broker */
        { "no real-time from a degraded broker", { A_POLICY }, { NOW, .rt_possible = false },
          { ASK }, { DENIED(DEGRADED, DESKTOP) } },
        { "nice from a degraded broker", { A_POLICY }, { NOW, .rt_possible = false },
          { ASK_NICE, .nice = -1 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_OTHER, .nice = -1 } },
        { "who is over a limit learns that first", { A_POLICY }, { NOW, .rt_possible = false },
          { ASK, .role = "desktop", .priority = 21 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(21, 5, 20) } },

        /* quotas */
        { "last place in the role", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 2, 9, 9, 9, 9, 9 } }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "no place in the role", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3 } },
          { ASK, .role = "desktop" },
          { DENIED(THREADS_PER_ROLE, DESKTOP), LINE(DESKTOP, THREADS_PER_USER), LIMIT(4, 3) } },
        { "last place of the user", { A_POLICY }, { NOW, .threads_held = 9 }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "no place of the user", { A_POLICY }, { NOW, .threads_held = 10 }, { ASK },
          { DENIED(THREADS_PER_USER, DESKTOP), BROKER_LINE(THREADS_PER_USER), LIMIT(11, 10) } },
        { "last place of all", { A_POLICY }, { NOW, .threads_total = 49 }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "no place of all", { A_POLICY }, { NOW, .threads_total = 50 }, { ASK },
          { DENIED(THREADS_TOTAL, DESKTOP), BROKER_LINE(THREADS_MAX), LIMIT(51, 50) } },
        { "more held than fit an int", { A_POLICY }, { NOW, .threads_total = UINT32_MAX }, { ASK },
          { DENIED(THREADS_TOTAL, DESKTOP), BROKER_LINE(THREADS_MAX),
            LIMIT((int64_t) UINT32_MAX + 1, 50) } },
        { "the narrowest quota is told first", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3 }, .threads_held = 10,
            .threads_total = 50, .grant_tokens = 0 }, { ASK, .role = "desktop" },
          { DENIED(THREADS_PER_ROLE, DESKTOP), LINE(DESKTOP, THREADS_PER_USER), LIMIT(4, 3) } },
        { "a nice grant has a place too", { A_POLICY }, { NOW, .threads_total = 50 }, { ASK_NICE },
          { DENIED(THREADS_TOTAL, DESKTOP), BROKER_LINE(THREADS_MAX), LIMIT(51, 50) } },
        { "a leased thread has its places", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3 }, .threads_held = 10,
            .threads_total = 50, .leased = true, .leased_role = 0 }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "a leased thread moves to another role", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3, 0, 2 }, .threads_held = 10,
            .threads_total = 50, .leased = true, .leased_role = 0 }, { ASK, .priority = 70 },
          { GRANTED(STAGE, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 70 } },
        { "and finds it full", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3, 0, 3 }, .leased = true,
            .leased_role = 0 }, { ASK, .priority = 70 },
          { DENIED(THREADS_PER_ROLE, STAGE), LINE(STAGE, THREADS_PER_USER), LIMIT(4, 3) } },
        { "last token", { A_POLICY }, { NOW, .grant_tokens = 1, .grant_wait_ms = 150 }, { ASK },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "a leased thread needs one too", { A_POLICY },
          { NOW, .leased = true, .grant_tokens = 0, .grant_wait_ms = 150 }, { ASK },
          { DENIED(RATE, DESKTOP), BROKER_LINE(GRANT_BURST), .retry_after_ms = 150 } },
        { "no token", { A_POLICY }, { NOW, .grant_tokens = 0, .grant_wait_ms = 150 }, { ASK },
          { DENIED(RATE, DESKTOP), BROKER_LINE(GRANT_BURST), .retry_after_ms = 150 } },

        /* no role fits: the nearest one's reason */
        { "one that lets in before a nearer that does not", { A_POLICY }, { NOW },
          { ASK, .priority = 50 },
          { DENIED(POLICY_NOT_IN_ROLE, CALM), LINE(CALM, POLICY) } },
        { "the nearest band from above", { A_POLICY }, { NOW, .uid = 5 }, { ASK, .priority = 40 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(40, 5, 20) } },
        { "the nearest band from below", { A_POLICY }, { NOW, .uid = 5 }, { ASK, .priority = 41 },
          { DENIED(PRIORITY_LIMIT, STAGE), LINE(STAGE, PRIORITY), RANGE(41, 61, 94) } },
        { "a role without a band is the furthest", { A_POLICY }, { NOW, .uid = 5, .n_gids = 1 },
          { ASK, .priority = 99 },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(99, 5, 20) } },
        { "the nearest nice floor", { A_POLICY }, { NOW, .gids = (const gid_t[]) { 0, 0 } },
          { .wants_nice = true, .nice = -20 },
          { DENIED(NICE_LIMIT, CALM), LINE(CALM, NICE), LIMIT(-20, -10) } },
        { "nobody lets in: the nearest band", { A_POLICY, .n_roles = 3 },
          { NOW, .uid = 5, .n_gids = 0 }, { ASK, .priority = 60 },
          { DENIED(NOT_ALLOWED, STAGE), LINE(STAGE, ALLOW_GROUPS) } },
        { "nobody lets in: the first role", { A_POLICY, .n_roles = 3 },
          { NOW, .uid = 5, .n_gids = 0 }, { .wants_nice = true, .nice = -1 },
          { DENIED(NOT_ALLOWED, DESKTOP), LINE(DESKTOP, ALLOW_GROUPS) } },
        { "nobody lets in: the default role", { A_POLICY, .n_roles = 3, .default_role = 1 },
          { NOW, .uid = 5, .n_gids = 0 }, { .wants_nice = true, .nice = -1 },
          { DENIED(NOT_ALLOWED, CALM), LINE(CALM, ALLOW_GROUPS) } },
        { "a full role sends to no lower one", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 3 } }, { ASK },
          { DENIED(THREADS_PER_ROLE, DESKTOP), LINE(DESKTOP, THREADS_PER_USER), LIMIT(4, 3) } },

        /* clamp */
        { "what fits is not clamped", { A_POLICY }, { NOW }, { ASK, .clamp = true },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 10 } },
        { "K08: 88 of 20", { A_POLICY }, { NOW },
          { ASK, .role = "desktop", .priority = 88, .clamp = true },
          { CLAMPED(DESKTOP, PRIORITY), .policy = SCHED_FIFO, .priority = 20, RANGE(88, 5, 20) } },
        { "the ceiling clamps", { A_POLICY }, { NOW },
          { ASK, .role = "stage", .priority = 99, .clamp = true },
          { CLAMPED(STAGE, PRIORITY), .policy = SCHED_FIFO, .priority = 94, RANGE(99, 61, 94) } },
        { "below the band there is nothing less", { A_POLICY }, { NOW },
          { ASK, .role = "desktop", .priority = 4, .clamp = true },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(4, 5, 20) } },
        { "rr for fifo", { A_POLICY }, { NOW },
          { ASK, .role = "calm", .priority = 35, .clamp = true },
          { CLAMPED(CALM, POLICY), .policy = SCHED_RR, .priority = 35 } },
        { "rr for fifo, and lower: the first limit is told", { A_POLICY }, { NOW },
          { ASK, .role = "calm", .priority = 50, .clamp = true },
          { CLAMPED(CALM, POLICY), .policy = SCHED_RR, .priority = 40 } },
        { "never fifo for rr", { A_POLICY }, { NOW },
          { ASK, .role = "stage", .policy = SCHED_RR, .priority = 70, .clamp = true },
          { DENIED(POLICY_NOT_IN_ROLE, STAGE), LINE(STAGE, POLICY) } },
        { "never other for fifo", { A_POLICY }, { NOW }, { ASK, .role = "office", .clamp = true },
          { DENIED(POLICY_NOT_IN_ROLE, OFFICE), LINE(OFFICE, PRIORITY) } },
        { "nice to the floor", { A_POLICY }, { NOW },
          { ASK_NICE, .role = "calm", .nice = -11, .clamp = true },
          { CLAMPED(CALM, NICE), .policy = SCHED_OTHER, .nice = -10, LIMIT(-11, -10) } },
        { "nice to nothing", { A_POLICY }, { NOW },
          { ASK_NICE, .role = "office", .nice = -11, .clamp = true },
          { CLAMPED(OFFICE, NICE), .policy = SCHED_OTHER, LIMIT(-11, 0) } },
        { "time to the limit", { A_POLICY }, { NOW },
          { ASK, .lifetime = LIFETIME_SECONDS, .lifetime_s = UINT32_MAX, .clamp = true },
          { CLAMPED(DESKTOP, LIFETIME_MAX), .policy = SCHED_FIFO, .priority = 10,
            .lifetime_s = 3600, LIMIT(UINT32_MAX, 3600) } },
        { "clamp does not let in", { A_POLICY }, { NOW, .uid = 5 },
          { ASK, .role = "calm", .policy = SCHED_RR, .priority = 35, .clamp = true },
          { DENIED(NOT_ALLOWED, CALM), LINE(CALM, ALLOW_GROUPS) } },
        { "a thread of the user is demoted", { A_POLICY }, { NOW, .back_off_ms = 700 }, { ASK },
          { DENIED(BACK_OFF, DESKTOP), BROKER_LINE(BACK_OFF), .retry_after_ms = 700 } },
        { "and what is not real-time goes on", { A_POLICY }, { NOW, .back_off_ms = 700 },
          { ASK_NICE, .nice = -5 },
          { GRANTED(DESKTOP, ALLOW_GROUPS), .policy = SCHED_OTHER, .nice = -5 } },
        { "clamp does not mend the broker", { A_POLICY }, { NOW, .rt_possible = false },
          { ASK, .clamp = true }, { DENIED(DEGRADED, DESKTOP) } },
        { "clamp makes no place", { A_POLICY }, { NOW, .threads_held = 10 }, { ASK, .clamp = true },
          { DENIED(THREADS_PER_USER, DESKTOP), BROKER_LINE(THREADS_PER_USER), LIMIT(11, 10) } },
        { "a role that gives it whole before one that clamps", { A_POLICY }, { NOW },
          { ASK, .priority = 61, .clamp = true },
          { GRANTED(STAGE, ALLOW_GROUPS), .policy = SCHED_FIFO, .priority = 61 } },
        { "the highest band below", { A_POLICY }, { NOW }, { ASK, .priority = 50, .clamp = true },
          { CLAMPED(CALM, POLICY), .policy = SCHED_RR, .priority = 40 } },
        { "the highest band below that lets in", { A_POLICY }, { NOW, .uid = 5 },
          { ASK, .priority = 50, .clamp = true },
          { CLAMPED(DESKTOP, PRIORITY), .policy = SCHED_FIFO, .priority = 20, RANGE(50, 5, 20) } },
        { "above all bands", { A_POLICY }, { NOW }, { ASK, .priority = 99, .clamp = true },
          { CLAMPED(STAGE, PRIORITY), .policy = SCHED_FIFO, .priority = 94, RANGE(99, 61, 94) } },
        { "the next lower one if it is full", { A_POLICY },
          { NOW, .threads_held_by_role = (const unsigned[N_ROLES]) { 0, 0, 3 } },
          { ASK, .priority = 99, .clamp = true },
          { CLAMPED(CALM, POLICY), .policy = SCHED_RR, .priority = 40 } },
        { "below all bands", { A_POLICY }, { NOW }, { ASK, .priority = 4, .clamp = true },
          { DENIED(PRIORITY_LIMIT, DESKTOP), LINE(DESKTOP, PRIORITY), RANGE(4, 5, 20) } },
        { "the lowest nice floor", { A_POLICY }, { NOW }, { ASK_NICE, .nice = -20, .clamp = true },
          { CLAMPED(DESKTOP, NICE), .policy = SCHED_OTHER, .nice = -15, LIMIT(-20, -15) } },
};

#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static void test_rule_of_a_list_that_is_not_set(void **state) {
        struct role role = {
                .name = "r",
                .rules = { [ROLE_KEY_ALLOW_USERS] = { "policy.conf", 7 } },
        };
        struct policy policy = { .roles = &role, .n_roles = 1 };
        struct situation now = { .uid = 1 };
        struct rule rule;

        assert_int_equal(policy_role_admits(&policy, &role, &now, &rule), REASON_NOT_ALLOWED);
        assert_int_equal(rule.line, 7);

        role.rules[ROLE_KEY_ALLOW_USERS] = (struct rule) { .file = NULL };
        assert_int_equal(policy_role_admits(&policy, &role, &now, &rule), REASON_NOT_ALLOWED);
        assert_null(rule.file);
}

/* Two roles with the same highest priority: the one with the policy that was asked for. */
static void test_clamp_keeps_the_policy_if_it_can(void **state) {
        const struct role two[] = {
                { .name = "rr", .policies = RR, .priority_min = 1, .priority_max = 20,
                  .threads_per_user_max = 3, .allow_users = EVERYBODY },
                { .name = "fifo", .policies = FIFO, .priority_min = 1, .priority_max = 20,
                  .threads_per_user_max = 3, .allow_users = EVERYBODY },
        };
        const struct policy policy = { A_POLICY, .roles = two, .n_roles = 2 };
        const struct situation now = { NOW };
        const struct request request = { ASK, .priority = 21, .clamp = true };
        struct decision d;

        d = policy_evaluate(&policy, &now, &request);
        assert_int_equal(d.verdict, VERDICT_GRANT);
        assert_int_equal(d.policy, SCHED_FIFO);
        assert_int_equal(d.priority, 20);
        assert_ptr_equal(d.role, &two[1]);
}

static void test_find_role(void **state) {
        const struct policy policy = { A_POLICY };
        size_t index = 99;

        assert_ptr_equal(policy_find_role(&policy, "stage", &index), &roles[2]);
        assert_int_equal(index, 2);
        assert_ptr_equal(policy_find_role(&policy, "desktop", NULL), &roles[0]);

        assert_null(policy_find_role(&policy, "", &index));
        assert_null(policy_find_role(&policy, "stage2", &index));
        assert_int_equal(index, 2);
}

/* No reason that this is about is without a row. */
static void test_every_reason_is_tried(void **state) {
        static const enum reason given[] = {
                REASON_NONE, REASON_INVALID, REASON_UNSUPPORTED, REASON_NOT_ALLOWED, REASON_DENIED,
                REASON_NO_SUCH_ROLE, REASON_POLICY_NOT_IN_ROLE, REASON_PRIORITY_LIMIT,
                REASON_NICE_LIMIT, REASON_LIFETIME_LIMIT, REASON_USER_NAMESPACE,
                REASON_THREADS_PER_USER, REASON_THREADS_PER_ROLE, REASON_THREADS_TOTAL,
                REASON_RATE, REASON_DEGRADED, REASON_BACK_OFF,
        };

        for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
                assert_tried(given[i], cases, N_CASES);
}

int main(void) {
        static const struct CMUnitTest others[] = {
                cmocka_unit_test(test_rule_of_a_list_that_is_not_set),
                cmocka_unit_test(test_clamp_keeps_the_policy_if_it_can),
                cmocka_unit_test(test_find_role),
                cmocka_unit_test(test_every_reason_is_tried),
        };

        return run_cases("policy", cases, N_CASES, others, sizeof(others) / sizeof(others[0]));
}
