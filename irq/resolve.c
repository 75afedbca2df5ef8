/* SPDX-License-Identifier: MIT */

#include "irq/resolve.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define COMM_SIZE 16 /* names of kernel threads were cut to this before Linux 5.17 */

/* ---- whose handler ---- */

enum match {
        MATCH_OTHER, /* says that it is another device's */
        MATCH_NONE,
        MATCH_DRIVER, /* of the same driver */
        MATCH_DEVICE, /* of this very device */
};

static int fold(char c) {
        return c == '-' ? '_' : tolower((unsigned char) c);
}

/* "xhci-hcd" and "xhci_hcd" are the same. Returns what follows @prefix in @string, or NULL. */
static const char *skip_prefix(const char *string, const char *prefix) {
        if (*prefix == '\0')
                return NULL;
        for (; *prefix != '\0'; string++, prefix++)
                if (fold(*string) != fold(*prefix))
                        return NULL;
        return string;
}

/* "usb_bus" is no part of "usb": a name goes on with a mark or not at all. */
static bool is_word_end(const char *rest) {
        return rest && (*rest == '\0' || *rest == ':' || *rest == '-' || *rest == '@');
}

/* "…:card1", "…:usb2": the number of which. */
static enum match match_tail(const struct irq_device *device, const char *action) {
        const char *colon = strrchr(action, ':');
        unsigned n;
        char end;

        if (!colon)
                return MATCH_NONE;
        if (sscanf(colon, ":card%4u%c", &n, &end) == 1)
                return device->card == (int) n && device->usb_bus == 0 ? MATCH_DEVICE : MATCH_OTHER;
        if (device->usb_bus > 0 && sscanf(colon, ":usb%4u%c", &n, &end) == 1)
                return device->usb_bus == n ? MATCH_DEVICE : MATCH_OTHER;
        return MATCH_NONE;
}

static bool is_of_driver(const struct irq_device *device, const char *action) {
        char driver[sizeof(device->driver)];
        char *end;

        if (is_word_end(skip_prefix(action, device->driver)))
                return true;
        /* "xhci-pci-renesas" and the like serve what "xhci_hcd" handles */
        irq_copy(driver, sizeof(driver), device->driver);
        end = strpbrk(driver, "-_");
        if (!end || strncmp(end, "-pci", 4) != 0)
                return false;
        irq_copy(end, sizeof(driver) - (size_t) (end - driver), "_hcd");
        return is_word_end(skip_prefix(action, driver));
}

static enum match match_action(const struct irq_device *device, const char *action) {
        enum match tail = match_tail(device, action);

        if (tail != MATCH_NONE)
                return tail;
        if (strcmp(action, device->controller) == 0 ||
            is_word_end(skip_prefix(action, device->net)))
                return MATCH_DEVICE;
        return is_of_driver(device, action) ? MATCH_DRIVER : MATCH_NONE;
}

struct best {
        const struct irq_device *device;
        enum match match;
        unsigned n_actions;
};

static int note_best(const char *action, void *userdata) {
        struct best *best = userdata;
        enum match match = match_action(best->device, action);

        best->n_actions++;
        if (match > best->match)
                best->match = match;
        return 0;
}

bool irq_is_handler_of(const struct irq_device *device, const struct irq_line *line,
                       const char *action) {
        struct best best = { .device = device };

        if (device->path[0] == '\0') /* named by its line: all of them */
                return true;
        (void) irq_line_for_each_action(line, note_best, &best);
        if (best.n_actions == 1)
                return true; /* sysfs says that the line is the device's, and nobody else has it */
        return best.match >= MATCH_DRIVER && match_action(device, action) == best.match;
}

/* ---- whose thread ---- */

struct thread_search {
        const struct irq_device *device;
        const struct irq_line *line;
        const struct irq_thread *thread;
        const char *handler;
};

static int is_action_of_thread(const char *action, void *userdata) {
        const struct thread_search *search = userdata;
        size_t length = strlen(search->thread->task.name);

        /* Cut by the kernel: what is left of it has to do. */
        if (length == COMM_SIZE - 1)
                return strncmp(action, search->handler, strlen(search->handler)) == 0 &&
                       irq_is_handler_of(search->device, search->line, action);
        return strcmp(action, search->handler) == 0 &&
               irq_is_handler_of(search->device, search->line, action);
}

