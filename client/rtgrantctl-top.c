/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

#define INTERVAL_MS 1000
#define CANNOT_TELL "cannot tell"
#define SHORT_ID_LENGTH 8

/* What /proc says of a thread; not known where it does not show it: hidepid=, or it ended. */
struct usage {
        bool known;
        uint64_t cpu_ns;
        uint64_t voluntary;     /* context switches: it slept */
        uint64_t involuntary;   /* it was pushed aside */
};

struct sample {
        struct rtgrant_id id;
        struct usage usage;
        uint64_t at_ns;         /* CLOCK_MONOTONIC */
        bool seen;              /* in the listing that is being made */
        char event[128];        /* the last one of it that was no grant; "" */
};

struct top {
        struct ctl *ctl;
        struct sample *samples; /* owned */
        size_t n_samples;
        struct table *table;    /* of the listing that is being made; NULL: only take samples */
        json_object *array;     /* instead, with --json */
};

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * UINT64_C(1000000000) + (uint64_t) ts.tv_nsec;
}

static bool read_file(pid_t pid, pid_t tid, const char *name, char *buffer, size_t size) {
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int) pid, (int) tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, buffer, size - 1);
        if (n <= 0)
                return false;
        buffer[n] = '\0';
        return true;
}

static bool find_number(const char *text, const char *key, uint64_t *ret) {
        const char *at = strstr(text, key);

        return at && sscanf(at + strlen(key), " %" SCNu64, ret) == 1;
}

static struct usage read_usage(pid_t pid, pid_t tid) {
        struct usage usage = { 0 };
        char text[8192];

        usage.known = read_file(pid, tid, "schedstat", text, sizeof(text)) &&
                      sscanf(text, "%" SCNu64, &usage.cpu_ns) == 1 &&
                      read_file(pid, tid, "status", text, sizeof(text)) &&
                      find_number(text, "\nvoluntary_ctxt_switches:", &usage.voluntary) &&
                      find_number(text, "\nnonvoluntary_ctxt_switches:", &usage.involuntary);
        return usage;
}

static struct sample *find_sample(struct top *top, const struct rtgrant_id *id) {
        for (size_t i = 0; i < top->n_samples; i++)
                if (memcmp(&top->samples[i].id, id, sizeof(*id)) == 0)
                        return &top->samples[i];

        return NULL;
}

static struct sample *add_sample(struct top *top, const struct rtgrant_id *id) {
        struct sample *grown;

        grown = realloc(top->samples, (top->n_samples + 1) * sizeof(*grown));
        if (!grown)
                return NULL;

        top->samples = grown;
        grown[top->n_samples] = (struct sample) { .id = *id };
        return &grown[top->n_samples++];
}

/* Of leases that are no more. */
static void drop_unseen(struct top *top) {
        size_t n = 0;

        for (size_t i = 0; i < top->n_samples; i++)
                if (top->samples[i].seen)
                        top->samples[n++] = top->samples[i];
        top->n_samples = n;
        for (size_t i = 0; i < n; i++)
                top->samples[i].seen = false;
}

/* In percent of one CPU since the sample before; negative: not known. */
static double cpu_percent(const struct sample *before, const struct usage *now, uint64_t at_ns) {
        if (!before->usage.known || !now->known || at_ns <= before->at_ns ||
            now->cpu_ns < before->usage.cpu_ns)
                return -1;

        return 100.0 * (double) (now->cpu_ns - before->usage.cpu_ns) /
               (double) (at_ns - before->at_ns);
}

/* What its holder declared that it needs, in percent of one CPU; negative: nothing. */
static double declared_percent(const struct rtgrant_lease *lease) {
        if (lease->period_ns == 0 || lease->computation_ns == 0)
                return -1;

        return 100.0 * (double) lease->computation_ns / (double) lease->period_ns;
}

static void format_percent(char *buffer, size_t size, double percent, const char *unknown) {
        if (percent < 0)
                (void) snprintf(buffer, size, "%s", unknown);
        else
                (void) snprintf(buffer, size, "%.1f%%", percent);
}

