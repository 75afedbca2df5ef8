/* SPDX-License-Identifier: MIT */

#include "irq/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LINES_MAX    16384U
#define THREADS_MAX  4096U
#define ACTIONS_SIZE 1024
#define ACTION_SIZE  128

struct growing {
        void *items;
        size_t n, n_room;
};

/* Room for one more of @size bytes; NULL if there is no memory, or @n_max are there. */
static void *grow(struct growing *array, size_t size, size_t n_max) {
        if (array->n == n_max)
                return NULL;
        if (array->n == array->n_room) {
                size_t n_room = array->n_room > 0 ? 2 * array->n_room : 64;
                void *items = reallocarray(array->items, n_room, size);

                if (!items)
                        return NULL;
                array->items = items;
                array->n_room = n_room;
        }
        return (char *) array->items + size * array->n++;
}

/* ---- /proc/interrupts ---- */

/* The columns of a line after its number: a count for each CPU, then the chip. */
static const char *parse_counts(const char *p, unsigned n_cpus, uint64_t *ret) {
        uint64_t sum = 0;
        char *end;

        for (unsigned i = 0; i < n_cpus; i++) {
                sum += strtoull(p, &end, 10);
                if (end == p)
                        return NULL;
                p = end;
        }

        *ret = sum;
        return p;
}

/* "  IO-APIC   16-fasteoi   i801_smbus, snd_hda_intel:card0": what follows the last wide gap. */
static void split_tail(const char *tail, struct irq_line *line, char actions[ACTIONS_SIZE]) {
        const char *last = NULL;
        size_t length = 0;

        tail += strspn(tail, " ");
        irq_copy(line->chip, sizeof(line->chip), tail);
        line->chip[strcspn(line->chip, " \n")] = '\0';
        for (const char *p = tail; *p != '\0'; p++)
                if (p[0] == ' ' && p[1] == ' ' && p[2] != ' ' && p[2] != '\0')
                        last = p + 2;

        for (const char *p = last; p && *p != '\0' && *p != '\n'; p++)
                if (!(*p == ' ' && length > 0 && actions[length - 1] == ',') &&
                    length < ACTIONS_SIZE - 1)
                        actions[length++] = *p;
        actions[length] = '\0';
}

/* The kernel's own list has no ambiguous gaps; /proc/interrupts must do where it is missing. */
static int read_actions(const struct irq_roots *roots, const char *tail, struct irq_line *line) {
        char actions[ACTIONS_SIZE] = "", listed[ACTIONS_SIZE];

        split_tail(tail, line, listed);
        if (irq_read(actions, sizeof(actions), "%s/kernel/irq/%u/actions", roots->sys,
                     line->number) < 0)
                irq_copy(actions, sizeof(actions), listed);

        line->actions = strdup(actions);
        return line->actions ? 0 : -ENOMEM;
}

static unsigned count_cpus(const char *header) {
        unsigned n = 0;

        for (const char *p = header; (p = strstr(p, "CPU")); p += 3)
                n++;
        return n;
}

static int add_line(const struct irq_roots *roots, const char *text, unsigned n_cpus,
                    struct growing *lines) {
        struct irq_line line = {}, *to;
        const char *tail;
        char *end;
        unsigned long number;

        number = strtoul(text, &end, 10);
        if (end == text || *end != ':' || number > UINT_MAX)
                return 0; /* NMI, LOC …: nobody's device */
        line.number = (unsigned) number;
        tail = parse_counts(end + 1, n_cpus, &line.count);
        if (!tail)
                return 0;

        if (read_actions(roots, tail, &line) < 0)
                return -ENOMEM;
        to = line.actions[0] != '\0' ? grow(lines, sizeof(line), LINES_MAX) : NULL;
        if (!to) {
                free(line.actions);
                return 0;
        }
        *to = line;
        return 0;
}

static int read_lines(const struct irq_roots *roots, struct growing *lines) {
        _irq_cleanup_free_ char *text = NULL;
        char path[PATH_MAX];
        size_t size = 0;
        unsigned n_cpus;
        FILE *file;
        int r = 0;

        (void) snprintf(path, sizeof(path), "%s/interrupts", roots->proc);
        file = fopen(path, "re");
        if (!file)
                return -errno;

        if (getline(&text, &size, file) > 0) {
                n_cpus = count_cpus(text);
                while (r >= 0 && getline(&text, &size, file) > 0)
                        r = add_line(roots, text, n_cpus, lines);
        }
        (void) fclose(file);
        return r;
}

static int by_number(const void *a, const void *b) {
        const struct irq_line *x = a, *y = b;

        return x->number < y->number ? -1 : x->number > y->number;
}

/* ---- threads ---- */

