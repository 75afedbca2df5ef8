/* SPDX-License-Identifier: MIT */

#include "client/latency/watch.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/broker.h"
#include "client/cli/text.h"

#define WINDOW_NS   100000000ULL /* that the broker tells of at a time */
#define WINDOWS_MAX 20
#define WAIT_MS     10
#define WAITS_MAX   100
#define NAMES_MAX   32 /* different ones in these */

static void wait_a_moment(void) {
        struct timespec duration = { 0, WAIT_MS * 1000000L };

        (void) nanosleep(&duration, NULL);
}

void watch_open(struct watch *w, int cpu) {
        static const struct switches_room room = { 1 << 20, 200000, 8192, 4096 };
        cpu_set_t set;
        int r;

        CPU_ZERO(&set);
        if (cpu >= 0)
                CPU_SET((size_t) cpu, &set);
        else if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return;
        for (int i = 0; i < CPU_SETSIZE && w->n < WATCHED_MAX; i++) {
                if (!CPU_ISSET((size_t) i, &set))
                        continue;
                r = switches_open(&w->all[w->n], i, &room);
                w->known = r >= 0;
                if (r < 0)
                        return;
                w->n++;
        }
}

void watch_done(struct watch *w) {
        for (size_t i = 0; i < w->n; i++)
                switches_done(&w->all[i]);
        w->n = 0;
        w->handle = rtgrant_close(w->handle);
}

static void give_up(struct watch *w, int error, const struct rtgrant_answer *answer,
                    const char *socket) {
        struct broker broker = { .socket = socket };
        char text[320], help[320];

        w->known = false;
        w->handle = rtgrant_close(w->handle);
        if (error != -EPERM) {
                broker_error_text(&broker, error, w->why, sizeof(w->why));
                return;
        }
        text_printable(text, sizeof(text), answer->text);
        text_printable(help, sizeof(help), answer->help);
        (void) snprintf(w->why, sizeof(w->why), "%s%s%s", text, help[0] ? "; " : "", help);
}

static int ignore(const char *comm, uint64_t ns, void *userdata) {
        return 0;
}

/* It begins a moment after it is allowed, and may find then that the kernel does not let it. */
static int wait_for_begin(struct watch *w) {
        uint64_t since_ns = 0;
        int r = 0;

        for (unsigned i = 0; i < WAITS_MAX && r >= 0 && since_ns == 0; i++) {
                wait_a_moment();
                r = rtgrant_get_occupants(w->handle, 0, 0, ignore, NULL, &since_ns, NULL);
        }
        return r < 0 ? r : since_ns == 0 ? -ETIMEDOUT : 0;
}

/* Debian's kernels know 3: then perf_event_open(2) is root's alone, whatever capabilities others have. */
#define PARANOID_MAX 2

static void explain_kernel(char *text, size_t size) {
        FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
        int paranoid = 0;

        if (file && fscanf(file, "%d", &paranoid) == 1 && paranoid > PARANOID_MAX)
                (void) snprintf(text, size,
                                "kernel.perf_event_paranoid is %d: the kernel does not let the "
                                "broker record it. As root: sysctl kernel.perf_event_paranoid=%d",
                                paranoid, PARANOID_MAX);
        else
                (void) snprintf(text, size, "the kernel does not let the broker record it");
        if (file)
                (void) fclose(file);
}

void watch_ask_broker(struct watch *w, const char *socket, int cpu, bool may_ask) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        struct agent agent = { 0 };
        bool began = w->handle != NULL;
        int r = 0;

        if (w->n > 0 || (w->why[0] != '\0' && !began))
                return;
        if (cpu < 0) {
                (void) snprintf(w->why, sizeof(w->why), "the broker watches one CPU: name it by --cpu");
                return;
        }
        if (!began)
                r = rtgrant_open(&w->handle, socket, 5000);
        if (r >= 0 && may_ask)
                agent_start(&agent);
        if (r >= 0)
                r = rtgrant_observe(w->handle, cpu, may_ask ? RTGRANT_MAY_ASK : 0, &answer);
        agent_stop(&agent);
        if (r >= 0 && !began) {
                r = wait_for_begin(w);
                if (r == -EPERM)
                        explain_kernel(answer.text, sizeof(answer.text));
        }
        if (r < 0) {
                give_up(w, r, &answer, socket);
                return;
        }
        w->cpu = cpu;
        w->known = true;
}

