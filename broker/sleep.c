/* SPDX-License-Identifier: MIT */

#include "broker/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/bus.h"

#define LOGIND "org.freedesktop.login1"
#define LOGIND_PATH "/org/freedesktop/login1"
#define LOGIND_MANAGER "org.freedesktop.login1.Manager"
#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

static void set_logind(struct sleep_watch *watch, const char *name) {
        free(watch->logind);
        watch->logind = name[0] != '\0' ? strdup(name) : NULL;
}

static int on_owner(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *name;

        if (!sd_bus_message_is_method_error(message, NULL) &&
            sd_bus_message_read(message, "s", &name) >= 0)
                set_logind(userdata, name);
        return 0;
}

static int on_owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *name, *before, *after;

        if (sd_bus_message_read(message, "sss", &name, &before, &after) >= 0 &&
            strcmp(name, LOGIND) == 0)
                set_logind(userdata, after);
        return 0;
}

static int on_prepare(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *sender = sd_bus_message_get_sender(message);
        struct sleep_watch *watch = userdata;
        int begins;

        /* Anybody may send us a signal that looks like it; and who is watched must not be able to
         * start anew with the guard as often as it likes. */
        if (!watch->logind || !sender || strcmp(sender, watch->logind) != 0 ||
            sd_bus_message_read(message, "b", &begins) < 0)
                return 0;

        log_write(watch->broker->log, LOG_INFO, &(struct log_fields) { .event = "sleep" },
                  begins ? "the machine goes to sleep" : "the machine is awake again");
        if (!begins)
                broker_woke_up(watch->broker);
        return 0;
}

int sleep_watch_add(struct bus *bus, struct sleep_watch *watch) {
        sd_bus *connection = bus_connection(bus);
        int r;

        sleep_watch_clear(watch);
        watch->broker = bus_broker(bus);
        r = sd_bus_add_match_async(connection, NULL,
                                   "type='signal',sender='" DRIVER "',path='" DRIVER_PATH
                                   "',interface='" DRIVER
                                   "',member='NameOwnerChanged',arg0='" LOGIND "'",
                                   on_owner_changed, NULL, watch);
        if (r >= 0)
                r = sd_bus_call_method_async(connection, NULL, DRIVER, DRIVER_PATH, DRIVER,
                                             "GetNameOwner", on_owner, watch, "s", LOGIND);
        if (r >= 0)
                r = sd_bus_match_signal_async(connection, NULL, LOGIND, LOGIND_PATH, LOGIND_MANAGER,
                                              "PrepareForSleep", on_prepare, NULL, watch);
        return r;
}

void sleep_watch_clear(struct sleep_watch *watch) {
        free(watch->logind);
        watch->logind = NULL;
}
