/* SPDX-License-Identifier: MIT */

#include "client/rtgrantctl-kernel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

#define CAP_SYS_NICE_BIT 23
#define VALUE_SIZE 64
#define PARENTS_MAX 64

/* A limit of getrlimit(2) as /proc/PID/limits names it. */
static const struct limit_name {
        const char *name;
        const char *label;
        const char *systemd;    /* the setting of a unit */
        const char *pam;        /* the item of limits.conf(5) */
} limit_names[] = {
        { "RLIMIT_RTPRIO", "Max realtime priority", "LimitRTPRIO=", "rtprio" },
        { "RLIMIT_RTTIME", "Max realtime timeout", "LimitRTTIME=", "rttime" },
        { "RLIMIT_NICE", "Max nice priority", "LimitNICE=", "nice" },
        { "RLIMIT_MEMLOCK", "Max locked memory", "LimitMEMLOCK=", "memlock" },
};

struct limit_found {
        char soft[VALUE_SIZE];
        char hard[VALUE_SIZE];
        char origin[320];
};

struct kernel_part {
        char cgroup[512];               /* of the cpu controller of cgroup v1; "": none */
        bool has_budget;                /* RT_GROUP_SCHED is there: then the next two */
        char budget_path[768];
        int64_t budget_us;
        int64_t throttle_us;            /* sched_rt_runtime_us; -1: off */
        char lsm[256];
        char label[256];                /* of the security module; "" none */
        bool has_cap;                   /* CAP_SYS_NICE in effect */
        int seccomp;
        struct limit_found limits[ELEMENTS(limit_names)];
};

static FILE *open_proc(pid_t pid, const char *name) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        return fopen(path, "re");
}

static bool read_first_line(const char *path, char *buffer, size_t size) {
        FILE *file = fopen(path, "re");
        bool read;

        buffer[0] = '\0';
        if (!file)
                return false;
        read = fgets(buffer, (int) size, file);
        (void) fclose(file);
        buffer[strcspn(buffer, "\n")] = '\0';
        return read;
}

static bool read_number(const char *path, int64_t *ret) {
        char line[64], *end;

        if (!read_first_line(path, line, sizeof(line)))
                return false;
        *ret = strtoll(line, &end, 10);
        return end != line;
}

static bool read_limit(pid_t pid, const char *label, struct limit_found *ret) {
        char line[256];
        FILE *file = open_proc(pid, "limits");
        bool found = false;

        if (!file)
                return false;
        while (!found && fgets(line, sizeof(line), file))
                if (strncmp(line, label, strlen(label)) == 0)
                        found = sscanf(line + strlen(label), "%63s %63s", ret->soft, ret->hard) == 2;
        (void) fclose(file);
        return found;
}

/* A field of /proc/PID/status; false if there is none. */
static bool read_status(pid_t pid, const char *field, char *buffer, size_t size) {
        char line[256];
        FILE *file = open_proc(pid, "status");
        size_t length = strlen(field);
        bool found = false;

        if (!file)
                return false;
        while (!found && fgets(line, sizeof(line), file))
                if (strncmp(line, field, length) == 0 && line[length] == ':') {
                        char *value = line + length + 1 + strspn(line + length + 1, " \t");

                        value[strcspn(value, "\n")] = '\0';
                        (void) snprintf(buffer, size, "%s", value);
                        found = true;
                }
        (void) fclose(file);
        return found;
}

static pid_t read_parent(pid_t pid) {
        char text[32];

        return read_status(pid, "PPid", text, sizeof(text)) ? (pid_t) atoi(text) : 0;
}

