/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

struct monitor {
        bool json;
        bool colour;
        uint64_t n_lost;
};

static enum style event_style(enum rtgrant_event_kind kind) {
        switch (kind) {
        case RTGRANT_EVENT_GRANTED:
        case RTGRANT_EVENT_RESTORED:
                return STYLE_GOOD;
        case RTGRANT_EVENT_REVOKED:
        case RTGRANT_EVENT_DEMOTED:
        case RTGRANT_EVENT_OVER_BUDGET:
                return STYLE_BAD;
        case RTGRANT_EVENT_CHANGED:
        case RTGRANT_EVENT_LOWERED:
                return STYLE_WARNING;
        default:
                return STYLE_PLAIN;
        }
}

static void print_event_json(enum rtgrant_event_kind kind, int reason,
                             const struct rtgrant_lease *lease, const char *text, uint64_t n_lost) {
        json_object *object = json_object_new_object();

        json_add_time(object, "time", text_now_ms());
        json_add_string(object, "event", rtgrant_event_to_string(kind));
        json_add_string(object, "cause",
                        reason == RTGRANT_REASON_NONE ? NULL : rtgrant_reason_to_string(reason));
        json_add_text(object, "text", text);
        json_add_int(object, "lost", (int64_t) n_lost);
        (void) json_object_object_add(
                object, "lease", kind == RTGRANT_EVENT_RESTARTED ? NULL : ctl_lease_json(lease));
        json_print_line(object);
}

static void print_event(const struct monitor *monitor, enum rtgrant_event_kind kind, int reason,
                        const struct rtgrant_lease *lease, const char *text) {
        bool of_lease = kind != RTGRANT_EVENT_RESTARTED;
        char clock[16] = "", user[TEXT_USER_SIZE], comm[128], role[128], why[1100];
        const char *event = rtgrant_event_to_string(kind);
        char granted[EXPLAIN_VALUES_SIZE];
        enum style style = event_style(kind);
        time_t now = time(NULL);
        struct tm tm;

        if (localtime_r(&now, &tm))
                (void) strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        text_user(user, sizeof(user), lease->uid);
        text_printable(comm, sizeof(comm), lease->comm);
        text_printable(role, sizeof(role), lease->role);
        ctl_describe_granted(granted, lease);
        if (text[0] == '\0' && reason != RTGRANT_REASON_NONE)
                text = rtgrant_reason_to_string(reason);
        text_printable(why, sizeof(why), strcmp(text, event) == 0 ? "" : text);

        if (!of_lease) {
                printf("%s  %s%-11s%s  %s\n", clock, style_begin(monitor->colour, style), event,
                       style_end(monitor->colour, style), why);
                return;
        }
        printf("%s  %s%-11s%s  %s  %s (%d/%d)  %s, role %s%s%s\n", clock,
               style_begin(monitor->colour, style), event, style_end(monitor->colour, style), user,
               comm, (int) lease->pid, (int) lease->tid, granted, role, why[0] ? ": " : "", why);
}

static void on_event(enum rtgrant_event_kind kind, int reason, const struct rtgrant_lease *lease,
                     const char *text, uint64_t n_lost, void *userdata) {
        struct monitor *monitor = userdata;

        if (n_lost > monitor->n_lost && !monitor->json)
                printf("%" PRIu64 " events were lost: this terminal was too slow for them\n",
                       n_lost - monitor->n_lost);
        monitor->n_lost = n_lost;

        if (monitor->json)
                print_event_json(kind, reason, lease, text, n_lost);
        else
                print_event(monitor, kind, reason, lease, text);
}

/* Until a signal comes (0) or the broker goes (negative errno). */
static int watch(struct rtgrant *handle, int signal_fd) {
        int r;

        for (;;) {
                struct pollfd fds[] = {
                        { .fd = rtgrant_get_fd(handle), .events = rtgrant_get_events(handle) },
                        { .fd = signal_fd, .events = POLLIN },
                };

                if (fflush(stdout) != 0)
                        return 0; /* run() says why */
                if (poll(fds, ELEMENTS(fds), -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents)
                        return 0;
                r = rtgrant_process(handle);
                if (r < 0)
                        return r;
        }
}

int ctl_monitor(struct ctl *ctl, char **argv) {
        struct monitor monitor = { .json = ctl->json, .colour = ctl->colour };
        _cleanup_close_ int signal_fd = -1;
        sigset_t signals;
        int r, failed;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGINT);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
        if (signal_fd < 0)
                return ctl_fail(ctl, -errno, NULL);

        failed = ctl_connect(ctl);
        if (failed != 0)
                return failed;
        r = rtgrant_watch(ctl->broker.handle, ctl->all || ctl_is_admin(ctl), on_event, &monitor);
        if (r >= 0)
                r = watch(ctl->broker.handle, signal_fd);
        return r < 0 ? ctl_fail(ctl, r, NULL) : STATUS_DONE;
}
