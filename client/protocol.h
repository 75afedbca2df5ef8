/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_PROTOCOL_H
#define RTGRANT_CLIENT_PROTOCOL_H

/*
 * The wire between librtgrant and rtgrantd: fixed-size records over SOCK_SEQPACKET.
 *
 * Every record opens with struct wire_header. A record may be longer or shorter than the receiver
 * knows it, as openat2(2) and sched_setattr(2) do it: what is missing is taken as zero; what is
 * too much must be zero towards the broker, and is passed over by the client. A field that means
 * nothing when zero may therefore be added at the end without a new version.
 *
 * A record that breaks these rules (shorter than its fixed part, `size` other than what arrived,
 * unknown version, non-zero unknown bytes, more than one descriptor) is answered with
 * REASON_MALFORMED or REASON_VERSION and the connection is closed. A record that is well formed
 * but asks for what cannot be is answered with its reason and the connection stays.
 *
 * Numbers are in host order: both ends are on one machine. Strings are NUL-terminated in their
 * array, and what comes from the broker is printable. Ids of processes and threads are 64 bits
 * wide so that a too large one is refused rather than cut.
 */

#include <assert.h>
#include <stdint.h>

#define WIRE_SOCKET_PATH "/run/rtgrant/socket"
#define WIRE_VERSION 1
#define WIRE_RECORD_MAX 4096

#define WIRE_ROLE_SIZE 32
#define WIRE_REASON_SIZE 64
#define WIRE_COMM_SIZE 64
#define WIRE_DEVICE_SIZE 64
#define WIRE_LABEL_SIZE 32
#define WIRE_LEASE_ID_SIZE 16

enum wire_verb {
        WIRE_HELLO = 1,
        WIRE_ACQUIRE = 2,
        WIRE_UPDATE = 3,        /* change priority, nice or timing of a lease in place */
        WIRE_RENEW = 4,         /* put a lease's values in force again; prolong its seconds */
        WIRE_RELEASE = 5,
        WIRE_LIST = 6,
        WIRE_WATCH = 7,
        WIRE_REVOKE = 8,        /* administrator */
        WIRE_RELOAD = 9,        /* administrator */
        WIRE_RESTORE_ALL = 10,  /* administrator */
        WIRE_POLICY = 11,       /* the policy in force, key by key */
        WIRE_WHY = 12,          /* a struct wire_acquire: which rules speak of it; nothing is done */
        WIRE_OBSERVE = 13,      /* record who has a CPU, until the connection ends or for a while */
        WIRE_OCCUPANTS = 14,    /* who had it */
        _WIRE_VERB_END,

        WIRE_REPLY = 0x8000,    /* or'ed to the verb of a request */
        WIRE_EVENT = 0x4000,    /* unasked, to those who WATCH */
};

struct wire_header {
        uint32_t size;          /* of the whole record, this header included */
        uint16_t version;       /* WIRE_VERSION */
        uint16_t verb;
        uint64_t serial;        /* the client's; comes back in the reply; 0 in events */
};

/* What a request wants, or'ed. Only some are served by a given broker: see wire_hello_reply.kinds. */
enum wire_want {
        WIRE_WANT_SCHED = 1 << 0,       /* policy and priority */
        WIRE_WANT_NICE = 1 << 1,
        WIRE_WANT_MEMLOCK = 1 << 2,
        WIRE_WANT_CPU_LATENCY = 1 << 3,
        WIRE_WANT_IRQ = 1 << 4,
        WIRE_WANT_BLOCK_QUEUE = 1 << 5,
        WIRE_WANT_ALL = (1 << 6) - 1,
};

enum wire_lifetime {
        WIRE_LIFETIME_THREAD = 0,       /* until the thread ends */
        WIRE_LIFETIME_CONNECTION = 1,   /* until this connection is closed */
        WIRE_LIFETIME_SECONDS = 2,      /* for lifetime_s seconds, renewable */
};

