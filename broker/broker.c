/* SPDX-License-Identifier: MIT */

#include "broker/broker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "broker/authority.h"
#include "broker/bus.h"
#include "broker/cleanup.h"
#include "broker/closer.h"
#include "broker/config.h"
#include "broker/event-source.h"
#include "broker/guard/act.h"
#include "broker/guard/guard.h"
#include "broker/irq/table.h"
#include "broker/lease-check.h"
#include "broker/lease-recover.h"
#include "broker/observe.h"
#include "broker/reload.h"
#include "broker/server.h"
#include "broker/slow-write.h"
#include "broker/text.h"

#define STATUS_US (250U * 1000)

uint64_t broker_now_us(const struct broker *broker) {
        uint64_t now_us = 0;

        /* the time of this round of the loop, or the current one outside of it */
        (void) sd_event_now(broker->event, CLOCK_MONOTONIC, &now_us);
        return now_us;
}

uint64_t broker_now_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

static int load_first_policy(struct broker *broker) {
        _cleanup_free_ char *messages = NULL;
        int r;

        r = policy_store_load(broker->options.policy_path, &broker->policy, &messages);
        broker_log_policy_messages(broker, r < 0 ? LOG_ERR : LOG_WARNING, messages);
        if (r < 0) {
                log_write(broker->log, LOG_ERR, NULL, "no policy to start with: %s", strerror(-r));
                return r;
        }

        broker->policy_generation = 1;
        broker_apply_log_level(broker);
        return 0;
}

static int open_state(struct broker *broker) {
        const char *dir = broker->options.state_dir;
        int r;

        if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
                r = -errno;
                log_write(broker->log, LOG_ERR, NULL, "cannot make %s: %s", dir, strerror(-r));
                return r;
        }

        r = lease_store_open(dir, &broker->store);
        if (r == -EBADMSG)
                log_write(broker->log, LOG_ERR, NULL,
                          "%s/leases is not a state file that this broker wrote and nobody else "
                          "could; look at it, and "
                          "remove it to start without",
                          dir);
        else if (r == -EBUSY)
                log_write(broker->log, LOG_ERR, NULL, "another broker uses %s", dir);
        else if (r < 0)
                log_write(broker->log, LOG_ERR, NULL, "cannot open %s/leases: %s", dir,
                          strerror(-r));
        return r;
}

static int open_server(struct broker *broker) {
        const char *path = broker->options.socket_path;
        int r;

        r = server_new(broker, &broker->server);
        if (r == -EADDRINUSE)
                log_write(broker->log, LOG_ERR, NULL, "another broker serves %s; it is left alone",
                          path);
        else if (r == -EPROTOTYPE)
                log_write(broker->log, LOG_ERR, NULL,
                          "what was handed over is not one listening Unix socket of sequential "
                          "packets "
                          "(ListenSequentialPacket=)");
        else if (r == -ENOTSOCK)
                log_write(broker->log, LOG_ERR, NULL,
                          "%s is there and is no socket; it is left alone", path);
        else if (r < 0)
                log_write(broker->log, LOG_ERR, NULL, "cannot listen on %s: %s", path,
                          strerror(-r));
        return r;
}

static int open_irqs(struct broker *broker) {
        const struct irq_table_options options = {
                .event = broker->event,
                .log = broker->log,
                .kernel = &broker->kernel,
                .state_dir = broker->options.state_dir,
                .roots = irq_roots_system,
        };

        return irq_table_new(&options, &broker->irqs);
}

static void tell_restarted(struct broker *broker) {
        struct wire_event event = {
                .header = { .size = sizeof(event), .version = WIRE_VERSION, .verb = WIRE_EVENT },
                .kind = WIRE_EVENT_RESTARTED,
                .reason = REASON_RESTART,
        };

        text_copy(event.text, sizeof(event.text), "the broker was restarted; leases go on");
        server_tell_all(broker->server, &event);
}

