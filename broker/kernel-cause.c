/* SPDX-License-Identifier: MIT */

#include "broker/kernel-cause.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/proc.h"
#include "broker/sched-values.h"
#include "broker/text.h"

/* A filter answers before the kernel looks at the arguments, of which these are impossible. */
static bool is_filtered(void) {
        return syscall(SYS_sched_setattr, (pid_t) syscall(SYS_gettid), NULL, 0U) < 0 &&
               errno != EINVAL;
}

static bool lacks_capability(void) {
        struct proc_status status;

        return proc_read_status(getpid(), 0, &status) >= 0 &&
               !(status.cap_effective & (UINT64_C(1) << CAP_SYS_NICE));
}

static bool is_in_user_namespace(void) {
        _cleanup_free_ char *text = NULL;

        return proc_read(getpid(), 0, "uid_map", &text, NULL) >= 0 && !proc_uid_map_is_initial(text);
}

static bool has_controller(const char *list, size_t length, const char *controller) {
        size_t n = strlen(controller);

        for (const char *end = list + length; list <= end;) {
                size_t word = strcspn(list, ",:");

                if (word == n && strncmp(list, controller, n) == 0)
                        return true;
                list += word + 1;
        }

        return false;
}

int kernel_cause_parse_cgroup(const char *text, const char *controller, char *buffer, size_t size) {
        for (const char *line = text; line && *line;
             line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *list = strchr(line, ':');
                const char *path = list ? strchr(list + 1, ':') : NULL;
                size_t length;

                if (!path || !has_controller(list + 1, (size_t) (path - list - 1), controller))
                        continue;

                path++;
                length = strcspn(path, "\n");
                if (length >= size)
                        return -ENAMETOOLONG;
                memcpy(buffer, path, length);
                buffer[length] = '\0';
                return 0;
        }

        return -ENOENT;
}

static int read_runtime(const char *path, long long *ret) {
        _cleanup_close_ int fd = -1;
        char text[32], *end;
        ssize_t n;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';

        *ret = strtoll(text, &end, 10);
        return end == text ? -EBADMSG : 0;
}

/* Whether the thread's cgroup has a budget for real-time threads, and that is zero. */
static bool lacks_group_budget(pid_t tid, char *cgroup, size_t size) {
        static const char *const mounts[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct" };
        _cleanup_free_ char *text = NULL;
        char path[1024], file[1200];
        long long runtime = -1;

        if (proc_read(tid, 0, "cgroup", &text, NULL) < 0 ||
            kernel_cause_parse_cgroup(text, "cpu", path, sizeof(path)) < 0)
                return false;

        for (size_t i = 0; i < ELEMENTS(mounts); i++) {
                (void) snprintf(file, sizeof(file), "%s%s/cpu.rt_runtime_us", mounts[i], path);
                if (read_runtime(file, &runtime) < 0)
                        continue;

                text_escape(cgroup, size, path, strlen(path));
                return runtime == 0;
        }

        return false;
}

bool kernel_cause_lacks_budget(pid_t tid, char *buffer, size_t size) {
        char cgroup[160];

        if (!lacks_group_budget(tid, cgroup, sizeof(cgroup)))
                return false;

        (void) snprintf(buffer, size,
                        "the cgroup %s has no real-time budget (cpu.rt_runtime_us is 0)", cgroup);
        return true;
}

/*
 * cgroup v2 has no budgets to give: with RT_GROUP_SCHED they are zero wherever its cpu controller is
 * on, and no file says so. It is on below a group only where it is on for that group, so the topmost
 * below the root tells.
 */
static bool is_under_cpu_controller_v2(pid_t tid, char *cgroup, size_t size) {
        _cleanup_free_ char *text = NULL;
        char path[1024], file[1200];

        if (proc_read(tid, 0, "cgroup", &text, NULL) < 0 ||
            kernel_cause_parse_cgroup(text, "", path, sizeof(path)) < 0 || path[0] != '/')
                return false;

        text_escape(cgroup, size, path, strlen(path));
        (void) snprintf(file, sizeof(file), "/sys/fs/cgroup/%.*s/cpu.weight",
                        (int) strcspn(path + 1, "/"), path + 1);
        return access(file, F_OK) == 0;
}

/* Setting a thread to what it is anyway: allowed unless somebody forbids the call as such. */
static bool is_forbidden_as_such(pid_t tid) {
        struct sched_values now;
        int r;

        r = sched_read(tid, &now);
        if (r < 0 || sched_is_rt(now.policy))
                return false;

        r = sched_write(tid, &now);
        return r == -EPERM || r == -EACCES;
}

static void read_modules(char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char text[256];
        ssize_t n;

        fd = open("/sys/kernel/security/lsm", O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
        if (n <= 0)
                text_copy(buffer, size, "its name could not be read");
        else
                text_escape(buffer, size, text, (size_t) n);
}

enum reason kernel_cause_find(pid_t tid, int error, char *buffer, size_t size) {
        char words[160];

        if (error != -EPERM && error != -EACCES) {
                (void) snprintf(buffer, size, "the kernel says: %s", strerror(-error));
                return error == -ESRCH ? REASON_NO_SUCH_THREAD : REASON_KERNEL_OTHER;
        }
        if (is_filtered()) {
                text_copy(buffer, size, "a seccomp filter on the broker forbids sched_setattr(2)");
                return REASON_KERNEL_SECCOMP;
        }
        if (lacks_capability()) {
                text_copy(buffer, size, "the broker does not have CAP_SYS_NICE");
                return REASON_KERNEL_CAPABILITY;
        }
        if (is_in_user_namespace()) {
                text_copy(buffer, size,
                          "the broker runs in a user namespace, where CAP_SYS_NICE counts for "
                          "nothing");
                return REASON_KERNEL_CAPABILITY;
        }
        if (kernel_cause_lacks_budget(tid, buffer, size))
                return REASON_KERNEL_RT_GROUP;
        if (is_forbidden_as_such(tid)) {
                read_modules(words, sizeof(words));
                (void) snprintf(buffer, size,
                                "a security module forbids it (%s); its audit log has more", words);
                return REASON_KERNEL_LSM;
        }
        /* With the capability, and nobody against the call as such, the kernel has one reason left. */
        if (is_under_cpu_controller_v2(tid, words, sizeof(words))) {
                (void) snprintf(buffer, size,
                                "the cgroup %s has no real-time budget: the cpu controller of cgroup "
                                "v2 is on, which has none to give (RT_GROUP_SCHED)",
                                words);
                return REASON_KERNEL_RT_GROUP;
        }

        (void) snprintf(buffer, size, "the kernel says %s, and none of the known causes is there",
                        strerror(-error));
        return REASON_KERNEL_OTHER;
}
