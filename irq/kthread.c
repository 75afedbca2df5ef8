/* SPDX-License-Identifier: MIT */

#include "irq/kthread.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KTHREADD      2
#define FLAG_KTHREAD  0x00200000U /* PF_KTHREAD of include/linux/sched.h */
#define PROCESSES_MAX 4096U

/* The name may hold brackets and blanks, so it ends at the last bracket. */
static int parse_stat(const char *text, size_t length, struct irq_kthread *thread) {
        const char *name = memchr(text, '(', length), *end = memrchr(text, ')', length);
        uint32_t flags;
        int ppid;

        if (!name || !end || end < name || memchr(text, '\0', length))
                return -EBADMSG;
        if (sscanf(end + 1,
                   " %*c %d %*d %*d %*d %*d %" SCNu32 " %*u %*u %*u %*u %*u %*u %*d %*d %*d"
                   " %d %*d %*d %" SCNu64 " %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u"
                   " %*u %*u %*d %d %d %d",
                   &ppid, &flags, &thread->nice, &thread->start_time, &thread->cpu,
                   &thread->priority, &thread->policy) != 7)
                return -EBADMSG;
        if (ppid != KTHREADD || !(flags & FLAG_KTHREAD))
                return -ESRCH;

        name++;
        length = (size_t) (end - name);
        if (length >= sizeof(thread->name))
                return -EBADMSG;
        memcpy(thread->name, name, length);
        thread->name[length] = '\0';
        return 0;
}

int irq_kthread_read(const struct irq_roots *roots, pid_t tid, struct irq_kthread *ret) {
        struct irq_kthread thread = { .tid = tid };
        char text[1024];
        ssize_t n;

        n = irq_read(text, sizeof(text), "%s/%d/stat", roots->proc, (int) tid);
        if (n < 0 || parse_stat(text, (size_t) n, &thread) < 0)
                return -ESRCH;

        *ret = thread;
        return 0;
}

int irq_kthreads_are_visible(const struct irq_roots *roots) {
        char name[32];

        return irq_read(name, sizeof(name), "%s/%d/comm", roots->proc, KTHREADD) >= 0 &&
               strcmp(name, "kthreadd") == 0;
}

static int visit(const struct irq_roots *roots, pid_t tid,
                 int (*each)(const struct irq_kthread *thread, void *userdata), void *userdata) {
        struct irq_kthread thread;

        return irq_kthread_read(roots, tid, &thread) < 0 ? 0 : each(&thread, userdata);
}

/* A kernel without CONFIG_PROC_CHILDREN. Its threads are born early, so their numbers are low. */
static int visit_processes(const struct irq_roots *roots,
                           int (*each)(const struct irq_kthread *thread, void *userdata),
                           void *userdata) {
        struct dirent *entry;
        unsigned n = 0;
        DIR *dir;
        int r = 0;

        dir = opendir(roots->proc);
        if (!dir)
                return -errno;
        while (r >= 0 && n < PROCESSES_MAX && (entry = readdir(dir)))
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
                        n++;
                        r = visit(roots, (pid_t) strtol(entry->d_name, NULL, 10), each, userdata);
                }
        (void) closedir(dir);
        return r < 0 ? r : 0;
}

int irq_kthread_for_each(const struct irq_roots *roots,
                         int (*each)(const struct irq_kthread *thread, void *userdata),
                         void *userdata) {
        char path[PATH_MAX];
        FILE *file;
        int tid, r = 0;

        (void) snprintf(path, sizeof(path), "%s/%d/task/%d/children", roots->proc, KTHREADD,
                        KTHREADD);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT ? visit_processes(roots, each, userdata) : -errno;
        while (r >= 0 && fscanf(file, "%d", &tid) == 1)
                r = visit(roots, tid, each, userdata);
        (void) fclose(file);
        return r < 0 ? r : 0;
}