unsigned broker_hand_over(struct broker *broker) {
        unsigned n_connections = server_hand_over(broker->server),
                 n_leases = lease_table_size(&broker->leases);

        log_write(broker->log, LOG_NOTICE, &(struct log_fields) { .event = "hand-over" },
                  "stops for a successor: %u lease%s and %u connection%s are left to it", n_leases,
                  n_leases == 1 ? "" : "s", n_connections, n_connections == 1 ? "" : "s");
        return n_leases;
}

static void recover(struct broker *broker) {
        struct lease_recovery recovery;

        (void) server_take_over(broker->server);
        lease_recover(broker, &recovery);
        tell_restarted(broker);
        (void) broker_fit_leases(broker);
        if (recovery.n_adopted + recovery.n_restored + recovery.n_ended + recovery.n_damaged == 0)
                return;

        log_write(broker->log, LOG_NOTICE, &(struct log_fields) { .event = "recovered" },
                  "after the broker before: %u leases taken over, %u ended and restored, %u "
                  "of threads that "
                  "ended meanwhile, %u damaged",
                  recovery.n_adopted, recovery.n_restored, recovery.n_ended, recovery.n_damaged);
}

void broker_woke_up(struct broker *broker) {
        guard_forgive(broker->guard);
        irq_table_refresh(broker->irqs);
        lease_check_all(broker);
}

void broker_apply_authority(struct broker *broker) {
        int r;

        if (!broker_policy(broker)->ask_polkit) {
                struct authority *authority = broker->authority;

                broker->authority = NULL; /* who is answered now must not ask again */
                if (authority)
                        authority_give_up(authority);
                (void) authority_free(authority);
                return;
        }
        if (broker->authority) {
                authority_forget(broker->authority);
                return;
        }

        r = authority_new(broker, &broker->authority);
        if (r == -EOPNOTSUPP)
                log_write(broker->log, LOG_NOTICE, NULL,
                          "built without D-Bus: polkit is not asked, only the policy's lists decide");
        else if (r < 0)
                log_write(broker->log, LOG_WARNING, NULL, "polkit cannot be asked: %s", strerror(-r));
}

#if HAVE_DBUS
static void start_bus(struct broker *broker) {
        int r;

        r = bus_new(broker, &broker->bus);
        if (r < 0)
                log_write(broker->log, LOG_NOTICE, NULL,
                          "no system bus, so only the socket is served: %s", strerror(-r));
}

static void stop_bus(struct broker *broker) {
        broker->bus = bus_free(broker->bus);
}
#else
static void start_bus(struct broker *broker) {
}

static void stop_bus(struct broker *broker) {
}
#endif

int broker_new(const struct broker_options *options, struct log *log, struct broker **ret) {
        struct broker *broker;
        int r;

        broker = calloc(1, sizeof(*broker));
        if (!broker)
                return -ENOMEM;

        broker->options = *options;
        broker->log = log;
        broker->started_ms = broker_now_ms();
        lease_table_init(&broker->leases);
        user_table_init(&broker->users);
        kernel_probe(&broker->kernel);

        r = sd_event_default(&broker->event);
#if HAVE_DBUS
        if (r >= 0)
                broker->event_source = event_source_new(broker->event);
#endif
        if (r >= 0)
                r = closer_new(&broker->closer);
        if (r >= 0)
                r = slow_writer_new(&broker->disks);
        if (r >= 0)
                r = observe_new(&broker->observe);
        if (r >= 0)
                r = load_first_policy(broker);
        /* The socket's lock comes before the state: a second broker must not touch the leases. */
        if (r >= 0)
                r = open_server(broker);
        if (r >= 0)
                r = open_state(broker);
        if (r >= 0)
                r = open_irqs(broker);
        if (r >= 0) {
                self_init(&broker->self, log); /* which the guard is entered in */
                r = guard_act_start(broker);
        }
        if (r < 0) {
                (void) broker_free(broker);
                return r;
        }

        resource_table_init(&broker->resources);
        resource_table_log(&broker->resources, log);
        recover(broker);
        irq_table_set_rules(broker->irqs, broker_policy(broker)->irqs,
                            broker_policy(broker)->n_irqs);
        broker_apply_authority(broker);
        start_bus(broker);

        *ret = broker;
        return 0;
}

