/* SPDX-License-Identifier: MIT */

/*
 * How much a disk is given to do at a time: a long request that is under way holds up a short one
 * that a recording waits for. The device is named by number or name, never by a path: whose path it
 * may be, the client's own rights decide, and librtgrant looks it up.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "broker/kinds/resources.h"
#include "broker/sysfs.h"

#define DEPTH_MAX 6             /* crypt on LVM on RAID on partitions, and some */

static bool queue_probe(char *cause, size_t size) {
        if (access("/sys/dev/block", R_OK) >= 0)
                return true;

        (void) snprintf(cause, size, "cannot read /sys/dev/block: %s", strerror(errno));
        return false;
}

/* sysfs writes '/' in names of devices as '!'. */
static bool name_is_sound(const char *name) {
        size_t length = strlen(name);

        return length > 0 && length < 32 && name[0] != '.' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.!") ==
                       length;
}

static bool number_is_sound(const char *text, unsigned *ret_major, unsigned *ret_minor) {
        char rest;

        return strspn(text, "0123456789:") == strlen(text) && strlen(text) <= 12 &&
               sscanf(text, "%7u:%7u%c", ret_major, ret_minor, &rest) == 2;
}

static bool has(const char *dir, const char *name) {
        char path[PATH_MAX];

        return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int) sizeof(path) &&
               access(path, F_OK) >= 0;
}

struct found {
        struct resource_name *names;
        unsigned n;
};

/* A disk: what has a queue of its own, and is made of nothing else. */
static bool add_disk(struct found *found, const char *dir) {
        struct resource_name *name = &found->names[found->n];
        char path[PATH_MAX], text[32], target[PATH_MAX];
        unsigned major, minor;

        if (snprintf(path, sizeof(path), "%s/dev", dir) >= (int) sizeof(path) ||
            sysfs_read(path, text, sizeof(text)) < 0 || !number_is_sound(text, &major, &minor) ||
            !has(dir, "queue/max_sectors_kb") || !realpath(dir, target))
                return false;

        *name = (struct resource_name) { .key = (uint64_t) major << 32 | minor };
        (void) snprintf(name->label, sizeof(name->label), "%.31s", strrchr(target, '/') + 1);
        for (unsigned i = 0; i < found->n; i++)
                if (found->names[i].key == name->key)
                        return true;
        found->n++;
        return true;
}

/* The disks below a partition, a volume, an array. */
static bool add_device(struct found *found, const char *dir, unsigned depth) {
        char path[PATH_MAX];
        bool some = false, all = true;
        struct dirent *entry;
        DIR *slaves;

        if (depth == DEPTH_MAX || found->n == LEASE_HOLDS_MAX)
                return false;
        if (has(dir, "partition"))
                return snprintf(path, sizeof(path), "%s/..", dir) < (int) sizeof(path) &&
                       add_device(found, path, depth + 1);

        if (snprintf(path, sizeof(path), "%s/slaves", dir) >= (int) sizeof(path))
                return false;
        slaves = opendir(path);
        while (slaves && all && (entry = readdir(slaves))) {
                if (entry->d_name[0] == '.')
                        continue;
                some = true;
                all = snprintf(path, sizeof(path), "%s/slaves/%s", dir, entry->d_name) <
                              (int) sizeof(path) &&
                      add_device(found, path, depth + 1);
        }
        if (slaves)
                (void) closedir(slaves);

        return some ? all : add_disk(found, dir);
}

static enum reason queue_find(const struct resource_query *query,
                              struct resource_name ret_names[LEASE_HOLDS_MAX], unsigned *ret_n,
                              char *cause, size_t size) {
        struct found found = { .names = ret_names };
        unsigned major, minor;
        char dir[PATH_MAX];

        if (number_is_sound(query->device, &major, &minor)) {
                (void) snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major, minor);
        } else if (name_is_sound(query->device)) {
                (void) snprintf(dir, sizeof(dir), "/sys/class/block/%s", query->device);
        } else {
                (void) snprintf(cause, size, "a disk is named as in /sys/class/block, or MAJOR:MINOR");
                return REASON_NO_SUCH_DEVICE;
        }
        if (!add_device(&found, dir, 0)) {
                (void) snprintf(cause, size, "there is no disk with a queue of that name");
                return REASON_NO_SUCH_DEVICE;
        }

        *ret_n = found.n;
        return REASON_NONE;
}

static void queue_path(const struct resource *resource, char buffer[96]) {
        (void) snprintf(buffer, 96, "/sys/dev/block/%u:%u/queue/max_sectors_kb",
                        (unsigned) (resource->name.key >> 32), (unsigned) resource->name.key);
}

static int queue_read(const struct resource *resource, int64_t *ret) {
        char path[96];
        int r;

        queue_path(resource, path);
        r = sysfs_read_number(path, ret);
        return r == -ENOENT ? -ENODEV : r;
}

static int queue_capture(struct resource *resource, struct resource_value *ret) {
        struct resource_value value = {};
        int r;

        r = queue_read(resource, &value.n[0]);
        if (r < 0)
                return r;

        *ret = value;
        return 0;
}

/* An administrator's lower value stays. */
static void queue_aim(const struct resource *resource, int64_t value, struct resource_value *ret) {
        ret->n[0] = value < resource->saved.n[0] ? value : resource->saved.n[0];
}

static int queue_apply(struct resource *resource, const struct resource_value *set) {
        char path[96];

        queue_path(resource, path);
        return sysfs_write_number(path, set->n[0]);
}

static int queue_verify(struct resource *resource, const struct resource_value *set) {
        int64_t now;
        int r;

        r = queue_read(resource, &now);
        return r < 0 ? r : now == set->n[0];
}

static int queue_restore(struct resource *resource) {
        int r;

        r = queue_verify(resource, &resource->set);
        if (r != 1)
                return r;

        r = queue_apply(resource, &resource->saved);
        return r < 0 ? r : 1;
}

const struct resource_kind resource_block_queue = {
        .name = "block-queue",
        .index = RESOURCE_BLOCK_QUEUE,
        .want = WIRE_WANT_BLOCK_QUEUE,
        .probe = queue_probe,
        .find = queue_find,
        .capture = queue_capture,
        .aim = queue_aim,
        .apply = queue_apply,
        .verify = queue_verify,
        .restore = queue_restore,
};
