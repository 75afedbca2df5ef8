/* SPDX-License-Identifier: MIT */

#include "broker/lease-store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "broker/cleanup.h"

#define STORE_MAGIC "rtgrant\1"
#define STORE_SLOTS_MAX 65536U
#define STORE_GROW 64U

struct store_header {
        char magic[8];
        uint32_t slot_size;
        uint32_t reserved;
        char boot_id[40];               /* ids and start times mean nothing after a reboot */
        uint8_t padding[8];
};

/* Two copies, of which one counts: a writer killed half-way leaves the other one whole. */
struct store_slot {
        uint32_t active;                /* 0: free; else copies[active - 1]; changed by one store */
        uint32_t padding;
        struct lease_record copies[2];
};

struct lease_store {
        int fd;                         /* owned; locked */
        struct store_header *header;    /* the mapping: header, then slots */
        struct store_slot *slots;
        unsigned n_slots;               /* that the file has room for */
        unsigned n_free;
        uint32_t free[STORE_SLOTS_MAX]; /* stack; touched only as far as it is used */
};

static_assert(sizeof(struct store_header) == 64, "as on file");
static_assert(sizeof(struct lease_record) % sizeof(uint64_t) == 0, "summed by words");

#define STORE_BYTES(n) (sizeof(struct store_header) + (size_t) (n) * sizeof(struct store_slot))

static int read_boot_id(char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        ssize_t n;

        fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, buffer, size - 1);
        if (n < 0)
                return -errno;

        buffer[n] = '\0';
        buffer[strcspn(buffer, "\n")] = '\0';
        return 0;
}

/* FNV-1a by words: against damage, not against root. */
static uint32_t record_sum(const struct lease_record *record) {
        const uint8_t *bytes = (const uint8_t *) record;
        uint64_t sum = UINT64_C(14695981039346656037) ^ record->state;

        for (size_t i = offsetof(struct lease_record, id); i < sizeof(*record);
             i += sizeof(uint64_t)) {
                uint64_t word;

                memcpy(&word, bytes + i, sizeof(word));
                sum = (sum ^ word) * UINT64_C(1099511628211);
        }
        return (uint32_t) (sum ^ sum >> 32);
}

static void push_free(struct lease_store *store, unsigned from, unsigned to) {
        for (unsigned slot = to; slot > from; slot--)
                store->free[store->n_free++] = slot - 1;
}

/* Room is allocated before it is touched: a full disk must be an error here and no SIGBUS later. */
static int store_resize(struct lease_store *store, unsigned n_slots) {
        int r;

        r = posix_fallocate(store->fd, 0, (off_t) STORE_BYTES(n_slots));
        if (r != 0)
                return -r;

        store->n_slots = n_slots;
        return 0;
}

static int store_create(struct lease_store *store, const char *boot_id) {
        int r;

        if (ftruncate(store->fd, 0) < 0)
                return -errno;
        r = store_resize(store, STORE_GROW);
        if (r < 0)
                return r;

        *store->header = (struct store_header) { .slot_size = sizeof(struct store_slot) };
        memcpy(store->header->boot_id, boot_id, strlen(boot_id) + 1);
        memcpy(store->header->magic, STORE_MAGIC, sizeof(store->header->magic));
        push_free(store, 0, store->n_slots);
        return 0;
}

static int store_adopt(struct lease_store *store, off_t size) {
        size_t room;

        if ((size_t) size < STORE_BYTES(0) || (size_t) size > STORE_BYTES(STORE_SLOTS_MAX) ||
            memcmp(store->header->magic, STORE_MAGIC, sizeof(store->header->magic)) != 0 ||
            store->header->slot_size != sizeof(struct store_slot))
                return -EBADMSG;

        room = ((size_t) size - STORE_BYTES(0)) / sizeof(struct store_slot);
        if (STORE_BYTES(room) != (size_t) size)
                return -EBADMSG;

        store->n_slots = (unsigned) room;
        for (unsigned slot = store->n_slots; slot > 0; slot--)
                if (!lease_store_get(store, slot - 1))
                        lease_store_clear(store, slot - 1);
        return 0;
}

