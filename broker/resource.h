/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_RESOURCE_H
#define RTGRANT_BROKER_RESOURCE_H

/*
 * What leases share: the locked memory of a process, the wake-up latency of the machine, the queue
 * of a disk, the interrupt threads of a device. Each such thing is one resource. A lease holds it
 * with the value that it asked for, and in force is the strongest value of all that hold it; the
 * last one to go restores what was there before the first.
 *
 * A kind of resource is one file in kinds/, with five operations, and one row in resource.c.
 */

#include <glib.h>

#include "client/protocol.h"
#include "policy/policy.h"

struct broker;
struct lease;
struct log;
struct resource;
struct thread;
struct user;

#define LEASE_HOLDS_MAX 8       /* a device may have several interrupts */

/* Kinds that nobody asks for: they come with other grants, and no policy or listing knows them. */
enum {
        RESOURCE_RTTIME = _RESOURCE_MAX, /* µs, kinds/rttime.c */
        _RESOURCE_KINDS_MAX,
};

/* What a kind saves, sets and reads back; each makes of it what it needs. */
struct resource_value {
        int64_t n[6];
        char text[24];
};

/* Which resource is meant. */
struct resource_name {
        uint64_t key;                   /* unlike that of all others of its kind */
        char label[WIRE_LABEL_SIZE];    /* for listings; printable */
        pid_t pid;                      /* of the process it is of; else 0 */
};

struct resource_query {
        struct broker *broker;
        const struct thread *thread;    /* that the lease is to be of */
        const char *device;             /* as asked; "" where the kind knows no devices */
        int64_t value;                  /* asked */
};

struct resource_kind {
        const char *name;
        unsigned index;                 /* enum resource_index, or one of those above */
        enum wire_want want;            /* 0: nobody asks for it */
        bool highest;                   /* the highest value is the strongest; else the lowest */
        bool is_volatile;               /* what is set ends with the process that set it */
        bool follows_role;              /* aim() goes by the roles of the leases too */

        /* Whether this machine and this broker can do it. False: @cause says why not. */
        bool (*probe)(char *cause, size_t size);

        /*
         * What a request means, LEASE_HOLDS_MAX names at the most. Nothing is changed yet, and the
         * policy has not been asked. Other than REASON_NONE: @cause says more. NULL: none does.
         */
        enum reason (*find)(const struct resource_query *query,
                            struct resource_name ret_names[LEASE_HOLDS_MAX], unsigned *ret_n,
                            char *cause, size_t size);

        /* What is there now, to be restored later. May open resource->fd. Errors: kernel. */
        int (*capture)(struct resource *resource, struct resource_value *ret);

        /* What has to be set so that @value is in force. No I/O. */
        void (*aim)(const struct resource *resource, int64_t value, struct resource_value *ret);

        /* Errors: kernel. On an error nothing was changed. */
        int (*apply)(struct resource *resource, const struct resource_value *set);

        /* 1 if that is in force, 0 if something else is. Errors: kernel; -ESRCH or -ENODEV: gone. */
        int (*verify)(struct resource *resource, const struct resource_value *set);

        /*
         * Puts back resource->saved where resource->set is still in force, and nothing that is
         * better than what others made of it. 1 if restored, 0 if left alone. Errors: kernel.
         */
        int (*restore)(struct resource *resource);

        /* What of it could not be had though it was given, in a sentence; "" if nothing. May be NULL. */
        void (*explain)(const struct resource *resource, char *text, size_t size);

        /* @gone is restored and not in @table (of struct resource) any more. May be NULL. */
        void (*released)(GHashTable *table, const struct resource *gone);
};

struct resource {
        struct broker *broker;          /* borrowed; outlives the resource */
        const struct resource_kind *kind;
        struct resource_name name;
        uid_t uid;                      /* of the first lease */
        uid_t quota_uid;                /* likewise: whose quotas it takes */
        struct resource_value saved;
        struct resource_value set;
        bool in_force;
        bool partly;                    /* the kind's own: something of it could not be had */
        int fd;                         /* owned; the kind's own, -1 if none */
        GQueue holds;                   /* of struct hold, embedded links */
};

struct hold {
        struct lease *lease;            /* borrowed; outlives the hold */
        struct resource *resource;      /* borrowed; lives as long as it is held */
        int64_t value;
        unsigned slot;                  /* in the store */
        GList in_resource;
};

struct resource_table {
        GHashTable *by_name;            /* owned: struct resource -> itself, by kind and key */
        unsigned served;                /* bits 1 << index of a kind: probed, and it can */
        char causes[_RESOURCE_KINDS_MAX][160]; /* why not, of the others */
};

