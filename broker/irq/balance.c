/* SPDX-License-Identifier: MIT */

#include "broker/irq/balance.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <systemd/sd-event.h>

#include "broker/cleanup.h"
#include "broker/irq/irqbalance.h"
#include "broker/log.h"

#define DIRECTORY "/run/irqbalance"
#define REPLY_MAX 16384
/* From the birth of its socket until somebody listens there; and when too many do. */
#define SETTLE_US (500U * 1000)
/* At our end only: how long an answer that is due is waited for. Version 1.9.2, which sleeps ten
 * seconds after each change, is killed by SIGPIPE if nobody is left to answer to. */
#define LAST_ANSWER_MS 11000
/* Likewise, while others talk to it. */
#define TRIES_MAX 10U
#define TRY_MS    100

enum state {
        NOT_THERE,
        ASKED,
        BANNED,
        MUTE,    /* it runs, and has no socket */
        REFUSED, /* see error */
};

struct balance {
        const struct irq_table_options *options; /* borrowed */
        void (*on_banned)(unsigned line, void *userdata);
        void *userdata;
        const char *directory;  /* borrowed */
        struct ban_list wanted;
        struct ban_list ours;   /* on the list of that instance by our doing */
        struct ban_list theirs; /* the whole list, as last known */
        bool is_known;          /* that */
        struct ban_list kept;   /* ours, and it was read back */
        struct irqbalance instance;
        enum state state;
        int error;
        bool again;                 /* what is wanted changed while it was asked */
        bool reading_back;
        int fd;                     /* owned; an answer is due there; -1: none */
        sd_event_source *io;        /* owned; likewise */
        char reply[REPLY_MAX];
        size_t n_reply;
        sd_event_source *born;      /* owned; of its socket, while something is wanted */
        sd_event_source *directory_born; /* owned; likewise */
        sd_event_source *settle;    /* owned; a timer */
};

static void update(struct balance *balance);

/* ---- the file for a successor ---- */

static void save(const struct balance *balance) {
        struct irq_ban_record records[IRQ_RAISED_MAX];
        unsigned n = 0;
        int r;

        for (; n < balance->ours.n && n < IRQ_RAISED_MAX; n++)
                records[n] = (struct irq_ban_record){
                        .start_time = balance->instance.start_time,
                        .pid = balance->instance.pid,
                        .line = balance->ours.lines[n],
                };
        r = irq_store_write(balance->options->state_dir, IRQ_STORE_BANS, records, n);
        if (r < 0)
                log_write(balance->options->log, LOG_WARNING, NULL,
                          "cannot write %s/irq-bans, a crash would leave interrupts on "
                          "irqbalance's list: %s",
                          balance->options->state_dir, strerror(-r));
}

static void recover(struct balance *balance) {
        struct irq_ban_record records[IRQ_RAISED_MAX];
        int n;

        n = irq_store_read(balance->options->state_dir, IRQ_STORE_BANS, records);
        for (int i = 0; i < n; i++) {
                balance->instance.pid = records[i].pid;
                balance->instance.start_time = records[i].start_time;
                (void) ban_list_add(&balance->ours, records[i].line);
        }
}

/* Its service has a process. */
static bool is_running(const struct balance *balance) {
        static const char *const hierarchies[] = { "", "/systemd", "/unified" };
        char text[32];

        for (unsigned i = 0; i < ELEMENTS(hierarchies); i++) {
                ssize_t n = irq_read(text, sizeof(text),
                                     "%s/fs/cgroup%s/system.slice/irqbalance.service/cgroup.procs",
                                     balance->options->roots.sys, hierarchies[i]);

                if (n > 0 || n == -E2BIG)
                        return true;
        }
        return false;
}

static void hang_up(struct balance *balance) {
        balance->io = sd_event_source_disable_unref(balance->io);
        balance->fd = close_fd(balance->fd);
}

static void set_state(struct balance *balance, enum state state, int error) {
        bool is_new = balance->state != state || balance->error != error;
        char text[200];

        balance->state = state;
        balance->error = error;
        if (!is_new || (state != MUTE && state != REFUSED) || balance->wanted.n == 0)
                return;
        balance_explain(balance, balance->wanted.lines[0], text, sizeof(text));
        log_write(balance->options->log, LOG_NOTICE, &(struct log_fields){ .event = "irqbalance" },
                  "%s", text);
}

/* The list as it should be, and what of it is ours then. */
static int make_next(const struct balance *balance, struct ban_list *ret_list,
                     struct ban_list *ret_ours) {
        int r = 0;

        *ret_list = balance->theirs;
        *ret_ours = (struct ban_list){};
        for (unsigned i = 0; i < balance->ours.n; i++)
                ban_list_remove(ret_list, balance->ours.lines[i]);
        for (unsigned i = 0; i < balance->wanted.n && r >= 0; i++) {
                if (ban_list_has(ret_list, balance->wanted.lines[i]))
                        continue; /* somebody else's wish as well: that stays */
                r = ban_list_add(ret_list, balance->wanted.lines[i]);
                if (r >= 0)
                        r = ban_list_add(ret_ours, balance->wanted.lines[i]);
        }
        return r;
}

