/* SPDX-License-Identifier: MIT */

/* What the broker tells of itself, its leases and its policy: replies with arrays, page by page. */

#include <stdlib.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/librtgrant/handle.h"

/* A policy that is loaded anew while it is read is read again, as often. */
#define POLICY_READS_MAX 8

/* Reads one page. Returns the size of the record. Errors: -EPERM if the broker refuses. */
static ssize_t call_page(struct rtgrant *handle, enum wire_verb verb, uint64_t flags,
                         uint64_t after, union wire_page *ret) {
        struct wire_list list = {
                .header = { .size = sizeof(list), .verb = (uint16_t) verb },
                .flags = flags,
                .after = after,
        };
        struct call call = CALL_INIT(list, list, ret);
        int r;

        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;
        if (((const struct wire_reply *) ret)->reason != RTGRANT_REASON_NONE)
                return -EPERM;

        return (ssize_t) call.reply_size;
}

/* Returns what @each returned last. */
static int list_page(const union wire_page *page, size_t size, rtgrant_lease_fn each,
                     void *userdata) {
        uint32_t n = page->list.n_leases;
        struct rtgrant_lease lease;
        struct wire_lease wire;
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = wire_element(page, size, offsetof(struct wire_list_reply, leases), n,
                                 page->list.lease_size, i, &wire, sizeof(wire));
                if (r < 0)
                        return r;

                lease_decode(&wire, &lease);
                r = each(&lease, userdata);
        }

        return r;
}

int rtgrant_list(struct rtgrant *handle, bool all, rtgrant_lease_fn each, void *userdata) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        uint64_t after = 0;
        union wire_page page;
        ssize_t size;
        int r;

        if (!each)
                return -EINVAL;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        do {
                size = call_page(handle, WIRE_LIST, all ? WIRE_LIST_ALL : 0, after, &page);
                if (size < 0)
                        return (int) size;

                r = list_page(&page, (size_t) size, each, userdata);
                if (r != 0)
                        return r;

                /* A place that does not advance would go on for ever. */
                if (page.list.next != 0 && page.list.next <= after)
                        return -EPROTO;
                after = page.list.next;
        } while (after != 0);

        return 0;
}

struct policy_copy {
        struct wire_policy_entry *entries; /* owned */
        size_t n_entries;
        uint32_t generation;
};

static void policy_copy_done(struct policy_copy *copy) {
        free(copy->entries);
}

static int policy_copy_add(struct policy_copy *copy, const union wire_page *page, size_t size) {
        uint32_t n = page->policy.n_entries;
        struct wire_policy_entry *entry;
        int r;

        if (n == 0)
                return 0;
        if (n > WIRE_RECORD_MAX)
                return -EPROTO;

        entry = reallocarray(copy->entries, copy->n_entries + n, sizeof(*entry));
        if (!entry)
                return -ENOMEM;
        copy->entries = entry;

        for (uint32_t i = 0; i < n; i++) {
                entry = &copy->entries[copy->n_entries];
                r = wire_element(page, size, offsetof(struct wire_policy_reply, entries), n,
                                 page->policy.entry_size, i, entry, sizeof(*entry));
                if (r < 0)
                        return r;

                WIRE_STRING_END(entry->section);
                WIRE_STRING_END(entry->key);
                WIRE_STRING_END(entry->value);
                WIRE_STRING_END(entry->origin);
                copy->n_entries++;
        }

        return 0;
}

/* Errors: -EAGAIN if the policy changed meanwhile. */
static int policy_copy_read(struct policy_copy *copy, struct rtgrant *handle) {
        uint64_t after = 0;
        union wire_page page;
        ssize_t size;
        int r;

        copy->n_entries = 0;

        do {
                size = call_page(handle, WIRE_POLICY, 0, after, &page);
                if (size < 0)
                        return (int) size;

                if (after != 0 && page.policy.policy_generation != copy->generation)
                        return -EAGAIN;
                copy->generation = page.policy.policy_generation;

                r = policy_copy_add(copy, &page, (size_t) size);
                if (r < 0)
                        return r;

                if (page.policy.next != 0 && page.policy.next <= after)
                        return -EPROTO;
                after = page.policy.next;
        } while (after != 0);

        return 0;
}

int rtgrant_get_policy(struct rtgrant *handle, rtgrant_policy_fn each, void *userdata) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        _cleanup_(policy_copy_done) struct policy_copy copy = {};
        const struct wire_policy_entry *entry;
        int r;

        if (!each)
                return -EINVAL;
        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;

        r = -EAGAIN;
        for (int i = 0; i < POLICY_READS_MAX && r == -EAGAIN; i++)
                r = policy_copy_read(&copy, handle);
        if (r < 0)
                return r;

        for (size_t i = 0; i < copy.n_entries && r == 0; i++) {
                entry = &copy.entries[i];
                r = each(entry->section, entry->key, entry->value, entry->origin, userdata);
        }

        return r;
}

static int status_read(const union wire_page *page, size_t size, struct rtgrant_status *ret) {
        struct wire_offer offer;
        uint32_t n = page->hello.n_offers;
        int r;

        status_decode(&page->hello, ret);

        for (uint32_t i = 0; i < n && i < ELEMENTS(ret->offers); i++) {
                r = wire_element(page, size, offsetof(struct wire_hello_reply, offers), n,
                                 page->hello.offer_size, i, &offer, sizeof(offer));
                if (r < 0)
                        return r;

                offer_decode(&offer, &ret->offers[ret->n_offers++]);
        }

        return 0;
}

static int call_hello(struct rtgrant *handle, uint64_t flags, union wire_page *ret,
                      size_t *ret_size) {
        _cleanup_handle_leave_ struct rtgrant *entered = NULL;
        struct wire_hello hello = {
                .header = { .size = sizeof(hello), .verb = WIRE_HELLO },
                .flags = flags,
        };
        struct call call = CALL_INIT(hello, hello, ret);
        int r;

        r = handle_enter(handle, &entered);
        if (r < 0)
                return r;
        r = handle_call_now(handle, &call);
        if (r < 0)
                return r;

        *ret_size = call.reply_size;
        return ret->hello.reason == RTGRANT_REASON_NONE ? 0 : reason_to_error(ret->hello.reason);
}

int rtgrant_get_status(struct rtgrant *handle, struct rtgrant_status *ret_status) {
        struct rtgrant_status status;
        union wire_page page;
        size_t size;
        int r;

        if (!ret_status)
                return -EINVAL;
        r = public_check_out(ret_status, STATUS_SIZE_FIRST);
        if (r < 0)
                return r;

        r = call_hello(handle, /* flags= */ 0, &page, &size);
        if (r < 0)
                return r;

        r = status_read(&page, size, &status);
        if (r < 0)
                return r;

        public_copy_out(&status, sizeof(status), ret_status);
        return 0;
}

int rtgrant_is_admin(struct rtgrant *handle) {
        union wire_page page;
        size_t size;
        int r;

        r = call_hello(handle, WIRE_HELLO_ADMIN, &page, &size);
        return r < 0 ? r : (page.hello.state & WIRE_STATE_ADMIN) != 0;
}
