/* SPDX-License-Identifier: MIT */

/* The machines that the tests know. */

#include <stdio.h>
#include <string.h>

#include "tests/tools/irq-tree.h"

#define ROOT       "pci0000:00"
#define BRIDGE     ROOT "/0000:00:1c.0/0000:03:00.0/0000:04:02.0"
#define OTHER_ROOT "pci0000:80"

static void kthreads(struct irq_tree *tree) {
        (void) tree_kthread(tree, "ksoftirqd/0");
        (void) tree_kthread(tree, "migration/0");
        (void) tree_kthread(tree, "watchdogd");
        (void) tree_kthread(tree, "irq/9-acpi");
        tree_interrupt(tree, 9, 40, "IO-APIC", "acpi");
}

/* Two on PCI, and two on USB behind bridges, one of those under another root. */
static void four_cards(struct irq_tree *tree) {
        kthreads(tree);
        tree_pci(tree, ROOT, "0000:00:1b.0", "snd_hda_intel", 31);
        tree_msi(tree, ROOT "/0000:00:1b.0", 31);
        tree_card(tree, ROOT "/0000:00:1b.0", 0, "PCH");
        tree_pci(tree, ROOT, "0000:00:1c.0", "pcieport", 24);
        tree_pci(tree, ROOT "/0000:00:1c.0", "0000:03:00.0", "pcieport", 25);
        tree_pci(tree, ROOT "/0000:00:1c.0/0000:03:00.0", "0000:04:02.0", "pcieport", 26);
        tree_pci(tree, BRIDGE, "0000:05:00.0", "xhci_hcd", 16);
        tree_msi(tree, BRIDGE "/0000:05:00.0", 40);
        tree_usb(tree, BRIDGE "/0000:05:00.0/usb3", "xHCI");
        tree_usb(tree, BRIDGE "/0000:05:00.0/usb3/3-1", "Keyboard");
        tree_usb(tree, BRIDGE "/0000:05:00.0/usb3/3-2", "USB Hub");
        tree_usb(tree, BRIDGE "/0000:05:00.0/usb3/3-2/3-2.4", "Scarlett 2i2");
        tree_card(tree, BRIDGE "/0000:05:00.0/usb3/3-2/3-2.4/3-2.4:1.0", 1, "USB");
        tree_pci(tree, OTHER_ROOT, "0000:80:01.0", "pcieport", 27);
        tree_pci(tree, OTHER_ROOT "/0000:80:01.0", "0000:81:00.0", "xhci_hcd", 17);
        tree_msi(tree, OTHER_ROOT "/0000:80:01.0/0000:81:00.0", 41);
        tree_usb(tree, OTHER_ROOT "/0000:80:01.0/0000:81:00.0/usb5", "xHCI");
        tree_usb(tree, OTHER_ROOT "/0000:80:01.0/0000:81:00.0/usb5/5-1", "UMC404HD");
        tree_card(tree, OTHER_ROOT "/0000:80:01.0/0000:81:00.0/usb5/5-1/5-1:1.0", 2, "U192k");
        tree_pci(tree, ROOT, "0000:00:03.0", "snd_hda_intel", 32);
        tree_msi(tree, ROOT "/0000:00:03.0", 32);
        tree_card(tree, ROOT "/0000:00:03.0", 3, "HDMI");
        tree_interrupt(tree, 24, 0, "PCI-MSI-0000:00:1c.0", "pciehp");
        tree_interrupt(tree, 31, 100, "PCI-MSI-0000:00:1b.0", "snd_hda_intel:card0");
        tree_interrupt(tree, 32, 9, "PCI-MSI-0000:00:03.0", "snd_hda_intel:card3");
        tree_interrupt(tree, 40, 5000, "PCI-MSIX-0000:05:00.0", "xhci_hcd");
        tree_interrupt(tree, 41, 7000, "PCI-MSIX-0000:81:00.0", "xhci_hcd");
        (void) tree_kthread(tree, "irq/24-pciehp");
        (void) tree_kthread(tree, "irq/31-snd_hda_intel:card0");
        (void) tree_kthread(tree, "irq/32-snd_hda_intel:card3");
        (void) tree_kthread(tree, "irq/40-xhci_hcd");
        (void) tree_kthread(tree, "irq/41-xhci_hcd");
        (void) tree_process(tree, "irq/31-snd_hda_intel:card0");
        (void) tree_process(tree, "irq/40-xhci_hcd");
}

