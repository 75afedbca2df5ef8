/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_POLICY_H
#define RTGRANT_POLICY_POLICY_H

/*
 * Decides what may be granted.
 *
 * A pure function of its arguments: no system call, clock, allocation, log or global state. The
 * broker gathers the facts (struct situation), carries the decision out and words the refusal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/cpus.h"
#include "policy/reason.h"

/* Above this nothing is ever given, whatever a policy file says: the broker itself runs there. */
#define POLICY_PRIORITY_CEILING 94

#define POLICY_ROLE_NAME_MAX 31 /* bytes, without the NUL; as on the wire */
#define POLICY_ROLES_MAX 16
#define POLICY_IRQS_MAX 32

/* A place in the band of a role: its low end, a quarter up, the middle, three quarters, the top. */
#define POLICY_RELATIVE_MIN (-2)
#define POLICY_RELATIVE_MAX 2

/* Declared timing is of a cycle of at most an hour; longer ones are a mistake in the unit. */
#define POLICY_PERIOD_NS_MAX UINT64_C(3600000000000)

/* Users below are the system's own, login.defs(5). */
#define POLICY_SYSTEM_UID_END 1000

/* Where a value was set. */
struct rule {
        const char *file;       /* borrowed; outlives the policy; NULL: a built-in default */
        unsigned line;          /* from 1 */
};

/*
 * What can be granted besides the scheduling of a thread. Of a process: the memory it may lock; of
 * the machine: how long its CPUs may take to wake up; of a disk: how much it is given at a time; of
 * a device: the priority of its interrupt threads.
 */
enum resource_index {
        RESOURCE_MEMLOCK,               /* bytes */
        RESOURCE_CPU_LATENCY,           /* µs */
        RESOURCE_BLOCK_QUEUE,           /* KiB a request, max_sectors_kb */
        RESOURCE_IRQ,                   /* priority */
        _RESOURCE_MAX,
};

/* What a role gives of a resource. */
struct resource_band {
        bool given;
        int64_t low;
        int64_t high;
};

/* Users or groups of a rule. */
struct id_list {
        const uint32_t *ids;
        size_t n_ids;
        bool everybody;         /* "*" */
};

bool id_list_has(const struct id_list *list, uint32_t id);

/* Names, each of which may end in "*" where that is said. */
struct word_list {
        const char *const *words;
        size_t n_words;
};

/* Of the caller's login session; the bits of role.sessions. */
enum session_state {
        SESSION_UNREAD,                 /* not looked at: matches nothing, explains nothing */
        SESSION_NONE,
        SESSION_REMOTE,
        SESSION_INACTIVE,
        SESSION_ACTIVE,                 /* in front of somebody, at the machine itself */
};

/* What becomes of a limit that a process has set to its real-time running: RLIMIT_RTTIME. */
enum rttime_handling {
        RTTIME_SUPERVISE,               /* one that would kill it is lifted; the guard does better */
        RTTIME_KEEP,                    /* it stays as it is */
        RTTIME_REQUIRE,                 /* there must be one, as RealtimeKit has it */
};

enum role_key {
        ROLE_KEY_DESCRIPTION,
        ROLE_KEY_POLICY,
        ROLE_KEY_PRIORITY,
        ROLE_KEY_NICE,
        ROLE_KEY_THREADS_PER_USER,
        ROLE_KEY_LIFETIME_MAX,
        ROLE_KEY_RUN_MAX,
        ROLE_KEY_CPU_MAX,
        ROLE_KEY_CPU_WINDOW,
        ROLE_KEY_ALLOW_USERS,
        ROLE_KEY_ALLOW_GROUPS,
        ROLE_KEY_DENY_USERS,
        ROLE_KEY_DENY_GROUPS,
        ROLE_KEY_ACTION,
        ROLE_KEY_MEMLOCK,
        ROLE_KEY_MEMLOCK_PER_USER,
        ROLE_KEY_CPU_LATENCY,
        ROLE_KEY_CPU_LATENCY_ON_BATTERY,
        ROLE_KEY_BLOCK_QUEUE,
        ROLE_KEY_BLOCK_REQUESTS,
        ROLE_KEY_BLOCK_SCHEDULER,
        ROLE_KEY_IRQ_PRIORITY,
        ROLE_KEY_IRQ_DEVICES,
        ROLE_KEY_IRQ_AFFINITY,
        ROLE_KEY_ALLOW_SESSIONS,
        ROLE_KEY_UNITS,
        ROLE_KEY_EXECUTABLES,
        ROLE_KEY_BELOW,
        ROLE_KEY_PRIORITY_BY_PERIOD,
        ROLE_KEY_DECLARED_CPU,
        ROLE_KEY_RTTIME,
        _ROLE_KEY_MAX,
};

