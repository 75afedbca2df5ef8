/* SPDX-License-Identifier: MIT */

#include "client/latency/counters.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/cleanup.h"

static struct counter *find(struct counters *c, const char *name) {
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->all[i].name, name) == 0)
                        return &c->all[i];
        if (c->n == COUNTERS_MAX)
                return NULL;
        c->all[c->n] = (struct counter){ 0 };
        (void) snprintf(c->all[c->n].name, sizeof(c->all[c->n].name), "%s", name);
        return &c->all[c->n++];
}

/* The column of @cpu: CPUs that are off have none. -1 if it is not there. */
static int find_column(char *header, int cpu, int *ret_columns) {
        char *save = NULL, wanted[16];
        int column = -1, n = 0;

        (void) snprintf(wanted, sizeof(wanted), "CPU%d", cpu);
        for (char *word = strtok_r(header, " \t\n", &save); word;
             word = strtok_r(NULL, " \t\n", &save), n++)
                if (strcmp(word, wanted) == 0)
                        column = n;
        *ret_columns = n;
        return column;
}

static void parse_line(struct counters *c, char *line, int column, int n_columns) {
        char *colon = strchr(line, ':'), *p, *end, *words, name[64], *last;
        struct counter *counter;
        uint64_t count = 0, number;

        if (!colon)
                return;
        *colon = '\0';
        line += strspn(line, " ");
        p = colon + 1;
        for (int i = 0; i < n_columns; i++) {
                number = strtoull(p, &end, 10);
                if (end == p)
                        break;
                if (column < 0 || i == column)
                        count += number;
                p = end;
        }
        words = p + strspn(p, " ");
        words[strcspn(words, "\n")] = '\0';
        last = strrchr(words, ' ');
        /* A number says nothing without its handler; a word stands for itself. */
        if (line[0] >= '0' && line[0] <= '9')
                (void) snprintf(name, sizeof(name), "irq %.8s %.24s", line, last ? last + 1 : "");
        else
                (void) snprintf(name, sizeof(name), "%.24s", line);
        counter = find(c, name);
        if (counter)
                counter->count += count;
}

void counters_parse(struct counters *c, FILE *file, int cpu) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int column, n_columns;

        if (getline(&line, &size, file) < 0)
                return;
        column = find_column(line, cpu, &n_columns);
        if (cpu >= 0 && column < 0)
                return;
        while (getline(&line, &size, file) >= 0)
                parse_line(c, line, column, n_columns);
}

static void read_table(struct counters *c, const char *path, int cpu) {
        FILE *file = fopen(path, "re");

        if (!file)
                return;
        counters_parse(c, file, cpu);
        (void) fclose(file);
}

static bool read_line(const char *what, int cpu, int state, char *ret, size_t size) {
        char path[96];
        bool good;
        FILE *file;

        (void) snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/%s", cpu,
                        state, what);
        file = fopen(path, "re");
        if (!file)
                return false;
        good = fgets(ret, (int) size, file) != NULL;
        (void) fclose(file);
        if (good)
                ret[strcspn(ret, "\n")] = '\0';
        return good;
}

bool counters_idle_name(int cpu, int state, char *ret, size_t size) {
        return read_line("name", cpu, state, ret, size);
}

unsigned counters_exit_latency_us(int cpu, int state) {
        char number[24];

        return read_line("latency", cpu, state, number, sizeof(number))
                       ? (unsigned) strtoul(number, NULL, 10)
                       : 0;
}

static void read_idle_states(struct counters *c, int cpu) {
        char name[24], label[40], number[24];
        struct counter *counter;

        for (int i = 0; i < IDLE_STATES_MAX && counters_idle_name(cpu, i, name, sizeof(name)); i++) {
                (void) snprintf(label, sizeof(label), COUNTER_IDLE "%s", name);
                counter = find(c, label);
                if (counter && read_line("usage", cpu, i, number, sizeof(number)))
                        counter->count = strtoull(number, NULL, 10);
                if (read_line("time", cpu, i, number, sizeof(number)))
                        c->idle_us[i] = strtoull(number, NULL, 10);
        }
}

void counters_read(struct counters *c, int cpu) {
        *c = (struct counters){ 0 };
        read_table(c, "/proc/interrupts", cpu);
        read_table(c, "/proc/softirqs", cpu);
        if (cpu >= 0)
                read_idle_states(c, cpu);
}

uint64_t counters_get(const struct counters *c, const char *name) {
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->all[i].name, name) == 0)
                        return c->all[i].count;
        return 0;
}

void counters_add_difference(struct counters *sum, const struct counters *before,
                             const struct counters *after) {
        const struct counter *then;
        struct counter *total;

        for (size_t i = 0; i < after->n; i++) {
                then = NULL;
                for (size_t j = 0; j < before->n && !then; j++)
                        if (strcmp(before->all[j].name, after->all[i].name) == 0)
                                then = &before->all[j];
                if (then && after->all[i].count <= then->count)
                        continue;
                total = find(sum, after->all[i].name);
                if (total)
                        total->count += after->all[i].count - (then ? then->count : 0);
        }
        for (size_t i = 0; i < IDLE_STATES_MAX; i++)
                if (after->idle_us[i] > before->idle_us[i])
                        sum->idle_us[i] += after->idle_us[i] - before->idle_us[i];
}

void counters_drop(struct counters *c, const char *prefix) {
        size_t n = 0;

        for (size_t i = 0; i < c->n; i++)
                if (strncmp(c->all[i].name, prefix, strlen(prefix)) != 0)
                        c->all[n++] = c->all[i];
        c->n = n;
}

static int by_count(const void *a, const void *b) {
        uint64_t x = ((const struct counter *) a)->count, y = ((const struct counter *) b)->count;

        return (x < y) - (x > y);
}

void counters_sort(struct counters *c) {
        qsort(c->all, c->n, sizeof(c->all[0]), by_count);
        while (c->n > 0 && c->all[c->n - 1].count == 0)
                c->n--;
}
