/* SPDX-License-Identifier: MIT */

#include "broker/irq/table.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <time.h>

#include "broker/cleanup.h"
#include "broker/irq/balance.h"
#include "broker/irq/look.h"
#include "broker/irq/moved.h"
#include "broker/irq/raised.h"
#include "broker/irq/watch.h"
#include "broker/log.h"

#define DEVICES_MAX 64U /* names that are claimed at a time */
/* A suspend takes longer, and the two clocks are not read at the same instant. */
#define SLEPT_US (100U * 1000)

struct claim {
        const void *owner; /* NULL: a rule of the policy */
        char device[IRQ_NAME_SIZE];
        int priority;
        struct cpus affinity; /* none: as it is */
        uint64_t verified_us; /* the look it was verified by; 0: none */
        int verified;
        unsigned n_wanted; /* threads, the last time they were looked at */
        struct {
                unsigned line;
                uint64_t count;
        } began[IRQ_THREADS_MAX]; /* the lines of a device that has several */
        unsigned n_began;
};

struct irq_table {
        struct irq_table_options options;
        GArray *claims; /* owned; struct claim */
        struct raised_set raised;
        struct moved_set moved;
        struct balance *balance; /* owned */
        uint64_t slept_us;       /* by the last look at the devices */
        struct irq_watch *watch; /* owned; NULL while nothing is claimed */
        struct irq_look look;
};

