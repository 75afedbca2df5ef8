/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_DOCTOR_SOUND_IRQ_H
#define RTGRANT_CLIENT_DOCTOR_SOUND_IRQ_H

/* The interrupts of sound cards: of a USB card those of its controller. */

#include "client/doctor/machine.h"

struct sound_irq {
        char card[64]; /* "card0 (PCH)"; printable */
        int number;
        int priority;      /* of its thread; 0 if it has none */
        char sharers[256]; /* other devices on the same interrupt; "" if it is alone */
};

typedef void (*sound_irq_fn)(const struct sound_irq *irq, void *userdata);

void sound_irq_each(const struct machine *machine, sound_irq_fn each, void *userdata);

#endif
