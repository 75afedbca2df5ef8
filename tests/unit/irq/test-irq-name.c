/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "irq/name.h"

static const struct row {
        const char *text;
        int result;
        enum irq_name_kind kind;
        unsigned number;
        const char *value;
} rows[] = {
        { "card:0", 0, IRQ_NAME_CARD, 0, "0" },
        { "card:31", 0, IRQ_NAME_CARD, 31, "31" },
        { "card:USB", 0, IRQ_NAME_CARD, 0, "USB" },
        { "card:my-card_2", 0, IRQ_NAME_CARD, 0, "my-card_2" },
        { "pci:0000:00:1b.0", 0, IRQ_NAME_PCI, 0, "0000:00:1b.0" },
        { "pci:00:1B.0", 0, IRQ_NAME_PCI, 0, "0000:00:1b.0" },
        { "pci:10000:e1:00.7", 0, IRQ_NAME_PCI, 0, "10000:e1:00.7" },
        { "usb:1-4", 0, IRQ_NAME_USB, 0, "1-4" },
        { "usb:1-4.2.1", 0, IRQ_NAME_USB, 0, "1-4.2.1" },
        { "net:enp3s0", 0, IRQ_NAME_NET, 0, "enp3s0" },
        { "irq:16", 0, IRQ_NAME_LINE, 16, "16" },
        { "irq/130-enp14s0-TxRx-0", 0, IRQ_NAME_THREAD, 130, "irq/130-enp14s0-TxRx-0" },
        { "", -EINVAL },
        { "card:", -EINVAL },
        { "card", -EINVAL },
        { "0", -EINVAL },
        { "CARD:0", -EINVAL },
        { "card:..", -EINVAL },
        { "card:../../kernel", -EINVAL },
        { "card:a b", -EINVAL },
        { "card:a\x7f", -EINVAL },
        { "pci:", -EINVAL },
        { "pci:00:1b", -EINVAL },
        { "pci:0000:00:1b.0/..", -EINVAL },
        { "pci:0000:00:1b.0x", -EINVAL },
        { "usb:1", -EINVAL },
        { "usb:1-", -EINVAL },
        { "usb:1-4.", -EINVAL },
        { "usb:1-4:1.0", -EINVAL },
        { "usb:usb1", -EINVAL },
        { "net:", -EINVAL },
        { "net:../lo", -EINVAL },
        { "irq:", -EINVAL },
        { "irq:-1", -EINVAL },
        { "irq:16x", -EINVAL },
        { "irq: 16", -EINVAL },
        { "irq:4294967312", -EINVAL },
        { "irq:18446744073709551632", -EINVAL },
        { "irq/16", -EINVAL },
        { "irq/16-", -EINVAL },
        { "irq/-1-snd", -EINVAL },
        { "irq/x-snd", -EINVAL },
        { "net:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL },
};

static void parses(void **state) {
        const struct row *row = *state;
        struct irq_name name = { .number = 77 };

        assert_int_equal(irq_name_parse(row->text, &name), row->result);
        if (row->result < 0) {
                assert_int_equal(name.number, 77); /* written only on success */
                return;
        }
        assert_int_equal(name.kind, row->kind);
        assert_int_equal(name.number, row->number);
        assert_string_equal(name.value, row->value);
}

int main(void) {
        struct CMUnitTest tests[sizeof(rows) / sizeof(rows[0])];

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                tests[i] = (struct CMUnitTest){ .name = rows[i].text[0] != '\0' ? rows[i].text
                                                                                : "empty",
                                                .test_func = parses,
                                                .initial_state = (void *) &rows[i] };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