struct role {
        const char *name;               /* borrowed; outlives the policy */
        const char *description;        /* likewise; never NULL */
        unsigned policies;              /* bit 1 << SCHED_FIFO, 1 << SCHED_RR, 1 << SCHED_OTHER */
        int priority_min;               /* 1..POLICY_PRIORITY_CEILING; 0 and 0: no real-time */
        int priority_max;
        int nice_min;                   /* -20..0; 0: no nice below 0 */
        unsigned threads_per_user_max;
        unsigned lifetime_s_max;        /* of leases for seconds */
        unsigned run_us_max;            /* of a real-time thread without sleeping */
        unsigned cpu_percent_max;       /* of one CPU, over the window; 100: no limit */
        unsigned cpu_window_us;
        struct id_list allow_users;
        struct id_list allow_groups;
        struct id_list deny_users;
        struct id_list deny_groups;
        const char *action;             /* of polkit, asked where no list decides; "": none */
        struct resource_band resources[_RESOURCE_MAX];
        uint64_t memlock_per_user_max;  /* bytes, all processes of a user; 0: as for one process */
        bool cpu_latency_on_battery;
        unsigned block_requests;        /* most that a disk is given at a time; 0: left alone */
        const char *block_scheduler;    /* of such a disk; "": left alone */
        const char *const *irq_devices; /* "card:0", …; "sound": the sound cards */
        size_t n_irq_devices;
        struct cpus irq_affinity;       /* where these interrupts are delivered; empty: left alone */
        unsigned sessions;              /* bits 1 << enum session_state that are allowed */
        struct word_list units;         /* hints for picking a role, not for allowing it; "*" */
        struct word_list executables;   /* likewise; names or paths */
        struct word_list below;         /* roles whose threads of the same user stay above */
        bool priority_by_period;        /* a declared period bounds the priority in the band */
        unsigned declared_cpu_percent;  /* 1..100 of each CPU: for the declarations of this role */
        enum rttime_handling rttime;
        struct rule rules[_ROLE_KEY_MAX];
};

enum broker_key {
        BROKER_KEY_DEFAULT_ROLE,
        BROKER_KEY_THREADS_MAX,
        BROKER_KEY_THREADS_PER_USER,
        BROKER_KEY_CONNECTIONS_MAX,
        BROKER_KEY_CONNECTIONS_PER_USER,
        BROKER_KEY_GRANT_BURST,
        BROKER_KEY_GRANT_REFILL,
        BROKER_KEY_MESSAGE_BURST,
        BROKER_KEY_MESSAGE_REFILL,
        BROKER_KEY_USER_NAMESPACES,
        BROKER_KEY_RESERVE_CPU,
        BROKER_KEY_CPU_PER_USER,
        BROKER_KEY_BACK_OFF,
        BROKER_KEY_BACK_OFF_MAX,
        BROKER_KEY_LOG_LEVEL,
        BROKER_KEY_AUTHORITY,
        BROKER_KEY_REALTIMEKIT_ROLE,
        BROKER_KEY_REALTIMEKIT_POLICY,
        BROKER_KEY_REALTIMEKIT_RTTIME,
        BROKER_KEY_REALTIMEKIT_RTTIME_UNSET,
        BROKER_KEY_MEMLOCK_MAX,
        BROKER_KEY_SYSTEM_THREADS_PER_USER,
        BROKER_KEY_OBSERVE_GROUPS,
        _BROKER_KEY_MAX,
};

/* An interrupt that is raised as long as the broker runs: [Irq NAME]. */
enum irq_key {
        IRQ_KEY_DEVICE,
        IRQ_KEY_PRIORITY,
        IRQ_KEY_AFFINITY,
        _IRQ_KEY_MAX,
};

struct irq_rule {
        const char *name;               /* borrowed; outlives the policy, as all strings */
        const char *device;             /* "card:0", "irq:16" */
        int priority;                   /* 1..POLICY_PRIORITY_CEILING */
        struct cpus affinity;           /* empty: left alone */
        struct rule rules[_IRQ_KEY_MAX];
};

