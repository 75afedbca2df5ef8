/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_PROC_H
#define RTGRANT_BROKER_PROC_H

/*
 * What /proc says of processes and threads; proc(5). The parsers take text, so that they can be
 * fuzzed: a thread chooses its own name, and /proc/PID/stat prints it raw. A NUL must stand behind
 * the @length bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
        char state;
        pid_t ppid;
        uint32_t flags;         /* PF_* of include/linux/sched.h */
        uint64_t start_time;    /* clock ticks since boot */
};

#define PROC_FLAG_KTHREAD 0x00200000U /* PF_KTHREAD */

/* @text is all of /proc/PID/task/TID/stat. Errors: -EBADMSG. */
int proc_parse_stat(const char *text, size_t length, struct proc_stat *ret);

enum {
        PROC_REAL,
        PROC_EFFECTIVE,
        PROC_SAVED,
        PROC_FS,
        _PROC_IDS_MAX,
};

struct proc_status {
        pid_t tgid;
        uid_t uids[_PROC_IDS_MAX];
        gid_t gids[_PROC_IDS_MAX];
        unsigned ns_depth;      /* pid namespaces below ours: 0 if it lives in ours */
        pid_t ns_pid;           /* its number in the innermost of them */
        uint64_t cap_permitted;
        uint64_t cap_effective;
        int seccomp;            /* 0, 1 strict, 2 filter; -1 if not said */
        unsigned seccomp_filters;
        char state;             /* as in struct proc_stat; 0: not said */
};

/* @text is all of /proc/PID/status. Errors: -EBADMSG. */
int proc_parse_status(const char *text, size_t length, struct proc_status *ret);

/* Whether the text of /proc/PID/uid_map is that of the initial user namespace. */
bool proc_uid_map_is_initial(const char *text);

/*
 * Reads a file of /proc/PID/ or, if @tid is not 0, of /proc/PID/task/TID/, NUL-terminated; the
 * caller frees *ret_text. Errors: -ESRCH if there is no such thread, -E2BIG above 1 MiB, open(2).
 */
int proc_read(pid_t pid, pid_t tid, const char *name, char **ret_text, size_t *ret_length);

int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *ret);
int proc_read_status(pid_t pid, pid_t tid, struct proc_status *ret);

/* The thread's name, made printable; "" if it cannot be read. */
void proc_read_comm(pid_t pid, pid_t tid, char *buffer, size_t size);

/* Whether the process is in the initial user namespace, as far as its uid_map shows. Errors: as
 * proc_read(). */
int proc_in_initial_userns(pid_t pid);

/*
 * The owner of the outermost user namespace below the initial one that @pid is in: the user who
 * made it, whatever uids are mapped inside. Errors: -EACCES without CAP_SYS_PTRACE, -ESRCH.
 */
int proc_userns_owner(pid_t pid, uid_t *ret);

#endif
