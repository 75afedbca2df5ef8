/* SPDX-License-Identifier: MIT */

#include "broker/namespace.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "broker/cleanup.h"
#include "broker/ids.h"
#include "broker/proc.h"

/* Each takes 20 µs to look at: of more than this the dispatcher would be busy for too long. */
#define SCAN_MAX 512
#define ENTRIES_MAX 8192 /* of /proc; whose they are takes 4 µs each */
#define ENTRIES_AS_ONE 4  /* of them cost about as much as one that is looked at */

static void cleanup_closedir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

/* The next entry that is a number; 0 when there are no more. */
static pid_t next_number(DIR *dir) {
        struct dirent *entry;
        pid_t number;

        while ((entry = readdir(dir)))
                if (id_parse(strtoull(entry->d_name, NULL, 10), &number) >= 0)
                        return number;

        return 0;
}

enum reason namespace_find_thread(pid_t pid, pid_t inner, pid_t *ret_tid, unsigned *n_scanned) {
        _cleanup_(cleanup_closedir) DIR *dir = NULL;
        char path[32];
        pid_t tid;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        dir = opendir(path);
        if (!dir)
                return REASON_NO_SUCH_THREAD;

        while ((tid = next_number(dir)) != 0) {
                struct proc_status status;

                if (++*n_scanned > SCAN_MAX)
                        return REASON_NAMESPACE;
                if (proc_read_status(pid, tid, &status) < 0 || status.ns_pid != inner)
                        continue;

                *ret_tid = tid;
                return REASON_NONE;
        }

        return REASON_NO_SUCH_THREAD;
}

/* By the directory: the files of a process that may not be dumped are root's. */
static bool is_of_user(pid_t pid, uid_t uid) {
        char path[32];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/%d", pid);
        return stat(path, &st) >= 0 && st.st_uid == uid;
}

static bool are_in_same_namespace(pid_t a, pid_t b) {
        struct stat sta, stb;
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", a);
        if (stat(path, &sta) < 0)
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", b);
        return stat(path, &stb) >= 0 && sta.st_dev == stb.st_dev && sta.st_ino == stb.st_ino;
}

enum reason namespace_find_process(const struct peer *peer, pid_t inner, pid_t *ret_pid,
                                   unsigned *n_scanned) {
        _cleanup_(cleanup_closedir) DIR *dir = NULL;
        unsigned n_entries = 0;
        pid_t pid;

        dir = opendir("/proc");
        if (!dir)
                return REASON_NAMESPACE;

        while ((pid = next_number(dir)) != 0 && ++n_entries < ENTRIES_MAX) {
                struct proc_status status;

                if (n_entries % ENTRIES_AS_ONE == 0)
                        ++*n_scanned;
                if (!is_of_user(pid, peer->uid))
                        continue;
                if (++*n_scanned > SCAN_MAX)
                        break;
                /* other containers have the same numbers at the same depth */
                if (proc_read_status(pid, 0, &status) < 0 || status.ns_depth != peer->ns_depth ||
                    status.ns_pid != inner || !are_in_same_namespace(pid, peer->pid))
                        continue;

                *ret_pid = pid;
                return REASON_NONE;
        }

        return REASON_NAMESPACE;
}
