/* SPDX-License-Identifier: MIT */

#include "irq/device.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CARDS_MAX 64

/* ---- from the name to its directory ---- */

static int compare_numbers(const void *a, const void *b) {
        const unsigned *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Calls back for "card0", not for "controlC0" or "pcmC0D0p". */
unsigned irq_list_cards(const struct irq_roots *roots, unsigned *cards, unsigned n_max) {
        char path[PATH_MAX], end;
        struct dirent *entry;
        unsigned n = 0;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "%s/class/sound", roots->sys);
        dir = opendir(path);
        if (!dir)
                return 0;
        while (n < n_max && (entry = readdir(dir)))
                if (sscanf(entry->d_name, "card%4u%c", &cards[n], &end) == 1)
                        n++;
        (void) closedir(dir);
        qsort(cards, n, sizeof(cards[0]), compare_numbers);
        return n;
}

static int find_card(const struct irq_roots *roots, const struct irq_name *name) {
        unsigned cards[CARDS_MAX];
        unsigned n = irq_list_cards(roots, cards, CARDS_MAX);
        char id[IRQ_NAME_SIZE];

        for (unsigned i = 0; i < n; i++) {
                if (name->by_number && cards[i] == name->number)
                        return (int) cards[i];
                if (irq_read(id, sizeof(id), "%s/class/sound/card%u/id", roots->sys, cards[i]) >=
                            0 &&
                    strcmp(id, name->value) == 0)
                        return (int) cards[i];
        }
        return -ENODEV;
}

static int find_directory(const struct irq_roots *roots, struct irq_device *device,
                          char path[PATH_MAX]) {
        const struct irq_name *name = &device->name;

        switch (name->kind) {
        case IRQ_NAME_CARD:
                device->card = find_card(roots, name);
                if (device->card < 0)
                        return -ENODEV;
                (void) snprintf(path, PATH_MAX, "%s/class/sound/card%d", roots->sys, device->card);
                return 0;
        case IRQ_NAME_PCI:
                (void) snprintf(path, PATH_MAX, "%s/bus/pci/devices/%s", roots->sys, name->value);
                return 0;
        case IRQ_NAME_USB:
                (void) snprintf(path, PATH_MAX, "%s/bus/usb/devices/%s", roots->sys, name->value);
                return 0;
        case IRQ_NAME_NET:
                irq_copy(device->net, sizeof(device->net), name->value);
                (void) snprintf(path, PATH_MAX, "%s/class/net/%s", roots->sys, name->value);
                return 0;
        case IRQ_NAME_LINE:
        case IRQ_NAME_THREAD:
                break;
        }
        return -ENODEV;
}

/* ---- from there up to what interrupts ---- */

static void add_line(struct irq_device *device, unsigned line) {
        for (unsigned i = 0; i < device->n_lines; i++)
                if (device->lines[i] == line)
                        return;
        if (device->n_lines == IRQ_DEVICE_LINES_MAX) {
                device->more_lines = true;
                return;
        }
        device->lines[device->n_lines++] = line;
}

/* A device with message-signalled interrupts has no other. */
static void read_pci_lines(struct irq_device *device, const char *path) {
        char directory[PATH_MAX], end;
        struct dirent *entry;
        unsigned line;
        DIR *dir;

        (void) snprintf(directory, sizeof(directory), "%s/msi_irqs", path);
        dir = opendir(directory);
        if (dir) {
                while ((entry = readdir(dir)))
                        if (sscanf(entry->d_name, "%9u%c", &line, &end) == 1)
                                add_line(device, line);
                (void) closedir(dir);
        }
        if (device->n_lines == 0 && irq_read_number(&line, "%s/irq", path) >= 0 && line > 0)
                add_line(device, line);
}

/* "usb1": a root hub; "1-4.2": what hangs on it, topmost last as one climbs. */
static void note_usb(struct irq_device *device, const char *base) {
        unsigned bus, port;
        char dash;

        if (sscanf(base, "usb%4u", &bus) == 1)
                device->usb_bus = bus;
        else if (device->usb[0] == '\0' && !strchr(base, ':') &&
                 sscanf(base, "%4u%c%4u", &bus, &dash, &port) == 3 && dash == '-')
                irq_copy(device->usb, sizeof(device->usb), base);
}

static int action_is_of_bus(const char *action, void *userdata) {
        const unsigned *bus = userdata;
        const char *colon = strrchr(action, ':');
        unsigned n;
        char end;

        return colon && sscanf(colon, ":usb%4u%c", &n, &end) == 1 && n == *bus;
}

static int action_is(const char *action, void *userdata) {
        return strcmp(action, userdata) == 0;
}

