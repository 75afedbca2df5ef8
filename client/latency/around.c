/* SPDX-License-Identifier: MIT */

#include "client/latency/around.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cleanup.h"

#define FRAMES_MAX 8

void snapshots_take_now(struct snapshots *s, int cpu, uint64_t now_ns) {
        struct snapshot *one = &s->ring[s->n++ % SNAPSHOTS_MAX];

        one->time_ns = now_ns;
        counters_read(&one->counters, cpu);
}

void snapshots_take(struct snapshots *s, int cpu, uint64_t now_ns) {
        if (s->n == 0 || now_ns - s->ring[(s->n - 1) % SNAPSHOTS_MAX].time_ns >= SNAPSHOT_NS)
                snapshots_take_now(s, cpu, now_ns);
}

/* The last before @from_ns and the first after @to_ns. False if one is missing. */
static bool find_pair(const struct snapshots *s, uint64_t from_ns, uint64_t to_ns,
                      const struct snapshot **ret_before, const struct snapshot **ret_after) {
        size_t first = s->n > SNAPSHOTS_MAX ? s->n - SNAPSHOTS_MAX : 0;
        const struct snapshot *one;

        *ret_before = *ret_after = NULL;
        for (size_t i = first; i < s->n && !*ret_after; i++) {
                one = &s->ring[i % SNAPSHOTS_MAX];
                if (one->time_ns <= from_ns)
                        *ret_before = one;
                if (one->time_ns >= to_ns)
                        *ret_after = one;
        }
        return *ret_before && *ret_after;
}

/* The later a state is listed, the deeper it is. */
static void find_deepest(const struct counters *difference, int cpu, struct surroundings *ret) {
        char name[24], label[40];
        uint64_t exits;

        for (int i = 0; i < IDLE_STATES_MAX && counters_idle_name(cpu, i, name, sizeof(name)); i++) {
                (void) snprintf(label, sizeof(label), COUNTER_IDLE "%s", name);
                exits = counters_get(difference, label);
                if (exits == 0)
                        continue;
                memcpy(ret->idle, name, sizeof(ret->idle));
                ret->idle_exits = exits;
                ret->idle_us = difference->idle_us[i];
                ret->exit_latency_us = counters_exit_latency_us(cpu, i);
        }
}

void snapshots_find(const struct snapshots *s, int cpu, uint64_t from_ns, uint64_t to_ns,
                    struct surroundings *ret) {
        _cleanup_free_ struct counters *difference = calloc(1, sizeof(*difference));
        const struct snapshot *before, *after;

        *ret = (struct surroundings){ 0 };
        if (!difference || !find_pair(s, from_ns, to_ns, &before, &after))
                return;
        counters_add_difference(difference, &before->counters, &after->counters);
        if (cpu >= 0)
                find_deepest(difference, cpu, ret);
        counters_drop(difference, COUNTER_IDLE);
        counters_sort(difference);
        ret->from_ns = before->time_ns;
        ret->to_ns = after->time_ns;
        ret->n = difference->n < AROUND_MAX ? difference->n : AROUND_MAX;
        memcpy(ret->counts, difference->all, ret->n * sizeof(ret->counts[0]));
}

/* A frame is "[<0>] do_nanosleep+0x5c/0x180" or, of a module, with " [module]" behind it. */
static const char *frame_name(char *line) {
        char *name = strstr(line, "] ");

        if (!name)
                return NULL;
        name += 2;
        name[strcspn(name, "+\n")] = '\0';
        return name[0] != '\0' ? name : NULL;
}

int kernel_stack_parse(FILE *file, char *buffer, size_t size) {
        char line[160];
        const char *name;
        size_t used = 0;
        int n = 0;

        buffer[0] = '\0';
        while (n < FRAMES_MAX && fgets(line, sizeof(line), file)) {
                name = frame_name(line);
                if (!name || used + strlen(name) + 4 > size)
                        continue;
                used += (size_t) snprintf(buffer + used, size - used, "%s%s", n > 0 ? " < " : "",
                                          name);
                n++;
        }
        return n > 0 ? 0 : -ENODATA;
}

int kernel_stack_read(int tid, char *buffer, size_t size) {
        char path[64];
        FILE *file;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/stack", tid);
        errno = 0;
        file = fopen(path, "re");
        if (!file)
                return -errno;
        errno = 0; /* who may not is told when he reads */
        r = kernel_stack_parse(file, buffer, size);
        if (ferror(file))
                r = -errno;
        (void) fclose(file);
        return r;
}