struct policy {
        const struct role *roles;
        size_t n_roles;                 /* 1..POLICY_ROLES_MAX */
        const struct irq_rule *irqs;
        size_t n_irqs;                  /* 0..POLICY_IRQS_MAX */
        size_t default_role;            /* index: named in the refusal when no role fits */
        unsigned threads_max;           /* leased threads, of all users */
        unsigned threads_per_user_max;
        unsigned system_threads_per_user_max; /* of users below POLICY_SYSTEM_UID_END; 0: as all */
        unsigned connections_max;
        unsigned connections_per_user_max;
        unsigned grant_burst;           /* token bucket of grants, per user */
        unsigned grant_refill_ms;       /* one token comes back every so many ms */
        unsigned message_burst;         /* token bucket of messages of any kind, per user */
        unsigned message_refill_us;
        bool user_namespaces;           /* serve callers in other than the initial one */
        unsigned reserve_cpu_percent;   /* 0..90 of each CPU, never given away by declarations */
        unsigned cpu_per_user_percent_max; /* of all CPUs; 100: no limit */
        unsigned back_off_ms;           /* how long a first demotion lasts */
        unsigned back_off_ms_max;       /* and the longest */
        int log_level;                  /* LOG_ERR..LOG_DEBUG of syslog(3); -1: not set */
        bool ask_polkit;                /* Authority=polkit; else the lists alone decide */
        size_t realtimekit_role;        /* index: serves RealtimeKit's interface */
        int realtimekit_policy;         /* SCHED_RR or SCHED_FIFO: its clients cannot say */
        unsigned realtimekit_rttime_us; /* highest hard RLIMIT_RTTIME of its clients; published */
        bool realtimekit_rttime_unset;  /* serve its clients that have set none */
        uint64_t memlock_max;           /* bytes, all processes of all users */
        struct id_list observe_groups;  /* may see which programs have a CPU; others ask polkit */
        struct rule rules[_BROKER_KEY_MAX];
};

/* What polkit said to the question that an ASK put. */
enum authority_answer {
        AUTHORITY_UNASKED,
        AUTHORITY_YES,
        AUTHORITY_NO,
        AUTHORITY_FAILED,               /* gone, late or erring */
        AUTHORITY_OVERRUN,              /* too many questions on their way: not asked */
        AUTHORITY_CHALLENGE,            /* a password would do, and nobody was to be asked for it */
        AUTHORITY_NO_AGENT,             /* likewise, and there was nobody to ask */
        AUTHORITY_REJECTED,             /* who was asked did not give the right one */
        AUTHORITY_DISMISSED,            /* who was asked would not answer */
        AUTHORITY_UNANSWERED,           /* who was asked did not answer in time */
        _AUTHORITY_MAX,
};

enum declared_set {
        DECLARED_OWN,                   /* the CPUs that the thread may run on */
        DECLARED_MACHINE,               /* all */
        _DECLARED_MAX,
};

/* What other leases declared that run on no other CPUs than these. */
struct declared {
        unsigned n_cpus;                /* 0: not read, and not checked */
        uint64_t ppm;                   /* computation by period, in millionths of one CPU */
        const uint64_t *ppm_by_role;    /* of it, one a role of the policy; NULL: nothing */
};

/* What is true now. The broker finds it out by itself; none of it is the caller's word. */
struct situation {
        enum authority_answer authority;
        size_t authority_role;          /* index of the role that it was about, unless UNASKED */
        unsigned resources_answered;    /* bits of resources that polkit was asked about too */
        enum authority_answer resource_answers[_RESOURCE_MAX]; /* what it said of these */
        uid_t uid;                      /* of caller and target alike */
        const gid_t *gids;              /* all groups of the caller, the primary one too */
        size_t n_gids;
        bool in_user_namespace;         /* the caller's is not the initial one */
        uid_t quota_uid;                /* whose quotas it takes */
        enum session_state session;
        const char *unit;               /* of the caller's process; NULL: not read or none */
        const char *executable;         /* likewise; its path */
        int feeds_priority;             /* of the thread that it feeds; 0: none, or not real-time */
        int feeds_irq_priority;         /* of the interrupt that it feeds, the lowest; 0: likewise */
        const int *lowest_by_role;      /* the lowest real-time priority that the quota owner's
                                         * leases of each role have, 0: none; NULL: not read */
        struct declared declared[_DECLARED_MAX];
        bool rt_possible;               /* false: the broker cannot outrank what it would grant */
        bool leased;                    /* the target thread has a lease of this user already */
        size_t leased_role;             /* index of its role, if leased */
        unsigned threads_held;          /* leases of the quota owner */
        const unsigned *threads_held_by_role; /* likewise, one a role of the policy */
        unsigned threads_total;         /* leases of all users */
        unsigned grant_tokens;          /* left in the quota owner's bucket, for this grant */
        unsigned grant_wait_ms;         /* until the next token, if there is none */
        unsigned back_off_ms;           /* how long the user gets no real-time; 0: it does */
        uint64_t memlock_held;          /* bytes lent to other processes of the user, children too */
        uint64_t memlock_total;         /* bytes lent to other processes of all users */
        bool on_battery;
};