/* Five controllers of five vectors; the card is on the one that has 126, which alone fires. */
static void many_vectors(struct irq_tree *tree) {
        char address[16], path[64], name[32];

        kthreads(tree);
        for (unsigned i = 0; i < 25; i++) {
                unsigned irq = 112 + i;

                (void) snprintf(address, sizeof(address), "0000:00:%02x.0", 0x10 + i / 5);
                (void) snprintf(path, sizeof(path), ROOT "/%s", address);
                if (i % 5 == 0)
                        tree_pci(tree, ROOT, address, "xhci_hcd", 16);
                tree_msi(tree, path, irq);
                tree_interrupt(tree, irq, irq == 126 || i < 5 ? 1000 + irq : 0, "PCI-MSIX",
                               "xhci_hcd");
                (void) snprintf(name, sizeof(name), "irq/%u-xhci_hcd", irq);
                (void) tree_kthread(tree, name);
        }
        tree_usb(tree, ROOT "/0000:00:12.0/usb7", "xHCI");
        tree_usb(tree, ROOT "/0000:00:12.0/usb7/7-1", "Fireface");
        tree_card(tree, ROOT "/0000:00:12.0/usb7/7-1/7-1:1.0", 0, "Fireface");
        tree_usb(tree, ROOT "/0000:00:10.0/usb1", "xHCI");
        tree_usb(tree, ROOT "/0000:00:10.0/usb1/1-3", "Microphone");
        tree_card(tree, ROOT "/0000:00:10.0/usb1/1-3/1-3:1.0", 1, "Microphone");
}

/* An interrupt with three handlers, and two others whose numbers contain its own. */
static void shared(struct irq_tree *tree) {
        kthreads(tree);
        tree_pci(tree, ROOT, "0000:00:1b.0", "snd_hda_intel", 16);
        tree_card(tree, ROOT "/0000:00:1b.0", 0, "PCH");
        tree_pci(tree, ROOT, "0000:00:1f.3", "i801_smbus", 16);
        tree_pci(tree, ROOT, "0000:00:1a.0", "ehci-pci", 16);
        tree_usb(tree, ROOT "/0000:00:1a.0/usb1", "EHCI");
        tree_usb(tree, ROOT "/0000:00:1a.0/usb1/1-1", "US-122");
        tree_card(tree, ROOT "/0000:00:1a.0/usb1/1-1/1-1:1.0", 1, "US122");
        tree_pci(tree, ROOT, "0000:00:1d.0", "iwlwifi", 162);
        tree_pci(tree, ROOT, "0000:00:1e.0", "ahci", 116);
        tree_interrupt(tree, 16, 900, "IO-APIC", "i801_smbus, snd_hda_intel:card0, ehci_hcd:usb1");
        tree_interrupt(tree, 116, 900, "PCI-MSI", "ahci[0000:00:1e.0]");
        tree_interrupt(tree, 162, 900, "PCI-MSI", "iwlwifi");
        (void) tree_kthread(tree, "irq/16-i801_smbus");
        (void) tree_kthread(tree, "irq/16-snd_hda_intel:card0");
        (void) tree_kthread(tree, "irq/16-s-snd_hda_intel:card0");
        (void) tree_kthread(tree, "irq/16-s-i801_smbus");
        (void) tree_kthread(tree, "irq/16-ehci_hcd:usb1");
        (void) tree_kthread(tree, "irq/116-ahci[0000:00:1e.0]");
        (void) tree_kthread(tree, "irq/162-iwlwifi");
}

/* Some threads there are on any machine; the card's is not among them. */
static void unthreaded(struct irq_tree *tree) {
        tree_file(tree, "proc/cmdline", "quiet nothreadirqs\n");
        kthreads(tree);
        tree_pci(tree, ROOT, "0000:00:1b.0", "snd_hda_intel", 31);
        tree_card(tree, ROOT "/0000:00:1b.0", 0, "PCH");
        tree_interrupt(tree, 31, 900, "PCI-MSI", "snd_hda_intel:card0");
}

/* With threadirqs, but this driver forbids it. */
static void unthreadable(struct irq_tree *tree) {
        unthreaded(tree);
        tree_file(tree, "proc/cmdline", "threadirqs quiet\n");
}

