/* SPDX-License-Identifier: MIT */

#include "broker/resource-books.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/kinds/resources.h"
#include "broker/text.h"

/* The table: what a kind is not in it for, nobody is given. */
const struct resource_kind *const resource_kinds[_RESOURCE_KINDS_MAX] = {
        [RESOURCE_MEMLOCK] = &resource_memlock,
        [RESOURCE_CPU_LATENCY] = &resource_cpu_latency,
        [RESOURCE_BLOCK_QUEUE] = &resource_block_queue,
        [RESOURCE_IRQ] = &resource_irq,
        [RESOURCE_RTTIME] = &resource_rttime,
};

static guint resource_hash(gconstpointer entry) {
        const struct resource *resource = entry;

        return (guint) (resource->name.key ^ resource->name.key >> 32) * 31U +
               (guint) resource->kind->index;
}

static gboolean resource_equal(gconstpointer a, gconstpointer b) {
        const struct resource *left = a, *right = b;

        return left->kind == right->kind && left->name.key == right->name.key;
}

void resource_table_init(struct resource_table *table) {
        table->by_name = g_hash_table_new(resource_hash, resource_equal);
        for (size_t i = 0; i < _RESOURCE_KINDS_MAX; i++) {
                const struct resource_kind *kind = resource_kinds[i];

                text_copy(table->causes[i], sizeof(table->causes[i]),
                          "this broker was built without it");
                if (!kind)
                        continue;
                if (kind->probe(table->causes[i], sizeof(table->causes[i])))
                        table->served |= 1U << i;
        }
}

void resource_table_log(const struct resource_table *table, struct log *log) {
        for (size_t i = 0; i < _RESOURCE_KINDS_MAX; i++)
                if (resource_kinds[i] && !(table->served & 1U << i))
                        log_write(log, LOG_NOTICE, &(struct log_fields){ .event = "not-served" },
                                  resource_kinds[i]->want != 0 ? "%s cannot be granted here: %s"
                                                               : "%s is not supervised here: %s",
                                  resource_kinds[i]->name, table->causes[i]);
}

void resource_table_done(struct resource_table *table) {
        g_clear_pointer(&table->by_name, g_hash_table_unref);
}

uint32_t resource_kinds_served(const struct resource_table *table) {
        uint32_t served = 0;

        for (size_t i = 0; i < _RESOURCE_KINDS_MAX; i++)
                if (table->served & 1U << i)
                        served |= resource_kinds[i]->want;
        return served;
}

struct resource *books_find(struct broker *broker, const struct resource_kind *kind, uint64_t key) {
        const struct resource wanted = { .kind = kind, .name.key = key };

        return g_hash_table_lookup(broker->resources.by_name, &wanted);
}

struct resource *books_free(struct broker *broker, struct resource *resource) {
        GHashTable *table = broker->resources.by_name;

        (void) g_hash_table_remove(table, resource);
        if (resource->in_force && resource->kind->released)
                resource->kind->released(table, resource);
        (void) close_fd(resource->fd);
        free(resource);
        return NULL;
}

struct resource *books_new(struct broker *broker, const struct resource_kind *kind,
                           const struct resource_name *name, uid_t uid, uid_t quota_uid) {
        struct resource *resource;

        resource = calloc(1, sizeof(*resource));
        if (!resource)
                return NULL;

        resource->broker = broker;
        resource->kind = kind;
        resource->name = *name;
        resource->uid = uid;
        resource->quota_uid = quota_uid;
        resource->fd = -1;
        g_queue_init(&resource->holds);
        (void) g_hash_table_add(broker->resources.by_name, resource);
        return resource;
}

struct hold *books_hold(const struct lease *lease, const struct resource *resource) {
        for (unsigned i = 0; i < lease->n_holds; i++)
                if (lease->holds[i]->resource == resource)
                        return lease->holds[i];

        return NULL;
}

void books_link(struct lease *lease, struct hold *hold) {
        hold->lease = lease;
        hold->in_resource.data = hold;
        lease->holds[lease->n_holds++] = hold;
        g_queue_push_tail_link(&hold->resource->holds, &hold->in_resource);
}

static void unlink_hold(struct hold *hold) {
        struct lease *lease = hold->lease;

        g_queue_unlink(&hold->resource->holds, &hold->in_resource);
        for (unsigned i = 0; i < lease->n_holds; i++)
                if (lease->holds[i] == hold) {
                        lease->holds[i] = lease->holds[--lease->n_holds];
                        return;
                }
}

int64_t books_strongest(const struct resource *resource) {
        const struct hold *hold = resource->holds.head->data;
        int64_t value = hold->value;

        for (GList *link = resource->holds.head->next; link; link = link->next) {
                hold = link->data;
                if (resource->kind->highest ? hold->value > value : hold->value < value)
                        value = hold->value;
        }
        return value;
}

static bool values_equal(const struct resource_value *a, const struct resource_value *b) {
        return memcmp(a, b, sizeof(*a)) == 0;
}

