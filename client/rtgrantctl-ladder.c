/* SPDX-License-Identifier: MIT */

/*
 * Who stands where: the real-time threads of the machine from the highest priority down, with the
 * bands of the roles between them. What /proc shows is what is in force, whoever set it.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/json.h"
#include "client/cli/output.h"
#include "client/cli/scheduling.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

#define RUNGS_MAX 512 /* lines: what is past them is counted */
#define PRIORITY_MAX 99

enum rung_kind {
        RUNG_FOREIGN,           /* real-time by other means */
        RUNG_LEASE,
        RUNG_BROKER,
        RUNG_INTERRUPT,
        RUNG_KERNEL,
};

struct rung {
        pid_t tid;
        int policy;
        int priority;
        enum rung_kind kind;
        char comm[64];
        char role[32];
};

struct ladder {
        struct rung *rungs;
        size_t n_rungs;
        size_t n_left_out;
};

static bool read_line(const char *path, char *buffer, size_t size) {
        FILE *file = fopen(path, "re");
        bool read;

        if (!file)
                return false;
        read = fgets(buffer, (int) size, file);
        (void) fclose(file);
        if (read)
                buffer[strcspn(buffer, "\n")] = '\0';
        return read;
}

/* A kernel thread has no program, and no memory of its own. */
static bool is_kernel_thread(pid_t pid) {
        char path[64], line[64] = "";

        (void) snprintf(path, sizeof(path), "/proc/%d/statm", (int) pid);
        return read_line(path, line, sizeof(line)) && strncmp(line, "0 ", 2) == 0;
}

static void add_thread(struct ladder *ladder, pid_t pid, pid_t tid) {
        struct scheduling s;
        char path[96], comm[64] = "";
        struct rung *rung;

        if (scheduling_read(tid, &s) < 0 || !policy_is_realtime(s.policy))
                return;
        if (ladder->n_rungs == RUNGS_MAX) {
                ladder->n_left_out++;
                return;
        }

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int) pid, (int) tid);
        (void) read_line(path, comm, sizeof(comm));
        rung = &ladder->rungs[ladder->n_rungs++];
        *rung = (struct rung) { .tid = tid, .policy = s.policy, .priority = s.priority };
        text_printable(rung->comm, sizeof(rung->comm), comm);
        if (is_kernel_thread(pid))
                rung->kind = strncmp(comm, "irq/", 4) == 0 ? RUNG_INTERRUPT : RUNG_KERNEL;
        else if (strncmp(comm, "rtgrantd", 8) == 0 || strncmp(comm, "rtgrant-guard", 13) == 0)
                rung->kind = RUNG_BROKER;
}

static void add_process(struct ladder *ladder, pid_t pid) {
        char path[64];
        struct dirent *entry;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        dir = opendir(path);
        if (!dir)
                return;
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        add_thread(ladder, pid, (pid_t) atoi(entry->d_name));
        (void) closedir(dir);
}

static void add_all(struct ladder *ladder) {
        struct dirent *entry;
        DIR *dir = opendir("/proc");

        if (!dir)
                return;
        while ((entry = readdir(dir)))
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
                        add_process(ladder, (pid_t) atoi(entry->d_name));
        (void) closedir(dir);
}

static int mark_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct ladder *ladder = userdata;

        for (size_t i = 0; i < ladder->n_rungs; i++)
                if (ladder->rungs[i].tid == lease->tid) {
                        ladder->rungs[i].kind = RUNG_LEASE;
                        text_printable(ladder->rungs[i].role, sizeof(ladder->rungs[i].role),
                                       lease->role);
                }
        return 0;
}

static int by_priority(const void *a, const void *b) {
        const struct rung *x = a, *y = b;

        if (x->priority != y->priority)
                return y->priority - x->priority;
        return x->tid - y->tid;
}

static const char *kind_words(const struct rung *rung) {
        switch (rung->kind) {
        case RUNG_BROKER:
                return "the broker";
        case RUNG_INTERRUPT:
                return "interrupt";
        case RUNG_KERNEL:
                return "kernel";
        case RUNG_LEASE:
                return rung->role;
        case RUNG_FOREIGN:
                break;
        }
        return "not by a lease of yours";
}

/* The bands that end between @above (not reached) and @priority. */
static void print_bands(const struct ctl *ctl, const struct rtgrant_status *status, int above,
                        int priority) {
        for (unsigned i = 0; i < status->n_offers; i++) {
                const struct rtgrant_offer *offer = &status->offers[i];
                char role[64];

                if (offer->priority_max == 0 || offer->priority_max >= above ||
                    offer->priority_max < priority)
                        continue;
                text_printable(role, sizeof(role), offer->role);
                printf("%s %2d-%-2d  role %s%s\n", style_begin(ctl->colour, STYLE_BOLD),
                       offer->priority_min, offer->priority_max, role,
                       style_end(ctl->colour, STYLE_BOLD));
        }
}

static int ladder_read(struct ctl *ctl, const struct rtgrant_status *status, struct ladder *ret) {
        struct ladder ladder = { .rungs = calloc(RUNGS_MAX, sizeof(struct rung)) };

        if (!ladder.rungs)
                return -1;
        add_all(&ladder);
        (void) rtgrant_list(ctl->broker.handle, status->admin, mark_lease, &ladder);
        qsort(ladder.rungs, ladder.n_rungs, sizeof(ladder.rungs[0]), by_priority);
        *ret = ladder;
        return 0;
}

void ctl_print_ladder(struct ctl *ctl, const struct rtgrant_status *status) {
        int above = PRIORITY_MAX + 1;
        struct ladder ladder;

        if (ladder_read(ctl, status, &ladder) < 0)
                return;

        printf("\nWho stands where, from the top\n");
        for (size_t i = 0; i < ladder.n_rungs; i++) {
                const struct rung *rung = &ladder.rungs[i];

                print_bands(ctl, status, above, rung->priority);
                above = rung->priority;
                printf("   %2d    %-4s %-7d %-16s %s\n", rung->priority,
                       rung->policy == SCHED_FIFO ? "FIFO" : "RR", (int) rung->tid, rung->comm,
                       kind_words(rung));
        }
        print_bands(ctl, status, above, 0);
        if (ladder.n_left_out > 0)
                printf("         and %zu more\n", ladder.n_left_out);
        free(ladder.rungs);
}

json_object *ctl_ladder_json(struct ctl *ctl, const struct rtgrant_status *status) {
        static const char *const kinds[] = {
                [RUNG_FOREIGN] = "other", [RUNG_LEASE] = "lease",   [RUNG_BROKER] = "broker",
                [RUNG_INTERRUPT] = "irq", [RUNG_KERNEL] = "kernel",
        };
        json_object *array = json_object_new_array();
        struct ladder ladder;

        if (ladder_read(ctl, status, &ladder) < 0)
                return array;
        for (size_t i = 0; i < ladder.n_rungs; i++) {
                const struct rung *rung = &ladder.rungs[i];
                json_object *object = json_object_new_object();

                json_add_int(object, "priority", rung->priority);
                json_add_policy(object, "policy", rung->policy);
                json_add_int(object, "tid", rung->tid);
                json_add_string(object, "comm", rung->comm);
                json_add_string(object, "kind", kinds[rung->kind]);
                json_add_text(object, "role", rung->role);
                (void) json_object_array_add(array, object);
        }
        free(ladder.rungs);
        return array;
}
