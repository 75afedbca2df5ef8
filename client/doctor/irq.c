/* SPDX-License-Identifier: MIT */

/* Who else is on the sound card's interrupt. */

#include <stdio.h>
#include <string.h>

#include "client/cleanup.h"
#include "client/doctor/doctor.h"
#include "client/doctor/sound-irq.h"

struct sharing {
        unsigned n; /* interrupts of sound cards */
        char text[384];
        size_t length;
};

static void take_irq(const struct sound_irq *irq, void *userdata) {
        struct sharing *sharing = userdata;

        sharing->n++;
        if (irq->sharers[0] == '\0' || sharing->length >= sizeof(sharing->text))
                return;
        sharing->length += (size_t) snprintf(
                sharing->text + sharing->length, sizeof(sharing->text) - sharing->length,
                "%sIRQ %d of %s is shared with %s", sharing->length > 0 ? "; " : "", irq->number,
                irq->card, irq->sharers);
}

static void run_irq_sharing(const struct machine *machine, struct finding *ret) {
        struct sharing sharing = {};

        sound_irq_each(machine, take_irq, &sharing);
        if (sharing.n == 0) {
                finding_say(ret, HEALTH_UNKNOWN,
                            "no sound card has an interrupt that could be found");
                return;
        }
        if (sharing.text[0] == '\0') {
                finding_say(ret, HEALTH_FINE, "no sound card shares its interrupt");
                return;
        }
        finding_say(ret, HEALTH_WARNING, "%s", sharing.text);
        finding_mend(
                ret,
                "plug a USB card into a port of another controller: rtgrantctl irq shows which",
                "another slot, or the other device switched off in the firmware; with threadirqs "
                "each has a thread of its own");
}

const struct check check_irq_sharing = {
        .id = "irq-sharing",
        .title = "Shared interrupts",
        .why = "The sound card's interrupt waits until the handlers of all others on it have run.",
        .run = run_irq_sharing,
};

static void run_irqbalance(const struct machine *machine, struct finding *ret) {
        static const char *const names[] = { "irqbalance", NULL };

        if (machine_find_process(machine, names, NULL, 0) == 0) {
                finding_say(ret, HEALTH_FINE, "irqbalance does not run");
                return;
        }
        finding_say(ret, HEALTH_NOTE, "irqbalance moves interrupts between CPUs while sound plays");
        finding_mend(ret, "systemctl stop irqbalance",
                     "IRQBALANCE_ARGS=--banirq=N in /etc/default/irqbalance for the sound card's");
}

const struct check check_irqbalance = {
        .id = "irqbalance",
        .title = "Moving interrupts",
        .why = "The thread of an interrupt follows it to a CPU where the audio thread runs, and "
               "waits or preempts.",
        .run = run_irqbalance,
};
