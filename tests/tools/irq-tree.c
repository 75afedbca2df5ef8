/* SPDX-License-Identifier: MIT */

#include "tests/tools/irq-tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what) {
        perror(what);
        abort();
}

static void make_parents(char *path) {
        for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = '\0';
                if (mkdir(path, 0755) < 0 && errno != EEXIST)
                        fail(path);
                *p = '/';
        }
}

static void full_path(struct irq_tree *tree, const char *path, char full[PATH_MAX]) {
        if (snprintf(full, PATH_MAX, "%s/%s", tree->directory, path) >= PATH_MAX)
                abort();
        make_parents(full);
}

void tree_file(struct irq_tree *tree, const char *path, const char *format, ...) {
        char full[PATH_MAX];
        va_list args;
        FILE *file;

        full_path(tree, path, full);
        file = fopen(full, "w");
        if (!file)
                fail(full);
        va_start(args, format);
        (void) vfprintf(file, format, args);
        va_end(args);
        if (fclose(file) != 0)
                fail(full);
}

void tree_link(struct irq_tree *tree, const char *path, const char *target) {
        char full[PATH_MAX], to[PATH_MAX];

        full_path(tree, path, full);
        (void) unlink(full);
        if (snprintf(to, sizeof(to), "%s/%s", tree->directory, target) >= PATH_MAX ||
            symlink(to, full) < 0)
                fail(full);
}

void tree_init(struct irq_tree *tree, const char *directory) {
        *tree = (struct irq_tree){ .next_tid = 100 };
        (void) snprintf(tree->directory, sizeof(tree->directory), "%s", directory);
        (void) snprintf(tree->sys, sizeof(tree->sys), "%s/sys", directory);
        (void) snprintf(tree->proc, sizeof(tree->proc), "%s/proc", directory);
        tree_file(tree, "proc/cmdline", "root=/dev/sda1 quiet threadirqs\n");
        tree_file(tree, "proc/2/comm", "kthreadd\n");
        tree_file(tree, "proc/2/task/2/children", "%s", "");
        tree_interrupts_begin(tree);
}

struct irq_roots tree_roots(const struct irq_tree *tree) {
        return (struct irq_roots){ .sys = tree->sys, .proc = tree->proc };
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        return remove(path);
}

