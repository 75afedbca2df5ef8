/* SPDX-License-Identifier: MIT */

#include "client/doctor/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cleanup.h"

/* In struct thread_sched, as the kernel's PF_KTHREAD: include/linux/sched.h. */
#define FLAG_KERNEL_THREAD 0x00200000UL

#define CONFIG_SIZE_MAX (1 << 20)

static int make_path(const struct machine *machine, char path[PATH_MAX], const char *format,
                     va_list args) __attribute__((format(printf, 3, 0)));

static int make_path(const struct machine *machine, char path[PATH_MAX], const char *format,
                     va_list args) {
        int prefix = snprintf(path, PATH_MAX, "%s", machine->root), n;

        if (prefix >= PATH_MAX)
                return -ENAMETOOLONG;
        n = vsnprintf(path + prefix, (size_t) (PATH_MAX - prefix), format, args);
        return n < 0 || n >= PATH_MAX - prefix ? -ENAMETOOLONG : 0;
}

static ssize_t read_path(const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        size_t n = 0;

        if (fd < 0)
                return -errno;

        while (n < size - 1) {
                ssize_t r = read(fd, buffer + n, size - 1 - n);

                if (r < 0)
                        return -errno;
                if (r == 0)
                        break;
                n += (size_t) r;
        }
        if (n > 0 && buffer[n - 1] == '\n')
                n--;
        buffer[n] = '\0';
        return (ssize_t) n;
}

ssize_t machine_read(const struct machine *machine, char *buffer, size_t size, const char *format,
                     ...) {
        char path[PATH_MAX];
        va_list args;
        int r;

        va_start(args, format);
        r = make_path(machine, path, format, args);
        va_end(args);
        if (r < 0)
                return r;
        return read_path(path, buffer, size);
}

int machine_read_number(const struct machine *machine, int64_t *ret, const char *format, ...) {
        char path[PATH_MAX], text[64], *end;
        va_list args;
        ssize_t n;
        long long number;
        int r;

        va_start(args, format);
        r = make_path(machine, path, format, args);
        va_end(args);
        if (r < 0)
                return r;
        n = read_path(path, text, sizeof(text));
        if (n < 0)
                return (int) n;

        errno = 0;
        number = strtoll(text, &end, 10);
        if (end == text || errno != 0)
                return -EINVAL;
        *ret = number;
        return 0;
}

bool machine_has(const struct machine *machine, const char *format, ...) {
        char path[PATH_MAX];
        va_list args;
        int r;

        va_start(args, format);
        r = make_path(machine, path, format, args);
        va_end(args);
        return r == 0 && access(path, F_OK) == 0;
}

static int not_hidden(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

int machine_each(const struct machine *machine, name_fn each, void *userdata, const char *format,
                 ...) {
        char path[PATH_MAX];
        struct dirent **entries;
        va_list args;
        int n, r;

        va_start(args, format);
        r = make_path(machine, path, format, args);
        va_end(args);
        if (r < 0)
                return r;
        n = scandir(path, &entries, not_hidden, versionsort);
        if (n < 0)
                return -errno;

        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = each(entries[i]->d_name, userdata);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int machine_status(const struct machine *machine, pid_t pid, const char *key, char *buffer,
                   size_t size) {
        char text[8192], *line, *rest = text;
        size_t length = strlen(key);
        ssize_t n;

        n = machine_read(machine, text, sizeof(text), "/proc/%d/status", (int) pid);
        if (n < 0)
                return (int) n;

        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, key, length) == 0 && line[length] == ':') {
                        line += length + 1;
                        line += strspn(line, " \t");
                        (void) snprintf(buffer, size, "%s", line);
                        return 0;
                }
        return -ENOENT;
}

static uint64_t limit_value(const char *word) {
        return strcmp(word, "unlimited") == 0 ? UINT64_MAX : strtoull(word, NULL, 10);
}

int machine_limit(const struct machine *machine, pid_t pid, const char *row, uint64_t *ret_soft,
                  uint64_t *ret_hard) {
        char text[4096], soft[32], hard[32];
        const char *at;
        ssize_t n;

        n = machine_read(machine, text, sizeof(text), "/proc/%d/limits", (int) pid);
        if (n < 0)
                return (int) n;

        at = strstr(text, row);
        if (!at || sscanf(at + strlen(row), " %31s %31s", soft, hard) != 2)
                return -ENOENT;
        *ret_soft = limit_value(soft);
        *ret_hard = limit_value(hard);
        return 0;
}

