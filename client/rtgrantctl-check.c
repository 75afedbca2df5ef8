/* SPDX-License-Identifier: MIT */

/* `rtgrantctl policy --check FILE`: what the broker would say of it, without a broker. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"
#include "policy/policy-file.h"

struct message {
        const char *place;      /* "FILE:LINE" or "FILE" */
        size_t place_length;
        bool is_warning;
        const char *text;
        size_t length;
};

/* "FILE:LINE: text", "FILE:LINE: warning: text", "FILE: text" */
static struct message message_split(const char *line, size_t length) {
        static const char warning[] = "warning: ";
        struct message m = { .text = line, .length = length };
        const char *colon = memmem(line, length, ": ", 2);

        if (colon) {
                m.place = line;
                m.place_length = (size_t) (colon - line);
                m.text = colon + 2;
                m.length = length - m.place_length - 2;
        }
        if (m.length > strlen(warning) && memcmp(m.text, warning, strlen(warning)) == 0) {
                m.is_warning = true;
                m.text += strlen(warning);
                m.length -= strlen(warning);
        }
        return m;
}

static void add_json(json_object *array, const struct message *m) {
        json_object *object = json_object_new_object();
        char place[512], text[1024];

        (void) snprintf(place, sizeof(place), "%.*s", (int) m->place_length, m->place ? m->place : "");
        (void) snprintf(text, sizeof(text), "%.*s", (int) m->length, m->text);
        json_add_text(object, "place", place);
        json_add_string(object, "kind", m->is_warning ? "warning" : "fault");
        json_add_string(object, "text", text);
        (void) json_object_array_add(array, object);
}

static void print_line(const char *line, size_t length) {
        char raw[1536], printable[3072];

        (void) snprintf(raw, sizeof(raw), "%.*s", (int) length, line);
        text_printable(printable, sizeof(printable), raw);
        puts(printable);
}

/* Returns how many of them are faults. */
static unsigned print_messages(const char *messages, json_object *array) {
        unsigned n_faults = 0;

        for (const char *line = messages; line && *line;) {
                size_t length = strcspn(line, "\n");
                struct message m = message_split(line, length);

                n_faults += !m.is_warning;
                if (array)
                        add_json(array, &m);
                else
                        print_line(line, length);
                line += length + (line[length] == '\n');
        }
        return n_faults;
}

int ctl_check_policy(struct ctl *ctl, const char *path) {
        json_object *array = ctl->json ? json_object_new_array() : NULL;
        struct policy_store *store = NULL;
        char *messages = NULL;
        unsigned n_faults;
        int r;

        r = policy_store_load_over(path, &store, &messages);
        n_faults = print_messages(messages, array);
        free(messages);
        (void) policy_store_free(store);

        if (ctl->json) {
                json_object *object = json_object_new_object();

                json_add_bool(object, "good", r >= 0);
                json_add_int(object, "faults", n_faults);
                (void) json_object_object_add(object, "messages", array);
                json_print(object);
        } else if (r >= 0) {
                char printable[1024];

                text_printable(printable, sizeof(printable), path);
                printf("%s: good\n", printable);
        }
        return r < 0 ? STATUS_FAILED : STATUS_DONE;
}