struct broker *broker_free(struct broker *broker) {
        if (!broker)
                return NULL;

        (void) broker_end_all(broker, REASON_SHUTDOWN, "the broker stops");
        broker->irqs = irq_table_free(broker->irqs);
        stop_bus(broker);
        broker->server = server_free(broker->server);
        broker->closer = closer_free(broker->closer);
        broker->disks = slow_writer_free(broker->disks);
        broker->observe = observe_free(broker->observe);
        broker->authority = authority_free(broker->authority);
        broker->check = sd_event_source_disable_unref(broker->check);
        broker->status = sd_event_source_disable_unref(broker->status);
        guard_act_stop(broker);
        lease_table_done(&broker->leases);
        resource_table_done(&broker->resources);
        user_table_done(&broker->users);
        broker->store = lease_store_close(broker->store);
        broker->policy = policy_store_free(broker->policy);
#if HAVE_DBUS
        broker->event_source = event_source_free(broker->event_source);
#endif
        (void) sd_event_unref(broker->event);
        free(broker);
        return NULL;
}

unsigned broker_end_all(struct broker *broker, enum reason reason, const char *text) {
        struct lease *lease;
        unsigned n = 0;

        while ((lease = lease_find_after(&broker->leases, 0))) {
                lease_end(broker, lease, reason, text);
                n++;
        }

        if (n > 0)
                log_write(broker->log, LOG_NOTICE,
                          &(struct log_fields) { .event = "ended-all",
                                                .reason = reason_to_string(reason) },
                          "%u lease%s ended and restored: %s", n, n == 1 ? "" : "s", text);
        return n;
}

/* What happens often is for those who want to see it; what befalls a client is for everybody. */
static int event_level(enum wire_event_kind kind, enum reason reason) {
        switch (kind) {
        case WIRE_EVENT_DEMOTED:
                return LOG_NOTICE;
        case WIRE_EVENT_GRANTED:
                return LOG_INFO;
        case WIRE_EVENT_UPDATED:
        case WIRE_EVENT_ENDED:
                return LOG_DEBUG;
        case WIRE_EVENT_REVOKED:
                return reason == REASON_SHUTDOWN ? LOG_DEBUG : LOG_INFO;
        default:
                return LOG_INFO;
        }
}

/* What a user's threads can bring about as often as they like, one line for each of them. */
static bool may_log(struct broker *broker, struct user *user, enum wire_event_kind kind) {
        switch (kind) {
        case WIRE_EVENT_CHANGED:
        case WIRE_EVENT_DEMOTED:
        case WIRE_EVENT_RESTORED:
        case WIRE_EVENT_OVER_BUDGET:
                if (bucket_take(&user->events, broker_now_us(broker)))
                        return true;
                user->n_events_suppressed++;
                return false;
        default:
                return true;
        }
}

