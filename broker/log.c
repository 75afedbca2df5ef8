/* SPDX-License-Identifier: MIT */

#include "broker/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The fields are ours to name; the source position that this macro suppresses would say nothing. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include "broker/cleanup.h"
#include "broker/worker.h"

#define RING_LINES 128
#define RING_KEPT 16 /* more, for messages to the service manager */
#define RING_SIZE (RING_LINES + RING_KEPT)
#define N_FIELDS 7
#define AT_END_MS 1000

#define LEVEL_NOTIFY (-1)       /* no line of the log: a state for the service manager */

struct line {
        int level;
        char text[512];
        char fields[N_FIELDS][64];      /* "KEY=value"; "" if not there */
};

struct log {
        pthread_mutex_t lock; /* inherits priority: the dispatcher may wait for the writer */
        pthread_cond_t changed;
        pthread_t thread;
        int level;
        bool journal;                   /* standard error is the journal's */
        bool stopping;
        bool drained;
        unsigned head;                  /* next line to be written */
        unsigned n_lines;
        unsigned n_dropped;
        struct line ring[RING_SIZE];
};

static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long dev, ino;
        struct stat st;

        if (!stream || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
                return false;

        return fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == dev && st.st_ino == ino;
}

static void line_to_journal(const struct line *line) {
        char message[sizeof(line->text) + 16], priority[16];
        struct iovec iov[3 + N_FIELDS];
        int n = 0;

        iov[n++] = (struct iovec) { message, (size_t) snprintf(message, sizeof(message),
                                                              "MESSAGE=%s", line->text) };
        iov[n++] = (struct iovec) { priority, (size_t) snprintf(priority, sizeof(priority),
                                                               "PRIORITY=%d", line->level) };
        iov[n++] = (struct iovec) { (char *) "SYSLOG_IDENTIFIER=rtgrantd",
                                   strlen("SYSLOG_IDENTIFIER=rtgrantd") };
        for (size_t i = 0; i < N_FIELDS; i++)
                if (line->fields[i][0] != '\0')
                        iov[n++] =
                                (struct iovec) { (char *) line->fields[i], strlen(line->fields[i]) };

        (void) sd_journal_sendv(iov, n);
}

static void line_to_stderr(const struct line *line) {
        static const char *const words[] = {
                "", "", "", "error: ", "warning: ", "", "", "debug: "
        };
        char buffer[sizeof(line->text) + 64];
        int n;

        n = snprintf(buffer, sizeof(buffer), "rtgrantd: %s%s\n", words[line->level], line->text);
        if (n > 0 && write(STDERR_FILENO, buffer, (size_t) n) < 0)
                return; /* nowhere to say so */
}

static void line_write(const struct log *log, const struct line *line) {
        if (line->level == LEVEL_NOTIFY)
                (void) sd_notify(false, line->text);
        else if (log->journal)
                line_to_journal(line);
        else
                line_to_stderr(line);
}

static void line_lost(struct line *line, unsigned n_dropped) {
        *line = (struct line) { .level = LOG_WARNING };
        (void) snprintf(line->text, sizeof(line->text),
                        "%u lines were lost here: the log was read too slowly", n_dropped);
}

static void *log_thread(void *userdata) {
        struct log *log = userdata;

        (void) pthread_setname_np(pthread_self(), "log");
        (void) pthread_mutex_lock(&log->lock);

        for (;;) {
                struct line line;
                unsigned n_dropped = log->n_dropped;

                if (log->n_lines > 0) {
                        line = log->ring[log->head];
                        log->head = (log->head + 1) % RING_SIZE;
                        log->n_lines--;
                } else if (n_dropped > 0) {
                        line_lost(&line, n_dropped);
                        log->n_dropped = 0;
                } else if (log->stopping) {
                        break;
                } else {
                        (void) pthread_cond_wait(&log->changed, &log->lock);
                        continue;
                }

                (void) pthread_mutex_unlock(&log->lock);
                line_write(log, &line);
                (void) pthread_mutex_lock(&log->lock);
        }

        log->drained = true;
        (void) pthread_cond_broadcast(&log->changed);
        (void) pthread_mutex_unlock(&log->lock);
        return NULL;
}

int log_new(struct log **ret, int level) {
        _cleanup_free_ struct log *log = NULL;
        int r;

        log = calloc(1, sizeof(*log));
        if (!log)
                return -ENOMEM;

        log->level = level;
        log->journal = stderr_is_journal();

        r = worker_lock_init(&log->lock);
        if (r >= 0)
                r = worker_condition_init(&log->changed);
        if (r >= 0)
                r = -pthread_create(&log->thread, NULL, log_thread, log);
        if (r < 0)
                return r;

        *ret = STEAL(log);
        return 0;
}

