/* SPDX-License-Identifier: MIT */

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/json.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/rtgrantctl-irq.h"

/* ---- for people ---- */

static void rate_text(double rate, char *buffer, size_t size) {
        if (rate < 0)
                (void) snprintf(buffer, size, "-");
        else
                (void) snprintf(buffer, size, rate > 0 && rate < 100 ? "%.1f" : "%.0f", rate);
}

/* "1 USB" of card:1, else the name itself */
static void title(const struct irq_row *row, char *buffer, size_t size) {
        const struct irq_device *device = &row->resolution.device;

        if (device->name.kind == IRQ_NAME_CARD && device->card >= 0)
                (void) snprintf(buffer, size, "%d %s", device->card, device->card_id);
        else
                irq_copy(buffer, size, row->name);
}

static void bus_path(const struct irq_device *device, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "%s%s%s%s", device->usb[0] != '\0' ? "usb " : "", device->usb,
                        device->usb[0] != '\0' && device->controller[0] != '\0' ? ", " : "",
                        device->controller);
        if (buffer[0] == '\0')
                irq_copy(buffer, size, "-");
}

static void add_cells(struct table *table, enum style style, const struct irq_row *row,
                      const char *line, const char *thread, const char *priority, const char *cpus,
                      const char *rate) {
        char name[96], path[128], raw[128], printable[160], sharers[320];

        title(row, raw, sizeof(raw));
        text_printable(name, sizeof(name), raw);
        bus_path(&row->resolution.device, raw, sizeof(raw));
        text_printable(path, sizeof(path), raw);
        text_printable(printable, sizeof(printable), thread);
        text_printable(sharers, sizeof(sharers), row->sharers[0] != '\0' ? row->sharers : "-");
        table_add(table, style,
                  (const char *const[]){ name, path, line, printable, priority, cpus, rate,
                                         sharers });
}

static void add_thread_row(const struct irq_view *view, struct table *table,
                           const struct irq_row *row, const struct irq_thread *thread) {
        char line[16], priority[32], cpus[64], rate[32];

        (void) snprintf(line, sizeof(line), "%u", thread->line);
        irq_priority_text(&thread->task, priority, sizeof(priority));
        irq_cpus(view, thread->line, cpus, sizeof(cpus));
        rate_text(irq_rate(view, thread->line), rate, sizeof(rate));
        add_cells(table, STYLE_PLAIN, row, line, thread->task.name, priority,
                  cpus[0] != '\0' ? cpus : "-", rate);
}

static void add_unthreaded_row(const struct irq_view *view, struct table *table,
                               const struct irq_row *row) {
        const struct irq_device *device = &row->resolution.device;
        char line[16] = "-", cpus[64] = "", rate[32] = "-";

        if (device->n_lines > 0) {
                (void) snprintf(line, sizeof(line), "%u", device->lines[0]);
                irq_cpus(view, device->lines[0], cpus, sizeof(cpus));
                rate_text(irq_rate(view, device->lines[0]), rate, sizeof(rate));
        }
        add_cells(table, STYLE_WARNING, row, line, "-", "-", cpus[0] != '\0' ? cpus : "-", rate);
}

static void print_explanation(const struct irq_row *row) {
        char text[256], help[256], printable[512];

        if (row->resolution.status == IRQ_RESOLVED)
                return;
        irq_status_explain(&row->resolution, row->name, text, sizeof(text), help, sizeof(help));
        text_printable(printable, sizeof(printable), text);
        printf("%s\n", printable);
        if (help[0] != '\0')
                printf("  help: %s\n", help);
}

static void print_rows(const struct ctl *ctl, const struct irq_view *view) {
        static const char *const headers[] = { "CARD",       "DEVICE",      "IRQ",
                                               "THREAD",     "PRIORITY",    "CPU",
                                               "PER SECOND", "SHARED WITH", NULL };
        _cleanup_(cleanup_table) struct table *table = table_new(headers);

        if (!table)
                return;
        for (size_t i = 0; i < view->n_rows; i++) {
                const struct irq_resolution *resolution = &view->rows[i].resolution;

                for (unsigned j = 0; j < resolution->n_threads; j++)
                        add_thread_row(view, table, &view->rows[i], &resolution->threads[j]);
                if (resolution->n_threads == 0 && resolution->status != IRQ_NO_DEVICE)
                        add_unthreaded_row(view, table, &view->rows[i]);
        }
        if (table_rows(table) > 0)
                table_print(table, ctl->colour);
        for (size_t i = 0; i < view->n_rows; i++)
                print_explanation(&view->rows[i]);
}

static unsigned thread_line(const struct irq_kthread *task) {
        unsigned line;

        return sscanf(task->name, "irq/%9u-", &line) == 1 ? line : 0;
}

struct listing {
        const struct irq_view *view;
        struct table *table; /* or with --json */
        json_object *array;
};

static int list_thread(const struct irq_kthread *task, void *userdata) {
        struct listing *listing = userdata;
        const char *purpose = irq_purpose(task);
        char name[160], tid[16], priority[32], cpu[64], rate[32] = "-";
        unsigned line = thread_line(task);

        if (!purpose)
                return 0;
        text_printable(name, sizeof(name), task->name);
        (void) snprintf(tid, sizeof(tid), "%d", (int) task->tid);
        (void) snprintf(cpu, sizeof(cpu), "%d", task->cpu);
        irq_priority_text(task, priority, sizeof(priority));
        if (strncmp(task->name, "irq/", 4) == 0)
                rate_text(irq_rate(listing->view, line), rate, sizeof(rate));
        table_add(listing->table, STYLE_PLAIN,
                  (const char *const[]){ name, tid, priority, cpu, rate, purpose });
        return 0;
}