static void log_event(struct broker *broker, const struct lease *lease, enum wire_event_kind kind,
                      enum reason reason, const char *text) {
        static const char *const words[] = {
                [WIRE_EVENT_GRANTED] = "granted",   [WIRE_EVENT_UPDATED] = "updated",
                [WIRE_EVENT_ENDED] = "ended",       [WIRE_EVENT_REVOKED] = "revoked",
                [WIRE_EVENT_CHANGED] = "changed",   [WIRE_EVENT_LOWERED] = "lowered",
                [WIRE_EVENT_DEMOTED] = "demoted",   [WIRE_EVENT_RESTORED] = "restored",
                [WIRE_EVENT_OVER_BUDGET] = "over-budget", [WIRE_EVENT_RESTARTED] = "restarted",
        };
        const struct grant *sched = &lease->grants[KIND_SCHED];
        const struct grant *nice = &lease->grants[KIND_NICE];
        char id[LEASE_ID_STRING_SIZE], held[256], more[64] = "";
        int level = event_level(kind, reason), n = 0;
        struct user *user = lease->user;

        if (!log_is_written(broker->log, level) || !may_log(broker, user, kind))
                return;
        if (user->n_events_suppressed > 0)
                (void) snprintf(more, sizeof(more), " (%u events before were not logged)",
                                user->n_events_suppressed);
        user->n_events_suppressed = 0;

        held[0] = '\0';
        if (sched->held)
                n = snprintf(held, sizeof(held), " SCHED_%s %d",
                             sched_policy_to_string(sched->set.sched.policy),
                             sched->set.sched.priority);
        if (nice->held)
                n += snprintf(held + n, sizeof(held) - (size_t) n, " nice %d", nice->set.nice.nice);
        for (enum resource_index i = 0; i < _RESOURCE_MAX; i++) {
                int64_t value = resource_held_value(lease, i, NULL);

                if (value == 0)
                        continue;
                held[n++] = ' ';
                resource_to_string(i, value, held + n, sizeof(held) - (size_t) n);
                n = (int) strlen(held);
        }

        lease_id_to_string(lease->id, id);
        log_write(broker->log, level,
                  &(struct log_fields) {
                          .event = words[kind],
                          .lease = id,
                          .role = lease->role,
                          .reason = reason != REASON_NONE ? reason_to_string(reason) : NULL,
                          .pid = lease->thread.pid,
                          .tid = lease->thread.tid,
                          .uid_plus_one = lease->uid + 1,
                  },
                  "lease %.8s of user %u: thread %d of process %d,%s in role %s: %s%s", id,
                  lease->uid, lease->thread.tid, lease->thread.pid, held, lease->role, text, more);
}

void broker_tell(struct broker *broker, struct lease *lease, enum wire_event_kind kind,
                 enum reason reason, const char *text) {
        struct wire_event event;

        log_event(broker, lease, kind, reason, text);
        broker_notify_status(broker);

        if (broker->n_watchers == 0 || !broker->server)
                return;

        memset(&event, 0, sizeof(event));
        event.header = (struct wire_header) {
                .size = sizeof(event),
                .version = WIRE_VERSION,
                .verb = WIRE_EVENT,
        };
        event.kind = kind;
        event.reason = reason;
        lease_describe(broker, lease, &event.lease);
        text_copy(event.text, sizeof(event.text), text);
        server_tell(broker->server, &event);
#if HAVE_DBUS
        if (broker->bus)
                bus_tell(broker->bus, &event);
#endif
}

void broker_notify(struct broker *broker, const char *state) {
        unsigned n_leases = lease_table_size(&broker->leases),
                 n_users = user_table_n_holders(&broker->users);
        char text[256];

        (void) snprintf(text, sizeof(text), "%s\nSTATUS=%u lease%s of %u user%s; policy %u%s%s",
                        state, n_leases, n_leases == 1 ? "" : "s", n_users, n_users == 1 ? "" : "s",
                        broker->policy_generation,
                        broker->policy_error[0] != '\0' ? " (the last reload failed)" : "",
                        broker->self.broken != REASON_NONE ? "; no real-time grants" : "");
        log_notify(broker->log, text);
}

static int on_status(sd_event_source *source, uint64_t usec, void *userdata) {
        broker_notify(userdata, "");
        return 0;
}

/* It is a message to the service manager, so not for every grant. */
void broker_notify_status(struct broker *broker) {
        int enabled = SD_EVENT_OFF;

        if (!getenv("NOTIFY_SOCKET"))
                return;
        if (!broker->status) {
                (void) sd_event_add_time_relative(broker->event, &broker->status, CLOCK_MONOTONIC,
                                                  STATUS_US, 0, on_status, broker);
                return;
        }

        (void) sd_event_source_get_enabled(broker->status, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        (void) sd_event_source_set_time_relative(broker->status, STATUS_US);
        (void) sd_event_source_set_enabled(broker->status, SD_EVENT_ONESHOT);
}