struct log *log_free(struct log *log) {
        struct timespec until;
        bool drained;

        if (!log)
                return NULL;

        until = worker_deadline(AT_END_MS);
        (void) pthread_mutex_lock(&log->lock);
        log->stopping = true;
        (void) pthread_cond_broadcast(&log->changed);
        while (!log->drained)
                if (pthread_cond_timedwait(&log->changed, &log->lock, &until) == ETIMEDOUT)
                        break;
        drained = log->drained;
        (void) pthread_mutex_unlock(&log->lock);

        /* A writer stuck in write(2) keeps its memory; the process is about to end. */
        if (!drained)
                return NULL;

        (void) pthread_join(log->thread, NULL);
        (void) pthread_cond_destroy(&log->changed);
        (void) pthread_mutex_destroy(&log->lock);
        free(log);
        return NULL;
}

void log_set_level(struct log *log, int level) {
        (void) pthread_mutex_lock(&log->lock);
        log->level = level;
        (void) pthread_mutex_unlock(&log->lock);
}

bool log_is_written(struct log *log, int level) {
        bool written;

        (void) pthread_mutex_lock(&log->lock);
        written = level <= log->level;
        (void) pthread_mutex_unlock(&log->lock);
        return written;
}

static void line_set_fields(struct line *line, const struct log_fields *fields) {
        const struct {
                const char *key;
                const char *value;
        } words[] = {
                { "RTGRANT_EVENT", fields->event },
                { "RTGRANT_LEASE", fields->lease },
                { "RTGRANT_ROLE", fields->role },
                { "RTGRANT_REASON", fields->reason },
        };
        const struct {
                const char *key;
                long long value;
                bool there;
        } numbers[] = {
                { "RTGRANT_UID", (long long) fields->uid_plus_one - 1, fields->uid_plus_one != 0 },
                { "RTGRANT_PID", fields->pid, fields->pid != 0 },
                { "RTGRANT_TID", fields->tid, fields->tid != 0 },
        };
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(words); i++, n++)
                if (words[i].value)
                        (void) snprintf(line->fields[n], sizeof(line->fields[n]), "%s=%s",
                                        words[i].key, words[i].value);
        for (size_t i = 0; i < ELEMENTS(numbers); i++, n++)
                if (numbers[i].there)
                        (void) snprintf(line->fields[n], sizeof(line->fields[n]), "%s=%lld",
                                        numbers[i].key, numbers[i].value);
}

/* The next free line of the ring, which becomes part of it; NULL if it is full. */
static struct line *ring_push(struct log *log, int level) {
        /* However much there is to log, the service manager waits for what it is told. */
        unsigned room = level == LEVEL_NOTIFY ? RING_SIZE : RING_LINES;
        struct line *line;

        /* After a gap there has to be room to say so in its place, before what comes next. */
        if (log->n_lines + (log->n_dropped > 0) >= room) {
                log->n_dropped++;
                return NULL;
        }
        if (log->n_dropped > 0) {
                line_lost(&log->ring[(log->head + log->n_lines++) % RING_SIZE], log->n_dropped);
                log->n_dropped = 0;
        }

        line = &log->ring[(log->head + log->n_lines++) % RING_SIZE];
        *line = (struct line) { .level = level };
        (void) pthread_cond_broadcast(&log->changed);
        return line;
}

void log_write(struct log *log, int level, const struct log_fields *fields, const char *format,
               ...) {
        struct line *line = NULL;
        va_list args;

        (void) pthread_mutex_lock(&log->lock);
        if (level <= log->level)
                line = ring_push(log, level);
        if (line) {
                va_start(args, format);
                (void) vsnprintf(line->text, sizeof(line->text), format, args);
                va_end(args);
        }
        if (line && fields)
                line_set_fields(line, fields);
        (void) pthread_mutex_unlock(&log->lock);
}

void log_notify(struct log *log, const char *state) {
        struct line *line;

        if (!getenv("NOTIFY_SOCKET"))
                return;

        (void) pthread_mutex_lock(&log->lock);
        line = ring_push(log, LEVEL_NOTIFY);
        if (line)
                (void) snprintf(line->text, sizeof(line->text), "%s", state);
        (void) pthread_mutex_unlock(&log->lock);
}

int log_level_from_string(const char *string) {
        static const struct {
                const char *word;
                int level;
        } levels[] = {
                { "err", LOG_ERR },
                { "warning", LOG_WARNING },
                { "notice", LOG_NOTICE },
                { "info", LOG_INFO },
                { "debug", LOG_DEBUG },
        };

        for (size_t i = 0; i < ELEMENTS(levels); i++)
                if (strcmp(levels[i].word, string) == 0)
                        return levels[i].level;

        return -EINVAL;
}