static void print_threads(const struct ctl *ctl, const struct irq_view *view) {
        static const char *const headers[] = { "KERNEL THREAD", "TID", "PRIORITY", "CPU",
                                               "PER SECOND",    "FOR", NULL };
        _cleanup_(cleanup_table) struct table *table = table_new(headers);
        struct listing listing = { .view = view, .table = table };

        if (!table)
                return;
        (void) irq_kthread_for_each(&view->roots, list_thread, &listing);
        putchar('\n');
        if (table_rows(table) > 0)
                table_print(table, ctl->colour);
        else
                puts("No kernel thread can be seen from here.");
}

void irq_print(const struct ctl *ctl, const struct irq_view *view) {
        if (view->n_rows > 0)
                print_rows(ctl, view);
        else
                puts("There is no sound card.");
        if (!view->after.forced && view->n_rows == 0)
                puts("Interrupt threads are not forced here: boot with 'threadirqs' for them.");
        if (view->all)
                print_threads(ctl, view);
}

/* ---- for scripts ---- */

static void add_rate(json_object *object, double rate) {
        if (rate < 0)
                json_add_null(object, "per_second");
        else
                (void) json_object_object_add(object, "per_second", json_object_new_double(rate));
}

static json_object *thread_json(const struct irq_view *view, const struct irq_kthread *task) {
        json_object *object = json_object_new_object();
        char cpus[64] = "";

        json_add_int(object, "tid", task->tid);
        json_add_string(object, "name", task->name);
        json_add_policy(object, "policy", task->policy);
        json_add_int(object, "priority", task->priority);
        json_add_int(object, "nice", task->nice);
        json_add_int(object, "cpu", task->cpu);
        json_add_string(object, "for", irq_purpose(task));
        if (strncmp(task->name, "irq/", 4) == 0) {
                json_add_int(object, "irq", thread_line(task));
                irq_cpus(view, thread_line(task), cpus, sizeof(cpus));
                json_add_text(object, "irq_cpus", cpus);
                add_rate(object, irq_rate(view, thread_line(task)));
        }
        return object;
}

static json_object *line_json(const struct irq_view *view, unsigned number) {
        const struct irq_line *line = irq_snapshot_find(&view->after, number);
        json_object *object = json_object_new_object();
        char cpus[64];

        irq_cpus(view, number, cpus, sizeof(cpus));
        json_add_int(object, "irq", number);
        json_add_text(object, "chip", line ? line->chip : "");
        json_add_text(object, "handlers", line ? line->actions : "");
        json_add_text(object, "cpus", cpus);
        json_add_int(object, "count", line ? (int64_t) line->count : 0);
        add_rate(object, irq_rate(view, number));
        return object;
}

static json_object *row_json(const struct irq_view *view, const struct irq_row *row) {
        const struct irq_resolution *resolution = &row->resolution;
        const struct irq_device *device = &resolution->device;
        json_object *object = json_object_new_object(), *lines = json_object_new_array(),
                    *threads = json_object_new_array();
        char text[256], help[256] = "";

        irq_status_explain(resolution, row->name, text, sizeof(text), help, sizeof(help));
        json_add_string(object, "name", row->name);
        if (device->card_id[0] != '\0')
                json_add_int(object, "card", device->card);
        else
                json_add_null(object, "card");
        json_add_text(object, "card_id", device->card_id);
        json_add_text(object, "usb", device->usb);
        json_add_text(object, "controller", device->controller);
        json_add_text(object, "driver", device->driver);
        json_add_string(object, "status", irq_status_to_string(resolution->status));
        json_add_text(object, "text", text);
        json_add_text(object, "help", help);
        for (unsigned i = 0; i < device->n_lines; i++)
                (void) json_object_array_add(lines, line_json(view, device->lines[i]));
        (void) json_object_object_add(object, "irqs", lines);
        for (unsigned i = 0; i < resolution->n_threads; i++)
                (void) json_object_array_add(threads,
                                             thread_json(view, &resolution->threads[i].task));
        (void) json_object_object_add(object, "threads", threads);
        json_add_text(object, "shared_with", row->sharers);
        return object;
}

static int list_thread_json(const struct irq_kthread *task, void *userdata) {
        struct listing *listing = userdata;

        if (irq_purpose(task))
                (void) json_object_array_add(listing->array, thread_json(listing->view, task));
        return 0;
}

void irq_print_json(const struct irq_view *view) {
        json_object *object = json_object_new_object(), *devices = json_object_new_array();
        struct listing listing = { .view = view, .array = json_object_new_array() };

        for (size_t i = 0; i < view->n_rows; i++)
                (void) json_object_array_add(devices, row_json(view, &view->rows[i]));
        json_add_bool(object, "threads_forced", view->after.forced);
        json_add_bool(object, "threads_visible", view->after.threads_visible);
        (void) json_object_object_add(object, "devices", devices);
        if (view->all)
                (void) irq_kthread_for_each(&view->roots, list_thread_json, &listing);
        if (view->all)
                (void) json_object_object_add(object, "kernel_threads", listing.array);
        else
                (void) json_object_put(listing.array);
        json_print(object);
}