static void add_json(struct top *top, const struct rtgrant_lease *lease, double cpu,
                     const struct usage *usage, const char *event) {
        json_object *object = ctl_lease_json(lease);
        double declared = declared_percent(lease);

        (void) json_object_object_add(object, "cpu_percent",
                                      cpu < 0 ? NULL : json_object_new_double(cpu));
        (void) json_object_object_add(object, "budget_percent",
                                      declared < 0 ? NULL : json_object_new_double(declared));
        if (usage->known) {
                json_add_int(object, "cpu_ns", (int64_t) usage->cpu_ns);
                json_add_int(object, "voluntary_switches", (int64_t) usage->voluntary);
                json_add_int(object, "involuntary_switches", (int64_t) usage->involuntary);
        } else {
                json_add_null(object, "cpu_ns");
                json_add_null(object, "voluntary_switches");
                json_add_null(object, "involuntary_switches");
        }
        json_add_text(object, "last_event", event);
        (void) json_object_array_add(top->array, object);
}

static void add_row(struct top *top, const struct rtgrant_lease *lease, double cpu,
                    const struct usage *usage, const char *event) {
        char id[RTGRANT_ID_STRING_SIZE], user[TEXT_USER_SIZE], tid[32], comm[128],
                granted[EXPLAIN_VALUES_SIZE], percent[32], budget[32], voluntary[32],
                involuntary[32], printable[512];
        double declared = declared_percent(lease);
        bool in_force = lease->state == RTGRANT_LEASE_IN_FORCE && (declared < 0 || cpu <= declared);

        rtgrant_id_to_string(&lease->id, id);
        id[SHORT_ID_LENGTH] = '\0';
        text_user(user, sizeof(user), lease->uid);
        (void) snprintf(tid, sizeof(tid), "%d/%d", (int) lease->pid, (int) lease->tid);
        text_printable(comm, sizeof(comm), lease->comm);
        ctl_describe_granted(granted, lease);
        format_percent(percent, sizeof(percent), cpu, CANNOT_TELL);
        format_percent(budget, sizeof(budget), declared, "-");
        (void) snprintf(voluntary, sizeof(voluntary), "-");
        (void) snprintf(involuntary, sizeof(involuntary), "-");
        if (usage->known) {
                (void) snprintf(voluntary, sizeof(voluntary), "%" PRIu64, usage->voluntary);
                (void) snprintf(involuntary, sizeof(involuntary), "%" PRIu64, usage->involuntary);
        }
        text_printable(printable, sizeof(printable), event[0] ? event : "-");

        table_add(top->table, in_force ? STYLE_PLAIN : STYLE_WARNING,
                  (const char *const[]){ id, user, tid, comm, granted,
                                         ctl_lease_state(lease->state), percent, budget, voluntary,
                                         involuntary, printable });
}

static int on_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct top *top = userdata;
        struct usage usage = read_usage(lease->pid, lease->tid);
        struct sample *sample = find_sample(top, &lease->id);
        uint64_t at_ns = now_ns();
        double cpu;

        if (!sample)
                sample = add_sample(top, &lease->id);
        if (!sample)
                return -ENOMEM;

        cpu = cpu_percent(sample, &usage, at_ns);
        sample->usage = usage;
        sample->at_ns = at_ns;
        sample->seen = true;
        if (top->array)
                add_json(top, lease, cpu, &usage, sample->event);
        else if (top->table)
                add_row(top, lease, cpu, &usage, sample->event);
        return 0;
}

/* What befell a lease is remembered with it, and when. */
static void on_event(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                     const char *text, uint64_t n_lost, void *userdata) {
        struct sample *sample = find_sample(userdata, &lease->id);
        char clock[16] = "";
        time_t now = time(NULL);
        struct tm tm;

        (void) reason;
        (void) n_lost;
        (void) text;
        if (!sample || kind == RTGRANT_EVENT_GRANTED || kind == RTGRANT_EVENT_UPDATED)
                return;
        if (localtime_r(&now, &tm))
                (void) strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        (void) snprintf(sample->event, sizeof(sample->event), "%s %s", clock,
                        rtgrant_event_to_string((int) kind));
}

