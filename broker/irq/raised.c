/* SPDX-License-Identifier: MIT */

#include "broker/irq/raised.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "broker/cleanup.h"
#include "broker/log.h"
#include "broker/text.h"

static struct raised *raised_free(struct raised *raised) {
        raised->ended = sd_event_source_disable_unref(raised->ended);
        thread_close(&raised->pin);
        free(raised);
        return NULL;
}

void raised_init(struct raised_set *set, const struct irq_table_options *options,
                 void (*on_ended)(void *userdata), void *userdata) {
        *set = (struct raised_set){
                .options = options,
                .on_ended = on_ended,
                .userdata = userdata,
        };
}

void raised_done(struct raised_set *set) {
        while (set->n > 0) {
                set->n--;
                set->items[set->n] = raised_free(set->items[set->n]);
        }
}

static void remove_at(struct raised_set *set, unsigned i) {
        (void) raised_free(set->items[i]);
        set->items[i] = set->items[--set->n];
}

static struct raised *find(const struct raised_set *set, const struct irq_thread *thread) {
        for (unsigned i = 0; i < set->n; i++)
                if (set->items[i]->thread.task.tid == thread->task.tid &&
                    set->items[i]->thread.task.start_time == thread->task.start_time)
                        return set->items[i];
        return NULL;
}

/* ---- the file ---- */

static void save(struct raised_set *set) {
        struct irq_record records[IRQ_RAISED_MAX];
        unsigned n = 0;
        int r;

        for (unsigned i = 0; i < set->n; i++) {
                const struct raised *raised = set->items[i];

                if (raised->priority == 0 && raised->wanted == 0)
                        continue;
                records[n] = (struct irq_record){
                        .start_time = raised->thread.task.start_time,
                        .tid = raised->thread.task.tid,
                        .line = raised->thread.line,
                        .saved_policy = raised->saved.policy,
                        .saved_priority = raised->saved.priority,
                        .saved_nice = raised->saved.nice,
                        .saved_reset_on_fork = raised->saved.reset_on_fork,
                        .priority = raised->priority,
                        .next = raised->wanted,
                };
                text_copy(records[n].name, sizeof(records[n].name), raised->thread.task.name);
                n++;
        }

        r = irq_store_write(set->options->state_dir, IRQ_STORE_THREADS, records, n);
        if (r < 0)
                log_write(set->options->log, LOG_WARNING, NULL,
                          "cannot write %s/irq-threads, a crash would leave interrupt threads "
                          "raised: %s",
                          set->options->state_dir, strerror(-r));
}

/* ---- whose number it is ---- */

/* The same kernel thread as before, and it serves the same interrupt. */
static bool is_still(const struct raised_set *set, const struct raised *raised) {
        struct irq_thread now;

        return !kernel_pidfd_is_dead(raised->pin.fd) &&
               irq_thread_read(&set->options->roots, raised->thread.task.tid, &now) >= 0 &&
               now.task.start_time == raised->thread.task.start_time &&
               strcmp(now.task.name, raised->thread.task.name) == 0;
}

static int on_ended(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct raised_set *set = userdata;

        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        set->on_ended(set->userdata);
        return 0;
}

static int add(struct raised_set *set, const struct irq_thread *thread, struct raised **ret) {
        struct raised *raised;
        struct creds creds;
        int r;

        if (set->n == IRQ_RAISED_MAX)
                return -ENOSPC;
        raised = calloc(1, sizeof(*raised));
        if (!raised)
                return -ENOMEM;

        raised->thread = *thread;
        r = thread_open(set->options->kernel, 0, thread->task.tid, &raised->pin, &creds);
        if (r >= 0 && !is_still(set, raised))
                r = -ESRCH;
        if (r >= 0)
                r = sched_read(thread->task.tid, &raised->saved);
        if (r < 0) {
                if (raised->pin.fd >= 0)
                        thread_close(&raised->pin);
                free(raised);
                return r == -ESRCH ? -ENODEV : r;
        }

        /* Kernels differ on what a pidfd of a thread tells, but all tell its end. */
        (void) sd_event_add_io(set->options->event, &raised->ended, raised->pin.fd, EPOLLIN,
                               on_ended, set);
        set->items[set->n++] = raised;
        *ret = raised;
        return 0;
}