int books_settle(struct broker *broker, struct resource *resource) {
        const struct resource_kind *kind = resource->kind;
        struct resource_value next = {}, before = resource->set;
        bool was_in_force = resource->in_force;
        int r;

        kind->aim(resource, books_strongest(resource), &next);
        if (was_in_force && values_equal(&next, &before) && kind->verify(resource, &next) == 1) {
                books_save(broker, resource, &next);
                return 0;
        }

        books_save(broker, resource, &next);
        r = kind->apply(resource, &next);
        if (r >= 0)
                r = kind->verify(resource, &next) == 1 ? 0 : -EILSEQ;
        if (r >= 0) {
                resource->set = next;
                resource->in_force = true;
        } else if (r == -EILSEQ && was_in_force) {
                (void) kind->apply(resource, &before);
        } else if (r == -EILSEQ) {
                resource->set = next;
                (void) kind->restore(resource);
                resource->set = before;
        }
        books_save(broker, resource, &resource->set);
        return r;
}

/* Ends a hold; the last one restores what was there. */
static void drop_hold(struct broker *broker, struct hold *hold) {
        struct resource *resource = hold->resource;

        unlink_hold(hold);
        if (resource->holds.length > 0) {
                /* at no moment do records of a resource say different things of it */
                lease_store_clear(broker->store, hold->slot);
                /* what others made of it meanwhile is theirs */
                if (resource->kind->verify(resource, &resource->set) == 1)
                        (void) books_settle(broker, resource);
        } else {
                if (resource->in_force)
                        (void) resource->kind->restore(resource);
                (void) books_free(broker, resource);
                /* only now: what the last one leaves undone, a successor still has to do */
                lease_store_clear(broker->store, hold->slot);
        }
        free(hold);
}

static struct hold *new_hold(struct broker *broker, struct lease *lease, struct resource *resource,
                             int64_t value) {
        struct hold *hold;

        if (lease->n_holds == LEASE_HOLDS_MAX)
                return NULL;
        hold = calloc(1, sizeof(*hold));
        if (!hold)
                return NULL;
        if (lease_store_take(broker->store, &hold->slot) < 0) {
                free(hold);
                return NULL;
        }

        hold->resource = resource;
        hold->value = value;
        books_link(lease, hold);
        return hold;
}

static enum reason reason_of(const struct resource *resource, int error, char *cause, size_t size) {
        switch (error) {
        case -EILSEQ:
                return REASON_KERNEL_MISMATCH;
        case -ESRCH:
                return REASON_NO_SUCH_THREAD;
        case -ENODEV:
        case -ENOENT:
                return REASON_NO_SUCH_DEVICE;
        case -ENOMEM:
        case -EMFILE:
        case -ENFILE:
                return REASON_RESOURCES;
        default:
                (void) snprintf(cause, size, "%s: %s", resource->kind->name, strerror(-error));
                return REASON_KERNEL_OTHER;
        }
}

/* One resource for one lease: new, or with another value. */
static enum reason take_hold(struct broker *broker, struct lease *lease,
                             const struct resource_kind *kind, const struct resource_name *name,
                             int64_t value, struct resource_undo *undo, char *cause, size_t size) {
        struct resource *resource = books_find(broker, kind, name->key);
        struct hold *hold = resource ? books_hold(lease, resource) : NULL;
        enum reason reason;
        int64_t before = 0;
        int r = 0;

        if (!resource) {
                resource = books_new(broker, kind, name, lease->uid, lease->user->uid);
                if (!resource)
                        return REASON_RESOURCES;
                r = kind->capture(resource, &resource->saved);
                if (r < 0) {
                        reason = reason_of(resource, r, cause, size);
                        (void) books_free(broker, resource);
                        return reason;
                }
        }
        if (hold) {
                before = hold->value;
                hold->value = value;
        } else {
                hold = new_hold(broker, lease, resource, value);
                if (!hold) {
                        if (resource->holds.length == 0)
                                (void) books_free(broker, resource);
                        return REASON_RESOURCES;
                }
        }

        r = books_settle(broker, resource);
        if (r >= 0) {
                undo->steps[undo->n_steps].hold = hold;
                undo->steps[undo->n_steps++].value = before;
                return REASON_NONE;
        }

        reason = reason_of(resource, r, cause, size);
        if (before != 0) {
                hold->value = before;
                books_save_hold(broker, hold, &resource->set);
        } else {
                drop_hold(broker, hold);
        }
        return reason;
}

static bool is_named(const struct resource_wants *wants, const struct resource *resource) {
        enum resource_index index = resource->kind->index;

        for (unsigned i = 0; i < wants->n_names[index]; i++)
                if (wants->names[index][i].key == resource->name.key)
                        return true;

        return false;
}

void resource_finish(struct broker *broker, struct lease *lease, const struct resource_wants *wants,
                     unsigned resources) {
        for (unsigned i = lease->n_holds; i-- > 0;) {
                struct hold *hold = lease->holds[i];

                if (resources & 1U << hold->resource->kind->index &&
                    !is_named(wants, hold->resource))
                        drop_hold(broker, hold);
        }
}

