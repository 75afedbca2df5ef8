/* SPDX-License-Identifier: MIT */

/*
 * How much memory a process may lock: RLIMIT_MEMLOCK, soft and hard. Raising it for another process
 * takes CAP_SYS_RESOURCE. It is inherited by children; what they have is counted as lent, and taken
 * back with the last lease of their user.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "broker/cleanup.h"
#include "broker/kinds/process.h"
#include "broker/kinds/resources.h"
#include "broker/peer.h"
#include "broker/proc.h"
#include "broker/thread.h"

#define PROCESSES_MAX 32768U    /* looked at for what was inherited */

enum { SOFT, HARD };

/* Limits as the kernel has them, unsigned; they are only kept as signed numbers. */
static uint64_t limit(const struct resource_value *value, int which) {
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): a failure sets errno */
        return (uint64_t) value->n[which];
}

static int limits_read(pid_t pid, struct resource_value *ret) {
        struct rlimit now;

        if (prlimit(pid, RLIMIT_MEMLOCK, NULL, &now) < 0)
                return -errno;

        *ret = (struct resource_value) {};
        ret->n[SOFT] = (int64_t) now.rlim_cur;
        ret->n[HARD] = (int64_t) now.rlim_max;
        return 0;
}

static int limits_write(pid_t pid, uint64_t soft, uint64_t hard) {
        const struct rlimit next = { .rlim_cur = soft < hard ? soft : hard, .rlim_max = hard };

        return prlimit(pid, RLIMIT_MEMLOCK, &next, NULL) < 0 ? -errno : 0;
}

/* Asks for it, for the broker itself: capability, namespace and filters all have their say. */
static bool memlock_probe(char *cause, size_t size) {
        struct resource_value now;
        struct proc_status status;
        bool can;

        if (limits_read(getpid(), &now) < 0) {
                (void) snprintf(cause, size, "prlimit: %s", strerror(errno));
                return false;
        }
        if (limit(&now, HARD) == RLIM_INFINITY) {
                can = proc_read_status(getpid(), 0, &status) >= 0 &&
                      status.cap_effective & UINT64_C(1) << CAP_SYS_RESOURCE;
        } else {
                can = limits_write(getpid(), limit(&now, SOFT), limit(&now, HARD) + 4096) >= 0;
                if (can)
                        (void) limits_write(getpid(), limit(&now, SOFT), limit(&now, HARD));
        }
        if (!can)
                (void) snprintf(cause, size,
                                "the broker lacks CAP_SYS_RESOURCE, which raising RLIMIT_MEMLOCK "
                                "takes");
        return can;
}

static enum reason memlock_find(const struct resource_query *query,
                                struct resource_name ret_names[LEASE_HOLDS_MAX], unsigned *ret_n,
                                char *cause, size_t size) {
        if (process_resource_name(query->thread->pid, &ret_names[0]) < 0)
                return REASON_NO_SUCH_THREAD;

        *ret_n = 1;
        return REASON_NONE;
}

static int memlock_capture(struct resource *resource, struct resource_value *ret) {
        int r;

        r = process_resource_open(resource);
        return r < 0 ? r : limits_read(resource->name.pid, ret);
}

static void memlock_aim(const struct resource *resource, int64_t value,
                        struct resource_value *ret) {
        const struct resource_value *saved = &resource->saved;

        ret->n[SOFT] = limit(saved, SOFT) > (uint64_t) value ? saved->n[SOFT] : value;
        ret->n[HARD] = limit(saved, HARD) > (uint64_t) value ? saved->n[HARD] : value;
}

static int memlock_apply(struct resource *resource, const struct resource_value *set) {
        if (process_resource_has_ended(resource))
                return -ESRCH;

        return limits_write(resource->name.pid, limit(set, SOFT), limit(set, HARD));
}

static int memlock_verify(struct resource *resource, const struct resource_value *set) {
        struct resource_value now;
        int r;

        if (process_resource_has_ended(resource))
                return -ESRCH;
        r = limits_read(resource->name.pid, &now);
        return r < 0 ? r : now.n[SOFT] == set->n[SOFT] && now.n[HARD] == set->n[HARD];
}

uint64_t memlock_locked(pid_t pid) {
        _cleanup_free_ char *text = NULL;
        unsigned long long kib = 0;
        const char *line;

        if (proc_read(pid, 0, "status", &text, NULL) < 0)
                return 0;

        /* the name comes first, with newlines escaped: the line cannot be feigned */
        line = strstr(text, "\nVmLck:");
        if (!line || sscanf(line, "\nVmLck: %llu kB", &kib) != 1)
                return 0;
        return (uint64_t) kib * 1024;
}

/*
 * Back to @saved, but not below what is locked: with MCL_FUTURE every new mapping would fail, and a
 * program dies of that.
 */
static int lower(pid_t pid, const struct resource_value *now, const struct resource_value *saved) {
        uint64_t locked = memlock_locked(pid), soft = limit(saved, SOFT), hard = limit(saved, HARD);

        if (soft > limit(now, SOFT))
                soft = limit(now, SOFT);
        if (soft < locked)
                soft = locked;
        if (hard < soft)
                hard = soft;
        if (hard > limit(now, HARD))
                hard = limit(now, HARD);
        return limits_write(pid, soft, hard);
}

