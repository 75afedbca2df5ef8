/* SPDX-License-Identifier: MIT */

/* Lines, and that nobody ever waits for who reads them. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "broker/log.h"
#include "tests/unit/broker/broker-test.h"

#define RING_LINES 128

/* All in children: standard error is the process's, and a log with a stuck reader is left behind.
 */

static uint64_t now_us(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static int redirect(void) {
        int fd = memfd_create("log", MFD_CLOEXEC);

        CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
        return fd;
}

static const char *text_of(int fd) {
        static char text[256 * 1024];
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        CHECK(n >= 0);
        text[n] = '\0';
        return text;
}

static bool says(int fd, const char *expected) {
        const char *text = text_of(fd);

        if (strcmp(text, expected) == 0)
                return true;
        (void) dprintf(STDOUT_FILENO, "# said: %s\n", text);
        return false;
}

static void lines(const void *userdata) {
        struct log *log;
        int fd = redirect();

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        log_write(log, LOG_ERR, NULL, "one %d", 1);
        log_write(log, LOG_WARNING, NULL, "two");
        log_write(log, LOG_NOTICE, NULL, "%s", "%s three %n");
        log_write(log, LOG_INFO, &(struct log_fields) { .event = "granted", .pid = 5 }, "four");
        log_write(log, LOG_DEBUG, NULL, "five");
        CHECK(log_free(log) == NULL);
        CHECK(says(fd, "rtgrantd: error: one 1\nrtgrantd: warning: two\nrtgrantd: %s three "
                       "%n\nrtgrantd: four\n"
                       "rtgrantd: debug: five\n"));
}

static void levels(const void *userdata) {
        struct log *log;
        int fd = redirect();

        CHECK(log_new(&log, LOG_WARNING) == 0);
        CHECK(log_is_written(log, LOG_ERR) && log_is_written(log, LOG_WARNING));
        CHECK(!log_is_written(log, LOG_NOTICE) && !log_is_written(log, LOG_DEBUG));
        log_write(log, LOG_WARNING, NULL, "a");
        log_write(log, LOG_NOTICE, NULL, "b");
        log_set_level(log, LOG_INFO);
        CHECK(log_is_written(log, LOG_INFO) && !log_is_written(log, LOG_DEBUG));
        log_write(log, LOG_INFO, NULL, "c");
        log_write(log, LOG_DEBUG, NULL, "d");
        log_set_level(log, LOG_ERR);
        log_write(log, LOG_WARNING, NULL, "e");
        (void) log_free(log);
        CHECK(says(fd, "rtgrantd: warning: a\nrtgrantd: c\n"));
}

static void very_long(const void *userdata) {
        char text[2000];
        struct log *log;
        const char *said;
        int fd = redirect();

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        CHECK(log_new(&log, LOG_DEBUG) == 0);
        log_write(
                log, LOG_NOTICE,
                &(struct log_fields){ .event = text, .lease = text, .role = text, .reason = text },
                "%s", text);
        log_write(log, LOG_NOTICE, NULL, "next");
        (void) log_free(log);

        said = text_of(fd);
        CHECK(strncmp(said, "rtgrantd: xxx", 13) == 0);
        CHECK(strspn(said + 10, "x") == 511);
        CHECK(strcmp(said + 10 + 511, "\nrtgrantd: next\n") == 0);
}

static void nothing_said(const void *userdata) {
        struct log *log;
        int fd = redirect();

        CHECK(log_free(NULL) == NULL);
        CHECK(log_new(&log, LOG_DEBUG) == 0);
        (void) log_free(log);
        CHECK(says(fd, ""));
}

/* ---- a reader that is stuck ---- */

struct pipe {
        int read;
        int write;
        size_t filled;
};

/* Standard error is a full pipe: whoever writes to it waits. */
static struct pipe stuck_pipe(void) {
        static const char zeroes[4096];
        struct pipe p = {};
        int fds[2];

        CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
        p.read = fds[0];
        p.write = fds[1];
        for (ssize_t n; (n = write(p.write, zeroes, sizeof(zeroes))) > 0;)
                p.filled += (size_t) n;
        CHECK(errno == EAGAIN);
        CHECK(fcntl(p.write, F_SETFL, 0) == 0 && fcntl(p.read, F_SETFL, 0) == 0);
        CHECK(dup2(p.write, STDERR_FILENO) >= 0);
        return p;
}

/* What comes out of it until nobody can write to it any more. */
static char *drain(struct pipe *p, size_t *ret_length) {
        char *text = malloc(1024 * 1024);
        size_t length = 0;
        ssize_t n;

        CHECK(text);
        while ((n = read(p->read, text + length, 1024 * 1024 - 1 - length)) > 0)
                length += (size_t) n;
        CHECK(n == 0 && length >= p->filled);
        memmove(text, text + p->filled, length - p->filled);
        length -= p->filled;
        text[length] = '\0';
        *ret_length = length;
        return text;
}

static void *drain_later(void *userdata) {
        struct pipe *p = userdata;
        size_t length;

        return drain(p, &length);
}

/* U21: a stuck reader holds up nobody, and what it missed is counted. */
static void stuck_reader(const void *userdata) {
        const unsigned n_lines = 1000;
        struct pipe p = stuck_pipe();
        unsigned n_written = 0, n_lost = 0, last = 0, number;
        uint64_t begin_us, worst_us = 0;
        char *text, *end;
        pthread_t reader;
        struct log *log;
        void *result;

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        for (unsigned i = 1; i <= n_lines; i++) {
                uint64_t took_us;

                begin_us = now_us();
                log_write(log, LOG_NOTICE,
                          &(struct log_fields){ .event = "refused", .uid_plus_one = 1 }, "line %u",
                          i);
                took_us = now_us() - begin_us;
                if (took_us > worst_us)
                        worst_us = took_us;
        }
        CHECK(worst_us < 500 * 1000); /* it would be for ever */

        /* now somebody reads: what waited comes in order, then how many were lost */
        CHECK(pthread_create(&reader, NULL, drain_later, &p) == 0);
        (void) log_free(log);
        (void) close(p.write);
        (void) close(STDERR_FILENO);
        CHECK(pthread_join(reader, &result) == 0);
        text = result;

        for (char *line = text; *line; line = end + 1) {
                end = strchr(line, '\n');
                CHECK(end);
                if (sscanf(line, "rtgrantd: line %u\n", &number) == 1) {
                        CHECK(number > last && n_lost == 0);
                        last = number;
                        n_written++;
                } else {
                        CHECK(sscanf(line, "rtgrantd: warning: %u lines were lost here", &n_lost) ==
                              1);
                }
        }
        CHECK(n_written == RING_LINES ||
              n_written == RING_LINES + 1); /* one more that was being written */
        CHECK(n_written + n_lost == n_lines);
        free(text);
}

/* Each line is written or counted, also of those that come while the ring empties. */
static void lost_and_going_on(const void *userdata) {
        const unsigned n_before = RING_LINES + 20, n_after = 200;
        struct pipe p = stuck_pipe();
        unsigned n = 0, n_lost = 0, lost;
        pthread_t reader;
        struct log *log;
        void *result;

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        for (unsigned i = 0; i < n_before; i++)
                log_write(log, LOG_NOTICE, NULL, "before");
        CHECK(pthread_create(&reader, NULL, drain_later, &p) == 0);
        for (unsigned i = 0; i < n_after; i++) {
                log_write(log, LOG_NOTICE, NULL, "after");
                (void) sched_yield();
        }
        (void) log_free(log);
        (void) close(p.write);
        (void) close(STDERR_FILENO);
        CHECK(pthread_join(reader, &result) == 0);

        for (const char *line = result; *line; line = strchr(line, '\n') + 1)
                if (sscanf(line, "rtgrantd: warning: %u lines were lost", &lost) == 1)
                        n_lost += lost;
                else
                        n++;
        CHECK(n_lost >= 19 && n + n_lost == n_before + n_after);
        free(result);
}

/* An end that nobody can wait for either: a second, and that is that. */
static void stuck_at_the_end(const void *userdata) {
        struct pipe p = stuck_pipe();
        uint64_t begin_us;
        struct log *log;

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        log_write(log, LOG_NOTICE, NULL, "never read");
        begin_us = now_us();
        CHECK(log_free(log) == NULL);
        CHECK(now_us() - begin_us >= 900 * 1000);
        CHECK(now_us() - begin_us < 5000 * 1000);
        CHECK(p.filled > 0);
}

struct writer {
        struct log *log;
        unsigned number;
};

static void *write_many(void *userdata) {
        const struct writer *w = userdata;

        for (unsigned i = 0; i < 2000; i++)
                log_write(w->log, LOG_NOTICE, NULL, "from %u", w->number);
        return NULL;
}

static void several_threads(const void *userdata) {
        struct writer writers[4];
        pthread_t threads[4];
        unsigned n = 0, n_lost = 0, lost, number;
        struct log *log;
        int fd = redirect();

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        for (unsigned i = 0; i < 4; i++) {
                writers[i] = (struct writer) { log, i };
                CHECK(pthread_create(&threads[i], NULL, write_many, &writers[i]) == 0);
        }
        for (unsigned i = 0; i < 4; i++)
                CHECK(pthread_join(threads[i], NULL) == 0);
        (void) log_free(log);

        for (const char *line = text_of(fd); *line; line = strchr(line, '\n') + 1) {
                if (sscanf(line, "rtgrantd: from %u\n", &number) == 1 && number < 4)
                        n++;
                else if (sscanf(line, "rtgrantd: warning: %u lines were lost", &lost) == 1)
                        n_lost += lost;
                else
                        CHECK(false);
        }
        CHECK(n + n_lost == 4 * 2000);
}

/* ---- the journal ---- */

/* A journal of our own: in a namespace where /run is ours, and standard error is its stream. */
static int own_journal(void) {
        const struct sockaddr_un address = { .sun_family = AF_UNIX,
                                             .sun_path = "/run/systemd/journal/socket" };
        char stream[64];
        struct stat st;
        int fd;

        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("none", "/run", "tmpfs", 0, NULL) < 0)
                _exit(EXIT_SKIP);
        CHECK(mkdir("/run/systemd", 0755) == 0 && mkdir("/run/systemd/journal", 0755) == 0);
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0 && bind(fd, (const struct sockaddr *) &address, sizeof(address)) == 0);

        (void) redirect();
        CHECK(fstat(STDERR_FILENO, &st) == 0);
        (void) snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long) st.st_dev,
                        (unsigned long long) st.st_ino);
        CHECK(setenv("JOURNAL_STREAM", stream, 1) == 0);
        return fd;
}

