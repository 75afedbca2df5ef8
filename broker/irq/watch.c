/* SPDX-License-Identifier: MIT */

#include "broker/irq/watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "broker/cleanup.h"

#define KERNEL_GROUP     1 /* the kernel's own messages; udev's repetition of them is 2 */
#define MESSAGE_MAX      8192
#define MESSAGES_AT_ONCE 64
/* A driver makes its thread before or after the device is told of; a card takes its time. */
#define SOON_US  (300U * 1000)
#define LATER_US (3U * 1000 * 1000)

struct irq_watch {
        sd_event *event; /* borrowed */
        void (*changed)(void *userdata);
        void *userdata;
        int socket;                 /* owned */
        int clock;                  /* owned; a timer that only a clock set anew can end */
        sd_event_source *on_socket; /* owned */
        sd_event_source *on_clock;  /* owned */
        sd_event_source *timer;     /* owned */
        bool again;                 /* look a second time, later */
};

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct irq_watch *watch = userdata;

        if (watch->again) {
                watch->again = false;
                (void) sd_event_source_set_time_relative(source, LATER_US);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        watch->changed(watch->userdata);
        return 0;
}

/* However many messages come: one look soon, and one later. */
static void schedule(struct irq_watch *watch) {
        int enabled = SD_EVENT_OFF;

        (void) sd_event_source_get_enabled(watch->timer, &enabled);
        if (enabled != SD_EVENT_OFF && watch->again)
                return;
        watch->again = true;
        (void) sd_event_source_set_time_relative(watch->timer, SOON_US);
        (void) sd_event_source_set_enabled(watch->timer, SD_EVENT_ONESHOT);
}

/* ---- devices ---- */

static const char *find_value(const char *message, size_t length, const char *key) {
        size_t key_length = strlen(key);

        for (size_t at = 0; at < length;) {
                size_t n = strnlen(message + at, length - at);

                if (at + n < length && n > key_length && memcmp(message + at, key, key_length) == 0)
                        return message + at + key_length;
                at += n + 1;
        }
        return NULL;
}

int irq_watch_is_of_interest(const char *message, size_t length) {
        static const char *const subsystems[] = { "sound", "pci",      "usb",
                                                  "net",   "platform", "firewire" };
        const char *action = find_value(message, length, "ACTION=");
        const char *subsystem = find_value(message, length, "SUBSYSTEM=");

        if (!action || !subsystem ||
            (strcmp(action, "add") != 0 && strcmp(action, "remove") != 0 &&
             strcmp(action, "bind") != 0 && strcmp(action, "unbind") != 0 &&
             strcmp(action, "change") != 0))
                return 0;
        for (size_t i = 0; i < ELEMENTS(subsystems); i++)
                if (strcmp(subsystem, subsystems[i]) == 0)
                        return 1;
        return 0;
}

static int on_message(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct irq_watch *watch = userdata;
        char message[MESSAGE_MAX];

        for (unsigned i = 0; i < MESSAGES_AT_ONCE; i++) {
                struct sockaddr_nl from = {};
                socklen_t size = sizeof(from);
                ssize_t n;

                n = recvfrom(fd, message, sizeof(message), MSG_DONTWAIT, (struct sockaddr *) &from,
                             &size);
                if (n < 0 && errno != ENOBUFS)
                        break;
                /* ENOBUFS: some were lost */
                if (n < 0 || (from.nl_pid == 0 && irq_watch_is_of_interest(message, (size_t) n)))
                        schedule(watch);
        }
        return 0;
}

static int open_socket(struct irq_watch *watch) {
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };

        watch->socket =
                socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
        if (watch->socket < 0)
                return -errno;
        if (bind(watch->socket, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return sd_event_add_io(watch->event, &watch->on_socket, watch->socket, EPOLLIN, on_message,
                               watch);
}

/* ---- waking up: the clock is set anew then ---- */

static int arm_clock(const struct irq_watch *watch) {
        const struct itimerspec never = { .it_value = { .tv_sec = INT32_MAX } };

        return timerfd_settime(watch->clock, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
                               NULL) < 0
                       ? -errno
                       : 0;
}

static int on_clock_set(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct irq_watch *watch = userdata;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) < 0 && errno != ECANCELED)
                return 0;
        if (arm_clock(watch) < 0)
                watch->on_clock = sd_event_source_disable_unref(watch->on_clock);
        schedule(watch);
        return 0;
}

static int open_clock(struct irq_watch *watch) {
        int r;

        watch->clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (watch->clock < 0)
                return -errno;
        r = arm_clock(watch);
        if (r < 0)
                return r;
        return sd_event_add_io(watch->event, &watch->on_clock, watch->clock, EPOLLIN, on_clock_set,
                               watch);
}

int irq_watch_new(sd_event *event, void (*changed)(void *userdata), void *userdata,
                  struct irq_watch **ret) {
        struct irq_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        *watch = (struct irq_watch){
                .event = event,
                .changed = changed,
                .userdata = userdata,
                .socket = -1,
                .clock = -1,
        };
        r = sd_event_add_time_relative(event, &watch->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
                                       watch);
        if (r >= 0)
                r = sd_event_source_set_enabled(watch->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = open_socket(watch);
        if (r >= 0)
                r = open_clock(watch);
        if (r < 0) {
                (void) irq_watch_free(watch);
                return r;
        }
        *ret = watch;
        return 0;
}

struct irq_watch *irq_watch_free(struct irq_watch *watch) {
        if (!watch)
                return NULL;

        watch->on_socket = sd_event_source_disable_unref(watch->on_socket);
        watch->on_clock = sd_event_source_disable_unref(watch->on_clock);
        watch->timer = sd_event_source_disable_unref(watch->timer);
        (void) close_fd(watch->socket);
        (void) close_fd(watch->clock);
        free(watch);
        return NULL;
}