/* What one request wants of resources, found before the policy is asked. */
struct resource_wants {
        struct resource_name names[_RESOURCE_MAX][LEASE_HOLDS_MAX];
        unsigned n_names[_RESOURCE_MAX];
        char cause[200];                /* of what could not be found */
};

/* Probes every kind. */
void resource_table_init(struct resource_table *table);

/* What cannot be served, and why. */
void resource_table_log(const struct resource_table *table, struct log *log);

void resource_table_done(struct resource_table *table);

/* enum wire_want of the kinds that can be served here. */
uint32_t resource_kinds_served(const struct resource_table *table);

/* The wish of @wire, in the request for the policy. */
void resource_request(const struct wire_acquire *wire, struct request *request);

/* Finds what is meant; fills in request->unavailable. */
void resource_find(struct broker *broker, const struct thread *thread,
                   const struct wire_acquire *wire, struct request *request,
                   struct resource_wants *ret);

/* The action that polkit is asked about. */
const char *resource_action(enum resource_index index);

/* Why @index is unavailable, in words; "" if there are no more. */
const char *resource_cause(const struct broker *broker, enum resource_index index,
                           const struct resource_wants *wants);

/* What the lease holds already, as a request that asks for it again. */
void resource_request_held(const struct lease *lease, struct request *request,
                           struct resource_wants *ret);

/* Facts for the policy; what process @pid itself holds is not counted. */
void resource_situation(struct broker *broker, const struct user *user, pid_t pid,
                        const struct request *request, struct situation *now);

/* Whether @request wants more than the lease holds, or of other devices. */
bool resource_is_raise(const struct lease *lease, const struct request *request,
                       const struct resource_wants *wants);

/*
 * Puts into force what @decision gives of @wants, all or nothing. If what follows fails, *ret_undo
 * takes it back.
 */
struct resource_undo {
        struct {
                struct hold *hold;
                int64_t value;          /* it had; 0: new */
        } steps[_RESOURCE_MAX * LEASE_HOLDS_MAX];
        unsigned n_steps;
};

enum reason resource_apply(struct broker *broker, struct lease *lease,
                           const struct resource_wants *wants, const struct decision *decision,
                           struct resource_undo *ret_undo, char *cause, size_t size);

/* Back to what it was before resource_apply(). */
void resource_undo(struct broker *broker, struct resource_undo *undo);

/* All went well: what the lease held of other devices of these kinds goes. */
void resource_finish(struct broker *broker, struct lease *lease, const struct resource_wants *wants,
                     unsigned resources);

/*
 * Of kinds that nobody asks for: the resource of that name, if anybody holds it; holds it for
 * @lease, anew with another value; gives it up.
 */
struct resource *resource_lookup(struct broker *broker, unsigned index, uint64_t key);
struct resource *resource_of(const struct lease *lease, unsigned index);
enum reason resource_attach(struct broker *broker, struct lease *lease, unsigned index,
                            const struct resource_name *name, int64_t value, char *cause,
                            size_t size);
void resource_detach(struct broker *broker, struct lease *lease, unsigned index);

/* Its role is another, or says something else: what follows from that is put in force. */
void resource_role_changed(struct broker *broker, const struct lease *lease);

/* What of it the lease could not have, in a sentence; "" if nothing. */
void resource_explain(const struct lease *lease, char *text, size_t size);

/* Gives up all that the lease holds. */
void resource_release_all(struct broker *broker, struct lease *lease);

/* Fits what the lease holds to what @role gives. True if that was more. */
bool resource_fit(struct broker *broker, struct lease *lease, const struct role *role);

/* 1 if all that the lease holds is in force, else 0. */
int resource_in_force(const struct lease *lease);

/* enum wire_want of what the lease holds of resources. */
uint32_t resource_held(const struct lease *lease);

/* The value held of that kind; 0 if none. *ret_label (may be NULL): of what, "" if nothing. */
int64_t resource_held_value(const struct lease *lease, enum resource_index index,
                            const char **ret_label);

/* Which kind that is, in words with its value: "512 MiB of locked memory". */
void resource_to_string(enum resource_index index, int64_t value, char *buffer, size_t size);

/*
 * A record of a predecessor: gives it to the lease if that was taken over, which has come before.
 * False if it was not. After all of them resource_recovered() restores what nobody holds any more.
 */
struct lease_record;
bool resource_recover(struct broker *broker, unsigned slot, const struct lease_record *record);
void resource_recovered(struct broker *broker);

#endif
