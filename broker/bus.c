/* SPDX-License-Identifier: MIT */

#include "broker/bus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/broker1.h"
#include "broker/bus-peer.h"
#include "broker/realtimekit.h"
#include "broker/sleep.h"
#include "broker/text.h"

#define DEFAULT_SOCKET "/run/dbus/system_bus_socket"

#define RETRY_US_MIN (250U * 1000)
#define RETRY_US_MAX (60U * 1000 * 1000)

/* What the bus daemon answers to RequestName. */
#define NAME_IN_QUEUE 2

struct bus {
        struct broker *broker;          /* borrowed; outlives this */
        sd_bus *connection;             /* owned; NULL while there is none */
        struct bus_peers *peers;        /* owned */
        struct broker1 *broker1;        /* owned */
        struct realtimekit realtimekit;
        struct sleep_watch sleep;
        sd_event_source *retry;         /* owned; runs while there is no bus */
        uint64_t retry_us;
};

static const char *bus_address(void) {
        const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");

        if (address)
                return address;
        return access(DEFAULT_SOCKET, F_OK) >= 0 ? "unix:path=" DEFAULT_SOCKET : NULL;
}

/* Whether there is a bus at all: a machine without one is not to be woken up to look for it. */
static bool is_there(const char *address) {
        static const char by_path[] = "unix:path=";
        char path[128];

        if (!address || strncmp(address, by_path, strlen(by_path)) != 0)
                return address;

        address += strlen(by_path);
        text_copy(path, strcspn(address, ",;") < sizeof(path) ? strcspn(address, ",;") + 1
                                                               : sizeof(path), address);
        return access(path, F_OK) >= 0;
}

static void try_later(struct bus *bus) {
        bus_peers_clear(bus->peers);
        broker1_clear(bus->broker1);
        (void) sd_event_source_set_time_relative(bus->retry, bus->retry_us);
        (void) sd_event_source_set_enabled(bus->retry, SD_EVENT_ONESHOT);
        bus->retry_us = 2 * bus->retry_us < RETRY_US_MAX ? 2 * bus->retry_us : RETRY_US_MAX;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus *bus = userdata;

        /* not said again of each try */
        if (bus->retry_us == RETRY_US_MIN)
                log_write(bus->broker->log, LOG_WARNING, &(struct log_fields) { .event = "no-bus" },
                          "the system bus is gone or does not let us on; trying again, grants "
                          "stay as they are");
        try_later(bus);
        return 0;
}

/* The name came free, or was taken away by an administrator. */
static int on_name_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus *bus = userdata;
        const char *name;

        if (sd_bus_message_read(message, "s", &name) < 0 || name[0] == ':')
                return 0;

        log_write(bus->broker->log, LOG_NOTICE, &(struct log_fields) { .event = "bus-name" },
                  sd_bus_message_is_signal(message, NULL, "NameAcquired")
                          ? "serves %s on the system bus"
                          : "does not serve %s on the system bus any more",
                  name);
        return 0;
}

static void check_name(struct bus *bus, sd_bus_message *message, const char *name) {
        uint32_t answer;

        bus->retry_us = RETRY_US_MIN; /* we are on the bus */
        if (sd_bus_message_is_method_error(message, NULL))
                log_write(bus->broker->log, LOG_NOTICE,
                          &(struct log_fields) { .event = "bus-name" },
                          "the system bus does not let us have %s: %s", name,
                          sd_bus_message_get_error(message)->message);
        else if (sd_bus_message_read(message, "u", &answer) >= 0 && answer == NAME_IN_QUEUE)
                log_write(bus->broker->log, LOG_WARNING,
                          &(struct log_fields) { .event = "bus-name" },
                          "somebody else serves %s%s; taking over when it ends", name,
                          strcmp(name, REALTIMEKIT_NAME) == 0 ? " (is rtkit-daemon running?)" : "");
}

static int on_realtimekit_requested(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        check_name(userdata, message, REALTIMEKIT_NAME);
        return 0;
}

static int on_broker1_requested(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        check_name(userdata, message, BROKER1_NAME);
        return 0;
}

/*
 * Everybody may send us a signal, and of a match by a well-known name sd-bus lets all senders
 * through. What the bus itself says, of names that are gone above all, only the bus may say.
 */
static bool is_forged(sd_bus_message *message) {
        const char *sender = sd_bus_message_get_sender(message);

        return sd_bus_message_is_signal(message, "org.freedesktop.DBus", NULL) &&
               (!sender || strcmp(sender, "org.freedesktop.DBus") != 0);
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus *bus = userdata;

        return is_forged(message) || bus_peers_see(bus->peers, message);
}

