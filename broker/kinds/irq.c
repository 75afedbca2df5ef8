/* SPDX-License-Identifier: MIT */

/*
 * The interrupt threads of a device. What the request names is the resource, not the threads: these
 * may be others after the device was plugged in again. Which they are, and what each had before, is
 * kept in irq/table.c.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/irq/table.h"
#include "broker/kinds/resources.h"
#include "broker/sched-values.h"
#include "broker/text.h"

static bool irq_probe(char *cause, size_t size) {
        if (irq_kthreads_are_visible(&irq_roots_system))
                return true;

        (void) snprintf(cause, size,
                        "the kernel's threads are not to be seen from here: is this a "
                        "container, or does /proc hide processes?");
        return false;
}

static enum reason reason_of(enum irq_status status) {
        switch (status) {
        case IRQ_RESOLVED:
                return REASON_NONE;
        case IRQ_BAD_NAME:
                return REASON_INVALID;
        case IRQ_NO_DEVICE:
        case IRQ_NO_LINE:
                return REASON_NO_SUCH_DEVICE;
        case IRQ_HIDDEN:
                return REASON_RESOURCE_UNAVAILABLE;
        case IRQ_NOT_FORCED:
                return REASON_IRQ_NOT_THREADED;
        case IRQ_NOT_THREADED:
                return REASON_IRQ_NOT_THREADABLE;
        case IRQ_AMBIGUOUS:
        case IRQ_TOO_MANY:
                return REASON_IRQ_AMBIGUOUS;
        }
        return REASON_NO_SUCH_DEVICE;
}

/* FNV-1a. Two names of one key would share a resource: one in 2^64, and of the same kind. */
static uint64_t key_of(const char *device) {
        uint64_t key = UINT64_C(14695981039346656037);

        for (const char *p = device; *p != '\0'; p++)
                key = (key ^ (unsigned char) *p) * UINT64_C(1099511628211);
        return key;
}

/* @cause is set unless it is NONE. */
static enum reason look(struct broker *broker, const char *device, struct irq_resolution *ret,
                        char *cause, size_t size) {
        char printable[WIRE_LABEL_SIZE], help[200];
        int r;

        if (strlen(device) >= WIRE_LABEL_SIZE) {
                (void) snprintf(cause, size, "a device is named in at most %d characters",
                                WIRE_LABEL_SIZE - 1);
                return REASON_INVALID;
        }
        r = irq_table_look(broker->irqs, device, ret);
        if (r < 0) {
                (void) snprintf(cause, size, "interrupts cannot be looked at: %s", strerror(-r));
                return REASON_RESOURCE_UNAVAILABLE;
        }
        text_escape(printable, sizeof(printable), device, strlen(device));
        irq_status_explain(ret, printable, cause, size, help, sizeof(help));
        return reason_of(ret->status);
}

static enum reason irq_find(const struct resource_query *query,
                            struct resource_name ret_names[LEASE_HOLDS_MAX], unsigned *ret_n,
                            char *cause, size_t size) {
        struct irq_resolution found;
        enum reason reason;

        reason = look(query->broker, query->device, &found, cause, size);
        if (reason != REASON_NONE)
                return reason;

        ret_names[0] = (struct resource_name){ .key = key_of(query->device) };
        text_copy(ret_names[0].label, sizeof(ret_names[0].label), query->device);
        *ret_n = 1;
        return REASON_NONE;
}

enum reason irq_find_lowest(struct broker *broker, const char *device, struct irq_rung *ret,
                            char *cause, size_t size) {
        struct sched_values values;
        struct irq_resolution found;
        enum reason reason;

        *ret = (struct irq_rung){ .priority = 0 };
        reason = look(broker, device, &found, cause, size);
        /* what runs without a thread is above all threads */
        if (reason == REASON_IRQ_NOT_THREADED || reason == REASON_IRQ_NOT_THREADABLE)
                return REASON_NONE;
        if (reason != REASON_NONE)
                return reason;

        for (unsigned i = 0; i < found.n_threads; i++) {
                const struct irq_kthread *task = &found.threads[i].task;

                if (sched_read(task->tid, &values) < 0 || !sched_is_rt(values.policy) ||
                    (ret->priority != 0 && values.priority >= ret->priority))
                        continue;
                *ret = (struct irq_rung){ .tid = task->tid, .priority = values.priority };
                text_copy(ret->name, sizeof(ret->name), task->name);
        }
        return REASON_NONE;
}

unsigned irq_roles_of(struct broker *broker, const char *device) {
        const struct policy *policy = broker_policy(broker);
        unsigned roles = 0;

        for (size_t i = 0; i < policy->n_roles; i++)
                if (policy->roles[i].resources[RESOURCE_IRQ].given &&
                    irq_table_is_within(broker->irqs, device, policy->roles[i].irq_devices,
                                        policy->roles[i].n_irq_devices))
                        roles |= 1U << i;
        return roles;
}

bool irq_role_names(const struct role *role, const struct resource *resource) {
        struct irq_table *irqs = resource->broker->irqs;
        struct irq_resolution found;

        if (irq_table_look(irqs, resource->name.label, &found) >= 0 && found.status != IRQ_RESOLVED)
                return true;
        return irq_table_is_within(irqs, resource->name.label, role->irq_devices,
                                   role->n_irq_devices);
}

/* The table knows what each thread had, and it may be several. */
static int irq_capture(struct resource *resource, struct resource_value *ret) {
        *ret = (struct resource_value){};
        return 0;
}

/* Where the role of the lease with the highest priority wants them; NULL: where they are. */
static const struct cpus *affinity_of(const struct resource *resource) {
        const struct cpus *affinity = NULL;
        int64_t highest = 0;

        for (const GList *link = resource->holds.head; link; link = link->next) {
                const struct hold *hold = link->data;
                const struct role *role = policy_find_role(broker_policy(resource->broker),
                                                           hold->lease->role, NULL);

                if (!role || cpus_is_empty(&role->irq_affinity) || hold->value <= highest)
                        continue;
                highest = hold->value;
                affinity = &role->irq_affinity;
        }
        return affinity;
}

/* The CPUs as one number, so that others are seen to be others. */
static void irq_aim(const struct resource *resource, int64_t value, struct resource_value *ret) {
        const struct cpus *affinity = affinity_of(resource);
        char cpus[CPUS_MAX];

        *ret = (struct resource_value){ .n = { value } };
        if (!affinity)
                return;
        cpus_format(affinity, cpus, sizeof(cpus));
        ret->n[1] = (int64_t) key_of(cpus);
}

static int irq_apply(struct resource *resource, const struct resource_value *set) {
        return irq_table_claim(resource->broker->irqs, resource, resource->name.label,
                               (int) set->n[0], affinity_of(resource));
}

static void irq_explain(const struct resource *resource, char *text, size_t size) {
        irq_table_explain(resource->broker->irqs, resource->name.label, text, size);
}

static int irq_verify(struct resource *resource, const struct resource_value *set) {
        return irq_table_verify(resource->broker->irqs, resource);
}

static int irq_restore(struct resource *resource) {
        irq_table_drop(resource->broker->irqs, resource);
        return 1;
}

const struct resource_kind resource_irq = {
        .name = "irq",
        .index = RESOURCE_IRQ,
        .want = WIRE_WANT_IRQ,
        .highest = true,
        .follows_role = true,
        .is_volatile = true, /* the claim; what it did is in the table's own file */
        .probe = irq_probe,
        .find = irq_find,
        .capture = irq_capture,
        .aim = irq_aim,
        .apply = irq_apply,
        .verify = irq_verify,
        .restore = irq_restore,
        .explain = irq_explain,
};