enum wire_acquire_flags {
        WIRE_ACQUIRE_DRY_RUN = 1 << 0,          /* answer, but change nothing */
        WIRE_ACQUIRE_CLAMP = 1 << 1,            /* rather less than nothing */
        WIRE_ACQUIRE_MAY_ASK = 1 << 2,          /* the user may be asked for a password */
        WIRE_ACQUIRE_PIDFD = 1 << 3,            /* a pidfd of the target comes along */
        WIRE_ACQUIRE_RELATIVE = 1 << 4,         /* a place in the role's band; priority is 0 */
        WIRE_ACQUIRE_OR_LESS = 1 << 5,          /* then RR, then nice; the answer says which */
        WIRE_ACQUIRE_FLAGS_ALL = (1 << 6) - 1,
};

enum wire_hello_flags {
        WIRE_HELLO_ADMIN = 1 << 0,      /* polkit is asked whether the caller is an administrator */
        WIRE_HELLO_MAY_ASK = 1 << 1,    /* and the user may be asked for a password; who is none is refused */
        WIRE_HELLO_FLAGS_ALL = (1 << 2) - 1,
};

/* Ways a record to the broker may be too short: a shorter one than its fixed part is malformed. */
struct wire_hello {
        struct wire_header header;
        uint64_t flags;                 /* enum wire_hello_flags */
};

struct wire_acquire {
        struct wire_header header;
        uint64_t flags;                 /* enum wire_acquire_flags */
        uint64_t pid;                   /* 0: the sender's process, or the pidfd's */
        uint64_t tid;                   /* 0: the main thread of that process */
        uint32_t want;                  /* enum wire_want */
        uint32_t policy;                /* SCHED_FIFO, SCHED_RR, SCHED_OTHER as in sched.h */
        int32_t priority;               /* 1..99 with FIFO and RR, else 0 */
        int32_t nice;                   /* -20..19 with WIRE_WANT_NICE */
        uint32_t lifetime;              /* enum wire_lifetime */
        uint32_t lifetime_s;            /* with WIRE_LIFETIME_SECONDS, at least 1 */
        char role[WIRE_ROLE_SIZE];      /* "": the broker picks one */
        char reason[WIRE_REASON_SIZE];  /* free text for the listing */
        /* Declared timing in ns, all 0 if none: computation <= deadline <= period. */
        uint64_t period_ns;
        uint64_t computation_ns;
        uint64_t deadline_ns;
        uint64_t memlock_bytes;
        uint32_t cpu_latency_us;
        uint32_t block_max_sectors_kb;
        int32_t irq_priority;           /* 0: the highest that the role gives */
        uint32_t padding;
        char irq[WIRE_DEVICE_SIZE];     /* card:0, usb:1-4, irq:16, ... */
        char block[WIRE_DEVICE_SIZE];   /* a block device: its name (sda1) or number (8:1) */
        uint64_t feeds_tid;             /* a thread to stay below, whoever's; 0: none */
        int32_t relative;               /* -2..2 with WIRE_ACQUIRE_RELATIVE: low end to top */
        uint32_t padding2;
        char feeds[WIRE_DEVICE_SIZE];   /* a device below whose interrupt to stay, as irq; "": none */
        uint64_t pidfd_inode;           /* of a pidfd of the target that is not sent along; 0: none */
};

struct wire_update {
        struct wire_header header;
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint64_t flags;                 /* WIRE_ACQUIRE_DRY_RUN, _CLAMP, _MAY_ASK */
        uint32_t want;                  /* which of the following change; WIRE_WANT_SCHED, _NICE */
        uint32_t policy;
        int32_t priority;
        int32_t nice;
        uint64_t period_ns;             /* all three 0: stays as declared */
        uint64_t computation_ns;
        uint64_t deadline_ns;
};

/* RENEW, RELEASE, REVOKE */
struct wire_lease_ref {
        struct wire_header header;
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint32_t lifetime_s;            /* RENEW of a lease for seconds: from now; else 0 */
        uint32_t padding;
};

/* RELOAD, RESTORE_ALL */
struct wire_plain {
        struct wire_header header;
};

enum wire_list_flags {
        WIRE_LIST_ALL = 1 << 0,         /* everybody's; administrator */
        WIRE_LIST_FLAGS_ALL = (1 << 1) - 1,
};

/* LIST, WATCH, POLICY: `after` pages on, 0 to begin with; not used by WATCH. */
struct wire_list {
        struct wire_header header;
        uint64_t flags;
        uint64_t after;
};

