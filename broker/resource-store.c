/* SPDX-License-Identifier: MIT */

#include "broker/resource-books.h"

#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/kinds/resources.h"
#include "broker/text.h"

void books_save_hold(struct broker *broker, const struct hold *hold,
                     const struct resource_value *next) {
        const struct resource *resource = hold->resource;
        struct lease_record record = {
                .state = LEASE_RECORD_RESOURCE,
                .uid = hold->lease->uid,
                .resource = {
                        .kind = resource->kind->index,
                        .pid = resource->name.pid,
                        .key = resource->name.key,
                        .value = hold->value,
                        .saved = resource->saved,
                        .set = resource->set,
                        .next = *next,
                },
        };

        memcpy(record.id, hold->lease->id, sizeof(record.id));
        memcpy(record.resource.label, resource->name.label, sizeof(record.resource.label));
        lease_store_put(broker->store, hold->slot, &record);
}

void books_save(struct broker *broker, const struct resource *resource,
                const struct resource_value *next) {
        for (GList *link = resource->holds.head; link; link = link->next)
                books_save_hold(broker, link->data, next);
}

static bool record_is_sound(const struct lease_record_resource *record) {
        return record->kind < _RESOURCE_KINDS_MAX && resource_kinds[record->kind] && record->value > 0 &&
               record->pid >= 0 && memchr(record->label, '\0', sizeof(record->label));
}

/* A resource as a predecessor left it. NULL: out of memory. */
static struct resource *
resource_from_record(struct broker *broker, const struct lease_record_resource *record,
                     uid_t uid, const struct lease *lease) {
        const struct resource_kind *kind = resource_kinds[record->kind];
        struct resource *resource = books_find(broker, kind, record->key);
        struct resource_name name = { .key = record->key, .pid = record->pid };
        struct resource_value now;

        if (resource)
                return resource;

        text_copy(name.label, sizeof(name.label), record->label);
        resource = books_new(broker, kind, &name, uid, lease ? lease->user->uid : uid);
        if (!resource)
                return NULL;

        /* for the descriptors that it opens */
        if (kind->capture(resource, &now) < 0)
                return books_free(broker, resource);
        resource->saved = record->saved;
        resource->set = kind->verify(resource, &record->next) == 1 ? record->next : record->set;
        resource->in_force = true;
        return resource;
}

bool resource_recover(struct broker *broker, unsigned slot, const struct lease_record *record) {
        struct lease *lease = lease_find(&broker->leases, record->id);
        struct resource *resource;
        struct hold *hold;

        /* also without the lease, whose holder ended: then it is put back */
        resource = record_is_sound(&record->resource)
                           ? resource_from_record(broker, &record->resource, record->uid, lease)
                           : NULL;
        hold = resource ? calloc(1, sizeof(*hold)) : NULL;
        if (!hold || !lease || lease->uid != record->uid || lease->n_holds == LEASE_HOLDS_MAX ||
            books_hold(lease, resource)) {
                free(hold);
                lease_store_clear(broker->store, slot);
                return false;
        }

        hold->resource = resource;
        hold->value = record->resource.value;
        hold->slot = slot;
        books_link(lease, hold);
        return true;
}

void resource_recovered(struct broker *broker) {
        GHashTableIter iter;
        gpointer entry;

        g_autoptr(GPtrArray) forsaken = g_ptr_array_new();

        g_hash_table_iter_init(&iter, broker->resources.by_name);
        while (g_hash_table_iter_next(&iter, &entry, NULL))
                if (((const struct resource *) entry)->holds.length == 0)
                        g_ptr_array_add(forsaken, entry);
        for (size_t i = 0; i < forsaken->len; i++) {
                struct resource *resource = forsaken->pdata[i];

                (void) resource->kind->restore(resource);
                (void) books_free(broker, resource);
        }

        g_hash_table_iter_init(&iter, broker->resources.by_name);
        while (g_hash_table_iter_next(&iter, &entry, NULL)) {
                struct resource *resource = entry;

                if (resource->kind->is_volatile)
                        resource->in_force = false;
                if (resource->kind->is_volatile ||
                    resource->kind->verify(resource, &resource->set) == 1)
                        (void) books_settle(broker, resource);
        }
}