void tree_remove(struct irq_tree *tree) {
        (void) nftw(tree->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- devices ---- */

static void subsystem(struct irq_tree *tree, const char *path, const char *name) {
        char link[PATH_MAX], target[64];

        (void) snprintf(link, sizeof(link), "%s/subsystem", path);
        (void) snprintf(target, sizeof(target), "sys/bus/%s", name);
        tree_link(tree, link, target);
}

void tree_pci(struct irq_tree *tree, const char *parent, const char *address, const char *driver,
              unsigned irq) {
        char path[512], name[1024], target[128];

        (void) snprintf(path, sizeof(path), "sys/devices/%s/%s", parent, address);
        subsystem(tree, path, "pci");
        (void) snprintf(name, sizeof(name), "%s/irq", path);
        tree_file(tree, name, "%u\n", irq);
        (void) snprintf(name, sizeof(name), "%s/driver", path);
        (void) snprintf(target, sizeof(target), "sys/bus/pci/drivers/%s", driver);
        tree_link(tree, name, target);
        (void) snprintf(name, sizeof(name), "sys/bus/pci/devices/%s", address);
        tree_link(tree, name, path);
}

void tree_msi(struct irq_tree *tree, const char *pci_path, unsigned irq) {
        char name[1024];

        (void) snprintf(name, sizeof(name), "sys/devices/%s/msi_irqs/%u", pci_path, irq);
        tree_file(tree, name, "msi\n");
}

void tree_usb(struct irq_tree *tree, const char *path, const char *product) {
        const char *base = strrchr(path, '/') + 1;
        char full[512], name[1024];
        int root = strncmp(base, "usb", 3) == 0;

        (void) snprintf(full, sizeof(full), "sys/devices/%s", path);
        subsystem(tree, full, "usb");
        (void) snprintf(name, sizeof(name), "%s/product", full);
        tree_file(tree, name, "%s\n", product);
        (void) snprintf(name, sizeof(name), "%s/bDeviceClass", full);
        tree_file(tree, name, "%s\n", root || strstr(product, "Hub") ? "09" : "00");
        (void) snprintf(name, sizeof(name), "sys/bus/usb/devices/%s", base);
        tree_link(tree, name, full);
}

void tree_card(struct irq_tree *tree, const char *parent, unsigned index, const char *id) {
        char path[512], name[1024];

        (void) snprintf(path, sizeof(path), "sys/devices/%s/sound/card%u", parent, index);
        subsystem(tree, path, "sound");
        (void) snprintf(name, sizeof(name), "%s/id", path);
        tree_file(tree, name, "%s\n", id);
        (void) snprintf(name, sizeof(name), "sys/class/sound/card%u", index);
        tree_link(tree, name, path);
        /* others of the class, which are no cards */
        (void) snprintf(name, sizeof(name), "sys/class/sound/controlC%u", index);
        tree_link(tree, name, path);
}

void tree_card_remove(struct irq_tree *tree, const char *parent, unsigned index) {
        char name[PATH_MAX];

        (void) snprintf(name, sizeof(name), "%s/sys/class/sound/card%u", tree->directory, index);
        (void) unlink(name);
        (void) snprintf(name, sizeof(name), "%s/sys/class/sound/controlC%u", tree->directory,
                        index);
        (void) unlink(name);
        (void) snprintf(name, sizeof(name), "%s/sys/devices/%s/sound/card%u", tree->directory,
                        parent, index);
        (void) nftw(name, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- interrupts ---- */

void tree_interrupts_begin(struct irq_tree *tree) {
        tree_file(tree, "proc/interrupts", "%s", "           CPU0       CPU1       \n");
}

void tree_interrupt(struct irq_tree *tree, unsigned irq, unsigned long count, const char *chip,
                    const char *actions) {
        char full[PATH_MAX], path[64], joined[512];
        size_t n = 0;
        FILE *file;

        full_path(tree, "proc/interrupts", full);
        file = fopen(full, "a");
        if (!file)
                fail(full);
        (void) fprintf(file, "%4u: %10lu %10lu  %s %4u-edge      %s\n", irq, count - count / 3,
                       count / 3, chip, irq, actions);
        if (fclose(file) != 0)
                fail(full);

        for (const char *p = actions; *p != '\0'; p++)
                if (!(*p == ' ' && p > actions && p[-1] == ','))
                        joined[n++] = *p;
        joined[n] = '\0';
        (void) snprintf(path, sizeof(path), "sys/kernel/irq/%u/actions", irq);
        tree_file(tree, path, "%s\n", joined);
        (void) snprintf(path, sizeof(path), "proc/irq/%u/effective_affinity_list", irq);
        tree_file(tree, path, "%u\n", irq % 2);
}

/* ---- threads ---- */

static void stat_file(struct irq_tree *tree, pid_t tid, const char *name, int ppid, unsigned flags,
                      int priority, int policy) {
        char path[64];

        (void) snprintf(path, sizeof(path), "proc/%d/stat", (int) tid);
        tree_file(tree, path,
                  "%d (%s) S %d 0 0 0 -1 %u 0 0 0 0 0 0 0 0 %d 0 1 0 %d 0 0 "
                  "18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 17 1 %d %d 0 0 0 0 0 0 0 "
                  "0 0 "
                  "0 0\n",
                  (int) tid, name, ppid, flags, -1 - priority, 1000 + (int) tid, priority, policy);
        (void) snprintf(path, sizeof(path), "proc/%d/comm", (int) tid);
        tree_file(tree, path, "%s\n", name);
}

static void write_children(struct irq_tree *tree) {
        tree_file(tree, "proc/2/task/2/children", "%s", tree->children);
}

void tree_kthread_numbered(struct irq_tree *tree, pid_t tid, const char *name) {
        size_t n = strlen(tree->children);

        stat_file(tree, tid, name, 2, 0x208040, 50, 1);
        (void) snprintf(tree->children + n, sizeof(tree->children) - n, "%d ", (int) tid);
        write_children(tree);
}

pid_t tree_kthread(struct irq_tree *tree, const char *name) {
        tree_kthread_numbered(tree, ++tree->next_tid, name);
        return tree->next_tid;
}

void tree_kthread_remove(struct irq_tree *tree, pid_t tid) {
        char word[16], *at, full[PATH_MAX];

        (void) snprintf(word, sizeof(word), "%d ", (int) tid);
        for (at = tree->children; (at = strstr(at, word)); at++)
                if (at == tree->children || at[-1] == ' ') {
                        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
                        break;
                }
        write_children(tree);
        (void) snprintf(full, sizeof(full), "%s/proc/%d/stat", tree->directory, (int) tid);
        (void) unlink(full);
}

pid_t tree_process(struct irq_tree *tree, const char *name) {
        stat_file(tree, ++tree->next_tid, name, 1, 0x400000, 0, 0);
        return tree->next_tid;
}