enum wire_observe_flags {
        WIRE_OBSERVE_MAY_ASK = 1 << 0,  /* the user may be asked for a password */
        WIRE_OBSERVE_FLAGS_ALL = (1 << 1) - 1,
};

/* OBSERVE: one CPU a connection; again, it lasts longer or is of another CPU. */
struct wire_observe {
        struct wire_header header;
        uint64_t flags;                 /* enum wire_observe_flags */
        uint32_t cpu;                   /* one that the sender's process may run on */
        uint32_t padding;
};

/* OCCUPANTS, CLOCK_MONOTONIC; at most 100 ms. Both 0: only what there is to know. */
struct wire_occupants {
        struct wire_header header;
        uint64_t from_ns;
        uint64_t to_ns;
};

/* Why not. Sent as far as it is used: a plain success ends before it. */
struct wire_explanation {
        int64_t asked;                  /* the value asked for, where the reason is a limit */
        int64_t limit;                  /* the limit it missed */
        uint32_t retry_after_ms;        /* the same request has a chance after this; 0: no telling */
        uint32_t padding;
        char rule[160];                 /* FILE:LINE that decided; "" if no rule did */
        char text[320];                 /* one sentence: who, what, why not */
        char help[320];                 /* one sentence: what helps */
};

/* What was given with WIRE_ACQUIRE_OR_LESS. */
enum wire_rung {
        WIRE_RUNG_AS_ASKED = 0,         /* or clamped */
        WIRE_RUNG_RR = 1,               /* round robin, in whatever role */
        WIRE_RUNG_NICE = 2,
};

enum wire_answer_flags {
        WIRE_ANSWER_CLAMPED = 1 << 0,   /* less is in force than was asked */
        WIRE_ANSWER_DRY_RUN = 1 << 1,   /* nothing was changed; the values are what would be */
        WIRE_ANSWER_UPDATED = 1 << 2,   /* the thread had a lease already: that one was changed */
        WIRE_ANSWER_NOTED = 1 << 3,     /* text: what of it could not be had, though it was given */
};

/* Reply to ACQUIRE, UPDATE, RENEW, RELEASE, WATCH, REVOKE, RELOAD, RESTORE_ALL, and to what is malformed. */
struct wire_answer {
        struct wire_header header;
        uint32_t reason;                /* enum rtgrant_reason; 0: done */
        uint32_t flags;                 /* enum wire_answer_flags */
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint64_t pid;                   /* the target, as numbered where the broker runs */
        uint64_t tid;
        uint32_t policy;                /* what is in force now, read back from the kernel */
        int32_t priority;
        int32_t nice;                   /* static nice; in force whenever the thread is not real-time */
        uint32_t reset_on_fork;         /* 0 or 1 */
        uint32_t previous_policy;       /* what was there before this call */
        int32_t previous_priority;
        int32_t previous_nice;
        uint32_t count;                 /* RESTORE_ALL: leases ended. RELOAD: leases lowered */
        char role[WIRE_ROLE_SIZE];      /* the role that served, or that came nearest */
        uint64_t memlock_bytes;         /* what is lent to the lease; 0: nothing of it */
        uint64_t memlock_locked;        /* of it, what the process has locked now */
        uint32_t cpu_latency_us;
        uint32_t block_max_sectors_kb;
        int32_t irq_priority;
        uint32_t granted_want;          /* enum wire_want that the lease holds now */
        uint32_t rung;                  /* enum wire_rung */
        uint32_t padding;
        struct wire_explanation explanation;
};

enum wire_state_flags {
        WIRE_STATE_DEGRADED = 1 << 0,   /* broker cannot run real-time itself: no real-time grants */
        WIRE_STATE_ADMIN = 1 << 1,      /* the caller is an administrator, as far as that is known */
        WIRE_STATE_POLICY_BROKEN = 1 << 2, /* the last reload failed; the one before is in force */
        WIRE_STATE_OLD_KERNEL = 1 << 3, /* no PIDFD_THREAD: threads are told apart by start time */
};

enum wire_feature {
        WIRE_FEATURE_POLICY_VERB = 1 << 0,
};