enum lifetime {
        LIFETIME_THREAD,
        LIFETIME_CONNECTION,
        LIFETIME_SECONDS,
};

/* What is asked. */
struct request {
        const char *role;               /* name; "" or NULL: the policy picks */
        bool wants_sched;
        int policy;                     /* with wants_sched: SCHED_FIFO, SCHED_RR or SCHED_OTHER */
        int priority;                   /* with FIFO and RR: 1..99; else 0 */
        bool is_relative;               /* a place in the band is asked; priority is 0 */
        int relative;                   /* then, POLICY_RELATIVE_MIN.._MAX */
        bool wants_nice;
        int nice;                       /* with wants_nice: -20..19 */
        enum lifetime lifetime;
        unsigned lifetime_s;
        bool clamp;                     /* rather less than nothing */
        uint64_t period_ns;             /* declared timing; both 0: none */
        uint64_t computation_ns;        /* in each period, at most that */
        unsigned resources;             /* bit 1 << enum resource_index: wanted */
        int64_t values[_RESOURCE_MAX];  /* as far as wanted; above 0, or of IRQ 0: the highest */
        unsigned irq_roles;             /* bit 1 << index of role: it names the interrupt's device */
        bool raises_fed;                /* RESOURCE_IRQ is of the interrupt that the thread feeds */
        enum reason unavailable[_RESOURCE_MAX]; /* why the machine cannot give it; else NONE */
};

/* How the role came about, if none was named. */
enum pick {
        PICK_NONE,              /* it was named */
        PICK_FIRST,             /* the first that allows the caller and gives what is asked */
        PICK_MOST,              /* none gives all of it, and this one most */
        PICK_UNIT,              /* its Units= name the caller's */
        PICK_EXECUTABLE,        /* its Executables= name the caller's */
};

/* What a thread must stay below, with REASON_ABOVE_SERVER. */
enum superior {
        SUPERIOR_NONE,
        SUPERIOR_THREAD,        /* that it feeds */
        SUPERIOR_IRQ,           /* the interrupt of the device that it feeds */
        SUPERIOR_ROLE,          /* a thread of the user in a role that its own is to stay below */
};

enum verdict {
        VERDICT_DENY,
        VERDICT_ASK,            /* grant if polkit allows role->action: ask, evaluate again */
        VERDICT_GRANT,
};

struct decision {
        enum verdict verdict;
        enum reason reason;             /* NONE if granted, NEEDS_AUTHORIZATION if to be asked */
        const struct role *role;        /* that grants, or came nearest; NULL if none */
        struct rule rule;               /* that decided; .file NULL: none or built-in */
        bool clamped;                   /* granted, but less than asked: see rule, asked, limit */
        int policy;                     /* to be set, if granted; the next three as far as wanted */
        int priority;
        int nice;
        unsigned lifetime_s;
        unsigned resources;             /* bits of those granted; with clamp maybe not all asked */
        int64_t values[_RESOURCE_MAX];
        enum superior superior;         /* that refused or lowered it */
        enum authority_answer authority; /* that denied, with REASON_NOT_AUTHORIZED */
        bool about_resource;            /* verdict and reason are about this: */
        enum resource_index resource;
        int64_t asked;                  /* if denied or clamped by a limit; of a quota: the place */
        int64_t limit;
        int64_t limit_low;              /* lower end where the limit is a band, else as limit */
        unsigned retry_after_ms;        /* REASON_RATE, REASON_BACK_OFF */
        enum pick pick;
        struct rule pick_rule;          /* with PICK_UNIT and _EXECUTABLE */
};

#define POLICY_TRACE_MAX (POLICY_ROLES_MAX * 8)

/* What one rule said of a request. */
struct policy_step {
        const struct role *role;
        struct rule rule;       /* .file NULL: none or built-in */
        enum reason reason;     /* NONE: it did not object */
        bool ask;               /* it leaves it to polkit */
        bool clamped;           /* it lowered what was asked: from asked to limit */
        int64_t asked;
        int64_t limit;
};

/* All that spoke, in order. Zeroed by the caller; what is past the end is left out. */
struct policy_trace {
        struct policy_step steps[POLICY_TRACE_MAX];
        size_t n_steps;
        bool clamped;           /* policy.c's own */
};

