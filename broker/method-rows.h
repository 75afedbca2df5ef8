/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_METHOD_ROWS_H
#define RTGRANT_BROKER_METHOD_ROWS_H

/*
 * All that can be asked of the broker, one row each. The socket's verbs and records, both tables
 * for sd-bus, both policy files of the bus, who may call and what a call costs are made from these
 * rows, and from nothing else: what has no row cannot be called, and a row without one of its
 * columns, or a verb without a row, does not compile.
 */

/* Who may, and by which action of polkit's. 0 is none of them. */
enum access {
        ACCESS_FREE = 1, /* tells, or is about leases of the caller's own */
        ACCESS_ROLE,     /* whom the policy lets; where it leaves it to polkit, the role's */
        ACCESS_REALTIME, /* the same by RealtimeKit's own actions */
        ACCESS_HIGH_PRIORITY,
        ACCESS_OBSERVE, /* whom the policy lets see who has a CPU, or polkit */
        ACCESS_MANAGE, /* administrators: root, and whom polkit lets */
        ACCESS_ROOT,   /* administrators: root alone; the bus lets nobody else through */
};

/* What it takes of the bucket of messages of the caller's user, in tokens. 0 is none of them. */
enum rate {
        RATE_LIGHT = 1,
        RATE_HEAVY = 4, /* looks at many leases or keys */
};

#define METHOD_IS_COMPLETE(access, rate) \
        ((access) >= ACCESS_FREE && (access) <= ACCESS_ROOT && (rate) >= RATE_LIGHT)

/* The verb, its name on the bus, its record; what the bus passes in and out; who may; what it
 * costs; what carries it out. */
#define BROKER_METHODS(X)                                                                          \
        X(HELLO, "Hello", wire_hello, OPTIONS, ANSWER, ACCESS_FREE, RATE_LIGHT, method_hello)      \
        X(ACQUIRE, "Acquire", wire_acquire, OPTIONS, ANSWER, ACCESS_ROLE, RATE_LIGHT,              \
          method_acquire)                                                                          \
        X(UPDATE, "Update", wire_update, ID_OPTIONS, ANSWER, ACCESS_ROLE, RATE_LIGHT,              \
          method_update)                                                                           \
        X(RENEW, "Renew", wire_lease_ref, ID_OPTIONS, ANSWER, ACCESS_FREE, RATE_LIGHT,             \
          method_renew)                                                                            \
        X(RELEASE, "Release", wire_lease_ref, ID_OPTIONS, ANSWER, ACCESS_FREE, RATE_LIGHT,         \
          method_release)                                                                          \
        X(LIST, "List", wire_list, OPTIONS, LEASES, ACCESS_FREE, RATE_HEAVY, method_list)          \
        X(WATCH, "Watch", wire_list, OPTIONS, ANSWER, ACCESS_FREE, RATE_LIGHT, method_watch)       \
        X(REVOKE, "Revoke", wire_lease_ref, ID_OPTIONS, ANSWER, ACCESS_MANAGE, RATE_LIGHT,         \
          method_revoke)                                                                           \
        X(RELOAD, "Reload", wire_plain, OPTIONS, ANSWER, ACCESS_MANAGE, RATE_HEAVY, method_reload) \
        X(RESTORE_ALL, "RestoreAll", wire_plain, OPTIONS, ANSWER, ACCESS_MANAGE, RATE_HEAVY,       \
          method_restore_all)                                                                      \
        X(POLICY, "Policy", wire_list, OPTIONS, ENTRIES, ACCESS_FREE, RATE_HEAVY, method_policy)   \
        X(WHY, "Why", wire_acquire, OPTIONS, STEPS, ACCESS_FREE, RATE_LIGHT, method_why)

/* What there is on the socket only, since it lasts as long as a connection: the verb, its record; who
 * may; what it costs; what carries it out. */
#define SOCKET_METHODS(X)                                                            \
        X(OBSERVE, wire_observe, ACCESS_OBSERVE, RATE_LIGHT, method_observe)         \
        X(OCCUPANTS, wire_occupants, ACCESS_OBSERVE, RATE_HEAVY, method_occupants)

/* The name; what the bus passes in, and whose thread that names; who may; what it costs; what
 * carries it out. RealtimeKit's methods return nothing. */
#define REALTIMEKIT_METHODS(X)                                                                 \
        X("MakeThreadRealtime", "tu", SD_BUS_PARAM(thread) SD_BUS_PARAM(priority), OWN_THREAD, \
          ACCESS_REALTIME, RATE_LIGHT, make_realtime)                                          \
        X("MakeThreadRealtimeWithPID", "ttu",                                                  \
          SD_BUS_PARAM(process) SD_BUS_PARAM(thread) SD_BUS_PARAM(priority), ANY_THREAD,       \
          ACCESS_REALTIME, RATE_LIGHT, make_realtime)                                          \
        X("MakeThreadHighPriority", "ti", SD_BUS_PARAM(thread) SD_BUS_PARAM(nice_level),       \
          OWN_THREAD, ACCESS_HIGH_PRIORITY, RATE_LIGHT, make_high_priority)                    \
        X("MakeThreadHighPriorityWithPID", "tti",                                              \
          SD_BUS_PARAM(process) SD_BUS_PARAM(thread) SD_BUS_PARAM(nice_level), ANY_THREAD,     \
          ACCESS_HIGH_PRIORITY, RATE_LIGHT, make_high_priority)                                \
        X("ResetKnown", "", "", NO_THREAD, ACCESS_ROOT, RATE_HEAVY, reset_known)               \
        X("ResetAll", "", "", NO_THREAD, ACCESS_ROOT, RATE_HEAVY, reset_all)                   \
        X("Exit", "", "", NO_THREAD, ACCESS_ROOT, RATE_LIGHT, end_daemon)                      \
        X("Suspend", "", "", NO_THREAD, ACCESS_ROOT, RATE_HEAVY, suspend)                      \
        X("Resume", "", "", NO_THREAD, ACCESS_ROOT, RATE_LIGHT, resume)

/* The action of polkit's that decides; NULL: none, or the role says which. */
static inline const char *access_action(enum access access) {
        switch (access) {
        case ACCESS_REALTIME:
                return "org.freedesktop.RealtimeKit1.acquire-real-time";
        case ACCESS_HIGH_PRIORITY:
                return "org.freedesktop.RealtimeKit1.acquire-high-priority";
        case ACCESS_MANAGE:
                return "org.rtgrant.manage";
        case ACCESS_OBSERVE:
                return "org.rtgrant.observe";
        case ACCESS_FREE:
        case ACCESS_ROLE:
        case ACCESS_ROOT:
                break;
        }
        return (const char *) 0;
}

#endif