static int store_load(struct lease_store *store) {
        char boot_id[sizeof(store->header->boot_id)];
        struct stat st;
        int r;

        r = read_boot_id(boot_id, sizeof(boot_id));
        if (r < 0)
                return r;
        if (fstat(store->fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 ||
            st.st_nlink != 1)
                return -EBADMSG;

        if (st.st_size == 0)
                return store_create(store, boot_id);

        r = store_adopt(store, st.st_size);
        if (r < 0)
                return r;
        if (strncmp(store->header->boot_id, boot_id, sizeof(boot_id)) != 0) {
                store->n_free = 0;
                return store_create(store, boot_id);
        }
        return 0;
}

int lease_store_open(const char *dir, struct lease_store **ret) {
        struct lease_store *store;
        char path[4096];
        void *map;
        int r;

        if ((size_t) snprintf(path, sizeof(path), "%s/leases", dir) >= sizeof(path))
                return -ENAMETOOLONG;

        store = calloc(1, sizeof(*store));
        if (!store)
                return -ENOMEM;

        store->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (store->fd < 0) {
                r = errno == ELOOP ? -EBADMSG : -errno;
                goto fail;
        }
        if (flock(store->fd, LOCK_EX | LOCK_NB) < 0) {
                r = errno == EWOULDBLOCK ? -EBUSY : -errno;
                goto fail;
        }

        /* All that it may ever grow to is mapped at once: slots never move. Only what the file has
         * is touched. */
        map = mmap(NULL, STORE_BYTES(STORE_SLOTS_MAX), PROT_READ | PROT_WRITE, MAP_SHARED,
                   store->fd, 0);
        if (map == MAP_FAILED) {
                r = errno == ENODEV || errno == EACCES ? -EBADMSG : -errno;
                goto fail;
        }
        store->header = map;
        store->slots = (struct store_slot *) (store->header + 1);

        r = store_load(store);
        if (r < 0)
                goto fail;

        *ret = store;
        return 0;
fail:
        (void) lease_store_close(store);
        return r;
}

struct lease_store *lease_store_close(struct lease_store *store) {
        if (!store)
                return NULL;

        if (store->header)
                (void) munmap(store->header, STORE_BYTES(STORE_SLOTS_MAX));
        (void) close_fd(store->fd);
        free(store);
        return NULL;
}

unsigned lease_store_n_slots(const struct lease_store *store) {
        return store->n_slots;
}

const struct lease_record *lease_store_get(const struct lease_store *store, unsigned slot) {
        const struct store_slot *from = &store->slots[slot];
        const struct lease_record *record;

        assert(slot < store->n_slots);

        if (from->active != 1 && from->active != 2)
                return NULL;

        record = &from->copies[from->active - 1];
        return record->sum == record_sum(record) ? record : NULL;
}

int lease_store_take(struct lease_store *store, unsigned *ret_slot) {
        int r;

        if (store->n_free == 0) {
                unsigned n = store->n_slots;

                if (n + STORE_GROW > STORE_SLOTS_MAX)
                        return -ENOSPC;
                r = store_resize(store, n + STORE_GROW);
                if (r < 0)
                        return r;
                push_free(store, n, store->n_slots);
        }

        *ret_slot = store->free[--store->n_free];
        return 0;
}

void lease_store_put(struct lease_store *store, unsigned slot, const struct lease_record *record) {
        struct store_slot *to = &store->slots[slot];
        uint32_t other = to->active == 1 ? 2 : 1;

        assert(slot < store->n_slots);

        to->copies[other - 1] = *record;
        to->copies[other - 1].sum = record_sum(record);
        atomic_signal_fence(memory_order_seq_cst);
        *(volatile uint32_t *) &to->active = other;
}

void lease_store_clear(struct lease_store *store, unsigned slot) {
        assert(slot < store->n_slots && store->n_free < STORE_SLOTS_MAX);

        *(volatile uint32_t *) &store->slots[slot].active = 0;
        store->free[store->n_free++] = slot;
}