static int watch(struct bus *bus, const char *sender, const char *path, const char *member,
                 sd_bus_message_handler_t handler) {
        return sd_bus_match_signal_async(bus->connection, NULL, sender, path, sender, member,
                                         handler, NULL, bus);
}

/* All of this is only queued: it goes out when the bus has let us on. */
static int set_up(struct bus *bus) {
        static const char driver[] = "org.freedesktop.DBus", path[] = "/org/freedesktop/DBus";
        int r;

        r = watch(bus, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local", "Disconnected",
                  on_disconnected);
        if (r >= 0)
                r = watch(bus, driver, path, "NameAcquired", on_name_changed);
        if (r >= 0)
                r = watch(bus, driver, path, "NameLost", on_name_changed);
        if (r >= 0)
                r = sd_bus_add_filter(bus->connection, NULL, on_message, bus);
        if (r >= 0)
                r = sleep_watch_add(bus, &bus->sleep);
        if (r >= 0)
                r = realtimekit_add(bus, &bus->realtimekit);
        if (r >= 0)
                r = broker1_add(bus->broker1);
        /* in the queue, behind whoever has it: it comes to us without a gap */
        if (r >= 0)
                r = sd_bus_request_name_async(bus->connection, NULL, REALTIMEKIT_NAME,
                                              SD_BUS_NAME_QUEUE, on_realtimekit_requested, bus);
        if (r >= 0)
                r = sd_bus_request_name_async(bus->connection, NULL, BROKER1_NAME,
                                              SD_BUS_NAME_QUEUE, on_broker1_requested, bus);
        return r;
}

static int connect_to(struct bus *bus, const char *address) {
        int r;

        bus->connection = sd_bus_close_unref(bus->connection);
        r = sd_bus_new(&bus->connection);
        if (r >= 0)
                r = sd_bus_set_address(bus->connection, address);
        if (r >= 0)
                r = sd_bus_set_bus_client(bus->connection, true);
        /* nobody has anything to hand us, so nobody can fill our table of descriptors */
        if (r >= 0)
                r = sd_bus_negotiate_fds(bus->connection, false);
        if (r >= 0)
                r = sd_bus_start(bus->connection);
        if (r >= 0)
                r = set_up(bus);
        if (r >= 0)
                r = sd_bus_attach_event(bus->connection, bus->broker->event, 0);
        if (r < 0)
                bus->connection = sd_bus_close_unref(bus->connection);
        return r;
}

static void bus_connect(struct bus *bus) {
        const char *address = bus_address();
        int r;

        r = address ? connect_to(bus, address) : -ENOENT;
        if (r >= 0)
                return;

        if (bus->retry_us == RETRY_US_MIN)
                log_write(bus->broker->log, LOG_WARNING, &(struct log_fields) { .event = "no-bus" },
                          "cannot connect to the system bus, trying again: %s", strerror(-r));
        try_later(bus);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        bus_connect(userdata);
        return 0;
}

int bus_new(struct broker *broker, struct bus **ret) {
        struct bus *bus;
        int r;

        if (!is_there(bus_address()))
                return -ENOENT;

        bus = calloc(1, sizeof(*bus));
        if (!bus)
                return -ENOMEM;
        bus->broker = broker;
        bus->retry_us = RETRY_US_MIN;

        r = bus_peers_new(broker, &bus->peers);
        if (r >= 0)
                r = broker1_new(bus, &bus->broker1);
        if (r >= 0)
                r = sd_event_add_time_relative(broker->event, &bus->retry, CLOCK_MONOTONIC, 0, 0,
                                               on_retry, bus);
        if (r >= 0)
                r = sd_event_source_set_enabled(bus->retry, SD_EVENT_OFF);
        if (r < 0) {
                (void) bus_free(bus);
                return r;
        }

        bus_connect(bus);
        *ret = bus;
        return 0;
}

struct bus *bus_free(struct bus *bus) {
        if (!bus)
                return NULL;

        bus->peers = bus_peers_free(bus->peers);
        bus->broker1 = broker1_free(bus->broker1);
        bus->retry = sd_event_source_disable_unref(bus->retry);
        bus->connection = sd_bus_close_unref(bus->connection);
        sleep_watch_clear(&bus->sleep);
        free(bus);
        return NULL;
}

void bus_tell(struct bus *bus, const struct wire_event *event) {
        broker1_tell(bus->broker1, event);
}

struct broker *bus_broker(const struct bus *bus) {
        return bus->broker;
}

sd_bus *bus_connection(const struct bus *bus) {
        return bus->connection;
}

struct bus_peers *bus_peers(const struct bus *bus) {
        return bus->peers;
}