/* Nothing is answered to that, and so nothing waited for. */
static int write_list(struct balance *balance, const struct ban_list *list) {
        char command[BAN_COMMAND_SIZE];
        struct irqbalance now;
        _cleanup_close_ int fd = -1;
        int r;

        r = ban_list_format(list, command);
        if (r < 0)
                return r;
        fd = irqbalance_connect(balance->directory, &now);
        if (fd < 0)
                return fd;
        if (now.pid != balance->instance.pid || now.start_time != balance->instance.start_time)
                return -ESTALE;
        return irqbalance_send(fd, command);
}

/* It says now that it leaves them alone. */
static void on_kept(struct balance *balance) {
        const struct ban_list before = balance->kept, now = balance->ours;

        balance->kept = now;
        for (unsigned i = 0; i < now.n; i++)
                if (!ban_list_has(&before, now.lines[i]))
                        balance->on_banned(now.lines[i], balance->userdata);
}

/* Its list has been read: makes it what it should be, or sees that it is. */
static int on_list(struct balance *balance) {
        struct ban_list next, ours, before = balance->ours;
        int r;

        r = make_next(balance, &next, &ours);
        if (r < 0)
                return r;
        if (ban_list_equal(&next, &balance->theirs)) {
                set_state(balance, balance->wanted.n > 0 ? BANNED : NOT_THERE, 0);
                balance->reading_back = false;
                balance->ours = ours;
                save(balance);
                on_kept(balance);
                return 0;
        }
        if (balance->reading_back)
                return -EILSEQ;

        for (unsigned i = 0; i < ours.n; i++)
                (void) ban_list_add(&balance->ours, ours.lines[i]);
        save(balance); /* what was and what will be */
        r = write_list(balance, &next);
        if (r < 0) {
                balance->ours = before;
                save(balance);
                return r;
        }
        log_write(balance->options->log, LOG_INFO, &(struct log_fields){ .event = "irqbalance" },
                  "irqbalance (process %d) was told to leave %u interrupt%s alone for us, and %u "
                  "for others",
                  balance->instance.pid, ours.n, ours.n == 1 ? "" : "s", next.n - ours.n);
        balance->ours = ours;
        balance->theirs = next;
        save(balance);
        balance->reading_back = true;
        balance->again = true;
        return 0;
}

static void try_later(struct balance *balance) {
        (void) sd_event_source_set_time_relative(balance->settle, SETTLE_US);
        (void) sd_event_source_set_enabled(balance->settle, SD_EVENT_ONESHOT);
}

static void on_reply(struct balance *balance) {
        int r;

        hang_up(balance);
        r = ban_list_parse(balance->reply, &balance->theirs);
        balance->is_known = r >= 0;
        if (r >= 0)
                r = on_list(balance);
        else if (irqbalance_is_gone(&balance->instance)) {
                balance->again = true;
                r = 0;
        }
        if (r == -EAGAIN) {
                try_later(balance);
        } else if (r < 0) {
                balance->reading_back = false;
                set_state(balance, REFUSED, r);
        }
        if (balance->again)
                update(balance);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct balance *balance = userdata;
        ssize_t n;

        n = read(fd, balance->reply + balance->n_reply, REPLY_MAX - 1 - balance->n_reply);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0) {
                balance->n_reply += (size_t) n;
                balance->reply[balance->n_reply] = '\0';
                if (balance->n_reply < REPLY_MAX - 1)
                        return 0;
        }
        on_reply(balance);
        return 0;
}

static int ask(struct balance *balance) {
        struct irqbalance found;
        int r;

        r = irqbalance_connect(balance->directory, &found);
        if (r < 0)
                return r;
        balance->fd = r;
        if (found.pid != balance->instance.pid || found.start_time != balance->instance.start_time) {
                balance->instance = found;
                balance->ours = balance->kept = (struct ban_list){}; /* the former's are void */
                balance->is_known = false;
                balance->reading_back = false;
        }
        balance->n_reply = 0;
        balance->reply[0] = '\0';
        r = sd_event_add_io(balance->options->event, &balance->io, balance->fd, EPOLLIN,
                            on_readable, balance);
        if (r >= 0)
                r = irqbalance_send(balance->fd, BAN_SETUP);
        if (r < 0)
                hang_up(balance);
        return r;
}

/* Then no answer would be read, see LAST_ANSWER_MS; and it does not like to be rung up for nothing. */
static bool is_ending(const struct balance *balance) {
        int state = sd_event_get_state(balance->options->event);

        return state == SD_EVENT_EXITING || state == SD_EVENT_FINISHED;
}

static void update(struct balance *balance) {
        int r;

        if (balance->fd >= 0) {
                balance->again = true;
                return;
        }
        balance->again = false;
        if ((balance->wanted.n == 0 && balance->ours.n == 0) || is_ending(balance))
                return;
        r = ask(balance);
        if (r >= 0) {
                if (!balance->reading_back)
                        set_state(balance, ASKED, 0);
        } else if (r == -ENOENT) {
                balance->ours = balance->kept = (struct ban_list){};
                save(balance);
                set_state(balance, is_running(balance) ? MUTE : NOT_THERE, 0);
        } else if (r == -EAGAIN) {
                try_later(balance); /* others are talking to it */
        } else {
                set_state(balance, REFUSED, r);
        }
}