enum reason resource_apply(struct broker *broker, struct lease *lease,
                           const struct resource_wants *wants, const struct decision *decision,
                           struct resource_undo *ret_undo, char *cause, size_t size) {
        ret_undo->n_steps = 0;

        for (enum resource_index index = 0; index < _RESOURCE_MAX; index++) {
                if (!(decision->resources & 1U << index))
                        continue;

                for (unsigned i = 0; i < wants->n_names[index]; i++) {
                        enum reason reason;

                        reason = take_hold(broker, lease, resource_kinds[index],
                                           &wants->names[index][i], decision->values[index],
                                           ret_undo, cause, size);
                        if (reason != REASON_NONE) {
                                resource_undo(broker, ret_undo);
                                return reason;
                        }
                }
        }

        return REASON_NONE;
}

void resource_undo(struct broker *broker, struct resource_undo *undo) {
        while (undo->n_steps > 0) {
                struct hold *hold = undo->steps[--undo->n_steps].hold;
                int64_t value = undo->steps[undo->n_steps].value;

                if (value == 0) {
                        drop_hold(broker, hold);
                        continue;
                }
                hold->value = value;
                (void) books_settle(broker, hold->resource);
        }
}

struct resource *resource_lookup(struct broker *broker, unsigned index, uint64_t key) {
        return books_find(broker, resource_kinds[index], key);
}

static struct hold *hold_of(const struct lease *lease, unsigned index) {
        for (unsigned i = 0; i < lease->n_holds; i++)
                if (lease->holds[i]->resource->kind->index == index)
                        return lease->holds[i];

        return NULL;
}

struct resource *resource_of(const struct lease *lease, unsigned index) {
        const struct hold *hold = hold_of(lease, index);

        return hold ? hold->resource : NULL;
}

enum reason resource_attach(struct broker *broker, struct lease *lease, unsigned index,
                            const struct resource_name *name, int64_t value, char *cause,
                            size_t size) {
        struct resource_undo undo = {};

        return take_hold(broker, lease, resource_kinds[index], name, value, &undo, cause, size);
}

void resource_detach(struct broker *broker, struct lease *lease, unsigned index) {
        struct hold *hold = hold_of(lease, index);

        if (hold)
                drop_hold(broker, hold);
}

void resource_release_all(struct broker *broker, struct lease *lease) {
        while (lease->n_holds > 0)
                drop_hold(broker, lease->holds[lease->n_holds - 1]);
}

void resource_role_changed(struct broker *broker, const struct lease *lease) {
        for (unsigned i = 0; i < lease->n_holds; i++) {
                struct resource *resource = lease->holds[i]->resource;
                struct resource_value next = {};

                if (!resource->kind->follows_role)
                        continue;
                resource->kind->aim(resource, books_strongest(resource), &next);
                if (!values_equal(&next, &resource->set))
                        (void) books_settle(broker, resource);
        }
}

void resource_explain(const struct lease *lease, char *text, size_t size) {
        text[0] = '\0';
        for (unsigned i = 0; i < lease->n_holds && text[0] == '\0'; i++) {
                const struct resource *resource = lease->holds[i]->resource;

                if (resource->kind->explain)
                        resource->kind->explain(resource, text, size);
        }
}

bool resource_fit(struct broker *broker, struct lease *lease, const struct role *role) {
        bool lowered = false;

        for (unsigned i = lease->n_holds; i-- > 0;) {
                struct hold *hold = lease->holds[i];
                const struct resource_kind *kind = hold->resource->kind;
                const struct resource_band *band;
                int64_t limit;

                if (kind->want == 0)
                        continue;
                band = &role->resources[kind->index];
                limit = kind->highest ? band->high : band->low;
                if (kind->index == RESOURCE_IRQ && band->given &&
                    !irq_role_names(role, hold->resource)) {
                        lowered = true;
                        drop_hold(broker, hold);
                        continue;
                }
                if (band->given && (kind->highest ? hold->value <= limit : hold->value >= limit))
                        continue;

                lowered = true;
                if (!band->given) {
                        drop_hold(broker, hold);
                        continue;
                }
                hold->value = limit;
                (void) books_settle(broker, hold->resource);
        }
        resource_role_changed(broker, lease);

        return lowered;
}

int resource_in_force(const struct lease *lease) {
        for (unsigned i = 0; i < lease->n_holds; i++) {
                struct resource *resource = lease->holds[i]->resource;

                if (resource->kind->want != 0 &&
                    resource->kind->verify(resource, &resource->set) == 0)
                        return 0;
        }

        return 1;
}

uint32_t resource_held(const struct lease *lease) {
        uint32_t held = 0;

        for (unsigned i = 0; i < lease->n_holds; i++)
                held |= lease->holds[i]->resource->kind->want;
        return held;
}

int64_t resource_held_value(const struct lease *lease, enum resource_index index,
                            const char **ret_label) {
        if (ret_label)
                *ret_label = "";

        for (unsigned i = 0; i < lease->n_holds; i++) {
                const struct hold *hold = lease->holds[i];

                if (hold->resource->kind->index != index)
                        continue;
                if (ret_label)
                        *ret_label = hold->resource->name.label;
                return hold->value;
        }

        return 0;
}