/* Names with dashes and underscores, of driver, handler and card; and numbers within names. */
static void names(struct irq_tree *tree) {
        kthreads(tree);
        tree_pci(tree, ROOT, "0000:00:14.0", "xhci-hcd", 18);
        tree_usb(tree, ROOT "/0000:00:14.0/usb3", "xHCI");
        tree_usb(tree, ROOT "/0000:00:14.0/usb3/3-1", "Quantum");
        tree_card(tree, ROOT "/0000:00:14.0/usb3/3-1/3-1:1.0", 0, "my-card_2");
        tree_interrupt(tree, 18, 70, "IO-APIC", "extcon_usb3_0, xhci_hcd, usb3-phy");
        (void) tree_kthread(tree, "irq/18-extcon_usb3_0");
        (void) tree_kthread(tree, "irq/18-xhci_hcd");
        (void) tree_kthread(tree, "irq/18-usb3-phy");
        tree_pci(tree, ROOT, "0000:00:19.0", "igb", 130);
        for (unsigned i = 0; i < 3; i++)
                tree_msi(tree, ROOT "/0000:00:19.0", 129 + i);
        tree_link(tree, "sys/devices/" ROOT "/0000:00:19.0/net/enp14s0/device",
                  "sys/devices/" ROOT "/0000:00:19.0");
        tree_link(tree, "sys/class/net/enp14s0", "sys/devices/" ROOT "/0000:00:19.0/net/enp14s0");
        tree_interrupt(tree, 129, 1, "PCI-MSIX", "enp14s0");
        tree_interrupt(tree, 130, 50, "PCI-MSIX", "enp14s0-TxRx-0");
        tree_interrupt(tree, 131, 70, "PCI-MSIX", "enp14s0-TxRx-1");
        (void) tree_kthread(tree, "irq/129-enp14s0");
        (void) tree_kthread(tree, "irq/130-enp14s0-TxRx-0");
        (void) tree_kthread(tree, "irq/131-enp14s0-TxRx-1");
}

/* Before Linux 5.17 names of threads were cut to 15 bytes; and no list of children. */
static void old_kernel(struct irq_tree *tree) {
        shared(tree);
        tree->children[0] = '\0';
        for (pid_t tid = 101; tid <= tree->next_tid; tid++)
                tree_kthread_remove(tree, tid);
        tree_kthread_numbered(tree, 201, "irq/16-i801_smb");
        tree_kthread_numbered(tree, 202, "irq/16-snd_hda_");
        tree_kthread_numbered(tree, 203, "irq/16-s-snd_hd");
        tree_kthread_numbered(tree, 204, "irq/16-ehci_hcd");
        tree_kthread_numbered(tree, 205, "irq/162-iwlwifi");
        {
                char path[PATH_MAX];

                (void) snprintf(path, sizeof(path), "%s/proc/2/task/2/children", tree->directory);
                (void) remove(path);
        }
}

/* No PCI: a board whose handlers are named after its devices. */
static void board(struct irq_tree *tree) {
        kthreads(tree);
        tree_file(tree, "sys/devices/platform/soc/fe980000.usb/uevent", "%s", "");
        tree_usb(tree, "platform/soc/fe980000.usb/usb1", "DWC OTG");
        tree_usb(tree, "platform/soc/fe980000.usb/usb1/1-1", "HiFi");
        tree_card(tree, "platform/soc/fe980000.usb/usb1/1-1/1-1:1.0", 1, "HiFi");
        tree_card(tree, "platform/soc/fe203000.i2s", 0, "DAC");
        tree_interrupt(tree, 33, 70, "GICv2", "dwc2_hsotg:usb1");
        tree_interrupt(tree, 34, 70, "GICv2", "fe203000.i2s");
        tree_interrupt(tree, 35, 70, "GICv2", "dwc2_hsotg:usb11");
        (void) tree_kthread(tree, "irq/33-dwc2_hsotg:usb1");
        (void) tree_kthread(tree, "irq/34-fe203000.i2s");
        (void) tree_kthread(tree, "irq/35-dwc2_hsotg:usb11");
}

static const struct {
        const char *name;
        void (*build)(struct irq_tree *tree);
} machines[] = {
        { "four-cards", four_cards },
        { "many-vectors", many_vectors },
        { "shared", shared },
        { "unthreaded", unthreaded },
        { "unthreadable", unthreadable },
        { "names", names },
        { "old-kernel", old_kernel },
        { "board", board },
};

int tree_build(struct irq_tree *tree, const char *machine) {
        for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
                if (strcmp(machines[i].name, machine) == 0) {
                        machines[i].build(tree);
                        return 1;
                }
        return 0;
}
