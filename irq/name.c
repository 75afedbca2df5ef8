/* SPDX-License-Identifier: MIT */

#include "irq/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "irq/files.h"

#define NUMBER_MAX 1000000U /* more cards or lines than any kernel has */

static const struct {
        const char *prefix;
        enum irq_name_kind kind;
} prefixes[] = {
        { "card:", IRQ_NAME_CARD }, { "pci:", IRQ_NAME_PCI },  { "usb:", IRQ_NAME_USB },
        { "net:", IRQ_NAME_NET },   { "irq:", IRQ_NAME_LINE }, { "irq/", IRQ_NAME_THREAD },
};

/* Returns what follows the number, or NULL if there is none or it is too large. */
static const char *parse_number(const char *text, unsigned *ret) {
        unsigned number = 0;
        const char *p = text;

        for (; *p >= '0' && *p <= '9'; p++) {
                number = number * 10 + (unsigned) (*p - '0');
                if (number > NUMBER_MAX)
                        return NULL;
        }
        if (p == text)
                return NULL;

        *ret = number;
        return p;
}

/* It becomes part of a path: no slash, and no way up. */
static bool is_file_name(const char *value) {
        if (value[0] == '\0' || value[0] == '.')
                return false;
        for (const char *p = value; *p != '\0'; p++)
                if (*p == '/' || (unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
                        return false;
        return true;
}

static int parse_pci(struct irq_name *name) {
        unsigned domain = 0, bus, slot, function;
        char end;

        if (sscanf(name->value, "%8x:%2x:%2x.%1x%c", &domain, &bus, &slot, &function, &end) != 4) {
                domain = 0;
                if (sscanf(name->value, "%2x:%2x.%1x%c", &bus, &slot, &function, &end) != 3)
                        return -EINVAL;
        }
        (void) snprintf(name->value, sizeof(name->value), "%04x:%02x:%02x.%x", domain, bus, slot,
                        function);
        return 0;
}

/* BUS-PORT[.PORT…]: a device, not one of its interfaces (1-4:1.0) */
static bool is_usb_device(const char *value) {
        unsigned number;
        const char *p = parse_number(value, &number);

        if (!p || *p != '-')
                return false;
        do {
                p = parse_number(p + 1, &number);
        } while (p && *p == '.');
        return p && *p == '\0';
}

static int parse_value(struct irq_name *name) {
        const char *end;

        switch (name->kind) {
        case IRQ_NAME_CARD:
                end = parse_number(name->value, &name->number);
                name->by_number = end && *end == '\0';
                return is_file_name(name->value) ? 0 : -EINVAL;
        case IRQ_NAME_PCI:
                return parse_pci(name);
        case IRQ_NAME_USB:
                return is_usb_device(name->value) ? 0 : -EINVAL;
        case IRQ_NAME_NET:
                return is_file_name(name->value) ? 0 : -EINVAL;
        case IRQ_NAME_LINE:
                end = parse_number(name->value, &name->number);
                name->by_number = true;
                return end && *end == '\0' ? 0 : -EINVAL;
        case IRQ_NAME_THREAD:
                end = parse_number(name->value + strlen("irq/"), &name->number);
                name->by_number = true;
                return end && end[0] == '-' && end[1] != '\0' ? 0 : -EINVAL;
        }
        return -EINVAL;
}

int irq_name_parse(const char *text, struct irq_name *ret) {
        struct irq_name name = {};
        int r;

        if (strlen(text) >= IRQ_NAME_SIZE)
                return -EINVAL;

        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
                size_t length = strlen(prefixes[i].prefix);

                if (strncmp(text, prefixes[i].prefix, length) != 0)
                        continue;
                name.kind = prefixes[i].kind;
                irq_copy(name.value, sizeof(name.value),
                         name.kind == IRQ_NAME_THREAD ? text : text + length);
                r = parse_value(&name);
                if (r >= 0)
                        *ret = name;
                return r;
        }
        return -EINVAL;
}
