/* SPDX-License-Identifier: MIT */

#include "broker/irq/moved.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "broker/log.h"
#include "broker/sysfs.h"

#define CPUS_TEXT 80

static struct moved *find(const struct moved_set *set, unsigned line) {
        for (unsigned i = 0; i < set->n; i++)
                if (set->items[i].line == line)
                        return (struct moved *) &set->items[i];
        return NULL;
}

/* ---- the kernel's files ---- */

static void path_of(const struct moved_set *set, unsigned line, char path[PATH_MAX]) {
        (void) snprintf(path, PATH_MAX, "%s/irq/%u/smp_affinity_list", set->options->roots.proc,
                        line);
}

/* Errors: -ENOENT if there is no such interrupt; -EINVAL, -ERANGE: not understood. */
static int read_line(const struct moved_set *set, unsigned line, struct cpus *ret) {
        char path[PATH_MAX], text[4096];
        int r;

        path_of(set, line, path);
        r = sysfs_read(path, text, sizeof(text));
        return r < 0 ? r : cpus_parse(text, ret);
}

static int write_line(const struct moved_set *set, unsigned line, const struct cpus *cpus) {
        char path[PATH_MAX], list[4096], text[sizeof(list) + 1];

        cpus_format(cpus, list, sizeof(list));
        (void) snprintf(text, sizeof(text), "%s\n", list);
        path_of(set, line, path);
        return sysfs_write(path, text);
}

static bool has_now(const struct moved_set *set, unsigned line, const struct cpus *cpus) {
        struct cpus now;

        return read_line(set, line, &now) >= 0 && cpus_equal(&now, cpus);
}

static void log_moved(const struct moved_set *set, const struct moved *item, const char *event,
                      const struct cpus *from, const struct cpus *to) {
        char before[CPUS_TEXT], after[CPUS_TEXT];

        cpus_format(from, before, sizeof(before));
        cpus_format(to, after, sizeof(after));
        log_write(set->options->log, LOG_INFO, &(struct log_fields){ .event = event },
                  "interrupt %u: from CPUs %s to %s", item->line, before, after);
}

/* ---- the file for a successor ---- */

static void save(const struct moved_set *set) {
        struct irq_line_record records[IRQ_RAISED_MAX];
        unsigned n = 0;
        int r;

        for (unsigned i = 0; i < set->n; i++) {
                const struct moved *item = &set->items[i];

                if (cpus_is_empty(&item->set) && item->priority == 0)
                        continue;
                records[n++] = (struct irq_line_record){
                        .start_time = item->start_time,
                        .tid = item->tid,
                        .line = item->line,
                        .saved = item->saved,
                        .set = item->set,
                        .next = item->priority > 0 ? item->wanted : item->set,
                };
        }
        r = irq_store_write(set->options->state_dir, IRQ_STORE_LINES, records, n);
        if (r < 0)
                log_write(set->options->log, LOG_WARNING, NULL,
                          "cannot write %s/irq-lines, a crash would leave interrupts where they "
                          "were moved: %s",
                          set->options->state_dir, strerror(-r));
}

void moved_init(struct moved_set *set, const struct irq_table_options *options) {
        *set = (struct moved_set){ .options = options };
}

void moved_recover(struct moved_set *set) {
        struct irq_line_record records[IRQ_RAISED_MAX];
        struct cpus now;
        int n;

        n = irq_store_read(set->options->state_dir, IRQ_STORE_LINES, records);
        if (n < 0)
                log_write(set->options->log, LOG_WARNING, NULL,
                          "%s/irq-lines is not believed, interrupts may have stayed where they "
                          "were moved: %s",
                          set->options->state_dir, strerror(-n));
        for (int i = 0; i < n; i++) {
                const struct irq_line_record *record = &records[i];
                struct moved *item = &set->items[set->n];

                if (read_line(set, record->line, &now) < 0 || cpus_equal(&now, &record->saved))
                        continue;
                *item = (struct moved){
                        .line = record->line,
                        .tid = record->tid,
                        .start_time = record->start_time,
                        .saved = record->saved,
                        .set = cpus_equal(&now, &record->set) ? record->set : record->next,
                };
                set->n++;
        }
        set->recovering = set->n > 0;
}

/* ---- who wants what ---- */

void moved_unwant(struct moved_set *set) {
        for (unsigned i = 0; i < set->n; i++)
                set->items[i].priority = 0;
}

static bool is_alive(const struct moved_set *set, const struct moved *item) {
        struct irq_thread now;

        return irq_thread_read(&set->options->roots, item->tid, &now) >= 0 &&
               now.task.start_time == item->start_time && now.line == item->line;
}

/* An interrupt that was freed and handled anew may have kept its CPUs, or have the kernel's choice
 * again. */
static void renew(struct moved_set *set, struct moved *item, const struct irq_thread *thread) {
        item->tid = thread->task.tid;
        item->start_time = thread->task.start_time;
        item->error = 0;
        if (!cpus_is_empty(&item->set) && has_now(set, item->line, &item->set))
                return;
        item->set = (struct cpus){};
        item->changed = false;
        (void) read_line(set, item->line, &item->saved);
}

static struct moved *add(struct moved_set *set, const struct irq_thread *thread) {
        struct moved *item = &set->items[set->n];

        if (set->n == IRQ_RAISED_MAX)
                return NULL;
        *item = (struct moved){
                .line = thread->line,
                .tid = thread->task.tid,
                .start_time = thread->task.start_time,
        };
        if (read_line(set, item->line, &item->saved) < 0)
                return NULL;
        set->n++;
        return item;
}