static bool has_field(const char *record, const char *field) {
        const char *at = strstr(record, field);

        return at && (at == record || at[-1] == '\n') && at[strlen(field)] == '\n';
}

static void receive(int fd, char *record, size_t size) {
        ssize_t n = recv(fd, record, size - 1, 0);

        CHECK(n > 0);
        record[n] = '\0';
}

static void journal(const void *userdata) {
        char record[4096];
        struct log *log;
        int fd = own_journal();

        CHECK(log_new(&log, LOG_DEBUG) == 0);
        log_write(log, LOG_NOTICE,
                  &(struct log_fields) {
                          .event = "granted",
                          .lease = "00112233",
                          .role = "audio-server",
                          .reason = "none",
                          .pid = 17,
                          .tid = 18,
                          .uid_plus_one = 1001,
                  },
                  "all %s", "fields");
        receive(fd, record, sizeof(record));
        CHECK(has_field(record, "MESSAGE=all fields"));
        CHECK(has_field(record, "PRIORITY=5"));
        CHECK(has_field(record, "SYSLOG_IDENTIFIER=rtgrantd"));
        CHECK(has_field(record, "RTGRANT_EVENT=granted"));
        CHECK(has_field(record, "RTGRANT_LEASE=00112233"));
        CHECK(has_field(record, "RTGRANT_ROLE=audio-server"));
        CHECK(has_field(record, "RTGRANT_REASON=none"));
        CHECK(has_field(record, "RTGRANT_UID=1000"));
        CHECK(has_field(record, "RTGRANT_PID=17"));
        CHECK(has_field(record, "RTGRANT_TID=18"));
        CHECK(!strstr(record, "CODE_"));

        /* what is not said is not there; user 0 is one */
        log_write(log, LOG_ERR, &(struct log_fields) { .uid_plus_one = 1 }, "root");
        receive(fd, record, sizeof(record));
        CHECK(has_field(record, "MESSAGE=root") && has_field(record, "PRIORITY=3") &&
              has_field(record, "RTGRANT_UID=0"));
        CHECK(!strstr(record, "RTGRANT_PID") && !strstr(record, "RTGRANT_EVENT") &&
              !strstr(record, "RTGRANT_ROLE"));

        log_write(log, LOG_INFO, NULL, "bare");
        receive(fd, record, sizeof(record));
        CHECK(has_field(record, "MESSAGE=bare") && !strstr(record, "RTGRANT_"));
        (void) log_free(log);
        CHECK(says(STDERR_FILENO, ""));
}