static bool is_thread_of(const struct irq_device *device, const struct irq_line *line,
                         const struct irq_thread *thread) {
        struct thread_search search = { device, line, thread, irq_thread_handler(thread) };

        if (device->name.kind == IRQ_NAME_THREAD)
                return strcmp(thread->task.name, device->name.value) == 0;
        if (device->path[0] == '\0')
                return true;
        if (!line)
                return false; /* a thread whose handler is just going */
        if (irq_line_for_each_action(line, is_action_of_thread, &search))
                return true;
        /* a handler whose name begins with "s-" */
        search.handler = strchr(thread->task.name, '-') + 1;
        return thread->secondary && irq_line_for_each_action(line, is_action_of_thread, &search);
}

static void add_threads(const struct irq_snapshot *snapshot, const struct irq_line *line,
                        unsigned number, struct irq_resolution *resolution) {
        for (size_t i = 0; i < snapshot->n_threads; i++) {
                const struct irq_thread *thread = &snapshot->threads[i];

                if (thread->line != number || !is_thread_of(&resolution->device, line, thread))
                        continue;
                if (resolution->n_threads == IRQ_THREADS_MAX) {
                        resolution->status = IRQ_TOO_MANY;
                        return;
                }
                resolution->threads[resolution->n_threads++] = *thread;
        }
}

/* Keeps the threads of lines for which @keep says so. */
static void filter(struct irq_resolution *resolution,
                   bool (*keep)(const struct irq_snapshot *, const struct irq_snapshot *, unsigned),
                   const struct irq_snapshot *before, const struct irq_snapshot *after) {
        unsigned n = 0;

        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (keep(before, after, resolution->threads[i].line))
                        n++;
        if (n == 0)
                return;

        n = 0;
        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (keep(before, after, resolution->threads[i].line))
                        resolution->threads[n++] = resolution->threads[i];
        resolution->n_threads = n;
}

static bool has_fired(const struct irq_snapshot *before, const struct irq_snapshot *after,
                      unsigned number) {
        const struct irq_line *line = irq_snapshot_find(after, number);

        return line && line->count > 0;
}

static bool has_moved(const struct irq_snapshot *before, const struct irq_snapshot *after,
                      unsigned number) {
        const struct irq_line *x = irq_snapshot_find(before, number);
        const struct irq_line *y = irq_snapshot_find(after, number);

        return y && y->count > (x ? x->count : 0);
}

bool irq_choose_moving(struct irq_resolution *resolution, const struct irq_snapshot *before,
                       const struct irq_snapshot *after) {
        filter(resolution, has_moved, before, after);
        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (has_moved(before, after, resolution->threads[i].line))
                        return true;
        return false;
}

/* ---- */

static enum irq_status why_none(const struct irq_snapshot *snapshot,
                                const struct irq_device *device) {
        bool handled = false, ambiguous = false;

        for (unsigned i = 0; i < device->n_lines; i++) {
                const struct irq_line *line = irq_snapshot_find(snapshot, device->lines[i]);
                struct best best = { .device = device };

                if (!line)
                        continue;
                handled = true;
                (void) irq_line_for_each_action(line, note_best, &best);
                if (device->path[0] != '\0' && best.n_actions > 1 && best.match < MATCH_DRIVER)
                        ambiguous = true;
        }
        if (!handled)
                return IRQ_NO_LINE;
        if (device->name.kind == IRQ_NAME_THREAD)
                for (size_t i = 0; i < snapshot->n_threads; i++)
                        if (snapshot->threads[i].line == device->name.number)
                                return IRQ_NO_DEVICE; /* of another name */
        if (!snapshot->threads_visible)
                return IRQ_HIDDEN;
        if (!snapshot->forced)
                return IRQ_NOT_FORCED;
        return ambiguous ? IRQ_AMBIGUOUS : IRQ_NOT_THREADED;
}