/* ---- setting ---- */

static struct sched_values values_for(const struct raised *raised, int priority) {
        return (struct sched_values){
                .policy = SCHED_FIFO,
                .priority = priority,
                .nice = raised->saved.nice,
                .reset_on_fork = true, /* means nothing to it, but shows whose doing it is */
        };
}

static bool is_set(const struct sched_values *now, int priority) {
        return now->policy == SCHED_FIFO && now->priority == priority && now->reset_on_fork;
}

/* The number may be a stranger's by now: it loses what was set only if it has exactly that. */
static int undo_stranger(const struct raised *raised, int priority) {
        pid_t tid = raised->thread.task.tid;
        struct sched_values now;

        if (sched_read(tid, &now) >= 0 && is_set(&now, priority)) {
                now.policy = SCHED_OTHER;
                now.priority = 0;
                (void) sched_write(tid, &now);
        }
        return -ENODEV;
}

/* Higher than that already, by somebody else's doing: that is not ours to lower. */
static bool is_enough(const struct raised *raised) {
        return raised->priority == 0 && sched_is_rt(raised->saved.policy) &&
               raised->saved.priority >= raised->wanted;
}

static int raise_one(struct raised_set *set, struct raised *raised) {
        struct sched_values next = values_for(raised, raised->wanted), now;
        pid_t tid = raised->thread.task.tid;
        int r;

        if (is_enough(raised) || raised->changed)
                return 0;
        if (raised->priority == raised->wanted && sched_read(tid, &now) >= 0 &&
            is_set(&now, raised->priority))
                return 0;
        if (!is_still(set, raised))
                return -ENODEV;
        if (raised->priority > 0 && sched_read(tid, &now) >= 0 && !is_set(&now, raised->priority)) {
                raised->changed = true;
                log_write(set->options->log, LOG_NOTICE,
                          &(struct log_fields){ .event = "irq-changed", .tid = tid },
                          "interrupt thread %d was changed by others; it is left alone", tid);
                return 0;
        }

        r = sched_write(tid, &next);
        if (r < 0)
                return r;
        if (!is_still(set, raised))
                return undo_stranger(raised, next.priority);
        raised->priority = next.priority;
        if (sched_read(tid, &now) < 0 || !is_set(&now, next.priority))
                return -EILSEQ;

        log_write(set->options->log, LOG_INFO,
                  &(struct log_fields){ .event = "irq-raised", .tid = tid },
                  "interrupt %u: thread %d from SCHED_%s %d to SCHED_FIFO %d", raised->thread.line,
                  tid, sched_policy_to_string(raised->saved.policy), raised->saved.priority,
                  next.priority);
        return 0;
}

static void restore_one(struct raised_set *set, struct raised *raised) {
        pid_t tid = raised->thread.task.tid;
        struct sched_values now;

        if (raised->priority == 0 || !is_still(set, raised) || sched_read(tid, &now) < 0 ||
            !is_set(&now, raised->priority))
                return;
        if (sched_write(tid, &raised->saved) < 0)
                return;
        if (!is_still(set, raised)) {
                (void) undo_stranger(raised, raised->saved.priority);
                return;
        }
        log_write(set->options->log, LOG_INFO,
                  &(struct log_fields){ .event = "irq-restored", .tid = tid },
                  "interrupt %u: thread %d back to SCHED_%s %d", raised->thread.line, tid,
                  sched_policy_to_string(raised->saved.policy), raised->saved.priority);
}

