/* SPDX-License-Identifier: MIT */

/* Who shares an interrupt, and what the kernel's threads are for. */

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/rtgrantctl-irq.h"

void irq_priority_text(const struct irq_kthread *task, char *buffer, size_t size) {
        static const char *const names[] = {
                "OTHER", "FIFO", "RR", "BATCH", "?", "IDLE", "DEADLINE"
        };
        const char *name = task->policy >= 0 && (size_t) task->policy < ELEMENTS(names)
                                   ? names[task->policy]
                                   : "?";

        if (task->policy == SCHED_FIFO || task->policy == SCHED_RR)
                (void) snprintf(buffer, size, "%s %d", name, task->priority);
        else if (task->nice != 0)
                (void) snprintf(buffer, size, "%s nice %d", name, task->nice);
        else
                (void) snprintf(buffer, size, "%s", name);
}

/* ---- sharers ---- */

struct sharers {
        const struct irq_device *device;
        const struct irq_line *line;
        char *buffer;
        size_t size, length;
};

static void add_sharer(struct sharers *sharers, const char *what, const char *where) {
        size_t room = sharers->size - sharers->length;
        int n = snprintf(sharers->buffer + sharers->length, room, "%s%s%s%s%s",
                         sharers->length > 0 ? ", " : "", what, where ? " (" : "",
                         where ? where : "", where ? ")" : "");

        if (n < 0 || (size_t) n >= room)
                sharers->buffer[sharers->length] = '\0'; /* rather none than half a name */
        else
                sharers->length += (size_t) n;
}

static int add_other_handler(const char *action, void *userdata) {
        struct sharers *sharers = userdata;

        if (!irq_is_handler_of(sharers->device, sharers->line, action))
                add_sharer(sharers, action, NULL);
        return 0;
}

/* A device of its own, below the same controller: neither hub nor interface. */
static void add_usb_device(const struct irq_view *view, struct sharers *sharers, const char *name) {
        const struct irq_device *device = sharers->device;
        _cleanup_free_ char *real = NULL;
        char path[PATH_MAX], product[64], class[8];
        size_t length = strlen(device->controller_path);

        if (name[0] < '0' || name[0] > '9' || strchr(name, ':') || strcmp(name, device->usb) == 0)
                return;
        (void) snprintf(path, sizeof(path), "%s/bus/usb/devices/%s", view->roots.sys, name);
        real = realpath(path, NULL);
        if (!real || strncmp(real, device->controller_path, length) != 0 || real[length] != '/')
                return;
        if (irq_read(class, sizeof(class), "%s/bDeviceClass", path) >= 0 &&
            strcmp(class, "09") == 0)
                return;
        if (irq_read(product, sizeof(product), "%s/product", path) <= 0)
                irq_copy(product, sizeof(product), "device");
        (void) snprintf(path, sizeof(path), "usb %s", name);
        add_sharer(sharers, product, path);
}

