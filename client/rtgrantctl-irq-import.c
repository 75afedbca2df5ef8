/* SPDX-License-Identifier: MIT */

/*
 * Rules of the policy from a configuration of rtirq. That is a shell script of assignments; only
 * these are read, nothing is executed. What would be otherwise than with rtirq is said in comments.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/rtgrantctl-irq.h"

#define PRIORITY_MAX 94 /* above that the broker gives nothing */
#define NAMES_SIZE   1024
#define RULES_MAX    32
#define NOTES_MAX    64
#define NOTE_SIZE    400

struct rule {
        char name[32];
        char device[IRQ_NAME_SIZE];
        int priority;
        char why[96];
};

struct import {
        const struct irq_view *view;
        const char *file;
        char names[NAMES_SIZE]; /* RTIRQ_NAME_LIST */
        char high[NAMES_SIZE];  /* RTIRQ_HIGH_LIST */
        int priority_high, priority_step, priority_low;
        struct rule rules[RULES_MAX];
        unsigned n_rules;
        char notes[NOTES_MAX][NOTE_SIZE];
        unsigned n_notes;
};

static void note(struct import *import, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void note(struct import *import, const char *format, ...) {
        char text[NOTE_SIZE];
        va_list args;

        if (import->n_notes == NOTES_MAX)
                return;
        va_start(args, format);
        (void) vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_printable(import->notes[import->n_notes++], NOTE_SIZE, text);
}

/* ---- the file ---- */

/* The value of an assignment without its quotes. False: more than a plain word or string. */
static bool unquote(char *value) {
        size_t length;
        char *end;

        if (*value == '"' || *value == '\'') {
                end = strchr(value + 1, *value);
                if (!end)
                        return false;
                if (end[1 + strspn(end + 1, " \t\r\n")] != '\0' &&
                    end[1 + strspn(end + 1, " \t\r\n")] != '#')
                        return false;
                *end = '\0';
                memmove(value, value + 1, strlen(value));
        } else {
                length = strcspn(value, " \t\r\n");
                if (value[length + strspn(value + length, " \t\r\n")] != '\0' &&
                    value[length + strspn(value + length, " \t\r\n")] != '#')
                        return false;
                value[length] = '\0';
        }
        return !strpbrk(value, "$`\\");
}

static void take_number(struct import *import, const char *name, const char *value, int min,
                        int max, int *ret) {
        int64_t number;

        if (text_parse_number(value, min, max, &number) < 0)
                note(import, "%s=%s is not a number from %d to %d; %d is taken", name, value, min,
                     max, *ret);
        else
                *ret = (int) number;
}

static void take(struct import *import, const char *name, const char *value) {
        if (strcmp(name, "RTIRQ_NAME_LIST") == 0) {
                irq_copy(import->names, sizeof(import->names), value);
        } else if (strcmp(name, "RTIRQ_HIGH_LIST") == 0) {
                irq_copy(import->high, sizeof(import->high), value);
        } else if (strcmp(name, "RTIRQ_PRIO_HIGH") == 0) {
                take_number(import, name, value, 1, 99, &import->priority_high);
        } else if (strcmp(name, "RTIRQ_PRIO_DECR") == 0) {
                take_number(import, name, value, 0, 50, &import->priority_step);
        } else if (strcmp(name, "RTIRQ_PRIO_LOW") == 0) {
                take_number(import, name, value, 1, 99, &import->priority_low);
        } else if (strcmp(name, "RTIRQ_RESET_ALL") == 0) {
                if (strcmp(value, "0") != 0 && value[0] != '\0')
                        note(import,
                             "RTIRQ_RESET_ALL=%s has no counterpart: threads that no rule "
                             "names stay as they are, and raised ones get back what they had",
                             value);
        } else if (strcmp(name, "RTIRQ_NON_THREADED") == 0) {
                if (value[0] != '\0')
                        note(import,
                             "RTIRQ_NON_THREADED=\"%s\" has no counterpart: kernels of today "
                             "have no switch for single handlers",
                             value);
        } else if (strncmp(name, "RTIRQ_", 6) == 0 && strcmp(name, "RTIRQ_STATE") != 0) {
                note(import, "%s is not known and was passed over", name);
        }
}

static void read_line(struct import *import, char *line, unsigned number) {
        char *name = line + strspn(line, " \t"), *equals;

        if (strncmp(name, "export ", 7) == 0)
                name += 7;
        if (*name == '#' || *name == '\n' || *name == '\r' || *name == '\0')
                return;
        equals = strchr(name, '=');
        if (!equals ||
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
                    (size_t) (equals - name)) {
                note(import, "line %u is no plain assignment and was passed over", number);
                return;
        }
        *equals = '\0';
        if (unquote(equals + 1))
                take(import, name, equals + 1);
        else
                note(import,
                     "line %u: the value of %s is more than a plain string; it was passed over",
                     number, name);
}

static int read_configuration(struct import *import) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        unsigned number = 0;
        FILE *file;

        file = fopen(import->file, "re");
        if (!file)
                return -errno;
        while (getline(&line, &size, file) > 0)
                read_line(import, line, ++number);
        (void) fclose(file);
        return 0;
}

