/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_BROKER_H
#define RTGRANT_BROKER_BROKER_H

/*
 * The daemon's state, in one place and owned by one thread: who is known, what is given, by which
 * policy. Everything else in this folder works on it.
 */

#include <systemd/sd-event.h>

#include "broker/kernel.h"
#include "broker/lease.h"
#include "broker/log.h"
#include "broker/self.h"
#include "broker/user.h"
#include "policy/policy-file.h"

struct authority;
struct bus;
struct closer;
struct event_source;
struct guard;
struct irq_table;
struct observe;
struct server;

struct broker_options {
        const char *socket_path;        /* not used if systemd hands a socket over */
        const char *policy_path;        /* NULL: the system's layers */
        const char *state_dir;
        int log_level;                  /* -1: as the policy says, else LOG_NOTICE */
};

struct broker {
        struct broker_options options;  /* strings outlive the broker */
        sd_event *event;                /* owned */
        struct event_source *event_source; /* owned; NULL in a build without D-Bus */
        struct log *log;                /* owned */
        struct kernel kernel;
        struct self self;
        struct policy_store *policy;    /* owned */
        unsigned policy_generation;
        char policy_error[256];         /* "" unless the last reload failed */
        struct user_table users;
        struct lease_table leases;
        struct resource_table resources;
        struct lease_store *store;      /* owned */
        struct server *server;          /* owned */
        struct closer *closer;          /* owned */
        struct slow_writer *disks;      /* owned; for their attributes */
        struct authority *authority;    /* owned; NULL: polkit is not asked */
        struct bus *bus;                /* owned; NULL: no system bus */
        struct irq_table *irqs;         /* owned */
        struct guard *guard;            /* owned */
        struct observe *observe;        /* owned */
        sd_event_source *guard_notices; /* owned */
        sd_event_source *check;         /* owned; runs while there are leases */
        uint64_t check_seq;             /* the lease last looked at */
        bool check_hurries;             /* to the end of them */
        sd_event_source *status;        /* owned; for the service manager */
        bool handing_over;              /* stops, and leaves all to a successor */
        unsigned n_watchers;            /* connections that are told of events */
        uint64_t started_ms;            /* CLOCK_REALTIME */
};

/*
 * Starts: policy, state of a predecessor, socket. Serves as soon as @event loops.
 * Errors: logged; -EADDRINUSE or -EBUSY if another broker serves there.
 */
int broker_new(const struct broker_options *options, struct log *log, struct broker **ret);

/* Ends all leases, which restores what was there, and frees it. May be NULL. Returns NULL. */
struct broker *broker_free(struct broker *broker);

/*
 * Leaves the leases, and the connections if there is a service manager to keep them, to a
 * successor: the process is to end without broker_free() then. Returns how many leases.
 */
unsigned broker_hand_over(struct broker *broker);

/* Ends all leases. Returns how many. */
unsigned broker_end_all(struct broker *broker, enum reason reason, const char *text);

/*
 * The machine, or the daemon itself, slept: everybody starts anew with the guard, and all that is
 * granted is verified now.
 */
void broker_woke_up(struct broker *broker);

/* Starts, refreshes or stops asking polkit, as the policy in force says. */
void broker_apply_authority(struct broker *broker);

/* Tells those who watch. @text says what happened in one sentence. */
void broker_tell(struct broker *broker, struct lease *lease, enum wire_event_kind kind,
                 enum reason reason, const char *text);

/* Tells the service manager, if there is one: @state as for sd_notify(3), and the status line. */
void broker_notify(struct broker *broker, const char *state);

/* The status line, soon; for what happens often. */
void broker_notify_status(struct broker *broker);

uint64_t broker_now_us(const struct broker *broker); /* CLOCK_MONOTONIC */
uint64_t broker_now_ms(void);                        /* CLOCK_REALTIME */

static inline const struct policy *broker_policy(const struct broker *broker) {
        return &broker->policy->policy;
}

#endif
