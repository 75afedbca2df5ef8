/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_KINDS_RESOURCES_H
#define RTGRANT_BROKER_KINDS_RESOURCES_H

/* The kinds of grant that leases share, and what else these files know. */

#include "broker/resource.h"

extern const struct resource_kind resource_memlock;
extern const struct resource_kind resource_cpu_latency;
extern const struct resource_kind resource_block_queue;
extern const struct resource_kind resource_irq;
extern const struct resource_kind resource_rttime;

/* The roles that name @device among those whose interrupts they give: bit 1 << index. */
unsigned irq_roles_of(struct broker *broker, const char *device);

/* Whether @role names that of @resource. A device that is not there now may come back. */
bool irq_role_names(const struct role *role, const struct resource *resource);

/* One thread of an interrupt, and how high it stands. */
struct irq_rung {
        int priority;           /* 0: none is real-time, or it has no thread */
        pid_t tid;
        char name[72];
};

/* The lowest of the interrupt threads of @device. Sets @cause unless the answer is REASON_NONE. */
enum reason irq_find_lowest(struct broker *broker, const char *device, struct irq_rung *ret,
                            char *cause, size_t size);

/* Bytes that the process has locked now; 0 if it cannot be told. */
uint64_t memlock_locked(pid_t pid);

/*
 * A raised limit is inherited by children, who may outlive their parent. What processes of @uid,
 * other than those in @table, may lock above the least that those in it could before. Those of a user
 * namespace that the user made count too, whatever users of it they run as.
 */
uint64_t memlock_inherited(GHashTable *table, uid_t uid);

/* Whether the machine runs on a battery: there is one, and nothing that feeds it is plugged in. */
bool power_is_battery(void);
bool power_is_battery_in(const char *dir);

#endif