void irq_resolve(const struct irq_roots *roots, const struct irq_snapshot *snapshot,
                 const char *name, struct irq_resolution *ret) {
        struct irq_name parsed;

        *ret = (struct irq_resolution){ .status = IRQ_RESOLVED };
        if (irq_name_parse(name, &parsed) < 0) {
                ret->status = IRQ_BAD_NAME;
                return;
        }
        if (irq_device_find(roots, snapshot, &parsed, &ret->device) < 0) {
                ret->status = IRQ_NO_DEVICE;
                return;
        }

        for (unsigned i = 0; i < ret->device.n_lines && ret->status == IRQ_RESOLVED; i++)
                add_threads(snapshot, irq_snapshot_find(snapshot, ret->device.lines[i]),
                            ret->device.lines[i], ret);
        if (ret->status == IRQ_TOO_MANY || ret->device.more_lines)
                ret->status = IRQ_TOO_MANY;
        else if (ret->n_threads == 0)
                ret->status = why_none(snapshot, &ret->device);
        if (ret->status != IRQ_RESOLVED)
                ret->n_threads = 0;
        filter(ret, has_fired, NULL, snapshot);
}

const char *irq_status_to_string(enum irq_status status) {
        switch (status) {
        case IRQ_RESOLVED:
                return "resolved";
        case IRQ_BAD_NAME:
                return "bad-name";
        case IRQ_NO_DEVICE:
                return "no-device";
        case IRQ_NO_LINE:
                return "no-interrupt";
        case IRQ_HIDDEN:
                return "hidden";
        case IRQ_NOT_FORCED:
                return "not-threaded";
        case IRQ_NOT_THREADED:
                return "not-threadable";
        case IRQ_AMBIGUOUS:
                return "ambiguous";
        case IRQ_TOO_MANY:
                return "too-many";
        }
        return "unknown";
}

static void explain_lines(const struct irq_device *device, char *buffer, size_t size) {
        size_t n = (size_t) snprintf(buffer, size,
                                     device->n_lines == 1 ? "interrupt " : "interrupts ");

        for (unsigned i = 0; i < device->n_lines && n < size; i++) {
                if (i == 4) {
                        (void) snprintf(buffer + n, size - n, ", …");
                        break;
                }
                n += (size_t) snprintf(buffer + n, size - n, "%s%u", i > 0 ? ", " : "",
                                       device->lines[i]);
        }
}

void irq_status_explain(const struct irq_resolution *resolution, const char *name, char *text,
                        size_t text_size, char *help, size_t help_size) {
        const struct irq_device *device = &resolution->device;
        char lines[64];

        explain_lines(device, lines, sizeof(lines));
        help[0] = '\0';
        switch (resolution->status) {
        case IRQ_RESOLVED:
                text[0] = '\0';
                return;
        case IRQ_BAD_NAME:
                (void) snprintf(text, text_size, "'%s' does not name a device", name);
                (void) snprintf(help, help_size, "name it as %s", IRQ_NAME_FORMS);
                return;
        case IRQ_NO_DEVICE:
                (void) snprintf(text, text_size, "there is no device %s", name);
                (void) snprintf(help, help_size, "'rtgrantctl irq' lists the sound cards");
                return;
        case IRQ_NO_LINE:
                (void) snprintf(text, text_size, "%s has no interrupt that anybody handles", name);
                return;
        case IRQ_HIDDEN:
                (void) snprintf(text, text_size,
                                "%s has %s, but kernel threads are hidden from here", name, lines);
                (void) snprintf(help, help_size,
                                "look from outside of the container, or as root if /proc hides "
                                "processes");
                return;
        case IRQ_NOT_FORCED:
                (void) snprintf(text, text_size,
                                "no thread handles %s of %s: this kernel does so at once", lines,
                                name);
                (void) snprintf(help, help_size,
                                "boot with 'threadirqs' on the kernel's command "
                                "line, or a PREEMPT_RT kernel");
                return;
        case IRQ_NOT_THREADED:
                (void) snprintf(text, text_size,
                                "no thread handles %s of %s: the driver does not let it have one",
                                lines, name);
                return;
        case IRQ_AMBIGUOUS:
                (void) snprintf(
                        text, text_size,
                        "%s of %s is shared, and none of its handlers bears the driver's name",
                        lines, name);
                (void) snprintf(help, help_size,
                                "name the thread exactly: 'rtgrantctl irq --all' lists them");
                return;
        case IRQ_TOO_MANY:
                (void) snprintf(text, text_size, "%s has more than %d interrupt threads", name,
                                IRQ_THREADS_MAX);
                (void) snprintf(help, help_size, "name one exactly, as irq/130-eth0-TxRx-0");
                return;
        }
}