static void add_usb_devices(const struct irq_view *view, struct sharers *sharers) {
        struct dirent **entries;
        char path[PATH_MAX];
        int n;

        (void) snprintf(path, sizeof(path), "%s/bus/usb/devices", view->roots.sys);
        n = scandir(path, &entries, NULL, alphasort);
        for (int i = 0; i < n; i++) {
                add_usb_device(view, sharers, entries[i]->d_name);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
}

void irq_find_sharers(const struct irq_view *view, const struct irq_device *device, char *buffer,
                      size_t size) {
        struct sharers sharers = { .device = device, .buffer = buffer, .size = size };

        buffer[0] = '\0';
        for (unsigned i = 0; i < device->n_lines; i++) {
                sharers.line = irq_snapshot_find(&view->after, device->lines[i]);
                if (sharers.line)
                        (void) irq_line_for_each_action(sharers.line, add_other_handler, &sharers);
        }
        if (device->usb[0] != '\0')
                add_usb_devices(view, &sharers);
}

/* ---- kernel threads ---- */

static const struct {
        const char *prefix;
        const char *purpose;
} purposes[] = {
        { "ksoftirqd/",
          "soft interrupts (network, timers, block) that came too fast to be done at once" },
        { "ktimers/", "timers of PREEMPT_RT, which run in this thread instead of an interrupt" },
        { "migration/",
          "moves threads between CPUs, stops a CPU; above everything, cannot be changed" },
        { "watchdogd", "feeds hardware watchdogs: starve it and the machine resets" },
        { "rcu_preempt", "frees memory of read-copy-update; starved, memory runs out" },
        { "rcu_sched", "frees memory of read-copy-update; starved, memory runs out" },
        { "rcub/", "lends priority to readers that hold read-copy-update up" },
        { "rcuc/", "callbacks of read-copy-update of one CPU" },
        { "rcuo", "callbacks of read-copy-update, moved off their CPU" },
        { "rcu_tasks", "read-copy-update for tracing" },
        { "idle_inject/", "forces a CPU idle to cool it" },
        { "cpuhp/", "takes a CPU up and down" },
        { "irq_work/", "work put off from interrupts, on PREEMPT_RT" },
        { "posixcputmr/", "CPU time limits (RLIMIT_RTTIME too), on PREEMPT_RT" },
        { "sugov:", "changes the frequency of a CPU (schedutil)" },
        { "psimon", "tells who watches pressure (PSI)" },
        { "oom_reaper", "takes back the memory of processes killed for want of it" },
        { "kswapd", "makes memory free by writing it out" },
        { "kcompactd", "moves memory to make large pages" },
        { "napi/", "packets of a network interface, in a thread" },
        { "backlog_napi/", "packets between network interfaces of this machine" },
        { "kthreadd", "parent of all kernel threads" },
};

static const struct {
        const char *handler;
        const char *purpose;
} handlers[] = {
        { "snd", "sound card" },
        { "xhci", "USB 3 controller: USB sound cards interrupt here" },
        { "ehci", "USB 2 controller" },
        { "uhci", "USB 1 controller" },
        { "ohci", "USB 1 controller" },
        { "dwc", "USB controller" },
        { "firewire", "FireWire controller: FireWire sound cards interrupt here" },
        { "ahci", "disk controller" },
        { "nvme", "disk" },
        { "i915", "graphics" },
        { "amdgpu", "graphics" },
        { "nouveau", "graphics" },
        { "nvidia", "graphics" },
        { "i8042", "keyboard and mouse" },
        { "rtc", "clock: alarms, and timers of old MIDI programs" },
        { "acpi", "power management" },
        { "ACPI", "events of the firmware" },
        { "i801", "sensors" },
        { "mei", "management engine" },
        { "iwlwifi", "wireless network" },
        { "eth", "network" },
        { "en", "network" },
        { "wl", "wireless network" },
        { "mmc", "memory card" },
        { "AMD-Vi", "faults of the IOMMU" },
        { "DMAR", "faults of the IOMMU" },
        { "pciehp", "hot-plug of PCI Express" },
        { "aerdrv", "errors of PCI Express" },
        { "thunderbolt", "Thunderbolt" },
};

static const char *handler_purpose(const char *name) {
        const char *dash = strchr(name, '-');

        if (!dash)
                return "interrupt";
        dash += strncmp(dash, "-s-", 3) == 0 ? 3 : 1;
        for (size_t i = 0; i < ELEMENTS(handlers); i++)
                if (strncmp(dash, handlers[i].handler, strlen(handlers[i].handler)) == 0)
                        return handlers[i].purpose;
        return "interrupt of another device";
}

const char *irq_purpose(const struct irq_kthread *task) {
        if (strncmp(task->name, "irq/", 4) == 0)
                return handler_purpose(task->name);
        for (size_t i = 0; i < ELEMENTS(purposes); i++)
                if (strncmp(task->name, purposes[i].prefix, strlen(purposes[i].prefix)) == 0)
                        return purposes[i].purpose;
        if (task->policy == SCHED_FIFO || task->policy == SCHED_RR)
                return "real-time thread of the kernel";
        return NULL;
}