/*
 * Decides on one request. The first check that fails is the reason given:
 *
 *   the request    UNSUPPORTED (a policy of the kernel that no role gives), INVALID
 *   who asks       USER_NAMESPACE, NO_SUCH_ROLE, DENIED, NOT_ALLOWED, NOT_AUTHORIZED,
 *                  NO_ACTIVE_SESSION, AUTHORITY_UNAVAILABLE, AUTHORITY_BUSY
 *   the role       POLICY_NOT_IN_ROLE (also: real-time, and the role has no priority band),
 *                  PRIORITY_LIMIT, NICE_LIMIT, LIFETIME_LIMIT
 *   each resource  RESOURCE_NOT_IN_ROLE, IRQ_NOT_IN_ROLE, ON_BATTERY, RESOURCE_LIMIT,
 *                  MEMLOCK_QUOTA, and what the broker found out before (RESOURCE_UNAVAILABLE,
 *                  NO_SUCH_DEVICE)
 *   the order      ABOVE_SERVER
 *   the CPUs       ADMISSION (asked and limit in millionths of one CPU)
 *   the broker     DEGRADED, BACK_OFF
 *   quotas         THREADS_PER_ROLE, THREADS_PER_USER, THREADS_TOTAL, RATE
 *
 * Nice 0 and above is within every role. No rule spares uid 0.
 *
 * Clamped, a priority above the band, a nice below the floor and a lifetime above the limit become
 * that limit, and FIFO becomes RR where the role has only RR. Nothing ever becomes more than was
 * asked: a priority below the band is refused, and so is RR where the role has only FIFO.
 * A resource becomes the limit likewise (of latency and queues the lowest value is the most); one
 * that cannot be had at all is left out, unless nothing else was asked.
 *
 * Whom polkit lets into a role it is asked about each resource too, one after the other, by the
 * action of that kind.
 *
 * A priority may be asked for as a place in the band of whatever role serves. Where the role has
 * its priorities follow the period, a declared one bounds the band from above. An interrupt that the
 * same request raises counts as raised.
 *
 * Who may use a role is decided by its Deny lists, then its Allow lists, AllowSessions the last of
 * them, then polkit if there is an action to ask about; what a list decides polkit never turns
 * round. Polkit is asked last: ASK means that all the rest would pass, and comes with what a yes
 * would give. Evaluated with its answer, a request is never worth another question: a role that was
 * not asked about counts as refused.
 *
 * Without a role in the request, of those that give the same, the one whose hints name the caller's
 * unit or program serves; else the first role of the policy that allows the caller and gives
 * what is asked serves; failing that, clamped, the one that gives most (priority before nice before
 * lifetime). A grant of any role comes before a question about another. If there is neither, the
 * reason is that of the role which came nearest: the one that polkit refused, then one that allows
 * the caller (or may yet) before one that does not, then the nearest priority band (or nice floor),
 * then the default role.
 *
 * A target that is leased already takes no new place in its quotas, but one of the role it moves
 * to; a token of the bucket only if it is raised above what it holds. The broker knows that, and
 * shows a token where none is needed.
 */
struct decision policy_evaluate(const struct policy *policy,
                                const struct situation *now,
                                const struct request *request);

/* The same, and tells which rules spoke. @trace may be NULL. */
struct decision policy_evaluate_traced(const struct policy *policy, const struct situation *now,
                                       const struct request *request, struct policy_trace *trace);

/*
 * Whether @role of @policy lets the caller of @now in at all: REASON_NONE, REASON_NOT_ALLOWED or
 * REASON_DENIED by its Allow and Deny keys, REASON_NEEDS_AUTHORIZATION if polkit has to be asked,
 * another reason of "who asks" if it has answered. *ret_rule is the rule that decided; .file NULL
 * if none.
 */
enum reason policy_role_admits(const struct policy *policy, const struct role *role,
                               const struct situation *now, struct rule *ret_rule);

/* What an answer of polkit's means: NONE of a yes, NEEDS_AUTHORIZATION of no answer yet. */
enum reason authority_answer_reason(enum authority_answer answer);

/*
 * Whether the caller may be told by name who has a CPU. A user namespace's never may. *ret_reason
 * is NONE if granted, NEEDS_AUTHORIZATION if polkit is to be asked, USER_NAMESPACE or NOT_ALLOWED;
 * *ret_rule is the rule that decided, .file NULL if none.
 */
enum verdict policy_observe(const struct policy *policy, const struct situation *now,
                            enum reason *ret_reason, struct rule *ret_rule);

/* The role of that name; NULL if there is none. *ret_index may be NULL. */
const struct role *policy_find_role(const struct policy *policy, const char *name,
                                    size_t *ret_index);

#endif
