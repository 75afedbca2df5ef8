/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "irq/resolve.h"
#include "tests/tools/irq-tree.h"

/* ---- one name on one machine ---- */

static const struct row {
        const char *title;
        const char *machine;
        const char *name;
        enum irq_status status;
        const char *threads; /* all of them, in order of line and number */
} rows[] = {
        { "J01 first of four", "four-cards", "card:0", IRQ_RESOLVED, "irq/31-snd_hda_intel:card0" },
        { "J01 usb behind bridges and a hub", "four-cards", "card:1", IRQ_RESOLVED,
          "irq/40-xhci_hcd" },
        { "J01 usb under another root", "four-cards", "card:2", IRQ_RESOLVED, "irq/41-xhci_hcd" },
        { "J01 last of four", "four-cards", "card:3", IRQ_RESOLVED, "irq/32-snd_hda_intel:card3" },
        { "by id", "four-cards", "card:U192k", IRQ_RESOLVED, "irq/41-xhci_hcd" },
        { "id is whole", "four-cards", "card:U192", IRQ_NO_DEVICE, "" },
        { "by place on usb", "four-cards", "usb:3-2.4", IRQ_RESOLVED, "irq/40-xhci_hcd" },
        { "by slot", "four-cards", "pci:00:03.0", IRQ_RESOLVED, "irq/32-snd_hda_intel:card3" },
        { "controller by slot", "four-cards", "pci:0000:81:00.0", IRQ_RESOLVED, "irq/41-xhci_hcd" },
        { "no such card", "four-cards", "card:4", IRQ_NO_DEVICE, "" },
        { "no such slot", "four-cards", "pci:0000:00:1d.0", IRQ_NO_DEVICE, "" },
        { "no such line", "four-cards", "irq:99", IRQ_NO_DEVICE, "" },
        { "not a name", "four-cards", "sound", IRQ_BAD_NAME, "" },
        { "device without a handled line", "four-cards", "pci:0000:80:01.0", IRQ_NO_LINE, "" },
        { "J02 the one of 25 that fires", "many-vectors", "card:0", IRQ_RESOLVED,
          "irq/126-xhci_hcd" },
        { "J02 all of a controller that fire", "many-vectors", "card:Microphone", IRQ_RESOLVED,
          "irq/112-xhci_hcd irq/113-xhci_hcd irq/114-xhci_hcd irq/115-xhci_hcd irq/116-xhci_hcd" },
        { "J03 16 is not 162 or 116", "shared", "irq:16", IRQ_RESOLVED,
          "irq/16-i801_smbus irq/16-snd_hda_intel:card0 irq/16-s-snd_hda_intel:card0 "
          "irq/16-s-i801_smbus irq/16-ehci_hcd:usb1" },
        { "J08 a handler of a shared line, both halves", "shared", "card:0", IRQ_RESOLVED,
          "irq/16-snd_hda_intel:card0 irq/16-s-snd_hda_intel:card0" },
        { "J08 another of the same line", "shared", "card:US122", IRQ_RESOLVED,
          "irq/16-ehci_hcd:usb1" },
        { "J08 and the third", "shared", "pci:0000:00:1f.3", IRQ_RESOLVED,
          "irq/16-i801_smbus irq/16-s-i801_smbus" },
        { "J06 not threaded", "unthreaded", "card:0", IRQ_NOT_FORCED, "" },
        { "J07 though others are", "unthreaded", "irq:9", IRQ_RESOLVED, "irq/9-acpi" },
        { "may not be threaded", "unthreadable", "card:0", IRQ_NOT_THREADED, "" },
        { "J10 dash and underscore", "names", "card:my-card_2", IRQ_RESOLVED, "irq/18-xhci_hcd" },
        { "J14 usb3 is not within extcon_usb3_0", "names", "usb:3-1", IRQ_RESOLVED,
          "irq/18-xhci_hcd" },
        { "J13 a network card", "names", "net:enp14s0", IRQ_RESOLVED,
          "irq/129-enp14s0 irq/130-enp14s0-TxRx-0 irq/131-enp14s0-TxRx-1" },
        { "J13 one of its queues by number", "names", "irq:130", IRQ_RESOLVED,
          "irq/130-enp14s0-TxRx-0" },
        { "J13 one of its queues by name", "names", "irq/130-enp14s0-TxRx-0", IRQ_RESOLVED,
          "irq/130-enp14s0-TxRx-0" },
        { "J13 names are whole", "names", "irq/130-enp14s0-TxRx", IRQ_NO_DEVICE, "" },
        { "names cut by the kernel", "old-kernel", "card:0", IRQ_RESOLVED,
          "irq/16-snd_hda_ irq/16-s-snd_hd" },
        { "names cut by the kernel, usb", "old-kernel", "card:1", IRQ_RESOLVED, "irq/16-ehci_hcd" },
        { "a board without PCI", "board", "card:0", IRQ_RESOLVED, "irq/34-fe203000.i2s" },
        { "a board without PCI, usb", "board", "card:1", IRQ_RESOLVED, "irq/33-dwc2_hsotg:usb1" },
};