/* ---- another one starts ---- */

static int on_settled(sd_event_source *source, uint64_t usec, void *userdata) {
        update(userdata);
        return 0;
}

static void watch_directory(struct balance *balance);

static int on_born(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        struct balance *balance = userdata;

        if (event->len > 0 && strncmp(event->name, "irqbalance", strlen("irqbalance")) != 0)
                return 0;
        if (source == balance->directory_born || event->mask & IN_IGNORED)
                watch_directory(balance);
        try_later(balance);
        return 0;
}

static void watch_directory(struct balance *balance) {
        balance->born = sd_event_source_disable_unref(balance->born);
        (void) sd_event_add_inotify(balance->options->event, &balance->born, balance->directory,
                                    IN_CREATE | IN_ONLYDIR, on_born, balance);
}

/* Nothing wanted, nothing to wake up for. */
static void update_watch(struct balance *balance) {
        char parent[PATH_MAX];
        char *slash;

        if (balance->wanted.n == 0) {
                balance->born = sd_event_source_disable_unref(balance->born);
                balance->directory_born = sd_event_source_disable_unref(balance->directory_born);
                return;
        }
        if (balance->directory_born)
                return;
        irq_copy(parent, sizeof(parent), balance->directory);
        slash = strrchr(parent, '/');
        *slash = '\0';
        (void) sd_event_add_inotify(balance->options->event, &balance->directory_born, parent,
                                    IN_CREATE | IN_ONLYDIR, on_born, balance);
        watch_directory(balance);
}

void balance_want(struct balance *balance, const struct ban_list *lines) {
        bool is_owed = balance->wanted.n == 0 && balance->ours.n > 0; /* by a predecessor */

        if (ban_list_equal(&balance->wanted, lines) && !is_owed)
                return;
        balance->wanted = *lines;
        balance->reading_back = false;
        update_watch(balance);
        update(balance);
}

void balance_explain(const struct balance *balance, unsigned line, char *text, size_t size) {
        text[0] = '\0';
        if (!ban_list_has(&balance->wanted, line))
                return;
        if (balance->state == MUTE)
                (void) snprintf(text, size,
                                "irqbalance runs and has no socket to tell it by, so it may move "
                                "interrupt %u: start it with --banirq=%u",
                                line, line);
        else if (balance->state == REFUSED)
                (void) snprintf(text, size,
                                "irqbalance may move interrupt %u, it could not be told to leave it "
                                "alone: %s",
                                line,
                                balance->error == -ENOSPC   ? "its list is full"
                                : balance->error == -EILSEQ ? "it was told and did not"
                                : balance->error == -EBADMSG
                                        ? "it does not answer as one does"
                                        : strerror(-balance->error));
}

/* ---- */

int balance_new(const struct irq_table_options *options,
                void (*on_banned)(unsigned line, void *userdata), void *userdata,
                struct balance **ret) {
        struct balance *balance = calloc(1, sizeof(*balance));
        int r;

        if (!balance)
                return -ENOMEM;
        balance->options = options;
        balance->on_banned = on_banned;
        balance->userdata = userdata;
        balance->directory = options->balance_dir ? options->balance_dir : DIRECTORY;
        balance->fd = -1;
        r = sd_event_add_time_relative(options->event, &balance->settle, CLOCK_MONOTONIC, 0, 0,
                                       on_settled, balance);
        if (r >= 0)
                r = sd_event_source_set_enabled(balance->settle, SD_EVENT_OFF);
        if (r < 0) {
                free(balance);
                return r;
        }
        recover(balance);
        *ret = balance;
        return 0;
}

/* Reads it to its end, whatever it says: it comes in pieces. */
static void await_end(int fd) {
        struct pollfd pollfd = { .fd = fd, .events = POLLIN };
        char buffer[1024];

        while (fd >= 0 && poll(&pollfd, 1, LAST_ANSWER_MS) == 1 &&
               read(fd, buffer, sizeof(buffer)) > 0)
                continue;
}

/* What is ours is taken off the list as last known: there is no time to read it again. */
static void give_back(struct balance *balance) {
        struct ban_list next, ours;
        int r = -EAGAIN;

        await_end(balance->fd);
        hang_up(balance);
        balance->wanted.n = 0;
        if (balance->ours.n == 0 || !balance->is_known || make_next(balance, &next, &ours) < 0)
                return;
        for (unsigned i = 0; i < TRIES_MAX && r == -EAGAIN; i++) {
                if (i > 0)
                        (void) poll(NULL, 0, TRY_MS);
                r = write_list(balance, &next);
        }
        if (r < 0)
                return;
        balance->ours = ours;
        save(balance);
}

struct balance *balance_free(struct balance *balance) {
        if (!balance)
                return NULL;

        give_back(balance);
        update_watch(balance);
        balance->settle = sd_event_source_disable_unref(balance->settle);
        free(balance);
        return NULL;
}
