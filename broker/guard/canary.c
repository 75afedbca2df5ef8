/* SPDX-License-Identifier: MIT */

#include "broker/guard/canary.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/worker.h"

static void *run(void *userdata) {
        struct canary *canary = userdata;
        eventfd_t n;

        canary->tid = (pid_t) syscall(SYS_gettid);
        while (!canary->ending) {
                if (eventfd_read(canary->wake_fd, &n) >= 0)
                        canary->n_run += (uint32_t) n;
                else if (errno != EINTR)
                        break;
        }
        return NULL;
}

int canary_start(struct canary *canary) {
        canary->cpu = -1;
        canary->wake_fd = eventfd(0, EFD_CLOEXEC);
        if (canary->wake_fd < 0)
                return -errno;

        return worker_start(run, canary, WORKER_STACK_BYTES, &canary->thread);
}

void canary_stop(struct canary *canary) {
        cpu_set_t all;

        if (canary->thread) {
                /* not to be waited for where it gets nothing */
                CPU_ZERO(&all);
                for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                        CPU_SET(cpu, &all);
                (void) sched_setaffinity(canary->tid, sizeof(all), &all);
                canary->ending = true;
                (void) eventfd_write(canary->wake_fd, 1);
                (void) pthread_join(canary->thread, NULL);
        }
        canary->wake_fd = close_fd(canary->wake_fd);
}

bool canary_send(struct canary *canary, int cpu, uint64_t now_ns) {
        cpu_set_t set;

        /* it has not begun to live yet: next time */
        if (canary->tid == 0)
                return false;

        CPU_ZERO(&set);
        CPU_SET((size_t) cpu, &set);
        if (sched_setaffinity(canary->tid, sizeof(set), &set) < 0)
                return false;

        canary->cpu = cpu;
        canary->sent_ns = now_ns;
        canary->n_sent++;
        return eventfd_write(canary->wake_fd, 1) >= 0;
}

int canary_waits(const struct canary *canary, uint64_t *ret_sent_ns) {
        if (canary->n_run == canary->n_sent)
                return -1;

        *ret_sent_ns = canary->sent_ns;
        return canary->cpu;
}

void canary_forgive(struct canary *canary, uint64_t now_ns) {
        canary->sent_ns = now_ns;
}
