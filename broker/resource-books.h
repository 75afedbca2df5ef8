/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_RESOURCE_BOOKS_H
#define RTGRANT_BROKER_RESOURCE_BOOKS_H

/*
 * What the files of resources share: resource.c keeps the books and puts them in force,
 * resource-request.c reads them for requests, resource-store.c has their copy on file.
 */

#include "broker/resource.h"

/* The table, in resource.c: NULL where this broker was built without a kind. */
extern const struct resource_kind *const resource_kinds[_RESOURCE_KINDS_MAX];

/* NULL: nobody holds it. */
struct resource *books_find(struct broker *broker, const struct resource_kind *kind, uint64_t key);

/* One that nobody holds yet, with nothing captured. NULL: out of memory. */
struct resource *books_new(struct broker *broker, const struct resource_kind *kind,
                           const struct resource_name *name, uid_t uid, uid_t quota_uid);

/* Restores nothing. Returns NULL. */
struct resource *books_free(struct broker *broker, struct resource *resource);

/* The lease's hold of it; NULL if none. */
struct hold *books_hold(const struct lease *lease, const struct resource *resource);

/* Enters @hold, whose resource is set, for the lease, which has room. */
void books_link(struct lease *lease, struct hold *hold);

/* The value that counts, of those who hold it; there is one. */
int64_t books_strongest(const struct resource *resource);

/* Puts in force what those who hold it want, if that is not so. Errors: kernel; -EILSEQ. */
int books_settle(struct broker *broker, struct resource *resource);

/* Writes a hold to its slot, or all of a resource; @next is what is about to be set. */
void books_save_hold(struct broker *broker, const struct hold *hold,
                     const struct resource_value *next);
void books_save(struct broker *broker, const struct resource *resource,
                const struct resource_value *next);

#endif