static bool is_login(const char *comm) {
        static const char *const names[] = { "sshd", "login", "su",   "sudo",   "gdm",   "sddm",
                                             "cron", "lightdm", "agetty", "greetd" };

        for (size_t i = 0; i < ELEMENTS(names); i++)
                if (strncmp(comm, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

/* Of RLIMIT_RTTIME the kernel moves the soft limit up itself, each time it sends SIGXCPU. */
static bool is_same(const struct limit_name *name, const struct limit_found *a,
                    const struct limit_found *b) {
        return strcmp(a->hard, b->hard) == 0 &&
               (strcmp(a->soft, b->soft) == 0 || strcmp(name->name, "RLIMIT_RTTIME") == 0);
}

/* The eldest in the line of parents with the same limit, and what its own parent lets guess. */
static void find_origin(pid_t pid, const struct limit_name *name, struct limit_found *found) {
        char comm[64] = "", parent_comm[64] = "", printable[160];
        pid_t first = pid, parent;
        struct limit_found above;

        for (int i = 0; i < PARENTS_MAX; i++) {
                parent = read_parent(first);
                if (parent <= 0 || !read_limit(parent, name->label, &above) ||
                    !is_same(name, &above, found))
                        break;
                first = parent;
        }

        (void) read_status(first, "Name", comm, sizeof(comm));
        parent = read_parent(first);
        if (parent > 0)
                (void) read_status(parent, "Name", parent_comm, sizeof(parent_comm));
        text_printable(printable, sizeof(printable), comm);

        if (first == 1)
                (void) snprintf(found->origin, sizeof(found->origin),
                                "the system's default (Default%s in systemd-system.conf(5), or the "
                                "kernel's)", name->systemd);
        else if (is_login(comm) || is_login(parent_comm))
                (void) snprintf(found->origin, sizeof(found->origin),
                                "a login, pid %d (%s): item %s in /etc/security/limits.conf or "
                                "limits.d", (int) first, printable, name->pam);
        else if (strcmp(comm, "systemd") == 0)
                (void) snprintf(found->origin, sizeof(found->origin),
                                "the user's service manager, pid %d: %s of user@.service, or item %s "
                                "in /etc/security/limits.d", (int) first, name->systemd, name->pam);
        else if (parent == 1 || strcmp(parent_comm, "systemd") == 0)
                (void) snprintf(found->origin, sizeof(found->origin),
                                "the service of pid %d (%s): %s of its unit", (int) first, printable,
                                name->systemd);
        else if (first == pid)
                (void) snprintf(found->origin, sizeof(found->origin),
                                "the process itself, or who started it");
        else
                (void) snprintf(found->origin, sizeof(found->origin), "inherited from pid %d (%s)",
                                (int) first, printable);
}

/* Only the cpu controller of cgroup v1 has budgets, and only with CONFIG_RT_GROUP_SCHED. */
static void read_budget(pid_t pid, struct kernel_part *ret) {
        static const char *const mounts[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct" };
        char line[600];
        FILE *file = open_proc(pid, "cgroup");

        if (!file)
                return;
        while (fgets(line, sizeof(line), file)) {
                char *controllers = strchr(line, ':'), *path;

                path = controllers ? strchr(controllers + 1, ':') : NULL;
                if (!path)
                        continue;
                *path++ = '\0';
                path[strcspn(path, "\n")] = '\0';
                if (controllers[1] == '\0' && ret->cgroup[0] == '\0')
                        (void) snprintf(ret->cgroup, sizeof(ret->cgroup), "%s", path);
                if (strcmp(controllers + 1, "cpu") != 0 && !strstr(controllers + 1, "cpu,"))
                        continue;
                (void) snprintf(ret->cgroup, sizeof(ret->cgroup), "%s", path);
                for (size_t i = 0; i < ELEMENTS(mounts) && !ret->has_budget; i++) {
                        (void) snprintf(ret->budget_path, sizeof(ret->budget_path),
                                        "%s%s/cpu.rt_runtime_us", mounts[i], path);
                        ret->has_budget = read_number(ret->budget_path, &ret->budget_us);
                }
        }
        (void) fclose(file);
}

static void kernel_part_read(pid_t pid, struct kernel_part *ret) {
        char text[128], path[64];

        *ret = (struct kernel_part) { .seccomp = -1 };
        read_budget(pid, ret);
        if (!read_number("/proc/sys/kernel/sched_rt_runtime_us", &ret->throttle_us))
                ret->throttle_us = 0;
        (void) read_first_line("/sys/kernel/security/lsm", ret->lsm, sizeof(ret->lsm));
        (void) snprintf(path, sizeof(path), "/proc/%d/attr/current", (int) pid);
        (void) read_first_line(path, ret->label, sizeof(ret->label));
        if (read_status(pid, "CapEff", text, sizeof(text)))
                ret->has_cap = strtoull(text, NULL, 16) >> CAP_SYS_NICE_BIT & 1;
        if (read_status(pid, "Seccomp", text, sizeof(text)))
                ret->seccomp = atoi(text);

        for (size_t i = 0; i < ELEMENTS(limit_names); i++)
                if (read_limit(pid, limit_names[i].label, &ret->limits[i]))
                        find_origin(pid, &limit_names[i], &ret->limits[i]);
}

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...) {
        char raw[1200], printable[2400];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(raw, sizeof(raw), format, args);
        va_end(args);
        text_printable(printable, sizeof(printable), raw);
        printf("  kernel: %s\n", printable);
}

void kernel_part_print(pid_t pid) {
        struct kernel_part k;

        kernel_part_read(pid, &k);
        if (k.has_budget)
                line("real-time budget of its cgroup: %" PRId64 " us%s (%s)", k.budget_us,
                     k.budget_us == 0 ? ", so the kernel refuses real-time there" : "", k.budget_path);
        if (k.throttle_us == 0)
                line("kernel.sched_rt_runtime_us is 0: no real-time thread runs at all");
        if (k.seccomp > 0)
                line("a system call filter is on it (Seccomp: %d)", k.seccomp);
        if (k.label[0] != '\0')
                line("security module: %s (of %s)", k.label, k.lsm);
        line("CAP_SYS_NICE: %s", k.has_cap ? "yes: it may set itself what it likes" : "no");
        for (size_t i = 0; i < ELEMENTS(limit_names); i++)
                if (k.limits[i].soft[0] != '\0')
                        line("%s %s, hard %s: from %s", limit_names[i].name, k.limits[i].soft,
                             k.limits[i].hard, k.limits[i].origin);
}

json_object *kernel_part_json(pid_t pid) {
        json_object *object = json_object_new_object(), *limits = json_object_new_object();
        struct kernel_part k;

        kernel_part_read(pid, &k);
        json_add_text(object, "cgroup", k.cgroup);
        json_add_text(object, "rt_budget_path", k.has_budget ? k.budget_path : "");
        if (k.has_budget)
                json_add_int(object, "rt_budget_us", k.budget_us);
        else
                json_add_null(object, "rt_budget_us");
        json_add_int(object, "sched_rt_runtime_us", k.throttle_us);
        json_add_bool(object, "cap_sys_nice", k.has_cap);
        json_add_int(object, "seccomp", k.seccomp);
        json_add_text(object, "lsm", k.lsm);
        json_add_text(object, "label", k.label);
        for (size_t i = 0; i < ELEMENTS(limit_names); i++) {
                json_object *limit = json_object_new_object();

                json_add_text(limit, "soft", k.limits[i].soft);
                json_add_text(limit, "hard", k.limits[i].hard);
                json_add_text(limit, "origin", k.limits[i].origin);
                (void) json_object_object_add(limits, limit_names[i].name, limit);
        }
        (void) json_object_object_add(object, "limits", limits);
        return object;
}