int machine_thread(const struct machine *machine, pid_t pid, pid_t tid, struct thread_sched *ret) {
        char text[2048], *open, *close;
        unsigned long flags;
        int priority, policy;
        ssize_t n;

        n = machine_read(machine, text, sizeof(text), "/proc/%d/task/%d/stat", (int) pid,
                         (int) tid);
        if (n < 0)
                return (int) n;

        /* A thread names itself, and may do so as "x) R 1": what counts is after the last one. */
        open = strchr(text, '(');
        close = strrchr(text, ')');
        if (!open || !close || close < open)
                return -EINVAL;
        *close = '\0';
        /* Fields 9, flags; 40, rt_priority; 41, policy: proc_pid_stat(5). */
        if (sscanf(close + 1,
                   " %*c %*d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                   "%*u %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %*d %d %d",
                   &flags, &priority, &policy) != 3)
                return -EINVAL;

        *ret = (struct thread_sched){
                .policy = policy,
                .priority = priority,
                .kernel = flags & FLAG_KERNEL_THREAD,
        };
        (void) snprintf(ret->comm, sizeof(ret->comm), "%s", open + 1);
        return 0;
}

struct search {
        const struct machine *machine;
        const char *const *names;
        char comm[64];
        pid_t found;
};

static int match_process(const char *name, void *userdata) {
        struct search *search = userdata;

        if (!isdigit((unsigned char) name[0]) ||
            machine_read(search->machine, search->comm, sizeof(search->comm), "/proc/%s/comm",
                         name) < 0)
                return 0;

        for (const char *const *each = search->names; *each; each++)
                /* The kernel keeps 15 bytes of a name. */
                if (strncmp(search->comm, *each, 15) == 0) {
                        search->found = (pid_t) strtol(name, NULL, 10);
                        return 1;
                }
        return 0;
}

pid_t machine_find_process(const struct machine *machine, const char *const *names, char *comm,
                           size_t size) {
        struct search search = { .machine = machine, .names = names };

        if (machine_each(machine, match_process, &search, "/proc") <= 0)
                return 0;
        if (comm)
                (void) snprintf(comm, size, "%s", search.comm);
        return search.found;
}

bool machine_booted_with(const struct machine *machine, const char *word) {
        char text[4096], *token, *rest = text;
        size_t length = strlen(word);
        bool is_key = length > 0 && word[length - 1] == '=';

        if (machine_read(machine, text, sizeof(text), "/proc/cmdline") < 0)
                return false;
        while ((token = strsep(&rest, " \n")))
                if (is_key ? strncmp(token, word, length) == 0 : strcmp(token, word) == 0)
                        return true;
        return false;
}

bool machine_hides_processes(const struct machine *machine) {
        char text[16384], *line, *rest = text;

        if (machine_read(machine, text, sizeof(text), "/proc/self/mounts") < 0 &&
            machine_read(machine, text, sizeof(text), "/proc/mounts") < 0)
                return false;
        while ((line = strsep(&rest, "\n"))) {
                const char *option = strstr(line, "hidepid=");

                if (strstr(line, " /proc proc ") && option &&
                    strncmp(option, "hidepid=0", 9) != 0 && strncmp(option, "hidepid=off", 11) != 0)
                        return true;
        }
        return false;
}

int machine_kernel_version(const struct machine *machine) {
        char text[256];
        int major, minor;

        if (machine_read(machine, text, sizeof(text), "/proc/sys/kernel/osrelease") < 0 ||
            sscanf(text, "%d.%d", &major, &minor) != 2)
                return 0;
        return major * 1000 + minor;
}

int machine_config(const struct machine *machine, const char *name) {
        _cleanup_free_ char *text = malloc(CONFIG_SIZE_MAX);
        char release[256], line[128];
        const char *at;

        if (!text)
                return -ENOMEM;
        if (machine_read(machine, release, sizeof(release), "/proc/sys/kernel/osrelease") < 0 ||
            machine_read(machine, text, CONFIG_SIZE_MAX, "/boot/config-%s", release) < 0)
                return -ENOENT;

        (void) snprintf(line, sizeof(line), "CONFIG_%s=y", name);
        at = strstr(text, line);
        return at && (at == text || at[-1] == '\n');
}