void moved_want(struct moved_set *set, const struct irq_thread *thread, const struct cpus *cpus,
                int priority) {
        struct moved *item = find(set, thread->line);

        if (!item)
                item = add(set, thread);
        else if (!is_alive(set, item))
                renew(set, item, thread);
        if (!item || priority < item->priority ||
            (priority == item->priority && cpus_equal(&item->wanted, &item->set)))
                return;
        item->priority = priority;
        item->wanted = *cpus;
}

/* True if others had made something else of it. */
static bool forget_set(const struct moved_set *set, struct moved *item) {
        item->error = 0;
        if (cpus_is_empty(&item->set) || has_now(set, item->line, &item->set))
                return false;
        item->changed = false;
        item->set = (struct cpus){};
        return true;
}

void moved_forgive(struct moved_set *set) {
        for (unsigned i = 0; i < set->n; i++)
                if (forget_set(set, &set->items[i]))
                        (void) read_line(set, set->items[i].line, &set->items[i].saved);
}

void moved_again(struct moved_set *set, unsigned line) {
        struct moved *item = find(set, line);

        if (item)
                (void) forget_set(set, item);
}

void moved_all_again(struct moved_set *set) {
        for (unsigned i = 0; i < set->n; i++)
                (void) forget_set(set, &set->items[i]);
}

/* ---- setting ---- */

static bool is_settled(const struct moved *item) {
        return item->priority > 0 && cpus_equal(&item->wanted, &item->set);
}

static int move(struct moved_set *set, struct moved *item) {
        int r;

        r = write_line(set, item->line, &item->wanted);
        if (r < 0)
                return r;
        if (has_now(set, item->line, &item->wanted))
                return 0;
        (void) write_line(set, item->line,
                          cpus_is_empty(&item->set) ? &item->saved : &item->set);
        return -EILSEQ;
}

static void move_one(struct moved_set *set, struct moved *item) {
        char text[200];
        int r;

        if (item->changed)
                return;
        if (!cpus_is_empty(&item->set) && !has_now(set, item->line, &item->set)) {
                item->changed = true;
                log_write(set->options->log, LOG_NOTICE,
                          &(struct log_fields){ .event = "irq-changed" },
                          "interrupt %u was moved by others; it is left there", item->line);
                return;
        }
        if (is_settled(item))
                return;

        r = move(set, item);
        if (r < 0) {
                bool is_new = r != item->error;

                item->error = r;
                moved_explain(set, item->line, text, sizeof(text));
                if (is_new)
                        log_write(set->options->log, LOG_NOTICE,
                                  &(struct log_fields){ .event = "irq-not-moved" }, "%s", text);
                return;
        }
        log_moved(set, item, "irq-moved",
                  cpus_is_empty(&item->set) ? &item->saved : &item->set, &item->wanted);
        item->error = 0;
        item->set = item->wanted;
}

static void restore_one(struct moved_set *set, const struct moved *item) {
        if (!cpus_is_empty(&item->set) && has_now(set, item->line, &item->set) &&
            write_line(set, item->line, &item->saved) >= 0)
                log_moved(set, item, "irq-moved-back", &item->set, &item->saved);
}

void moved_settle(struct moved_set *set) {
        bool settled = true;

        for (unsigned i = 0; i < set->n; i++)
                settled = settled && is_settled(&set->items[i]);
        if (!settled)
                save(set); /* both what was there and what will be */

        for (unsigned i = 0; i < set->n; i++)
                if (set->items[i].priority > 0)
                        move_one(set, &set->items[i]);
        for (unsigned i = set->n; i-- > 0;)
                if (set->items[i].priority == 0 && !set->recovering) {
                        restore_one(set, &set->items[i]);
                        set->items[i] = set->items[--set->n];
                }
        if (!settled)
                save(set);
}

/* ---- telling ---- */

static bool is_set(const struct moved *item) {
        return item->priority > 0 && !cpus_is_empty(&item->set);
}

void moved_list(const struct moved_set *set, struct ban_list *ret) {
        *ret = (struct ban_list){};
        for (unsigned i = 0; i < set->n; i++)
                if (is_set(&set->items[i]))
                        (void) ban_list_add(ret, set->items[i].line);
}

bool moved_is_changed(const struct moved_set *set, unsigned line) {
        const struct moved *item = find(set, line);

        return item && is_set(item) && !has_now(set, line, &item->set);
}

void moved_explain(const struct moved_set *set, unsigned line, char *text, size_t size) {
        const struct moved *item = find(set, line);
        char cpus[CPUS_TEXT];

        text[0] = '\0';
        if (!item || item->priority == 0)
                return;
        cpus_format(&item->wanted, cpus, sizeof(cpus));
        if (item->changed)
                (void) snprintf(text, size, "interrupt %u was moved by others and is left there",
                                line);
        else if (item->error == -EINVAL)
                (void) snprintf(text, size,
                                "interrupt %u stays where it is: none of the CPUs %s is online", line,
                                cpus);
        else if (item->error == -ERANGE || item->error == -EOVERFLOW)
                (void) snprintf(text, size,
                                "interrupt %u stays where it is: not all of the CPUs %s are there",
                                line, cpus);
        else if (item->error == -EIO || item->error == -EPERM || item->error == -EACCES)
                (void) snprintf(text, size,
                                "interrupt %u stays where it is: the kernel lets nobody move it",
                                line);
        else if (item->error < 0)
                (void) snprintf(text, size, "interrupt %u stays where it is, not on CPUs %s: %s",
                                line, cpus,
                                item->error == -EILSEQ ? "the kernel agreed and did otherwise"
                                                       : strerror(-item->error));
}
