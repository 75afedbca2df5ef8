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

#include "broker/broker.h"
#include "broker/kinds/resources.h"
#include "broker/slow-write.h"
#include "broker/sysfs.h"
#include "broker/text.h"

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

/*
 * What is granted is the size of requests. Where the role says so, the disk gets fewer of them and
 * another scheduler besides: n[0] is max_sectors_kb, n[1] nr_requests (0: not ours to set), and text
 * the scheduler ("": likewise).
 */
enum { SIZE, REQUESTS };

static void attribute_path(const struct resource *resource, const char *name, char buffer[96]) {
        (void) snprintf(buffer, 96, "/sys/dev/block/%u:%u/queue/%s",
                        (unsigned) (resource->name.key >> 32), (unsigned) resource->name.key, name);
}

static int number_read(const struct resource *resource, const char *name, int64_t *ret) {
        char path[96];
        int r;

        attribute_path(resource, name, path);
        r = sysfs_read_number(path, ret);
        return r == -ENOENT ? -ENODEV : r;
}

/* "none [mq-deadline] bfq": the one in brackets; "" if it has none to choose. */
static void scheduler_read(const struct resource *resource, char ret[24]) {
        char path[96], text[256], *begin, *end;

        ret[0] = '\0';
        attribute_path(resource, "scheduler", path);
        if (sysfs_read(path, text, sizeof(text)) < 0)
                return;
        begin = strchr(text, '[');
        end = begin ? strchr(begin, ']') : NULL;
        if (!end || end - begin > 23)
                return;
        memcpy(ret, begin + 1, (size_t) (end - begin - 1));
        ret[end - begin - 1] = '\0';
}

static int queue_capture(struct resource *resource, struct resource_value *ret) {
        struct resource_value value = {};
        int r;

        r = number_read(resource, "max_sectors_kb", &value.n[SIZE]);
        if (r < 0)
                return r;
        (void) number_read(resource, "nr_requests", &value.n[REQUESTS]);
        scheduler_read(resource, value.text);

        *ret = value;
        return 0;
}

/* An administrator's lower values stay. Of the roles the least counts, and of the leases the first. */
static void queue_aim(const struct resource *resource, int64_t value, struct resource_value *ret) {
        const struct resource_value *saved = &resource->saved;

        ret->n[SIZE] = value < saved->n[SIZE] ? value : saved->n[SIZE];
        for (const GList *link = resource->holds.head; link; link = link->next) {
                const struct hold *hold = link->data;
                const struct role *role = policy_find_role(broker_policy(resource->broker),
                                                           hold->lease->role, NULL);

                if (!role)
                        continue;
                if (role->block_requests > 0 && saved->n[REQUESTS] > role->block_requests &&
                    (ret->n[REQUESTS] == 0 || ret->n[REQUESTS] > role->block_requests))
                        ret->n[REQUESTS] = role->block_requests;
                if (ret->text[0] == '\0' && saved->text[0] != '\0')
                        text_copy(ret->text, sizeof(ret->text), role->block_scheduler);
        }
}

static struct slow_step *add_step(const struct resource *resource, struct slow_step *steps,
                                  unsigned *n, const char *attribute) {
        struct slow_step *step = &steps[(*n)++];

        *step = (struct slow_step) {};
        attribute_path(resource, attribute, step->path);
        return step;
}

static void add_number(const struct resource *resource, struct slow_step *steps, unsigned *n,
                       const char *attribute, int64_t number, bool optional) {
        struct slow_step *step = add_step(resource, steps, n, attribute);

        (void) snprintf(step->text, sizeof(step->text), "%" PRIi64, number);
        step->optional = optional;
}

static void add_scheduler(const struct resource *resource, struct slow_step *steps, unsigned *n,
                          const char *scheduler) {
        struct slow_step *step = add_step(resource, steps, n, "scheduler");

        text_copy(step->text, sizeof(step->text), scheduler);
        step->optional = true;
}

/*
 * From what is there to @to. A scheduler brings a number of requests of its own along, so it comes
 * first, and what it brought is not kept where another number was there before.
 */