/* What the caller could get in one role without asking anyone. */
struct wire_offer {
        char role[WIRE_ROLE_SIZE];
        uint32_t reason;                /* 0: allowed; else why not */
        uint32_t policies;              /* bit 1 << SCHED_FIFO, 1 << SCHED_RR, 1 << SCHED_OTHER */
        int32_t priority_min;           /* 0 and 0: no real-time in this role */
        int32_t priority_max;
        int32_t nice_min;               /* 0: no nice below what is there */
        uint32_t threads_held;          /* by the caller's user in this role */
        uint32_t threads_max;
        uint32_t padding;
};

#define WIRE_OFFERS_MAX 16

struct wire_hello_reply {
        struct wire_header header;
        uint32_t reason;                /* 0, or why the caller is turned away */
        uint32_t state;                 /* enum wire_state_flags */
        uint64_t features;              /* enum wire_feature */
        uint32_t kinds;                 /* enum wire_want that this broker serves here */
        uint32_t uid;                   /* who the broker takes the caller for */
        uint64_t pid;
        uint32_t n_leases;              /* of all users */
        uint32_t n_users;               /* that hold leases */
        uint32_t n_leases_own;
        uint32_t n_leases_max;
        uint32_t n_connections;
        uint32_t policy_generation;     /* counts good loads */
        uint64_t started_ms;            /* CLOCK_REALTIME */
        char version[32];
        char policy_error[256];         /* with WIRE_STATE_POLICY_BROKEN */
        uint32_t n_offers;
        uint32_t offer_size;            /* sizeof(struct wire_offer) of the sender */
        struct wire_offer offers[WIRE_OFFERS_MAX];
        uint32_t back_off_ms;           /* the caller's user gets no new real-time priority; 0: it does */
        uint32_t n_users_in_back_off;   /* of all: how many do not */
};

enum wire_transport {
        WIRE_TRANSPORT_SOCKET = 0,
        WIRE_TRANSPORT_BROKER1 = 1,
        WIRE_TRANSPORT_REALTIMEKIT = 2,
};

enum wire_lease_state {
        WIRE_LEASE_IN_FORCE = 0,
        WIRE_LEASE_CHANGED = 1,         /* by others: the thread has other values than granted */
        WIRE_LEASE_DEMOTED = 2,         /* by the guard, for a while */
};

struct wire_lease {
        uint8_t id[WIRE_LEASE_ID_SIZE];
        uint64_t pid;
        uint64_t tid;
        uint64_t since_ms;              /* CLOCK_REALTIME */
        uint64_t expires_ms;            /* CLOCK_REALTIME; 0: with its thread or connection */
        uint64_t period_ns;
        uint64_t computation_ns;
        uint64_t deadline_ns;
        uint32_t uid;
        uint32_t state;                 /* enum wire_lease_state */
        uint32_t policy;                /* in force now, read from the kernel for this answer */
        int32_t priority;
        int32_t nice;
        uint32_t granted_want;          /* enum wire_want that the lease holds */
        uint32_t granted_policy;
        int32_t granted_priority;
        int32_t granted_nice;
        uint32_t transport;
        uint32_t lifetime;
        int32_t irq_priority;           /* this and the following as granted, 0 if not held */
        uint64_t memlock_bytes;
        uint32_t cpu_latency_us;
        uint32_t block_max_sectors_kb;
        char comm[WIRE_COMM_SIZE];      /* thread name, made printable */
        char role[WIRE_ROLE_SIZE];
        char reason[WIRE_REASON_SIZE];
        char irq[WIRE_LABEL_SIZE];      /* the device, made printable and short */
        char block[WIRE_LABEL_SIZE];
};

#define WIRE_LEASES_MAX 11

struct wire_list_reply {
        struct wire_header header;
        uint32_t reason;
        uint32_t n_leases;
        uint64_t next;                  /* send as `after` for more; 0: that was all */
        uint32_t lease_size;            /* sizeof(struct wire_lease) of the sender */
        uint32_t padding;
        struct wire_lease leases[WIRE_LEASES_MAX];
};