static int memlock_restore(struct resource *resource) {
        const struct resource_value *saved = &resource->saved, *set = &resource->set;
        pid_t pid = resource->name.pid;
        struct resource_value now;
        int r;

        if (process_resource_has_ended(resource))
                return -ESRCH;
        r = limits_read(pid, &now);
        if (r < 0)
                return r;
        /* what its owner lowered is still ours to take, as far as it is above what was there */
        if (limit(&now, HARD) > limit(set, HARD) || limit(&now, HARD) < limit(saved, HARD) ||
            (limit(&now, HARD) == limit(saved, HARD) && limit(&now, SOFT) <= limit(saved, SOFT)))
                return 0;

        r = lower(pid, &now, saved);
        return r < 0 ? r : 1;
}

/* What those of a user in the table had before at the least, and have at the most; who is the oldest. */
struct range {
        uint64_t saved;
        uint64_t set;
        uint64_t born;          /* clock ticks since boot */
};

static bool find_range(GHashTable *table, uid_t uid, struct range *ret) {
        struct range range = { .saved = UINT64_MAX, .born = UINT64_MAX };
        GHashTableIter iter;
        gpointer entry;

        g_hash_table_iter_init(&iter, table);
        while (g_hash_table_iter_next(&iter, &entry, NULL)) {
                const struct resource *resource = entry;

                if (resource->kind != &resource_memlock || resource->quota_uid != uid)
                        continue;
                if (limit(&resource->saved, HARD) < range.saved)
                        range.saved = limit(&resource->saved, HARD);
                if (limit(&resource->set, HARD) > range.set)
                        range.set = limit(&resource->set, HARD);
                if (process_resource_born(resource) < range.born)
                        range.born = process_resource_born(resource);
        }

        *ret = range;
        return range.set > range.saved;
}

static bool is_in_table(GHashTable *table, pid_t pid) {
        GHashTableIter iter;
        gpointer entry;

        g_hash_table_iter_init(&iter, table);
        while (g_hash_table_iter_next(&iter, &entry, NULL)) {
                const struct resource *resource = entry;

                if (resource->kind == &resource_memlock && resource->name.pid == pid)
                        return true;
        }

        return false;
}

/*
 * It is older than whom it would have inherited from; or it ended, and its parent has not looked yet.
 * That its first thread alone ended does not count.
 */
static bool is_no_heir(pid_t pid, uint64_t born) {
        struct proc_stat stat;
        char path[64];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        /* as many links as threads, and two */
        return proc_read_stat(pid, 0, &stat) < 0 || stat.start_time < born ||
               (stat.state == 'Z' && (lstat(path, &st) < 0 || st.st_nlink <= 3));
}

static bool is_in_range(pid_t pid, const struct range *range, struct resource_value *ret_now) {
        return limits_read(pid, ret_now) >= 0 && limit(ret_now, HARD) > range->saved &&
               limit(ret_now, HARD) <= range->set;
}

/* A process that runs as another than @uid, but in a user namespace which that one made. */
static bool is_behind(pid_t pid, uid_t process_uid, uid_t uid) {
        bool in_user_namespace;
        uid_t owner;

        return process_uid >= POLICY_SYSTEM_UID_END &&
               peer_read_quota_uid(pid, process_uid, &in_user_namespace, &owner) >= 0 &&
               owner == uid;
}

/*
 * The processes of @uid outside of @table whose hard limit is above @range->saved and at most
 * @range->set, and who are young enough to have inherited that. Returns what they may lock; lowers
 * it to @saved, if that is not NULL.
 */
static uint64_t scan_heirs(GHashTable *table, uid_t uid, const struct range *range,
                           const struct resource_value *saved) {
        struct resource_value now;
        struct dirent *entry;
        uint64_t bytes = 0;
        unsigned n = 0;
        struct stat st;
        DIR *proc;

        proc = opendir("/proc");
        if (!proc)
                return 0;

        while ((entry = readdir(proc)) && n < PROCESSES_MAX) {
                pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);

                if (pid <= 0)
                        continue;
                n++;
                if (fstatat(dirfd(proc), entry->d_name, &st, 0) < 0 ||
                    (st.st_uid != uid && st.st_uid < POLICY_SYSTEM_UID_END) ||
                    !is_in_range(pid, range, &now) ||
                    (st.st_uid != uid && !is_behind(pid, st.st_uid, uid)) ||
                    is_in_table(table, pid) || is_no_heir(pid, range->born))
                        continue;

                bytes += limit(&now, HARD);
                if (saved)
                        (void) lower(pid, &now, saved);
        }
        (void) closedir(proc);
        return bytes;
}

uint64_t memlock_inherited(GHashTable *table, uid_t uid) {
        struct range range;

        return find_range(table, uid, &range) ? scan_heirs(table, uid, &range, NULL) : 0;
}

/* Others of the user may have passed theirs on too: then it stays, counted, till the last is gone. */
static void memlock_released(GHashTable *table, const struct resource *gone) {
        const struct range own = { limit(&gone->saved, HARD), limit(&gone->set, HARD),
                                    process_resource_born(gone) };
        struct range others;

        if (find_range(table, gone->quota_uid, &others))
                return;

        /* again, as long as there are some: they may be forking */
        for (int pass = 0; pass < 3; pass++)
                if (scan_heirs(table, gone->quota_uid, &own, &gone->saved) == 0)
                        return;
}

const struct resource_kind resource_memlock = {
        .name = "memlock",
        .index = RESOURCE_MEMLOCK,
        .want = WIRE_WANT_MEMLOCK,
        .highest = true,
        .probe = memlock_probe,
        .find = memlock_find,
        .capture = memlock_capture,
        .aim = memlock_aim,
        .apply = memlock_apply,
        .verify = memlock_verify,
        .restore = memlock_restore,
        .released = memlock_released,
};
