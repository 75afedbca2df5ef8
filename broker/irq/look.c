/* SPDX-License-Identifier: MIT */

#include "broker/irq/look.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_US   (200U * 1000)
#define FOUND_MAX 32U
#define CARDS_MAX 64U

static uint64_t now_us(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

void irq_look_init(struct irq_look *look, const struct irq_roots *roots) {
        *look = (struct irq_look) {
                .roots = roots,
                .found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        };
}

void irq_look_done(struct irq_look *look) {
        irq_look_forget(look);
        g_hash_table_unref(look->found);
}

void irq_look_forget(struct irq_look *look) {
        irq_snapshot_done(&look->snapshot);
        g_hash_table_remove_all(look->found);
        look->taken_us = 0;
}

int irq_look_take(struct irq_look *look) {
        uint64_t now = now_us();
        int r;

        if (look->taken_us != 0 && now - look->taken_us < LOOK_US)
                return 0;
        irq_look_forget(look);
        r = irq_snapshot_take(look->roots, &look->snapshot);
        if (r >= 0)
                look->taken_us = now;
        return r;
}

void irq_look_resolve(struct irq_look *look, const char *device, struct irq_resolution *ret) {
        const struct irq_resolution *found = g_hash_table_lookup(look->found, device);

        if (found) {
                *ret = *found;
                return;
        }
        irq_resolve(look->roots, &look->snapshot, device, ret);
        if (g_hash_table_size(look->found) < FOUND_MAX)
                (void) g_hash_table_insert(look->found, g_strdup(device),
                                           g_memdup2(ret, sizeof(*ret)));
}

uint64_t irq_look_count(const struct irq_look *look, unsigned number) {
        const struct irq_line *line = irq_snapshot_find(&look->snapshot, number);

        return line ? line->count : 0;
}

static bool is_among(const struct irq_thread *thread, const struct irq_resolution *resolution) {
        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (resolution->threads[i].task.tid == thread->task.tid)
                        return true;
        return false;
}

/* Strikes out those threads that are also @device's. */
static void strike(struct irq_look *look, const char *device, struct irq_resolution *wanted) {
        struct irq_resolution allowed;
        unsigned n = 0;

        irq_look_resolve(look, device, &allowed);
        for (unsigned i = 0; i < wanted->n_threads; i++)
                if (!is_among(&wanted->threads[i], &allowed))
                        wanted->threads[n++] = wanted->threads[i];
        wanted->n_threads = n;
}

static void strike_sound(struct irq_look *look, struct irq_resolution *wanted) {
        unsigned cards[CARDS_MAX], n = irq_list_cards(look->roots, cards, CARDS_MAX);
        char name[IRQ_NAME_SIZE];

        for (unsigned i = 0; i < n && wanted->n_threads > 0; i++) {
                (void) snprintf(name, sizeof(name), "card:%u", cards[i]);
                strike(look, name, wanted);
        }
}

bool irq_look_is_within(struct irq_look *look, const char *device, const char *const *list,
                        size_t n_list) {
        struct irq_resolution wanted;

        irq_look_resolve(look, device, &wanted);
        if (wanted.status != IRQ_RESOLVED)
                return false;

        for (size_t i = 0; i < n_list && wanted.n_threads > 0; i++)
                if (strcmp(list[i], "sound") == 0)
                        strike_sound(look, &wanted);
                else
                        strike(look, list[i], &wanted);
        return wanted.n_threads == 0;
}
