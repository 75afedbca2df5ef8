/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

#define ORIGIN_COLUMN 40

struct printout {
        const struct ctl *ctl;
        json_object *array;     /* with --json */
        char section[128];      /* the one being printed; printable */
};

/* KEY=VALUE, and far enough to the right where that was set */
static void print_entry(struct printout *printout, const char *section, const char *key,
                        const char *value, const char *origin) {
        bool colour = printout->ctl->colour;
        char setting[1024], where[512], title[sizeof(printout->section)];
        size_t n, pad;

        text_printable(title, sizeof(title), section);
        if (strcmp(title, printout->section) != 0) {
                printf("%s%s[%s]%s\n", printout->section[0] ? "\n" : "",
                       style_begin(colour, STYLE_BOLD), title, style_end(colour, STYLE_BOLD));
                memcpy(printout->section, title, sizeof(title));
        }

        text_printable(setting, sizeof(setting) - 1, key);
        n = strlen(setting);
        setting[n++] = '=';
        text_printable(setting + n, sizeof(setting) - n, value);
        text_printable(where, sizeof(where), origin[0] ? origin : "default");

        n = text_width(setting);
        pad = n < ORIGIN_COLUMN ? ORIGIN_COLUMN - n : 0;
        printf("%s%*s  %s%s%s\n", setting, (int) pad, "", style_begin(colour, STYLE_DIM), where,
               style_end(colour, STYLE_DIM));
}

static int on_entry(const char *section, const char *key, const char *value, const char *origin,
                    void *userdata) {
        struct printout *printout = userdata;
        json_object *object;

        if (!printout->array) {
                print_entry(printout, section, key, value, origin);
                return 0;
        }
        object = json_object_new_object();
        json_add_string(object, "section", section);
        json_add_string(object, "key", key);
        json_add_string(object, "value", value);
        json_add_text(object, "origin", origin);
        (void) json_object_array_add(printout->array, object);
        return 0;
}

int ctl_policy(struct ctl *ctl, char **argv) {
        struct printout printout = { .ctl = ctl };
        int r, status;

        if (ctl->check)
                return ctl_check_policy(ctl, ctl->check);
        status = ctl_connect(ctl);
        if (status != 0)
                return status;

        if (ctl->json)
                printout.array = json_object_new_array();
        r = rtgrant_get_policy(ctl->broker.handle, on_entry, &printout);
        if (r < 0) {
                (void) json_object_put(printout.array);
                return ctl_fail(ctl, r, NULL);
        }
        if (ctl->json)
                json_print(printout.array);
        return STATUS_DONE;
}

int ctl_reload(struct ctl *ctl, char **argv) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        int r, status;

        status = ctl_connect(ctl);
        if (status != 0)
                return status;
        r = rtgrant_reload(ctl->broker.handle, &answer);
        if (r < 0 && !(r == -EPERM && ctl->json))
                return ctl_fail(ctl, r, &answer);

        if (ctl->json) {
                json_object *object = json_object_new_object();

                json_add_bool(object, "reloaded", r >= 0);
                json_add_int(object, "lowered", answer.count);
                if (r < 0)
                        json_add_refusal(object, "refusal", &answer);
                else
                        json_add_null(object, "refusal");
                json_print(object);
        } else
                printf("Policy loaded; %u lease%s lowered\n", answer.count,
                       answer.count == 1 ? "" : "s");
        return r < 0 ? STATUS_REFUSED : STATUS_DONE;
}