static int parse_name(struct irq_thread *thread) {
        const char *name = thread->task.name;
        char dash, other;
        int used = 0;

        /* "irq/", digits, "-": neither sign nor blank, which %u would take */
        if (strncmp(name, "irq/", 4) != 0 || name[4] < '0' || name[4] > '9' ||
            sscanf(name, "irq/%9u%c%n%c", &thread->line, &dash, &used, &other) != 3 || dash != '-')
                return -ESRCH;

        thread->secondary = strncmp(name + used, "s-", 2) == 0;
        return 0;
}

int irq_thread_read(const struct irq_roots *roots, pid_t tid, struct irq_thread *ret) {
        struct irq_thread thread = {};

        if (irq_kthread_read(roots, tid, &thread.task) < 0 || parse_name(&thread) < 0)
                return -ESRCH;
        *ret = thread;
        return 0;
}

const char *irq_thread_handler(const struct irq_thread *thread) {
        const char *dash = strchr(thread->task.name, '-');

        return !dash ? "" : dash + (thread->secondary ? 3 : 1);
}

static int add_thread(const struct irq_kthread *task, void *userdata) {
        struct irq_thread thread = { .task = *task }, *to;
        struct growing *threads = userdata;

        if (parse_name(&thread) < 0)
                return 0;
        to = grow(threads, sizeof(thread), THREADS_MAX);
        if (!to)
                return threads->n == THREADS_MAX ? 0 : -ENOMEM;
        *to = thread;
        return 0;
}

static int by_line(const void *a, const void *b) {
        const struct irq_thread *x = a, *y = b;

        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->task.tid < y->task.tid ? -1 : x->task.tid > y->task.tid;
}

/* Threads that end while the list is read can hide others from it, hence the second look. */
static int read_threads(const struct irq_roots *roots, struct irq_snapshot *snapshot) {
        struct growing threads = {}, again = {};
        int r;

        snapshot->threads_visible = irq_kthreads_are_visible(roots);
        if (!snapshot->threads_visible)
                return 0;

        r = irq_kthread_for_each(roots, add_thread, &threads);
        if (r >= 0)
                r = irq_kthread_for_each(roots, add_thread, &again);
        if (again.n > threads.n) {
                struct growing fewer = threads;

                threads = again;
                again = fewer;
        }
        free(again.items);
        snapshot->threads = threads.items;
        snapshot->n_threads = threads.n;
        if (threads.n > 0)
                qsort(threads.items, threads.n, sizeof(struct irq_thread), by_line);
        return r;
}

/* ---- */

static bool handlers_are_forced(const struct irq_roots *roots) {
        char text[4096];
        unsigned realtime;

        if (irq_read_number(&realtime, "%s/kernel/realtime", roots->sys) >= 0 && realtime == 1)
                return true;
        if (irq_read(text, sizeof(text), "%s/cmdline", roots->proc) < 0)
                return false;
        for (char *rest = text, *word; (word = strsep(&rest, " "));)
                if (strcmp(word, "threadirqs") == 0)
                        return true;
        return false;
}

int irq_snapshot_take(const struct irq_roots *roots, struct irq_snapshot *ret) {
        struct irq_snapshot snapshot = {};
        struct growing lines = {};
        int r;

        r = read_lines(roots, &lines);
        snapshot.lines = lines.items;
        snapshot.n_lines = lines.n;
        if (lines.n > 0)
                qsort(lines.items, lines.n, sizeof(struct irq_line), by_number);
        if (r >= 0)
                r = read_threads(roots, &snapshot);
        if (r < 0) {
                irq_snapshot_done(&snapshot);
                return r;
        }

        snapshot.forced = handlers_are_forced(roots);
        *ret = snapshot;
        return 0;
}

void irq_snapshot_done(struct irq_snapshot *snapshot) {
        for (size_t i = 0; i < snapshot->n_lines; i++)
                free(snapshot->lines[i].actions);
        free(snapshot->lines);
        free(snapshot->threads);
        *snapshot = (struct irq_snapshot){};
}

const struct irq_line *irq_snapshot_find(const struct irq_snapshot *snapshot, unsigned number) {
        const struct irq_line key = { .number = number };

        return snapshot->n_lines == 0
                       ? NULL
                       : bsearch(&key, snapshot->lines, snapshot->n_lines, sizeof(key), by_number);
}

int irq_line_for_each_action(const struct irq_line *line,
                             int (*each)(const char *action, void *userdata), void *userdata) {
        const char *p = line->actions;
        char action[ACTION_SIZE];
        int r = 0;

        while (r == 0 && *p != '\0') {
                size_t length = strcspn(p, ",");

                irq_copy(action, length < sizeof(action) ? length + 1 : sizeof(action), p);
                if (action[0] != '\0')
                        r = each(action, userdata);
                p += length + (p[length] == ',');
        }
        return r;
}
