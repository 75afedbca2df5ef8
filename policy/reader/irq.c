/* SPDX-License-Identifier: MIT */

/* The devices whose interrupts a policy speaks of. Their names are looked at, not looked up. */

#include <string.h>

#include "policy/reader/values.h"

#define DEVICE_MAX 63 /* bytes, as on the wire */

static const char *const prefixes[] = { "card:", "pci:", "usb:", "net:", "irq:", "irq/" };

static bool is_device(const char *value) {
        if (strlen(value) > DEVICE_MAX)
                return false;
        for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++)
                if (g_str_has_prefix(value, prefixes[i]))
                        return value[strlen(prefixes[i])] != '\0';
        return false;
}

static bool fault(const struct value_context *context, const char *value, const char *expected) {
        report_fault(context->report, context->at, "%s=%s: %s", context->key->name,
                     excerpt(value, strlen(value)).text, expected);
        return false;
}

bool parse_irq_device(const struct value_context *context, const char *value, void *base) {
        struct irq_rule *irq = base;

        if (value[0] != '\0' && (!is_device(value) || strpbrk(value, " \t")))
                return fault(context, value,
                             "not one of card:N, card:ID, pci:SLOT, usb:BUS-PORT, net:INTERFACE, "
                             "irq:N, irq/N-NAME");
        irq->device = g_string_chunk_insert_const(context->strings, value);
        return true;
}