void raised_unwant(struct raised_set *set) {
        for (unsigned i = 0; i < set->n; i++)
                set->items[i]->wanted = 0;
}

int raised_want(struct raised_set *set, const struct irq_thread *thread, int priority) {
        struct raised *raised = find(set, thread);
        int r;

        if (!raised) {
                r = add(set, thread, &raised);
                if (r < 0)
                        return r;
        }
        if (priority > raised->wanted)
                raised->wanted = priority;
        return 0;
}

void raised_forgive(struct raised_set *set) {
        for (unsigned i = 0; i < set->n; i++)
                if (set->items[i]->changed) {
                        set->items[i]->changed = false;
                        set->items[i]->priority = 0;
                }
}

static bool is_settled(const struct raised *raised) {
        return raised->wanted > 0 && (raised->wanted == raised->priority || is_enough(raised));
}

int raised_settle(struct raised_set *set) {
        bool settled = true;
        int r = 0;

        for (unsigned i = 0; i < set->n; i++)
                settled = settled && is_settled(set->items[i]);
        if (!settled)
                save(set); /* both what was there and what will be */

        for (unsigned i = 0; i < set->n; i++) {
                int failed = set->items[i]->wanted > 0 ? raise_one(set, set->items[i]) : 0;

                if (failed < 0 && failed != -ENODEV && r == 0)
                        r = failed;
        }
        for (unsigned i = set->n; i-- > 0;)
                if ((set->items[i]->wanted == 0 && !set->recovering) ||
                    !is_still(set, set->items[i])) {
                        restore_one(set, set->items[i]);
                        remove_at(set, i);
                        settled = false;
                }
        if (!settled)
                save(set);
        return r;
}

bool raised_knows(const struct raised_set *set, const struct irq_thread *thread) {
        return find(set, thread) != NULL;
}

bool raised_has(const struct raised_set *set, const struct irq_thread *thread, int priority) {
        struct sched_values now;

        return find(set, thread) && sched_read(thread->task.tid, &now) >= 0 &&
               sched_is_rt(now.policy) && now.priority >= priority;
}

/* ---- after a predecessor ---- */

/* Which of what the predecessor set, or was about to set, is in force; 0: what was there before. */
static int priority_in_force(const struct raised *raised, const struct irq_record *record) {
        struct sched_values now;

        if (sched_read(raised->thread.task.tid, &now) < 0)
                return record->priority;
        if (record->next > 0 && is_set(&now, record->next))
                return record->next;
        if (!is_set(&now, record->priority) && now.policy == raised->saved.policy &&
            now.priority == raised->saved.priority)
                return 0;

        return record->priority;
}

static void recover_one(struct raised_set *set, struct irq_record *record) {
        struct irq_thread thread;
        struct raised *raised;

        record->name[sizeof(record->name) - 1] = '\0';
        if (record->tid < 1 || irq_thread_read(&set->options->roots, record->tid, &thread) < 0 ||
            thread.task.start_time != record->start_time ||
            strcmp(thread.task.name, record->name) != 0 || add(set, &thread, &raised) < 0)
                return;

        raised->saved = (struct sched_values){
                .policy = record->saved_policy,
                .priority = record->saved_priority,
                .nice = record->saved_nice,
                .reset_on_fork = record->saved_reset_on_fork != 0,
        };
        raised->priority = priority_in_force(raised, record);
}

void raised_recover(struct raised_set *set) {
        struct irq_record records[IRQ_RAISED_MAX];
        int n;

        n = irq_store_read(set->options->state_dir, IRQ_STORE_THREADS, records);
        if (n < 0)
                log_write(
                        set->options->log, LOG_WARNING, NULL,
                        "%s/irq-threads is not believed, interrupt threads may have stayed raised: "
                        "%s",
                        set->options->state_dir, strerror(-n));
        for (int i = 0; i < n; i++)
                recover_one(set, &records[i]);
        set->recovering = set->n > 0;
}