static void make_tree(struct irq_tree *tree, const char *machine) {
        char directory[] = "/tmp/rtgrant-irq-XXXXXX";

        assert_non_null(mkdtemp(directory));
        tree_init(tree, directory);
        assert_true(tree_build(tree, machine));
}

static void resolve(const struct irq_tree *tree, const char *name, struct irq_resolution *ret) {
        struct irq_roots roots = tree_roots(tree);
        struct irq_snapshot snapshot;

        assert_int_equal(irq_snapshot_take(&roots, &snapshot), 0);
        irq_resolve(&roots, &snapshot, name, ret);
        irq_snapshot_done(&snapshot);
}

static void join(const struct irq_resolution *resolution, char buffer[1024]) {
        buffer[0] = '\0';
        for (unsigned i = 0; i < resolution->n_threads; i++) {
                if (i > 0)
                        strcat(buffer, " ");
                strcat(buffer, resolution->threads[i].task.name);
        }
}

static void resolves(void **state) {
        const struct row *row = *state;
        struct irq_resolution resolution;
        char threads[1024], text[256] = "", help[256];
        struct irq_tree tree;

        make_tree(&tree, row->machine);
        resolve(&tree, row->name, &resolution);
        tree_remove(&tree);

        join(&resolution, threads);
        assert_string_equal(threads, row->threads);
        assert_int_equal(resolution.status, row->status);
        irq_status_explain(&resolution, row->name, text, sizeof(text), help, sizeof(help));
        assert_int_equal(text[0] == '\0', row->status == IRQ_RESOLVED);
}

/* ---- what moves ---- */

/* All of the microphone's vectors fired once; only 114 does while it is used. */
static void the_line_that_moves_is_chosen(void **state) {
        struct irq_resolution resolution;
        struct irq_snapshot before, after;
        struct irq_roots roots;
        struct irq_tree tree;

        make_tree(&tree, "many-vectors");
        roots = tree_roots(&tree);
        assert_int_equal(irq_snapshot_take(&roots, &before), 0);
        tree_interrupts_begin(&tree);
        for (unsigned irq = 112; irq < 137; irq++)
                tree_interrupt(&tree, irq, irq == 114 ? 5000 : 1000 + irq, "PCI-MSIX", "xhci_hcd");
        assert_int_equal(irq_snapshot_take(&roots, &after), 0);

        irq_resolve(&roots, &after, "card:1", &resolution);
        assert_int_equal(resolution.n_threads, 5);
        assert_true(irq_choose_moving(&resolution, &before, &after));
        assert_int_equal(resolution.n_threads, 1);
        assert_string_equal(resolution.threads[0].task.name, "irq/114-xhci_hcd");

        /* and where none moves, none is preferred */
        irq_resolve(&roots, &after, "card:1", &resolution);
        assert_false(irq_choose_moving(&resolution, &after, &after));
        assert_int_equal(resolution.n_threads, 5);
        irq_snapshot_done(&before);
        irq_snapshot_done(&after);
        tree_remove(&tree);
}

/* ---- plugging ---- */

#define FIRST  "pci0000:00/0000:00:10.0/usb1/1-3"
#define SECOND "pci0000:00/0000:00:12.0/usb7/7-1"