/* ---- from names to devices ---- */

static void name_rule(struct import *import, struct rule *rule, const char *what) {
        char base[24];
        size_t n = 0;

        for (const char *p = what; *p != '\0' && n < sizeof(base) - 1; p++)
                base[n++] = isalnum((unsigned char) *p) || *p == '-' || *p == '_' ? *p : '-';
        base[n] = '\0';
        (void) snprintf(rule->name, sizeof(rule->name), "rtirq-%u-%s", import->n_rules + 1, base);
        rule->name[31] = '\0';
}

static bool has_device(const struct import *import, const char *device) {
        for (unsigned i = 0; i < import->n_rules; i++)
                if (strcmp(import->rules[i].device, device) == 0)
                        return true;
        return false;
}

/* As rtirq, each further device of a name one lower. */
static void add_rule(struct import *import, const char *name, const char *device, int *priority) {
        struct rule *rule;

        if (has_device(import, device)) {
                note(import, "%s of \"%s\" has a rule already, by a name before it", device, name);
                return;
        }
        if (import->n_rules == RULES_MAX) {
                note(import, "%s of \"%s\" is one too many: there can be %d rules", device, name,
                     RULES_MAX);
                return;
        }
        rule = &import->rules[import->n_rules];
        name_rule(import, rule, strchr(device, device[3] == '/' ? '/' : ':') + 1);
        irq_copy(rule->device, sizeof(rule->device), device);
        rule->priority = *priority > PRIORITY_MAX ? PRIORITY_MAX : *priority;
        (void) snprintf(rule->why, sizeof(rule->why), "\"%s\"", name);
        import->n_rules++;
        if (*priority > 1)
                (*priority)--;
}

static bool matches(const char *action, const char *name) {
        for (; *name != '\0'; action++, name++)
                if ((*action == '-' ? '_' : *action) != (*name == '-' ? '_' : *name))
                        return false;
        return true;
}

static unsigned add_cards(struct import *import, const char *name, bool usb_only, int *priority) {
        const struct irq_view *view = import->view;
        unsigned n = 0;

        for (size_t i = 0; i < view->n_rows; i++) {
                const struct irq_device *device = &view->rows[i].resolution.device;
                char text[IRQ_NAME_SIZE];

                if (device->card < 0 || (usb_only && device->usb[0] == '\0'))
                        continue;
                (void) snprintf(text, sizeof(text), "card:%s", device->card_id);
                add_rule(import, name, text, priority);
                n++;
        }
        return n;
}

/* The slot of the device that a handler belongs to: unlike the number of a line it stays. */
static bool find_slot(const struct import *import, const struct irq_line *line, const char *action,
                      char *buffer, size_t size) {
        struct dirent *entry;
        char path[PATH_MAX];
        bool found = false;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "%s/bus/pci/devices", import->view->roots.sys);
        dir = opendir(path);
        if (!dir)
                return false;
        while (!found && (entry = readdir(dir))) {
                struct irq_device device;
                struct irq_name name;
                char text[300];

                (void) snprintf(text, sizeof(text), "pci:%s", entry->d_name);
                if (irq_name_parse(text, &name) < 0 ||
                    irq_device_find(&import->view->roots, &import->view->after, &name, &device) < 0)
                        continue;
                for (unsigned i = 0; i < device.n_lines && !found; i++)
                        found = device.lines[i] == line->number &&
                                irq_is_handler_of(&device, line, action);
                if (found)
                        irq_copy(buffer, size, text);
        }
        (void) closedir(dir);
        return found;
}

struct handler_search {
        struct import *import;
        const struct irq_line *line;
        const char *name;
        int *priority;
        unsigned n;
};

static int add_handler(const char *action, void *userdata) {
        struct handler_search *search = userdata;
        char device[IRQ_NAME_SIZE];

        if (!matches(action, search->name))
                return 0;
        search->n++;
        if (!find_slot(search->import, search->line, action, device, sizeof(device)) &&
            snprintf(device, sizeof(device), "irq/%u-%s", search->line->number, action) >=
                    (int) sizeof(device))
                return 0;
        if (!has_device(search->import, device))
                add_rule(search->import, search->name, device, search->priority);
        return 0;
}