struct wire_policy_entry {
        char section[40];               /* "Broker" or "Role NAME" */
        char key[32];
        char value[200];
        char origin[160];               /* FILE:LINE; "" for a built-in default */
};

#define WIRE_POLICY_ENTRIES_MAX 9

struct wire_policy_reply {
        struct wire_header header;
        uint32_t reason;
        uint32_t n_entries;
        uint64_t next;
        uint32_t policy_generation;     /* begin anew if it changes between pages */
        uint32_t entry_size;            /* sizeof(struct wire_policy_entry) of the sender */
        struct wire_policy_entry entries[WIRE_POLICY_ENTRIES_MAX];
};

enum wire_step_flags {
        WIRE_STEP_CLAMPED = 1 << 0,     /* it lowered what was asked */
        WIRE_STEP_ASK = 1 << 1,         /* it leaves it to polkit */
};

/* What one rule of the policy said, in the order in which they spoke. */
struct wire_step {
        char role[WIRE_ROLE_SIZE];
        char rule[120];                 /* FILE:LINE; "" for a built-in default */
        uint32_t reason;                /* 0: it did not object */
        uint32_t flags;                 /* enum wire_step_flags */
        int64_t asked;                  /* where it is a limit */
        int64_t limit;
};

#define WIRE_STEPS_MAX 22

struct wire_why_reply {
        struct wire_header header;
        uint32_t reason;                /* why it did not come to the policy; else 0 */
        uint32_t n_steps;               /* what is past the end is left out */
        uint32_t step_size;             /* sizeof(struct wire_step) of the sender */
        uint32_t padding;
        struct wire_step steps[WIRE_STEPS_MAX];
};

/* Of one name. "idle" is nobody. */
struct wire_occupant {
        uint64_t ns;
        char comm[WIRE_COMM_SIZE];      /* made printable */
};

#define WIRE_OCCUPANTS_MAX 5

struct wire_occupants_reply {
        struct wire_header header;
        uint32_t reason;
        uint32_t n_occupants;           /* the longest first */
        uint64_t since_ns;              /* what was before is not known; 0: it has not begun yet */
        uint64_t until_ns;              /* what was after is not known yet */
        uint32_t occupant_size;         /* sizeof(struct wire_occupant) of the sender */
        uint32_t padding;
        struct wire_occupant occupants[WIRE_OCCUPANTS_MAX];
};

enum wire_event_kind {
        WIRE_EVENT_GRANTED = 1,
        WIRE_EVENT_UPDATED = 2,         /* by its holder */
        WIRE_EVENT_ENDED = 3,           /* the thread, its connection or its time ended, or released */
        WIRE_EVENT_REVOKED = 4,         /* by an administrator, a reload, a shutdown, or for cause */
        WIRE_EVENT_CHANGED = 5,         /* by others */
        WIRE_EVENT_LOWERED = 6,         /* by a reload */
        WIRE_EVENT_DEMOTED = 7,         /* by the guard */
        WIRE_EVENT_RESTORED = 8,        /* by the guard, after a demotion */
        WIRE_EVENT_OVER_BUDGET = 9,
        WIRE_EVENT_RESTARTED = 10,      /* the broker; of no lease, and they go on */
};

struct wire_event {
        struct wire_header header;
        uint32_t kind;                  /* enum wire_event_kind */
        uint32_t reason;                /* enum rtgrant_reason */
        uint64_t n_lost;                /* events that this connection was too slow for, so far */
        struct wire_lease lease;
        char text[256];
};

static_assert(sizeof(struct wire_header) == 16, "no padding");
static_assert(sizeof(struct wire_acquire) == 424, "no padding");
static_assert(sizeof(struct wire_answer) == 984, "no padding");
static_assert(sizeof(struct wire_lease) == 360, "no padding");
static_assert(sizeof(struct wire_list_reply) <= WIRE_RECORD_MAX, "fits a record");
static_assert(sizeof(struct wire_hello_reply) <= WIRE_RECORD_MAX, "fits a record");
static_assert(sizeof(struct wire_why_reply) <= WIRE_RECORD_MAX, "fits a record");
static_assert(sizeof(struct wire_policy_reply) <= WIRE_RECORD_MAX, "fits a record");

#endif
