/* SPDX-License-Identifier: MIT */

/* The devices whose interrupts a policy speaks of. Their names are looked at, not looked up. */

#include <string.h>

#include "policy/reader/values.h"

#define DEVICE_MAX  63 /* bytes, as on the wire */
#define DEVICES_MAX 16
#define DEVICE_FORMS \
        "one of card:N, card:ID, pci:SLOT, usb:BUS-PORT, net:INTERFACE, irq:N, irq/N-NAME"

static const char *const prefixes[] = { "card:", "pci:", "usb:", "net:", "irq:", "irq/" };

static bool is_device(const char *value) {
        if (strlen(value) > DEVICE_MAX)
                return false;
        for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++)
                if (g_str_has_prefix(value, prefixes[i]))
                        return value[strlen(prefixes[i])] != '\0';
        return false;
}

bool parse_irq_device(const struct value_context *context, const char *value, void *base) {
        struct irq_rule *irq = base;

        if (value[0] != '\0' && (!is_device(value) || strpbrk(value, " \t")))
                return value_fault(context, value, "not " DEVICE_FORMS);
        irq->device = g_string_chunk_insert_const(context->strings, value);
        return true;
}

bool parse_irq_priority(const struct value_context *context, const char *value, void *base) {
        g_auto(GStrv) ends = g_strsplit(value, "-", 2);
        struct role *role = base;
        guint64 low = 0, high = 0;

        if (strcmp(value, "none") != 0 &&
            (!ends[0] ||
             !g_ascii_string_to_unsigned(ends[0], 10, 1, POLICY_PRIORITY_CEILING, &low, NULL) ||
             !g_ascii_string_to_unsigned(ends[1] ? ends[1] : ends[0], 10, 1,
                                         POLICY_PRIORITY_CEILING, &high, NULL) ||
             low > high))
                return value_fault(
                        context, value,
                        "not LOW-HIGH, LOW <= HIGH, nor one number, from 1 to " G_STRINGIFY(
                                POLICY_PRIORITY_CEILING) ", nor none");

        role->resources[RESOURCE_IRQ] = (struct resource_band){
                .given = high > 0,
                .low = (int64_t) low,
                .high = (int64_t) high,
        };
        return true;
}

bool parse_irq_devices(const struct value_context *context, const char *value, void *base) {
        g_auto(GStrv) words = g_strsplit_set(value, " \t", -1);
        g_autoptr(GPtrArray) devices = g_ptr_array_new();
        struct role *role = base;
        char **array;

        for (char **word = words; *word; word++) {
                if ((*word)[0] == '\0')
                        continue;
                if (strcmp(*word, "sound") != 0 && !is_device(*word))
                        return value_fault(context, *word, "neither sound nor " DEVICE_FORMS);
                g_ptr_array_add(devices, g_string_chunk_insert_const(context->strings, *word));
        }
        if (devices->len > DEVICES_MAX)
                return value_fault(context, value,
                                   "more than " G_STRINGIFY(DEVICES_MAX) " devices");

        array = g_new0(char *, devices->len + 1);
        for (guint i = 0; i < devices->len; i++)
                array[i] = devices->pdata[i];
        g_ptr_array_add(context->blocks, array);
        role->irq_devices = (const char *const *) array;
        role->n_irq_devices = devices->len;
        return true;
}

bool parse_cpus(const struct value_context *context, const char *value, void *base) {
        struct cpus cpus = {};

        if (strcmp(value, "none") != 0 &&
            (cpus_parse(value, &cpus) < 0 || cpus_is_empty(&cpus)))
                return value_fault(context, value,
                                   "not CPUs as in 0-2,5, from 0 to 1023, nor none");

        *(struct cpus *) (void *) ((char *) base + context->key->offset) = cpus;
        return true;
}