/* The variable is inherited; if standard error is another's by now, that is where it goes. */
static void not_our_stream(const void *userdata) {
        struct log *log;
        int journal_fd = own_journal(), fd;
        char byte;

        fd = redirect();
        CHECK(log_new(&log, LOG_DEBUG) == 0);
        log_write(log, LOG_NOTICE, NULL, "here");
        (void) log_free(log);
        CHECK(says(fd, "rtgrantd: here\n"));
        CHECK(recv(journal_fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

struct log_case {
        const char *name;
        void (*body)(const void *userdata);
        bool root;
};

static const struct log_case cases[] = {
        { "lines", lines },
        { "levels", levels },
        { "very long", very_long },
        { "nothing said", nothing_said },
        { "U21: a stuck reader holds up nobody", stuck_reader },
        { "lines while the ring empties", lost_and_going_on },
        { "a reader that is stuck at the end", stuck_at_the_end },
        { "several threads", several_threads },
        { "the journal's fields", journal, true },
        { "not the journal's stream", not_our_stream, true },
};

static void test_log(void **state) {
        const struct log_case *c = *state;

        if (c->root)
                test_need_root();
        test_in_child(c->body, NULL);
}

/* ---- levels by name ---- */

struct level_case {
        const char *word;
        int level;
};

static const struct level_case level_cases[] = {
        { "err", LOG_ERR }, { "warning", LOG_WARNING }, { "notice", LOG_NOTICE }, { "info",
          LOG_INFO },
        { "debug", LOG_DEBUG }, { "", -EINVAL }, { "Err", -EINVAL }, { "err ", -EINVAL },
        { "5", -EINVAL },       { "emerg", -EINVAL },
};

static void test_level(void **state) {
        const struct level_case *c = *state;

        assert_int_equal(log_level_from_string(c->word), c->level);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTS(cases) + ELEMENTS(level_cases)];
        char names[ELEMENTS(level_cases)][32];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTS(cases); i++)
                tests[n++] = test_row(cases[i].name, test_log, &cases[i]);
        for (size_t i = 0; i < ELEMENTS(level_cases); i++) {
                (void) snprintf(names[i], sizeof(names[i]), "level '%s'", level_cases[i].word);
                tests[n++] = test_row(names[i], test_level, &level_cases[i]);
        }

        return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
