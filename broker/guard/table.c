/* SPDX-License-Identifier: MIT */

#include "broker/guard/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/worker.h"

#define MS UINT64_C(1000000)
#define INTERVAL_MIN (10 * MS)
#define INTERVAL_MAX (100 * MS)

int guard_table_init(struct guard_table *table) {
        long n_cpus = sysconf(_SC_NPROCESSORS_ONLN), hz = sysconf(_SC_CLK_TCK);
        int r;

        *table = (struct guard_table) {
                .free = GUARD_NONE,
                .canary = { .wake_fd = -1, .cpu = -1 },
                .limits = { .user_max = 100 },
                .n_cpus = n_cpus > 0 ? (unsigned) n_cpus : 1,
                .tick_ns = 1000 * MS / (uint64_t) (hz > 0 ? hz : 100),
        };

        r = worker_lock_init(&table->lock);
        return r < 0 ? r : canary_start(&table->canary);
}

void guard_table_done(struct guard_table *table) {
        canary_stop(&table->canary);
        for (uint32_t i = 0; i < table->n_slots / GUARD_CHUNK_SLOTS; i++) {
                for (uint32_t j = 0; j < GUARD_CHUNK_SLOTS; j++)
                        (void) close_fd(table->chunks[i][j].fd);
                free(table->chunks[i]);
        }
        free(table->members);
        free(table->member_slots);
        (void) pthread_mutex_destroy(&table->lock);
}

void guard_table_lock(struct guard_table *table) {
        (void) pthread_mutex_lock(&table->lock);
}

void guard_table_unlock(struct guard_table *table) {
        (void) pthread_mutex_unlock(&table->lock);
}

/* Room for a chunk more, in all arrays, before the guard may see any of it. */
static int grow(struct guard_table *table) {
        uint32_t n_slots = table->n_slots, n = n_slots + GUARD_CHUNK_SLOTS;
        struct guard_member *members, *old_members;
        uint32_t *member_slots, *old_slots;
        struct guard_slot *chunk;

        if (n_slots / GUARD_CHUNK_SLOTS >= GUARD_CHUNKS_MAX)
                return -ENOMEM;

        chunk = calloc(GUARD_CHUNK_SLOTS, sizeof(*chunk));
        members = calloc(n, sizeof(*members));
        member_slots = calloc(n, sizeof(*member_slots));
        if (!chunk || !members || !member_slots) {
                free(chunk);
                free(members);
                free(member_slots);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < GUARD_CHUNK_SLOTS; i++) {
                chunk[i].fd = -1;
                chunk[i].next_free = i + 1 < GUARD_CHUNK_SLOTS ? n_slots + i + 1 : GUARD_NONE;
        }

        guard_table_lock(table);
        old_members = table->members;
        old_slots = table->member_slots;
        table->members = members;
        table->member_slots = member_slots;
        table->chunks[n_slots / GUARD_CHUNK_SLOTS] = chunk;
        table->n_slots = n;
        guard_table_unlock(table);

        table->free = n_slots;
        free(old_members);
        free(old_slots);
        return 0;
}

/* Opened now: the guard itself opens nothing. */
static int open_counter(const struct guard_watched *watched, bool *ret_ticks) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", watched->pid,
                        watched->tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        *ret_ticks = false;
        if (fd >= 0)
                return fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", watched->pid, watched->tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        *ret_ticks = true;
        if (fd >= 0)
                return fd;
        return errno == ENOENT ? -ESRCH : -errno;
}

void guard_table_retime(struct guard_table *table) {
        uint64_t interval_ns = INTERVAL_MAX;

        /* the dispatcher alone changes what is read here */
        for (uint32_t i = 0; i < table->n_slots; i++) {
                const struct guard_slot *slot = guard_table_slot(table, i);
                uint64_t shortest = slot->watched.budget.run_max_ns;

                if (!slot->used)
                        continue;
                if (shortest > slot->watched.budget.window_ns)
                        shortest = slot->watched.budget.window_ns;
                if (interval_ns > shortest / 8)
                        interval_ns = shortest / 8;
        }

        table->interval_ns = interval_ns < INTERVAL_MIN ? INTERVAL_MIN : interval_ns;
}

static void retime_for(struct guard_table *table, const struct guard_budget *budget) {
        uint64_t shortest = (budget->run_max_ns < budget->window_ns ? budget->run_max_ns
                                                                    : budget->window_ns) /
                            8;

        if (table->n_watched == 1)
                guard_table_retime(table);
        else if (shortest < table->interval_ns)
                table->interval_ns = shortest < INTERVAL_MIN ? INTERVAL_MIN : shortest;
}

void guard_table_begin(struct guard_slot *slot) {
        guard_account_reset(&slot->account);
        slot->reason = REASON_NONE;
        slot->share = 0;
        slot->quiet = false;
        slot->settled = true;
}

int guard_table_add(struct guard_table *table, const struct guard_watched *watched,
                    uint32_t *ret_id) {
        struct guard_slot *slot;
        uint32_t id;
        bool ticks;
        int fd, r;

        fd = open_counter(watched, &ticks);
        if (fd < 0)
                return fd;
        if (table->free == GUARD_NONE) {
                r = grow(table);
                if (r < 0) {
                        (void) close(fd);
                        return r;
                }
        }

        id = table->free;
        slot = guard_table_slot(table, id);
        table->free = slot->next_free;

        guard_table_lock(table);
        *slot = (struct guard_slot) {
                .used = true,
                .settled = true,
                .ticks = ticks,
                .fd = fd,
                .cpu = -1,
                .ran_on = -1,
                .watched = *watched,
        };
        table->n_watched++;
        guard_table_unlock(table);
        retime_for(table, &watched->budget);

        *ret_id = id;
        return 0;
}

bool guard_table_remove(struct guard_table *table, uint32_t id) {
        struct guard_slot *slot = guard_table_slot(table, id);
        bool demoted;
        int fd;

        guard_table_lock(table);
        demoted = slot->demoted;
        fd = slot->fd;
        *slot = (struct guard_slot) { .fd = -1, .next_free = table->free };
        table->n_watched--;
        guard_table_unlock(table);

        (void) close(fd);
        table->free = id;
        return demoted;
}

uint64_t guard_table_interval(struct guard_table *table) {
        return table->n_watched > 0 ? table->interval_ns : 0;
}

bool guard_table_next(struct guard_table *table, struct guard_notice *ret) {
        uint32_t n_slots = table->n_slots;
        bool found = false;

        guard_table_lock(table);
        for (uint32_t i = 0; i < n_slots && !found; i++) {
                uint32_t id = (table->next_told + i) % n_slots;
                struct guard_slot *slot = guard_table_slot(table, id);

                if (!slot->used)
                        continue;
                if (slot->tell_warning) {
                        slot->tell_warning = false;
                        *ret = slot->warning;
                        found = true;
                } else if (slot->tell_demotion) {
                        slot->tell_demotion = false;
                        *ret = slot->demotion;
                        found = true;
                }
                if (found)
                        table->next_told = id;
        }
        guard_table_unlock(table);
        return found;
}