void watch_begin(struct watch *w) {
        watch_read(w);
        for (size_t i = 0; i < w->n; i++)
                switches_clear(&w->all[i]);
}

void watch_read(struct watch *w) {
        for (size_t i = 0; i < w->n; i++)
                (void) switches_read(&w->all[i], SIZE_MAX);
}

void watch_end(struct watch *w, uint64_t end_ns) {
        uint64_t until_ns = 0;

        watch_read(w);
        if (!w->handle)
                return;
        for (unsigned i = 0; i < WAITS_MAX && until_ns < end_ns; i++) {
                if (rtgrant_get_occupants(w->handle, 0, 0, ignore, NULL, NULL, &until_ns) < 0)
                        return;
                if (until_ns < end_ns)
                        wait_a_moment();
        }
}

struct sum {
        const char *self_comm;
        struct culprit all[NAMES_MAX];
        size_t n;
};

static int add(const char *comm, uint64_t ns, void *userdata) {
        struct sum *sum = userdata;
        size_t i;

        if (strcmp(comm, sum->self_comm) == 0)
                return 0;
        for (i = 0; i < sum->n && strncmp(sum->all[i].comm, comm, COMM_SIZE - 1) != 0; i++)
                ;
        if (i == NAMES_MAX)
                return 0;
        if (i == sum->n) {
                sum->all[sum->n++] = (struct culprit){ 0 };
                memcpy(sum->all[i].comm, comm, strnlen(comm, COMM_SIZE - 1));
        }
        sum->all[i].ns += ns;
        return 0;
}

static int by_time(const void *a, const void *b) {
        uint64_t x = ((const struct culprit *) a)->ns, y = ((const struct culprit *) b)->ns;

        return (x < y) - (x > y);
}

static size_t ask(struct watch *w, uint64_t from_ns, uint64_t to_ns, const char *self_comm,
                  struct culprit culprits[CULPRITS_MAX], bool *ret_incomplete) {
        struct sum sum = { .self_comm = self_comm };
        uint64_t since_ns = UINT64_MAX, until_ns = 0, end;
        size_t n;

        for (unsigned i = 0; i < WINDOWS_MAX && from_ns < to_ns; i++, from_ns = end) {
                end = to_ns - from_ns > WINDOW_NS ? from_ns + WINDOW_NS : to_ns;
                if (rtgrant_get_occupants(w->handle, from_ns, end, add, &sum, &since_ns,
                                          &until_ns) < 0)
                        break;
                *ret_incomplete = *ret_incomplete || since_ns > from_ns || until_ns < end;
        }
        *ret_incomplete = *ret_incomplete || from_ns < to_ns;
        qsort(sum.all, sum.n, sizeof(sum.all[0]), by_time);
        n = sum.n < CULPRITS_MAX ? sum.n : CULPRITS_MAX;
        memcpy(culprits, sum.all, n * sizeof(sum.all[0]));
        return n;
}

size_t watch_culprits(struct watch *w, int cpu, uint64_t from_ns, uint64_t to_ns, pid_t self,
                      const char *self_comm, struct culprit culprits[CULPRITS_MAX],
                      bool *ret_incomplete) {
        *ret_incomplete = false;
        if (w->handle && cpu == w->cpu)
                return ask(w, from_ns, to_ns, self_comm, culprits, ret_incomplete);
        for (size_t i = 0; i < w->n; i++) {
                if (w->all[i].cpu != cpu)
                        continue;
                *ret_incomplete = switches_are_incomplete(&w->all[i], from_ns);
                return switches_culprits(&w->all[i], from_ns, to_ns, self, culprits);
        }
        return 0; /* nobody is known; watch.why says why */
}
