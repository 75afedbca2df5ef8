/* SPDX-License-Identifier: MIT */

/*
 * Writes the policy file of the bus for one of the broker's names, or with "actions" the actions of
 * polkit's that methods need, from the same rows as the broker's own tables. It runs while rtgrant
 * is built.
 */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "broker/method-rows.h"

struct allowed {
        const char *interface; /* NULL: that of the name */
        const char *member;
        enum access access;
};

static const struct allowed broker_methods[] = {
#define X(verb, member, record, in, out, access, ...) { NULL, member, access },
        BROKER_METHODS(X)
#undef X
                {},
};

static const struct allowed realtimekit_methods[] = {
#define X(member, signature, names, whose, access, ...) { NULL, member, access },
        REALTIMEKIT_METHODS(X)
#undef X
                {},
};

/* What sd-bus serves by itself. */
static const struct allowed standard_methods[] = {
        { "org.freedesktop.DBus.Properties", "Get", ACCESS_FREE },
        { "org.freedesktop.DBus.Properties", "GetAll", ACCESS_FREE },
        { "org.freedesktop.DBus.Introspectable", "Introspect", ACCESS_FREE },
        { "org.freedesktop.DBus.Peer", "Ping", ACCESS_FREE },
        { "org.freedesktop.DBus.Peer", "GetMachineId", ACCESS_FREE },
        {},
};

static const struct service {
        const char *name;
        const struct allowed *methods;
} services[] = {
        { "org.rtgrant.Broker1", broker_methods },
        { "org.freedesktop.RealtimeKit1", realtimekit_methods },
        {},
};

static void write_allowed(const char *name, const struct allowed *methods, int root) {
        for (; methods->member; methods++)
                if ((methods->access == ACCESS_ROOT) == root)
                        (void) printf("                <allow send_destination=\"%s\"\n"
                                      "                       send_interface=\"%s\"\n"
                                      "                       send_member=\"%s\"/>\n",
                                      name, methods->interface ? methods->interface : name,
                                      methods->member);
}

static void write_policy(const struct service *service) {
        (void) printf(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<!DOCTYPE busconfig PUBLIC\n"
                "        \"-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN\"\n"
                "        \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                "<!-- SPDX-License-Identifier: MIT -->\n"
                "<!--\n"
                "        What is not listed does not get through. The broker checks again who\n"
                "        may call what: administrators may be others than root, if polkit lets\n"
                "        them.\n"
                "-->\n"
                "<busconfig>\n"
                "        <policy user=\"root\">\n"
                "                <allow own=\"%s\"/>\n",
                service->name);
        write_allowed(service->name, service->methods, /* root= */ 1);
        (void) printf("        </policy>\n"
                      "\n"
                      "        <policy context=\"default\">\n");
        write_allowed(service->name, service->methods, /* root= */ 0);
        write_allowed(service->name, standard_methods, /* root= */ 0);
        (void) printf("        </policy>\n"
                      "</busconfig>\n");
}

static void write_actions(void) {
        for (enum access access = ACCESS_FREE; access <= ACCESS_ROOT; access++)
                if (access_action(access))
                        (void) printf("%s\n", access_action(access));
}

int main(int argc, char **argv) {
        const char *what = argc == 2 ? argv[1] : "";

        if (strcmp(what, "actions") == 0) {
                write_actions();
                return 0;
        }
        for (const struct service *service = services; service->name; service++)
                if (strcmp(service->name, what) == 0) {
                        write_policy(service);
                        return 0;
                }

        (void) fprintf(stderr, "usage: bus-policy actions | NAME-ON-THE-BUS\n");
        return 1;
}