static int take_samples(struct top *top, bool all) {
        int r = rtgrant_list(top->ctl->broker.handle, all, on_lease, top);

        if (r >= 0)
                drop_unseen(top);
        return r;
}

/* One listing; on a terminal that is followed in its upper left corner. */
static int show(struct top *top, bool all, bool follow) {
        static const char *const headers[] = { "ID",    "USER", "PID/TID", "COMMAND",
                                               "GRANTED", "STATE", "CPU", "BUDGET",
                                               "SLEPT", "PUSHED ASIDE", "LAST EVENT", NULL };
        int r;

        top->array = top->ctl->json ? json_object_new_array() : NULL;
        top->table = table_new(headers);
        if (!top->table)
                return -ENOMEM;

        r = take_samples(top, all);
        if (r < 0) {
                (void) json_object_put(top->array);
        } else if (top->array) {
                json_print(top->array);
        } else {
                if (follow)
                        fputs("\033[H\033[2J", stdout);
                if (table_rows(top->table) > 0)
                        table_print(top->table, top->ctl->colour);
                else
                        puts(all ? "No leases." : "You have no leases.");
                if (follow)
                        puts("\nq ends");
        }
        top->array = NULL;
        top->table = table_free(top->table);
        return fflush(stdout) == 0 ? r : 0;
}

/* Until the time is over (0), somebody wants to end it (1), or the broker goes (negative errno). */
static int wait_for(struct top *top, int signal_fd, bool follow) {
        uint64_t end_ns = now_ns() + INTERVAL_MS * UINT64_C(1000000);

        for (;;) {
                struct rtgrant *handle = top->ctl->broker.handle;
                uint64_t at_ns = now_ns();
                struct pollfd fds[] = {
                        { .fd = rtgrant_get_fd(handle), .events = rtgrant_get_events(handle) },
                        { .fd = signal_fd, .events = POLLIN },
                        { .fd = follow ? STDIN_FILENO : -1, .events = POLLIN },
                };
                char key;
                int r;

                if (at_ns >= end_ns)
                        return 0;
                r = poll(fds, ELEMENTS(fds), (int) ((end_ns - at_ns) / 1000000 + 1));
                if (r < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents)
                        return 1;
                if (fds[2].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
                        return 1;
                r = rtgrant_process(handle);
                if (r < 0)
                        return r;
        }
}

static int follow_or_once(struct top *top, bool all, bool follow) {
        struct termios before, raw;
        _cleanup_close_ int signal_fd = -1;
        sigset_t signals;
        bool is_raw = false;
        int r;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
        if (signal_fd < 0)
                return -errno;

        if (follow && tcgetattr(STDIN_FILENO, &before) == 0) {
                raw = before;
                raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
                is_raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
        }

        r = take_samples(top, all);
        while (r >= 0) {
                r = wait_for(top, signal_fd, is_raw);
                if (r != 0)
                        break;
                r = show(top, all, follow);
                if (!follow)
                        break;
        }

        if (is_raw)
                (void) tcsetattr(STDIN_FILENO, TCSANOW, &before);
        return r < 0 ? r : 0;
}

int ctl_top(struct ctl *ctl, char **argv) {
        struct top top = { .ctl = ctl };
        bool follow = !ctl->once && !ctl->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
        bool all;
        int r, failed;

        (void) argv;
        failed = ctl_connect(ctl);
        if (failed != 0)
                return failed;
        all = ctl->all || ctl_is_admin(ctl);
        r = rtgrant_watch(ctl->broker.handle, all, on_event, &top);
        if (r >= 0)
                r = follow_or_once(&top, all, follow);
        free(top.samples);
        return r < 0 ? ctl_fail(ctl, r, NULL) : STATUS_DONE;
}
