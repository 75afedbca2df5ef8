/* SPDX-License-Identifier: MIT */

#include "client/rtgrantctl-polkit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/json.h"
#include "client/cli/text.h"

#define POLKIT "org.freedesktop.PolicyKit1"
#define TIMEOUT_US UINT64_C(3000000)

/* PolkitImplicitAuthorization, in the order of its numbers. */
static const char *const words[] = { "no",        "auth_self",       "auth_admin",
                                     "auth_self_keep", "auth_admin_keep", "yes" };

static const char *const places[] = {
        [POLKIT_ACTIVE] = "active",
        [POLKIT_INACTIVE] = "inactive",
        [POLKIT_ANY] = "any",
};

static const char *word_of(uint32_t number) {
        return number < ELEMENTS(words) ? words[number] : NULL;
}

/* The session of this process, or as for its user's services the one that the user sits at. */
static enum polkit_place find_place(void) {
        enum polkit_place place = POLKIT_ANY;
        char *session = NULL;

        if (sd_pid_get_session(0, &session) < 0 && sd_uid_get_display(getuid(), &session) < 0)
                return place;
        if (sd_session_is_remote(session) == 0)
                place = sd_session_is_active(session) > 0 ? POLKIT_ACTIVE : POLKIT_INACTIVE;
        free(session);
        return place;
}

/* One action of a(ssssssuuua{ss}). Above 0 if it is the one that is looked for. */
static int read_action(sd_bus_message *reply, struct polkit_part *part) {
        uint32_t any, inactive, active;
        const char *id;
        int r;

        r = sd_bus_message_read(reply, "ssssssuuu", &id, NULL, NULL, NULL, NULL, NULL, &any,
                                &inactive, &active);
        if (r >= 0)
                r = sd_bus_message_skip(reply, "a{ss}");
        if (r < 0)
                return r;
        if (strcmp(id, part->action) != 0)
                return 0;

        part->implicit[POLKIT_ACTIVE] = word_of(active);
        part->implicit[POLKIT_INACTIVE] = word_of(inactive);
        part->implicit[POLKIT_ANY] = word_of(any);
        return 1;
}

static void read_actions(sd_bus_message *reply, struct polkit_part *part) {
        if (sd_bus_message_enter_container(reply, 'a', "(ssssssuuua{ss})") < 0)
                return;
        while (sd_bus_message_enter_container(reply, 'r', "ssssssuuua{ss}") > 0 &&
               read_action(reply, part) == 0 && sd_bus_message_exit_container(reply) >= 0)
                continue;
}

void polkit_part_read(const char *action, struct polkit_part *ret) {
        sd_bus_message *request = NULL, *reply = NULL;
        sd_bus *bus = NULL;
        int r;

        *ret = (struct polkit_part) { .place = find_place() };
        (void) snprintf(ret->action, sizeof(ret->action), "%s", action);

        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &request, POLKIT,
                                                   "/org/freedesktop/PolicyKit1/Authority",
                                                   POLKIT ".Authority", "EnumerateActions");
        if (r >= 0)
                r = sd_bus_message_append(request, "s", "");
        if (r >= 0)
                r = sd_bus_call(bus, request, TIMEOUT_US, NULL, &reply);
        if (r >= 0)
                read_actions(reply, ret);

        sd_bus_message_unref(request);
        sd_bus_message_unref(reply);
        sd_bus_flush_close_unref(bus);
}

static const char *place_words(enum polkit_place place) {
        switch (place) {
        case POLKIT_ACTIVE:
                return "you sit at the machine";
        case POLKIT_INACTIVE:
                return "your session is not in front";
        default:
                return "you have no session at the machine itself";
        }
}

static bool is_known(const struct polkit_part *part) {
        return part->implicit[part->place] != NULL;
}

void polkit_part_print(const struct polkit_part *part) {
        char action[POLKIT_ACTION_SIZE];

        if (part->action[0] == '\0')
                return;
        text_printable(action, sizeof(action), part->action);
        printf("  polkit: action %s", action);
        if (!is_known(part)) {
                printf("; polkit does not tell what it needs\n");
                return;
        }

        for (enum polkit_place place = 0; place < _POLKIT_PLACE_MAX; place++)
                printf("%s %s: %s", place == 0 ? ";" : ",", places[place],
                       part->implicit[place] ? part->implicit[place] : "unknown");
        printf("; %s, so %s unless a rule says otherwise\n", place_words(part->place),
               part->implicit[part->place]);
}

json_object *polkit_part_json(const struct polkit_part *part) {
        json_object *object;

        if (part->action[0] == '\0')
                return NULL;

        object = json_object_new_object();
        json_add_string(object, "action", part->action);
        for (enum polkit_place place = 0; place < _POLKIT_PLACE_MAX; place++)
                json_add_text(object, places[place],
                              part->implicit[place] ? part->implicit[place] : "");
        json_add_string(object, "place", places[part->place]);
        return object;
}

void polkit_part_remedy(const struct polkit_part *part, char *buffer, size_t size) {
        const char *here = is_known(part) ? part->implicit[part->place] : "";

        buffer[0] = '\0';
        if (here[0] == '\0')
                return;
        if (strcmp(here, "yes") == 0)
                (void) snprintf(buffer, size, "ask in earnest: polkit says yes");
        else if (strcmp(here, "no") != 0)
                (void) snprintf(buffer, size, "ask in earnest, with --ask and %s password",
                                strstr(here, "admin") ? "an administrator's" : "your");
        else if (part->implicit[POLKIT_ACTIVE] && strcmp(part->implicit[POLKIT_ACTIVE], "no") != 0)
                (void) snprintf(buffer, size, "do it from a session at the machine itself (then %s)",
                                part->implicit[POLKIT_ACTIVE]);
        else
                (void) snprintf(buffer, size, "a rule for %s in /etc/polkit-1/rules.d/",
                                part->action);
}