static uint64_t clock_us(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

/* One clock goes on while the machine sleeps, the other stands still. */
static uint64_t slept_us(void) {
        uint64_t awake_us = clock_us(CLOCK_MONOTONIC);

        return clock_us(CLOCK_BOOTTIME) - awake_us;
}

int irq_table_look(struct irq_table *table, const char *device, struct irq_resolution *ret) {
        int r = irq_look_take(&table->look);

        if (r >= 0)
                irq_look_resolve(&table->look, device, ret);
        return r;
}

bool irq_table_is_within(struct irq_table *table, const char *device, const char *const *list,
                         size_t n_list) {
        return irq_look_take(&table->look) >= 0 &&
               irq_look_is_within(&table->look, device, list, n_list);
}

static struct claim *find_claim(const struct irq_table *table, const void *owner) {
        for (guint i = 0; i < table->claims->len; i++) {
                struct claim *claim = &g_array_index(table->claims, struct claim, i);

                if (claim->owner == owner)
                        return claim;
        }
        return NULL;
}

static void remove_claim(struct irq_table *table, const struct claim *claim) {
        g_array_remove_index_fast(table->claims,
                                  (guint) (claim - (struct claim *) (void *) table->claims->data));
}

static bool is_resolved_before(const struct irq_table *table, guint index) {
        const struct claim *claim = &g_array_index(table->claims, struct claim, index);

        for (guint i = 0; i < index; i++)
                if (strcmp(g_array_index(table->claims, struct claim, i).device, claim->device) ==
                    0)
                        return true;
        return false;
}

static bool began_with(const struct claim *claim, const struct irq_resolution *resolution) {
        if (claim->n_began != resolution->n_threads)
                return false;
        for (unsigned i = 0; i < claim->n_began; i++)
                if (claim->began[i].line != resolution->threads[i].line)
                        return false;
        return true;
}

/*
 * Of several interrupts of one device those count that fired since it was claimed: these the stream
 * uses. Until one has, all do.
 */
static void narrow(struct irq_table *table, struct claim *claim, struct irq_resolution *found) {
        unsigned n = 0;

        if (!began_with(claim, found)) {
                claim->n_began = found->n_threads;
                for (unsigned i = 0; i < found->n_threads; i++) {
                        claim->began[i].line = found->threads[i].line;
                        claim->began[i].count =
                                irq_look_count(&table->look, found->threads[i].line);
                }
        }
        for (unsigned i = 0; i < found->n_threads; i++)
                if (irq_look_count(&table->look, found->threads[i].line) > claim->began[i].count)
                        n++;
        if (n == 0)
                return;

        n = 0;
        for (unsigned i = 0; i < found->n_threads; i++)
                if (irq_look_count(&table->look, found->threads[i].line) > claim->began[i].count)
                        found->threads[n++] = found->threads[i];
        found->n_threads = n;
}

/* The highest that anybody claims for that name. */
static int highest_for(const struct irq_table *table, const char *device) {
        int priority = 0;

        for (guint i = 0; i < table->claims->len; i++) {
                const struct claim *claim = &g_array_index(table->claims, struct claim, i);

                if (strcmp(claim->device, device) == 0 && claim->priority > priority)
                        priority = claim->priority;
        }
        return priority;
}

/* Whatever the claims for that name say of where its interrupts should go. */
static void gather_affinity(struct irq_table *table, const char *device,
                            const struct irq_resolution *resolution) {
        for (guint i = 0; i < table->claims->len; i++) {
                const struct claim *claim = &g_array_index(table->claims, struct claim, i);

                if (cpus_is_empty(&claim->affinity) || strcmp(claim->device, device) != 0)
                        continue;
                for (unsigned j = 0; j < resolution->n_threads; j++)
                        moved_want(&table->moved, &resolution->threads[j], &claim->affinity,
                                   claim->priority);
        }
}

/*
 * What every claim wants of which thread. @missing (may be NULL): a name, for which is told whether
 * no thread was found.
 */
static int gather(struct irq_table *table, const char *name, bool *ret_missing) {
        struct irq_resolution resolution;
        int r = 0;

        raised_unwant(&table->raised);
        moved_unwant(&table->moved);
        for (guint i = 0; i < table->claims->len; i++) {
                struct claim *claim = &g_array_index(table->claims, struct claim, i);

                if (is_resolved_before(table, i))
                        continue;
                irq_look_resolve(&table->look, claim->device, &resolution);
                narrow(table, claim, &resolution);
                claim->n_wanted = resolution.n_threads;
                for (unsigned j = 0; j < resolution.n_threads && r >= 0; j++)
                        r = raised_want(&table->raised, &resolution.threads[j],
                                        highest_for(table, claim->device));
                gather_affinity(table, claim->device, &resolution);
                if (name && strcmp(claim->device, name) == 0)
                        *ret_missing = resolution.n_threads == 0;
        }
        return r;
}

static int settle(struct irq_table *table, const char *name) {
        struct ban_list moved;
        bool missing = false;
        int r, failed;

        r = irq_look_take(&table->look);
        if (r < 0)
                return r;
        r = gather(table, name, &missing);
        if (r >= 0 && missing)
                r = -ENODEV;
        failed = raised_settle(&table->raised);
        moved_settle(&table->moved);
        if (!table->moved.recovering) {
                moved_list(&table->moved, &moved);
                balance_want(table->balance, &moved);
        }
        return r < 0 ? r : failed;
}

static void on_devices_changed(void *userdata) {
        irq_table_refresh(userdata);
}

/* Nothing claimed, nothing raised: nothing to wake up for. */
static void update_watch(struct irq_table *table) {
        int r;

        if (table->claims->len == 0) {
                table->watch = irq_watch_free(table->watch);
                return;
        }
        if (table->watch)
                return;
        r = irq_watch_new(table->options.event, on_devices_changed, table, &table->watch);
        if (r < 0)
                log_write(table->options.log, LOG_WARNING, NULL,
                          "devices that come later are not noticed: %s", strerror(-r));
}

static unsigned n_devices(const struct irq_table *table) {
        unsigned n = 0;

        for (guint i = 0; i < table->claims->len; i++)
                n += !is_resolved_before(table, i);
        return n;
}

int irq_table_claim(struct irq_table *table, const void *owner, const char *device, int priority,
                    const struct cpus *affinity) {
        struct claim *own = find_claim(table, owner);
        struct claim before = {}, next = { .owner = owner, .priority = priority };
        int r;

        if (strlen(device) >= sizeof(next.device))
                return -ENODEV;
        irq_copy(next.device, sizeof(next.device), device);
        if (affinity)
                next.affinity = *affinity;
        if (own) {
                before = *own;
                *own = next;
        } else {
                if (highest_for(table, device) == 0 && n_devices(table) >= DEVICES_MAX)
                        return -ENOSPC;
                g_array_append_val(table->claims, next);
        }

        irq_look_forget(&table->look);
        raised_forgive(&table->raised);
        moved_forgive(&table->moved);
        r = settle(table, device);
        if (r < 0) {
                own = find_claim(table, owner);
                if (before.owner)
                        *own = before;
                else
                        remove_claim(table, own);
                (void) settle(table, NULL);
        }
        update_watch(table);
        return r;
}

static void say_why_not(struct irq_table *table, const struct irq_rule *rule) {
        char text[256], help[256];
        struct irq_resolution found;

        if (irq_table_look(table, rule->device, &found) < 0 || found.status == IRQ_RESOLVED)
                return;
        irq_status_explain(&found, rule->device, text, sizeof(text), help, sizeof(help));
        log_write(table->options.log, LOG_NOTICE, &(struct log_fields){ .event = "irq-rule" },
                  "[Irq %s] has no effect yet: %s%s%s", rule->name, text,
                  help[0] != '\0' ? "; " : "", help);
}

void irq_table_set_rules(struct irq_table *table, const struct irq_rule *rules, size_t n_rules) {
        for (guint i = table->claims->len; i-- > 0;)
                if (!g_array_index(table->claims, struct claim, i).owner)
                        g_array_remove_index_fast(table->claims, i);

        for (size_t i = 0; i < n_rules; i++) {
                struct claim next = {
                        .priority = rules[i].priority,
                        .affinity = rules[i].affinity,
                };

                irq_copy(next.device, sizeof(next.device), rules[i].device);
                g_array_append_val(table->claims, next);
                say_why_not(table, &rules[i]);
        }
        irq_table_refresh(table);
        update_watch(table);
}

void irq_table_explain(struct irq_table *table, const char *device, char *text, size_t size) {
        struct irq_resolution found;

        text[0] = '\0';
        if (irq_table_look(table, device, &found) < 0)
                return;
        for (unsigned i = 0; i < found.n_threads && text[0] == '\0'; i++)
                moved_explain(&table->moved, found.threads[i].line, text, size);
        for (unsigned i = 0; i < found.n_threads && text[0] == '\0'; i++)
                balance_explain(table->balance, found.threads[i].line, text, size);
}

void irq_table_drop(struct irq_table *table, const void *owner) {
        struct claim *own = find_claim(table, owner);

        if (!own)
                return;
        remove_claim(table, own);
        (void) settle(table, NULL);
        update_watch(table);
}

static bool is_known(const struct irq_table *table, const struct irq_resolution *resolution) {
        for (unsigned i = 0; i < resolution->n_threads; i++)
                if (!raised_knows(&table->raised, &resolution->threads[i]))
                        return false;
        return true;
}

/* Of all claims for a device, the one that tells which of its interrupts count. */
static struct claim *first_of(struct irq_table *table, const char *device) {
        struct claim *claim = (struct claim *) (void *) table->claims->data;

        while (strcmp(claim->device, device) != 0)
                claim++;
        return claim;
}

static int verify(struct irq_table *table, const struct claim *claim) {
        struct claim *first = first_of(table, claim->device);
        struct irq_resolution resolution;

        irq_look_resolve(&table->look, claim->device, &resolution);
        narrow(table, first, &resolution);
        if (resolution.n_threads == 0)
                return -ENODEV;
        if (resolution.n_threads != first->n_wanted || !is_known(table, &resolution))
                (void) settle(table, NULL); /* a thread is new, or it shows now which fire */
        for (unsigned i = 0; i < resolution.n_threads; i++)
                if (!raised_has(&table->raised, &resolution.threads[i], claim->priority) ||
                    (!cpus_is_empty(&claim->affinity) &&
                     moved_is_changed(&table->moved, resolution.threads[i].line)))
                        return 0;
        return 1;
}

/* As often as there are leases, so it is done once for every look. */
int irq_table_verify(struct irq_table *table, const void *owner) {
        struct claim *own = find_claim(table, owner);

        if (!own)
                return -ENOENT;
        if (irq_look_take(&table->look) < 0)
                return 0;
        if (own->verified_us != table->look.taken_us) {
                own->verified = verify(table, own);
                own->verified_us = table->look.taken_us;
        }
        return own->verified;
}

void irq_table_refresh(struct irq_table *table) {
        uint64_t slept = table->options.slept_us();

        table->raised.recovering = false;
        table->moved.recovering = false;
        if (slept > table->slept_us + SLEPT_US)
                moved_all_again(&table->moved);
        table->slept_us = slept;
        irq_look_forget(&table->look);
        (void) settle(table, NULL);
}

unsigned irq_table_n_raised(const struct irq_table *table) {
        return table->raised.n;
}

/* ---- */

static void on_thread_ended(void *userdata) {
        irq_table_refresh(userdata);
}

/* What irqbalance did before it heard of that was not against us. */
static void on_banned(unsigned line, void *userdata) {
        struct irq_table *table = userdata;

        moved_again(&table->moved, line);
        (void) settle(table, NULL);
}

int irq_table_new(const struct irq_table_options *options, struct irq_table **ret) {
        struct irq_table *table = calloc(1, sizeof(*table));
        int r;

        if (!table)
                return -ENOMEM;
        table->options = *options;
        r = balance_new(&table->options, on_banned, table, &table->balance);
        if (r < 0) {
                free(table);
                return r;
        }
        irq_look_init(&table->look, &table->options.roots);
        table->claims = g_array_new(FALSE, FALSE, sizeof(struct claim));
        if (!table->options.slept_us)
                table->options.slept_us = slept_us;
        table->slept_us = table->options.slept_us();
        raised_init(&table->raised, &table->options, on_thread_ended, table);
        moved_init(&table->moved, &table->options);
        raised_recover(&table->raised);
        moved_recover(&table->moved);
        *ret = table;
        return 0;
}

struct irq_table *irq_table_free(struct irq_table *table) {
        if (!table)
                return NULL;

        table->watch = irq_watch_free(table->watch);
        g_array_set_size(table->claims, 0);
        table->raised.recovering = false;
        table->moved.recovering = false;
        raised_unwant(&table->raised);
        moved_unwant(&table->moved);
        (void) raised_settle(&table->raised);
        moved_settle(&table->moved);
        table->balance = balance_free(table->balance);
        raised_done(&table->raised);
        g_array_unref(table->claims);
        irq_look_done(&table->look);
        free(table);
        return NULL;
}