static void add_name(struct import *import, const char *name, int priority) {
        const struct irq_snapshot *snapshot = &import->view->after;
        struct handler_search search = { .import = import, .name = name, .priority = &priority };

        if (priority > PRIORITY_MAX)
                note(import, "\"%s\" had priority %d; above %d nothing is given", name, priority,
                     PRIORITY_MAX);
        if (strcmp(name, "snd") == 0 || strcmp(name, "snd-usb") == 0 ||
            strcmp(name, "snd_usb_audio") == 0 || strcmp(name, "snd-usb-audio") == 0) {
                if (add_cards(import, name, strcmp(name, "snd") != 0, &priority) == 0)
                        note(import,
                             "\"%s\": there is no such card now, so there is no rule for it; "
                             "plug it in and try again, or write Device=card:ID yourself",
                             name);
                return;
        }

        for (size_t i = 0; i < snapshot->n_lines; i++) {
                search.line = &snapshot->lines[i];
                (void) irq_line_for_each_action(search.line, add_handler, &search);
        }
        if (search.n == 0)
                note(import, "\"%s\" is the handler of no interrupt here", name);
}

static void add_names(struct import *import) {
        int priority = import->priority_high;

        if (import->names[0] == '\0')
                note(import, "there is no RTIRQ_NAME_LIST");
        for (char *rest = import->names, *name; (name = strsep(&rest, " \t\n"));) {
                if (name[0] == '\0')
                        continue;
                add_name(import, name, priority);
                priority -= import->priority_step;
                if (priority < import->priority_low)
                        priority = import->priority_low;
        }
        if (import->high[0] != '\0')
                note(import,
                     "RTIRQ_HIGH_LIST=\"%s\" has no counterpart: rtirq gives these 99, where "
                     "the kernel's own threads run; above %d nothing is given",
                     import->high, PRIORITY_MAX);
}

/* ---- what comes of it ---- */

static void print_wrapped(const char *text) {
        size_t column = 0;

        for (const char *p = text; *p != '\0';) {
                size_t length = strcspn(p, " ");

                if (column == 0 || column + 1 + length > 98)
                        column = (size_t) printf("%s#", column > 0 ? "\n" : "");
                column += (size_t) printf(" %.*s", (int) length, p);
                p += length + strspn(p + length, " ");
        }
        putchar('\n');
}

static void print_rules(const struct import *import) {
        char file[PATH_MAX + 64];

        text_printable(file, sizeof(file), import->file);
        printf("# From %s, for /etc/rtgrant/policy.d/rtirq.conf; then rtgrantctl reload.\n", file);
        print_wrapped(
                "Other than rtirq, which sets once and by name: these rules follow a device when "
                "it is plugged in, its driver is loaded or the machine wakes up, and give back "
                "what was there before. Switch rtirq's own services off.");
        for (unsigned i = 0; i < import->n_notes; i++)
                print_wrapped(import->notes[i]);
        for (unsigned i = 0; i < import->n_rules; i++) {
                const struct rule *rule = &import->rules[i];
                char why[128];

                text_printable(why, sizeof(why), rule->why);
                printf("\n# %s\n[Irq %s]\nDevice=%s\nPriority=%d\n", why, rule->name, rule->device,
                       rule->priority);
        }
}

static void print_rules_json(const struct import *import) {
        json_object *object = json_object_new_object(), *rules = json_object_new_array(),
                    *notes = json_object_new_array();

        for (unsigned i = 0; i < import->n_rules; i++) {
                json_object *rule = json_object_new_object();

                json_add_string(rule, "name", import->rules[i].name);
                json_add_string(rule, "device", import->rules[i].device);
                json_add_int(rule, "priority", import->rules[i].priority);
                (void) json_object_array_add(rules, rule);
        }
        for (unsigned i = 0; i < import->n_notes; i++)
                (void) json_object_array_add(notes, json_object_new_string(import->notes[i]));
        (void) json_object_object_add(object, "rules", rules);
        (void) json_object_object_add(object, "notes", notes);
        json_print(object);
}

int irq_import(const struct irq_view *view, const char *file, bool json) {
        _cleanup_free_ struct import *import = calloc(1, sizeof(*import));
        int r;

        if (!import) {
                fprintf(stderr, CTL_PROGRAM ": out of memory\n");
                return STATUS_FAILED;
        }
        *import = (struct import){
                .view = view,
                .file = file,
                /* what rtirq takes if nothing is said */
                .priority_high = 90,
                .priority_step = 5,
                .priority_low = 51,
        };
        r = read_configuration(import);
        if (r < 0) {
                char printable[PATH_MAX];

                text_printable(printable, sizeof(printable), file);
                fprintf(stderr, CTL_PROGRAM ": cannot read %s: %s\n", printable, strerror(-r));
                return STATUS_FAILED;
        }
        add_names(import);
        if (json)
                print_rules_json(import);
        else
                print_rules(import);
        return STATUS_DONE;
}
