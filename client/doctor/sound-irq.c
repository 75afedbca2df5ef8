/* SPDX-License-Identifier: MIT */

#include "client/doctor/sound-irq.h"

#include <limits.h>
#include <stdio.h>

#include "client/cli/text.h"
#include "irq/resolve.h"

#define CARDS_MAX 32

struct sharers {
        const struct irq_device *device;
        const struct irq_line *line;
        char *buffer;
        size_t size;
        size_t length;
};

static int take_action(const char *action, void *userdata) {
        struct sharers *sharers = userdata;
        char printable[128];

        if (irq_is_handler_of(sharers->device, sharers->line, action) ||
            sharers->length >= sharers->size)
                return 0;
        text_printable(printable, sizeof(printable), action);
        sharers->length += (size_t) snprintf(sharers->buffer + sharers->length,
                                             sharers->size - sharers->length, "%s%s",
                                             sharers->length > 0 ? ", " : "", printable);
        return 0;
}

static int priority_of(const struct irq_resolution *resolution, unsigned line) {
        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (resolution->threads[i].line == line)
                        return resolution->threads[i].task.priority;
        return 0;
}

static void look_at_card(const struct irq_roots *roots, const struct irq_snapshot *snapshot,
                         unsigned card, sound_irq_fn each, void *userdata) {
        struct irq_resolution resolution;
        struct sound_irq irq;
        char name[IRQ_NAME_SIZE], id[64];

        (void) snprintf(name, sizeof(name), "card:%u", card);
        irq_resolve(roots, snapshot, name, &resolution);
        if (resolution.status == IRQ_BAD_NAME || resolution.status == IRQ_NO_DEVICE)
                return;

        text_printable(id, sizeof(id), resolution.device.card_id);
        for (unsigned i = 0; i < resolution.device.n_lines; i++) {
                const struct irq_line *line =
                        irq_snapshot_find(snapshot, resolution.device.lines[i]);
                struct sharers sharers = { .device = &resolution.device,
                                           .line = line,
                                           .buffer = irq.sharers,
                                           .size = sizeof(irq.sharers) };

                if (!line)
                        continue;
                irq = (struct sound_irq){
                        .number = (int) line->number,
                        .priority = priority_of(&resolution, line->number),
                };
                (void) snprintf(irq.card, sizeof(irq.card), "card %u %.40s", card, id);
                (void) irq_line_for_each_action(line, take_action, &sharers);
                each(&irq, userdata);
        }
}

void sound_irq_each(const struct machine *machine, sound_irq_fn each, void *userdata) {
        char sys[PATH_MAX], proc[PATH_MAX];
        struct irq_roots roots = { .sys = sys, .proc = proc };
        struct irq_snapshot snapshot;
        unsigned cards[CARDS_MAX], n;

        if (snprintf(sys, sizeof(sys), "%s/sys", machine->root) >= PATH_MAX ||
            snprintf(proc, sizeof(proc), "%s/proc", machine->root) >= PATH_MAX ||
            irq_snapshot_take(&roots, &snapshot) < 0)
                return;

        n = irq_list_cards(&roots, cards, CARDS_MAX);
        for (unsigned i = 0; i < n; i++)
                look_at_card(&roots, &snapshot, cards[i], each, userdata);
        irq_snapshot_done(&snapshot);
}
