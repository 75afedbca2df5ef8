/* SPDX-License-Identifier: MIT */

/*
 * The state file of a predecessor, with any content at all. The first byte says whether a good
 * header is put before the rest, which is hard to guess.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/lease-store.h"
#include "tests/fuzz/broker/fuzz.h"

#define HEADER_SIZE 64
#define SLOT_SIZE (8 + 2 * sizeof(struct lease_record))
#define SLOTS_MAX 200U /* more are only slow */

struct place {
        char dir[64];
        char path[80];
        uint8_t header[HEADER_SIZE];
};

static void remove_place(void);

/* One directory for all rounds, with the header that this boot's broker writes. */
static struct place *get_place(void) {
        static struct place place;
        struct lease_store *store;
        int fd;

        if (place.dir[0] != '\0')
                return &place;

        (void) snprintf(place.dir, sizeof(place.dir), "%s/fuzz-leases-XXXXXX",
                        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        REQUIRE(mkdtemp(place.dir));
        (void) snprintf(place.path, sizeof(place.path), "%s/leases", place.dir);
        REQUIRE(lease_store_open(place.dir, &store) == 0);
        (void) lease_store_close(store);
        fd = open(place.path, O_RDONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && read(fd, place.header, sizeof(place.header)) == sizeof(place.header));
        (void) close(fd);
        REQUIRE(atexit(remove_place) == 0);
        return &place;
}

static void remove_place(void) {
        const struct place *place = get_place();

        (void) unlink(place->path);
        (void) rmdir(place->dir);
}

static void write_file(const struct place *place, const uint8_t *data, size_t size) {
        bool with_header = size > 0 && (data[0] & 1);
        int fd = open(place->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        REQUIRE(fd >= 0);
        if (with_header)
                REQUIRE(write(fd, place->header, sizeof(place->header)) == sizeof(place->header));
        if (size > 1)
                REQUIRE(write(fd, data + 1, size - 1) == (ssize_t) (size - 1));
        if (size > 0 && (data[0] & 2)) {
                /* up to a whole number of slots */
                size_t length = (with_header ? HEADER_SIZE : 0) + size - 1;
                size_t n = length <= HEADER_SIZE
                                   ? 0
                                   : (length - HEADER_SIZE + SLOT_SIZE - 1) / SLOT_SIZE;

                REQUIRE(ftruncate(fd, (off_t) (HEADER_SIZE + n * SLOT_SIZE)) == 0);
        }
        (void) close(fd);
}

/* FNV-1a by words over the state and all from the id on, as a successor of another make would find it. */
static uint32_t sum_of(const struct lease_record *record) {
        uint64_t sum = UINT64_C(14695981039346656037) ^ record->state,
                 words[sizeof(*record) / sizeof(uint64_t)];

        memcpy(words, record, sizeof(words));
        for (size_t i = offsetof(struct lease_record, id) / sizeof(uint64_t); i < sizeof(words) / sizeof(words[0]); i++)
                sum = (sum ^ words[i]) * UINT64_C(1099511628211);
        return (uint32_t) (sum ^ sum >> 32);
}

/* Those that are believed, which are right ones. */
static unsigned count(const struct lease_store *store) {
        unsigned n = 0;

        for (unsigned slot = 0; slot < lease_store_n_slots(store); slot++) {
                const struct lease_record *record = lease_store_get(store, slot);

                if (!record)
                        continue;
                REQUIRE(record->sum == sum_of(record));
                n++;
        }
        return n;
}

/* Takes what is free until it grows, and puts into it what was never there. */
static void use(struct lease_store *store) {
        unsigned n_slots = lease_store_n_slots(store), n_held = count(store), slot;
        struct lease_record record;

        memset(&record, 0x5a, sizeof(record));
        for (unsigned i = n_held; i <= n_slots; i++) {
                REQUIRE(lease_store_take(store, &slot) == 0);
                REQUIRE(!lease_store_get(store, slot));
                lease_store_put(store, slot, &record);
                REQUIRE(lease_store_get(store, slot) &&
                        lease_store_get(store, slot)->uid == 0x5a5a5a5a);
        }
        REQUIRE(lease_store_n_slots(store) > n_slots);
        REQUIRE(count(store) == n_slots + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const struct place *place = get_place();
        struct lease_store *store = NULL;
        unsigned n_slots, n_held;
        int r;

        if (size > HEADER_SIZE + SLOTS_MAX * SLOT_SIZE)
                return -1;

        write_file(place, data, size);
        r = lease_store_open(place->dir, &store);
        REQUIRE(r == 0 || r == -EBADMSG);
        if (r < 0) {
                REQUIRE(!store);
                return 0;
        }

        n_slots = lease_store_n_slots(store);
        n_held = count(store);
        REQUIRE(n_held <= n_slots);
        (void) lease_store_close(store);

        /* what was believed once is believed again */
        REQUIRE(lease_store_open(place->dir, &store) == 0);
        REQUIRE(lease_store_n_slots(store) == n_slots && count(store) == n_held);
        use(store);
        (void) lease_store_close(store);
        return 0;
}