/* Outside of PCI, sysfs does not tell: there the handlers are named after the device. */
static bool find_platform_lines(const struct irq_snapshot *snapshot, struct irq_device *device,
                                char *base) {
        for (size_t i = 0; i < snapshot->n_lines; i++) {
                const struct irq_line *line = &snapshot->lines[i];

                if (irq_line_for_each_action(line, action_is, base) ||
                    (device->usb_bus > 0 &&
                     irq_line_for_each_action(line, action_is_of_bus, &device->usb_bus)))
                        add_line(device, line->number);
        }
        return device->n_lines > 0;
}

static void note_controller(struct irq_device *device, const char *path, const char *base) {
        irq_copy(device->controller, sizeof(device->controller), base);
        irq_copy(device->controller_path, sizeof(device->controller_path), path);
        (void) irq_read_link(device->driver, sizeof(device->driver), "%s/driver", path);
}

static bool is_pci(const struct irq_snapshot *snapshot, struct irq_device *device, const char *path,
                   char *base) {
        char subsystem[32] = "";

        (void) irq_read_link(subsystem, sizeof(subsystem), "%s/subsystem", path);
        if (strcmp(subsystem, "usb") == 0)
                note_usb(device, base);
        if (strcmp(subsystem, "pci") != 0)
                return false;
        read_pci_lines(device, path);
        return true;
}

static bool is_platform(const struct irq_snapshot *snapshot, struct irq_device *device,
                        const char *path, char *base) {
        char root_hub[24];

        /* A USB controller is above its root hub. */
        (void) snprintf(root_hub, sizeof(root_hub), "/usb%u", device->usb_bus);
        return (device->usb_bus == 0 || !strstr(path, root_hub)) &&
               find_platform_lines(snapshot, device, base);
}

/* From the device up to the first directory that @is_controller. */
static bool climb(const struct irq_snapshot *snapshot, struct irq_device *device, const char *root,
                  bool (*is_controller)(const struct irq_snapshot *, struct irq_device *,
                                        const char *, char *)) {
        char path[sizeof(device->path)], *slash;

        irq_copy(path, sizeof(path), device->path);
        while (strlen(path) > strlen(root) && (slash = strrchr(path, '/'))) {
                if (is_controller(snapshot, device, path, slash + 1)) {
                        note_controller(device, path, slash + 1);
                        return true;
                }
                *slash = '\0';
        }
        return false;
}

/* A name may mean another device's handler, so it goes by names only where there is no PCI. */
static void find_controller(const struct irq_snapshot *snapshot, struct irq_device *device,
                            const char *root) {
        if (!climb(snapshot, device, root, is_pci))
                (void) climb(snapshot, device, root, is_platform);
        qsort(device->lines, device->n_lines, sizeof(device->lines[0]), compare_numbers);
}

/* ---- */

static int find_line(const struct irq_snapshot *snapshot, struct irq_device *device) {
        bool threaded = false;

        for (size_t i = 0; i < snapshot->n_threads && !threaded; i++)
                threaded = snapshot->threads[i].line == device->name.number;
        if (!threaded && !irq_snapshot_find(snapshot, device->name.number))
                return -ENODEV;
        add_line(device, device->name.number);
        return 0;
}

/* What kind of card hangs below it decides what may be done; not what it was named by. */
static void note_card(const struct irq_roots *roots, struct irq_device *device) {
        unsigned cards[CARDS_MAX], n = irq_list_cards(roots, cards, CARDS_MAX);
        size_t length = strlen(device->path);

        for (unsigned i = 0; i < n && device->card < 0; i++) {
                _irq_cleanup_free_ char *real = NULL;
                char path[PATH_MAX];

                (void) snprintf(path, sizeof(path), "%s/class/sound/card%u", roots->sys, cards[i]);
                real = realpath(path, NULL);
                if (real && strncmp(real, device->path, length) == 0 && real[length] == '/')
                        device->card = (int) cards[i];
        }
        if (device->card >= 0)
                (void) irq_read(device->card_id, sizeof(device->card_id),
                                "%s/class/sound/card%d/id", roots->sys, device->card);
}

int irq_device_find(const struct irq_roots *roots, const struct irq_snapshot *snapshot,
                    const struct irq_name *name, struct irq_device *ret) {
        _irq_cleanup_free_ char *real = NULL, *root = NULL;
        struct irq_device device = { .name = *name, .card = -1 };
        char path[PATH_MAX];
        int r;

        if (name->kind == IRQ_NAME_LINE || name->kind == IRQ_NAME_THREAD) {
                r = find_line(snapshot, &device);
        } else {
                r = find_directory(roots, &device, path);
                if (r < 0)
                        return r;
                real = realpath(path, NULL);
                root = realpath(roots->sys, NULL);
                if (!real || !root || strlen(real) >= sizeof(device.path))
                        return -ENODEV;
                irq_copy(device.path, sizeof(device.path), real);
                find_controller(snapshot, &device, root);
                note_card(roots, &device);
        }
        if (r >= 0)
                *ret = device;
        return r;
}
