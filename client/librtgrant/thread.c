/* SPDX-License-Identifier: MIT */

#include "client/librtgrant/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/cleanup.h"

/* struct sched_attr as first published (48 bytes); include/uapi/linux/sched/types.h */
struct kernel_attr {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
};

#define KERNEL_FLAG_RESET_ON_FORK UINT64_C(1)

pid_t thread_self(void) {
        return (pid_t) syscall(SYS_gettid);
}

bool thread_is_own(pid_t tid) {
        return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

bool policy_is_rt(int policy) {
        return policy == SCHED_FIFO || policy == SCHED_RR;
}

int thread_read(pid_t tid, struct thread_values *ret) {
        struct kernel_attr attr = {};
        long knice;

        if (syscall(SYS_sched_getattr, tid, &attr, (unsigned) sizeof(attr), 0U) < 0)
                return -errno;

        /* sched_getattr says 0 for the nice of a real-time thread. This returns 20 - nice. */
        knice = syscall(SYS_getpriority, PRIO_PROCESS, tid);
        if (knice < 0)
                return -errno;

        *ret = (struct thread_values) {
                .policy = (int) attr.policy,
                .priority = (int) attr.priority,
                .nice = 20 - (int) knice,
                .reset_on_fork = attr.flags & KERNEL_FLAG_RESET_ON_FORK,
        };
        return 0;
}

int thread_write(pid_t tid, const struct thread_values *values) {
        struct kernel_attr attr = {
                .size = sizeof(attr),
                .policy = (uint32_t) values->policy,
                .flags = values->reset_on_fork ? KERNEL_FLAG_RESET_ON_FORK : 0,
                .nice = values->nice,
                .priority = (uint32_t) values->priority,
        };

        if (syscall(SYS_sched_setattr, tid, &attr, 0U) < 0)
                return -errno;

        return 0;
}

int thread_write_slice(pid_t tid, uint64_t slice_ns) {
        struct kernel_attr attr = { .size = sizeof(attr) };

        if (syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) < 0)
                return -errno;
        if (attr.policy != SCHED_OTHER)
                return -EBUSY;

        attr.size = sizeof(attr);
        attr.flags &= KERNEL_FLAG_RESET_ON_FORK;
        attr.runtime = slice_ns;
        if (syscall(SYS_sched_setattr, tid, &attr, 0) < 0)
                return -errno;

        /* An older kernel takes it and forgets it. */
        if (syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) < 0)
                return -errno;
        return attr.runtime == slice_ns ? 0 : -ENOTSUP;
}

int thread_write_nice(pid_t tid, int nice) {
        if (syscall(SYS_setpriority, PRIO_PROCESS, tid, nice) < 0)
                return -errno;

        return 0;
}

bool thread_exists(pid_t pid, pid_t tid) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d", (int) pid, (int) tid);
        return access(path, F_OK) == 0;
}

/* All of @path, NUL-terminated, or its first @size - 1 bytes. */
static int read_text(const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        size_t length = 0;
        ssize_t n;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        while (length < size - 1) {
                n = read(fd, buffer + length, size - 1 - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }

        buffer[length] = '\0';
        return 0;
}

pid_t thread_of_pidfd(int pidfd) {
        char path[64], buffer[512];
        const char *line;
        long tid;

        (void) snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        if (read_text(path, buffer, sizeof(buffer)) < 0)
                return 0;

        line = strstr(buffer, "\nPid:");
        tid = line ? strtol(line + strlen("\nPid:"), NULL, 10) : 0;
        return tid > 0 ? (pid_t) tid : 0;
}

static int read_start_time(const char *path, uint64_t *ret) {
        unsigned long long start_time;
        char buffer[1024];
        const char *p;
        int r;

        r = read_text(path, buffer, sizeof(buffer));
        if (r < 0)
                return r;

        /* The thread's name is field 2 and printed raw: it may hold ") R 1" and line ends. */
        p = strrchr(buffer, ')');
        if (!p)
                return -ENODATA;

        for (int field = 2; field < 22; field++) {
                p = strchr(p + 1, ' ');
                if (!p)
                        return -ENODATA;
        }

        if (sscanf(p, " %llu", &start_time) != 1)
                return -ENODATA;

        *ret = start_time;
        return 0;
}

int thread_read_start_time(pid_t pid, pid_t tid, uint64_t *ret) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int) pid, (int) tid);
        return read_start_time(path, ret);
}

int thread_read_own_start_time(uint64_t *ret) {
        return read_start_time("/proc/thread-self/stat", ret);
}

int thread_read_inner_tid(pid_t pid, pid_t tid, pid_t *ret) {
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        const char *number;
        char path[64];
        size_t size = 0;
        long inner;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int) pid, (int) tid);

        file = fopen(path, "re");
        if (!file)
                return -errno;

        while (getline(&line, &size, file) >= 0) {
                if (strncmp(line, "NSpid:", strlen("NSpid:")) != 0)
                        continue;

                number = strrchr(line, '\t');
                inner = number ? strtol(number + 1, NULL, 10) : 0;
                if (inner < 1)
                        return -ENODATA;

                *ret = (pid_t) inner;
                return 0;
        }

        return -ENODATA;
}

static void close_directory(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

int thread_for_each(pid_t pid, thread_fn each, void *userdata) {
        _cleanup_(close_directory) DIR *directory = NULL;
        struct dirent *entry;
        char path[64];
        int r = 0;
        long tid;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);

        directory = opendir(path);
        if (!directory)
                return -errno;

        while (r == 0 && (entry = readdir(directory))) {
                tid = strtol(entry->d_name, NULL, 10);
                if (tid >= 1)
                        r = each((pid_t) tid, userdata);
        }

        return r;
}

struct inner_search {
        pid_t pid;
        pid_t inner;
        pid_t found;
};

static int match_inner_tid(pid_t tid, void *userdata) {
        struct inner_search *search = userdata;
        pid_t inner = 0;

        if (thread_read_inner_tid(search->pid, tid, &inner) < 0 || inner != search->inner)
                return 0;

        search->found = tid;
        return 1;
}

int thread_find_inner_tid(pid_t pid, pid_t inner, pid_t *ret) {
        struct inner_search search = { .pid = pid, .inner = inner };
        int r;

        r = thread_for_each(pid, match_inner_tid, &search);
        if (r < 0)
                return r;
        if (r == 0)
                return -ESRCH;

        *ret = search.found;
        return 0;
}