static void make_steps(const struct resource *resource, const struct resource_value *from,
                       const struct resource_value *to, struct slow_step *steps, unsigned *n) {
        const struct resource_value *saved = &resource->saved;
        const char *scheduler = to->text[0] != '\0' ? to->text : saved->text;
        bool other = strcmp(scheduler, from->text[0] != '\0' ? from->text : saved->text) != 0;
        int64_t requests = to->n[REQUESTS];

        if (other)
                add_scheduler(resource, steps, n, scheduler);
        if (requests == 0 && (from->n[REQUESTS] != 0 || (other && to->text[0] == '\0')))
                requests = saved->n[REQUESTS];
        if (requests != 0)
                add_number(resource, steps, n, "nr_requests", requests, to->n[REQUESTS] == 0);
        add_number(resource, steps, n, "max_sectors_kb", to->n[SIZE], false);
}

static int queue_apply(struct resource *resource, const struct resource_value *set) {
        const struct resource_value before =
                resource->in_force ? resource->set
                                   : (struct resource_value) { .n = { resource->saved.n[SIZE] } };
        struct slow_job job = { .key = resource->name.key };
        int r;

        make_steps(resource, &before, set, job.steps, &job.n_steps);
        make_steps(resource, set, &before, job.undo, &job.n_undo);
        r = slow_write(resource->broker->disks, &job);
        if (r >= 0 && set->text[0] != '\0' && strcmp(job.steps[0].text, set->text) == 0)
                resource->partly = !job.steps[0].is_done;
        return r;
}

static int queue_verify(struct resource *resource, const struct resource_value *set) {
        char scheduler[24];
        int64_t now;
        int r;

        r = number_read(resource, "max_sectors_kb", &now);
        if (r < 0 || now != set->n[SIZE])
                return r < 0 ? r : 0;
        if (set->n[REQUESTS] != 0 &&
            (number_read(resource, "nr_requests", &now) < 0 || now != set->n[REQUESTS]))
                return 0;
        if (set->text[0] == '\0' || resource->partly)
                return 1;
        scheduler_read(resource, scheduler);
        return strcmp(scheduler, set->text) == 0;
}

/* Each of them by itself: others may have changed one. */
static int queue_restore(struct resource *resource) {
        const struct resource_value *saved = &resource->saved, *set = &resource->set;
        struct slow_job job = { .key = resource->name.key };
        int64_t size, requests = 0;
        char scheduler[24];
        int r;

        r = number_read(resource, "max_sectors_kb", &size);
        if (r < 0)
                return r;
        (void) number_read(resource, "nr_requests", &requests);
        scheduler_read(resource, scheduler);

        if (set->text[0] != '\0' && strcmp(scheduler, set->text) == 0 &&
            strcmp(saved->text, set->text) != 0)
                add_scheduler(resource, job.steps, &job.n_steps, saved->text);
        if (set->n[REQUESTS] != 0 ? requests == set->n[REQUESTS] : job.n_steps > 0)
                add_number(resource, job.steps, &job.n_steps, "nr_requests", saved->n[REQUESTS],
                           true);
        if (size == set->n[SIZE])
                add_number(resource, job.steps, &job.n_steps, "max_sectors_kb", saved->n[SIZE],
                           false);
        if (job.n_steps == 0)
                return 0;

        r = slow_write(resource->broker->disks, &job);
        return r < 0 ? r : 1;
}

static void queue_explain(const struct resource *resource, char *text, size_t size) {
        text[0] = '\0';
        if (resource->partly && resource->set.text[0] != '\0')
                (void) snprintf(text, size, "disk %s keeps its scheduler: it cannot have %s",
                                resource->name.label, resource->set.text);
}

const struct resource_kind resource_block_queue = {
        .name = "block-queue",
        .index = RESOURCE_BLOCK_QUEUE,
        .want = WIRE_WANT_BLOCK_QUEUE,
        .follows_role = true,
        .probe = queue_probe,
        .find = queue_find,
        .capture = queue_capture,
        .aim = queue_aim,
        .apply = queue_apply,
        .verify = queue_verify,
        .restore = queue_restore,
        .explain = queue_explain,
};
