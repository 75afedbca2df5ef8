/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_LOG_H
#define RTGRANT_BROKER_LOG_H

/*
 * What the broker has to say: lines for the journal (with fields) or standard error, and states for
 * the service manager, written by a thread of normal priority.
 *
 * The dispatcher may run above every real-time thread while it logs, and the readers may be stuck:
 * nothing here but log_free() waits for anybody, it is only copied into a ring. A full ring drops
 * lines and says how many.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <syslog.h>

struct log;

/* Fields of a line; each may be left 0 or NULL. Strings must be printable already (text.h). */
struct log_fields {
        const char *event;      /* a word: "granted", "refused", … */
        const char *lease;      /* id in hexadecimal */
        const char *role;
        const char *reason;     /* the word of an enum reason */
        pid_t pid;
        pid_t tid;
        uid_t uid_plus_one;     /* a uid, plus one: 0 is a user */
};

/* @level: the highest of LOG_ERR..LOG_DEBUG that is written. Starts the thread. Errors:
 * pthread_create(3). */
int log_new(struct log **ret, int level);

/* Writes what waits, for at most a second, and ends the thread. May be NULL. Returns NULL. */
struct log *log_free(struct log *log);

void log_set_level(struct log *log, int level);

/* Whether a line of this level would be written: for those that are costly to put together. */
bool log_is_written(struct log *log, int level);

void log_write(struct log *log, int level, const struct log_fields *fields, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Sends @state, as for sd_notify(3), to the service manager if there is one. */
void log_notify(struct log *log, const char *state);

/* "err", "warning", "notice", "info", "debug" to the level. Errors: -EINVAL. */
int log_level_from_string(const char *string);

#endif