/* J11: unplugged, and plugged into another controller. */
static void follows_plugging(void **state) {
        struct irq_resolution resolution;
        struct irq_tree tree;
        char threads[1024];

        make_tree(&tree, "many-vectors");
        resolve(&tree, "card:Fireface", &resolution);
        join(&resolution, threads);
        assert_string_equal(threads, "irq/126-xhci_hcd");

        tree_card_remove(&tree, SECOND "/7-1:1.0", 0);
        resolve(&tree, "card:Fireface", &resolution);
        assert_int_equal(resolution.status, IRQ_NO_DEVICE);
        resolve(&tree, "card:1", &resolution);
        assert_int_equal(resolution.status, IRQ_RESOLVED);

        tree_card(&tree, "pci0000:00/0000:00:13.0/usb9/9-2/9-2:1.0", 0, "Fireface");
        tree_usb(&tree, "pci0000:00/0000:00:13.0/usb9/9-2", "Fireface");
        resolve(&tree, "card:Fireface", &resolution);
        join(&resolution, threads);
        assert_string_equal(threads, "irq/127-xhci_hcd irq/128-xhci_hcd irq/129-xhci_hcd "
                                     "irq/130-xhci_hcd irq/131-xhci_hcd");
        assert_string_equal(resolution.device.usb, "9-2");
        tree_remove(&tree);
}

/* The driver is loaded anew: same line, other thread. */
static void follows_the_driver(void **state) {
        struct irq_resolution resolution;
        struct irq_tree tree;
        pid_t before;

        make_tree(&tree, "shared");
        resolve(&tree, "pci:0000:00:1d.0", &resolution);
        before = resolution.threads[0].task.tid;
        tree_kthread_remove(&tree, before);
        resolve(&tree, "pci:0000:00:1d.0", &resolution);
        assert_int_equal(resolution.status, IRQ_NOT_THREADED);
        (void) tree_kthread(&tree, "irq/162-iwlwifi");
        resolve(&tree, "pci:0000:00:1d.0", &resolution);
        assert_int_equal(resolution.n_threads, 1);
        assert_int_not_equal(resolution.threads[0].task.tid, before);
        tree_remove(&tree);
}

/* ---- whom to believe ---- */

static void a_name_makes_no_kernel_thread(void **state) {
        struct irq_roots roots;
        struct irq_thread thread;
        struct irq_tree tree;
        pid_t process, forged;

        make_tree(&tree, "four-cards");
        roots = tree_roots(&tree);
        process = tree_process(&tree, "irq/31-snd_hda_intel:card0");
        forged = tree_process(&tree, "x) S 2 0 0 0 -1 2129984 irq/31-snd");
        assert_int_equal(irq_thread_read(&roots, process, &thread), -ESRCH);
        assert_int_equal(irq_thread_read(&roots, forged, &thread), -ESRCH);
        assert_int_equal(irq_thread_read(&roots, tree_kthread(&tree, "kworker/0:1"), &thread),
                         -ESRCH);
        assert_int_equal(irq_thread_read(&roots, tree_kthread(&tree, "irq/+3-snd"), &thread),
                         -ESRCH);
        assert_int_equal(irq_thread_read(&roots, tree_kthread(&tree, "irq/3-snd"), &thread), 0);
        assert_int_equal(thread.line, 3);
        tree_remove(&tree);
}

static void hidden_threads_are_said_to_be(void **state) {
        struct irq_resolution resolution;
        struct irq_tree tree;

        make_tree(&tree, "four-cards");
        tree_file(&tree, "proc/2/comm", "bash\n"); /* of a container */
        resolve(&tree, "card:0", &resolution);
        assert_int_equal(resolution.status, IRQ_HIDDEN);
        tree_remove(&tree);
}

/* ---- */

#define OTHERS 5

int main(void) {
        struct CMUnitTest tests[sizeof(rows) / sizeof(rows[0]) + OTHERS] = {
                cmocka_unit_test(the_line_that_moves_is_chosen),
                cmocka_unit_test(follows_plugging),
                cmocka_unit_test(follows_the_driver),
                cmocka_unit_test(a_name_makes_no_kernel_thread),
                cmocka_unit_test(hidden_threads_are_said_to_be),
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                tests[OTHERS + i] = (struct CMUnitTest){ .name = rows[i].title,
                                                         .test_func = resolves,
                                                         .initial_state = (void *) &rows[i] };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
