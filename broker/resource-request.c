/* SPDX-License-Identifier: MIT */

#include "broker/resource-books.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/kinds/resources.h"
#include "broker/text.h"

void resource_request(const struct wire_acquire *wire, struct request *request) {
        const int64_t bytes_max = INT64_MAX;

        if (wire->want & WIRE_WANT_MEMLOCK)
                request->resources |= 1U << RESOURCE_MEMLOCK;
        if (wire->want & WIRE_WANT_CPU_LATENCY)
                request->resources |= 1U << RESOURCE_CPU_LATENCY;
        if (wire->want & WIRE_WANT_BLOCK_QUEUE)
                request->resources |= 1U << RESOURCE_BLOCK_QUEUE;
        if (wire->want & WIRE_WANT_IRQ)
                request->resources |= 1U << RESOURCE_IRQ;

        /* What is beyond all limits stays that, whatever the width. */
        request->values[RESOURCE_MEMLOCK] = wire->memlock_bytes > (uint64_t) bytes_max
                                                    ? bytes_max
                                                    : (int64_t) wire->memlock_bytes;
        request->values[RESOURCE_CPU_LATENCY] = wire->cpu_latency_us;
        request->values[RESOURCE_BLOCK_QUEUE] = wire->block_max_sectors_kb;
        request->values[RESOURCE_IRQ] = wire->irq_priority;
}

static const char *device_of(const struct wire_acquire *wire, enum resource_index index) {
        if (index == RESOURCE_IRQ)
                return wire->irq;

        return index == RESOURCE_BLOCK_QUEUE ? wire->block : "";
}

void resource_find(struct broker *broker, const struct thread *thread,
                   const struct wire_acquire *wire, struct request *request,
                   struct resource_wants *ret) {
        struct resource_table *table = &broker->resources;

        ret->cause[0] = '\0';
        for (enum resource_index index = 0; index < _RESOURCE_MAX; index++) {
                const struct resource_query query = {
                        .broker = broker,
                        .thread = thread,
                        .device = device_of(wire, index),
                        .value = request->values[index],
                };

                ret->n_names[index] = 0;
                if (!(request->resources & 1U << index))
                        continue;
                if (!(table->served & 1U << index)) {
                        request->unavailable[index] = REASON_RESOURCE_UNAVAILABLE;
                        continue;
                }
                request->unavailable[index] =
                        resource_kinds[index]->find(&query, ret->names[index], &ret->n_names[index],
                                                    ret->cause, sizeof(ret->cause));
        }
        if (ret->n_names[RESOURCE_IRQ] > 0)
                request->irq_roles = irq_roles_of(broker, wire->irq);
}

const char *resource_cause(const struct broker *broker, enum resource_index index,
                           const struct resource_wants *wants) {
        return broker->resources.served & 1U << index ? wants->cause
                                                      : broker->resources.causes[index];
}

void resource_request_held(const struct lease *lease, struct request *request,
                           struct resource_wants *ret) {
        memset(ret->n_names, 0, sizeof(ret->n_names));
        ret->cause[0] = '\0';

        for (unsigned i = 0; i < lease->n_holds; i++) {
                const struct resource *resource = lease->holds[i]->resource;
                unsigned index = resource->kind->index;

                if (resource->kind->want == 0)
                        continue;
                request->resources |= 1U << index;
                request->values[index] = lease->holds[i]->value;
                /* that it may have this device was decided when it got it, and at each reload */
                request->irq_roles = UINT_MAX;
                ret->names[index][ret->n_names[index]++] = resource->name;
        }
}

static bool has_hold_of(const struct resource *resource, const struct user *user) {
        for (GList *link = resource->holds.head; link; link = link->next)
                if (((const struct hold *) link->data)->lease->user == user)
                        return true;

        return false;
}

/* What locked memory is lent to processes other than @pid. */
static void count_memlock(struct broker *broker, const struct user *user, pid_t pid,
                          struct situation *now) {
        GHashTableIter iter;
        uint64_t inherited;
        gpointer entry;

        g_hash_table_iter_init(&iter, broker->resources.by_name);
        while (g_hash_table_iter_next(&iter, &entry, NULL)) {
                const struct resource *resource = entry;
                uint64_t lent;

                if (resource->kind->index != RESOURCE_MEMLOCK || resource->name.pid == pid)
                        continue;

                lent = (uint64_t) books_strongest(resource);
                now->memlock_total += lent;
                if (has_hold_of(resource, user))
                        now->memlock_held += lent;
        }

        inherited = memlock_inherited(broker->resources.by_name, user->uid);
        now->memlock_held += inherited;
        now->memlock_total += inherited;
}

void resource_situation(struct broker *broker, const struct user *user, pid_t pid,
                        const struct request *request, struct situation *now) {
        if (request->resources & 1U << RESOURCE_MEMLOCK)
                count_memlock(broker, user, pid, now);
        if (request->resources & 1U << RESOURCE_CPU_LATENCY)
                now->on_battery = power_is_battery();
}

static bool holds(const struct lease *lease, enum resource_index index, uint64_t key) {
        for (unsigned i = 0; i < lease->n_holds; i++)
                if (lease->holds[i]->resource->kind->index == index &&
                    lease->holds[i]->resource->name.key == key)
                        return true;

        return false;
}

bool resource_is_raise(const struct lease *lease, const struct request *request,
                       const struct resource_wants *wants) {
        for (enum resource_index index = 0; index < _RESOURCE_MAX; index++) {
                int64_t held, wanted = request->values[index];

                if (!(request->resources & 1U << index))
                        continue;
                for (unsigned i = 0; i < wants->n_names[index]; i++)
                        if (!holds(lease, index, wants->names[index][i].key))
                                return true;
                held = resource_held_value(lease, index, NULL);
                if (held == 0 || (resource_kinds[index]->highest ? wanted > held : wanted < held))
                        return true;
        }

        return false;
}
