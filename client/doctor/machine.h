/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_DOCTOR_MACHINE_H
#define RTGRANT_CLIENT_DOCTOR_MACHINE_H

/*
 * What the checks look at: this machine, or a copy of another's /proc, /sys, /etc … in a folder.
 * Of a copy only files can be read; what has to be tried out cannot be told.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/rtgrant.h"

enum session_state {
        SESSION_UNKNOWN, /* there is nobody to ask */
        SESSION_NONE,
        SESSION_ACTIVE,
        SESSION_INACTIVE,
        SESSION_REMOTE,
};

struct machine {
        const char *root; /* "" for this machine; borrowed */
        pid_t pid;        /* whose rights and limits are looked at */
        bool other;       /* pid was named: it is not the caller */

        /* What was found out by asking; of a copy, nothing. */
        const struct rtgrant_status *broker; /* NULL if there is no answer; borrowed */
        const char *broker_error;            /* why not; borrowed */
        enum session_state session;
};

static inline bool machine_is_live(const struct machine *machine) {
        return machine->root[0] == '\0';
}

/*
 * Reads a file below the machine's root into @buffer, without the newline at its end. Returns the
 * number of bytes, cut to what fits. Errors: as open(2) and read(2).
 */
ssize_t machine_read(const struct machine *machine, char *buffer, size_t size, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* The same for a whole number. Errors: also -EINVAL. */
int machine_read_number(const struct machine *machine, int64_t *ret, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Whether there is such a file. */
bool machine_has(const struct machine *machine, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/*
 * Calls @each with every name in a folder, sorted by number and name; a non-zero return ends it.
 * Returns what @each returned last. Errors: as opendir(3).
 */
typedef int (*name_fn)(const char *name, void *userdata);
int machine_each(const struct machine *machine, name_fn each, void *userdata, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* The value of "KEY:\tVALUE" in /proc/PID/status. Errors: -ENOENT, as open(2). */
int machine_status(const struct machine *machine, pid_t pid, const char *key, char *buffer,
                   size_t size);

/* A row of /proc/PID/limits, as "Max locked memory"; UINT64_MAX for unlimited. */
int machine_limit(const struct machine *machine, pid_t pid, const char *row, uint64_t *ret_soft,
                  uint64_t *ret_hard);

struct thread_sched {
        int policy;   /* SCHED_FIFO … */
        int priority; /* 1..99 of a real-time thread, else 0 */
        bool kernel;  /* a kernel thread */
        char comm[64];
};

/* From /proc/PID/task/TID/stat. Errors: as open(2), -EINVAL. */
int machine_thread(const struct machine *machine, pid_t pid, pid_t tid, struct thread_sched *ret);

/* The first process whose name is one of @names (NULL-terminated); 0 if there is none. */
pid_t machine_find_process(const struct machine *machine, const char *const *names, char *comm,
                           size_t size);

/* Whether the kernel's command line has that word, or that beginning if it ends with '='. */
bool machine_booted_with(const struct machine *machine, const char *word);

/* Whether /proc hides other users' processes from this caller. */
bool machine_hides_processes(const struct machine *machine);

/* Major * 1000 + minor of the kernel: 6018 for 6.18; 0 if it cannot be told. */
int machine_kernel_version(const struct machine *machine);

/* A line of the kernel's configuration is "CONFIG_NAME=y". -ENOENT if there is none to read. */
int machine_config(const struct machine *machine, const char *name);

#endif
