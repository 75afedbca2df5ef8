/* SPDX-License-Identifier: MIT */

#include "client/latency/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/scheduling.h"

#define SECOND_NS 1000000000ULL

static uint64_t clock_ns(clockid_t clock) {
        struct timespec now;

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * SECOND_NS + (uint64_t) now.tv_nsec;
}

uint64_t monotonic_ns(void) {
        return clock_ns(CLOCK_MONOTONIC);
}

const char *cause_to_string(enum cause cause) {
        static const char *const names[] = {
                [CAUSE_TIMER] = "timer or interrupt late",
                [CAUSE_NOT_RUNNING] = "runnable but not running",
                [CAUSE_WORK] = "own work too long",
                [CAUSE_PAGE_FAULT] = "page fault",
        };

        return names[cause];
}

static uint64_t without(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

enum cause overrun_split(const struct overrun *o, uint64_t work_ns, struct split *ret) {
        struct split s = { 0 };
        uint64_t busy = o->work_cpu + o->work_wait, most;

        s.timer = without(o->woke - o->due, o->wake_wait);
        s.waiting = o->wake_wait + o->work_wait;
        s.work = without(o->work_cpu, work_ns);
        s.fault = without(o->done - o->woke, busy);
        *ret = s;

        most = s.waiting;
        if (s.timer > most)
                most = s.timer;
        if (s.work > most)
                most = s.work;
        if (s.fault > most && o->major_faults + o->minor_faults > 0)
                return CAUSE_PAGE_FAULT;
        return most == s.waiting ? CAUSE_NOT_RUNNING : most == s.timer ? CAUSE_TIMER : CAUSE_WORK;
}

static void work(uint64_t units) {
        uint64_t x = 88172645463325252ULL;

        for (uint64_t i = 0; i < units; i++) {
                for (int j = 0; j < 32; j++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                }
                __asm__ volatile("" : "+r"(x));
        }
}

static uint32_t cut(uint64_t ns) {
        return ns > UINT32_MAX ? UINT32_MAX : (uint32_t) ns;
}

static int by_number(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return (x > y) - (x < y);
}

/* The median: at its best moment a machine promises what it cannot keep. */
uint64_t loop_calibrate(uint64_t work_ns) {
        const uint64_t units = 4000;
        uint32_t took[101];
        uint64_t begin;

        for (size_t i = 0; i < ELEMENTS(took); i++) {
                begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
                work(units);
                took[i] = cut(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
        }
        qsort(took, ELEMENTS(took), sizeof(took[0]), by_number);
        begin = took[ELEMENTS(took) / 2];
        return (uint64_t) ((double) work_ns * (double) units / (double) (begin > 0 ? begin : 1));
}

/* The second number of schedstat: time that the thread was runnable without running. */
static uint64_t read_waited(int fd) {
        char text[96];
        uint64_t number = 0;
        ssize_t n;
        char *p;

        n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        p = strchr(text, ' ');
        for (p = p ? p + 1 : text + n; *p >= '0' && *p <= '9'; p++)
                number = number * 10 + (uint64_t) (*p - '0');
        return number;
}

static void sleep_until(uint64_t time_ns) {
        struct timespec until = {
                .tv_sec = (time_t) (time_ns / SECOND_NS),
                .tv_nsec = (long) (time_ns % SECOND_NS),
        };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
}

static void spin(uint64_t duration_ns) {
        uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + duration_ns;

        while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
                ;
}

/* One cycle, due at @due. Returns when it was done. */
static uint64_t run_cycle(struct loop *loop, uint64_t due, int schedstat) {
        struct overrun o = { .due = due };
        struct rusage before, after;
        uint64_t waited[3], cpu;

        (void) getrusage(RUSAGE_THREAD, &before);
        waited[0] = read_waited(schedstat);
        sleep_until(due);
        o.woke = monotonic_ns();
        waited[1] = read_waited(schedstat);
        o.cpu = sched_getcpu();

        cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        work(loop->units);
        if (loop->inject_each > 0 && loop->n % loop->inject_each == loop->inject_each / 2) {
                spin(loop->inject_ns);
                loop->n_injected++;
        }
        o.work_cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
        waited[2] = read_waited(schedstat);
        o.done = monotonic_ns();
        (void) getrusage(RUSAGE_THREAD, &after);

        o.wake_wait = waited[1] - waited[0];
        o.work_wait = waited[2] - waited[1];
        o.minor_faults = (uint32_t) (after.ru_minflt - before.ru_minflt);
        o.major_faults = (uint32_t) (after.ru_majflt - before.ru_majflt);
        loop->minor_faults += o.minor_faults;
        loop->major_faults += o.major_faults;
        loop->preempted += (uint64_t) (after.ru_nivcsw - before.ru_nivcsw);
        loop->samples[loop->n] = (struct sample){ cut(o.woke - due), cut(o.done - due) };
        loop->n++; /* now it may be looked at */
        if (o.done - due > loop->deadline_ns) {
                if (loop->n_overruns < OVERRUNS_MAX)
                        loop->overruns[loop->n_overruns] = o;
                loop->n_overruns++;
        }
        return o.done;
}

static void run_cycles(struct loop *loop, int schedstat) {
        uint64_t due = monotonic_ns() + 2 * loop->period_ns, done;

        loop->begin_ns = due;
        while (loop->n < loop->n_max) {
                done = run_cycle(loop, due, schedstat);
                /* After an overrun a sound card starts anew: what was late is not late for ever. */
                if (done - due > loop->deadline_ns)
                        due = done;
                due += loop->period_ns;
        }
        loop->end_ns = monotonic_ns();
}

static void pin(int cpu) {
        cpu_set_t set;

        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET((size_t) cpu, &set);
        (void) sched_setaffinity(0, sizeof(set), &set);
}

static void touch_stack(void) {
        volatile char stack[64 * 1024];

        for (size_t i = 0; i < sizeof(stack); i += 1024)
                stack[i] = 0;
}

static void *run_thread(void *userdata) {
        struct loop *loop = userdata;
        struct scheduling scheduling = { 0 };
        struct grant grant = { 0 };
        char path[64];
        int fd;

        loop->tid = gettid();
        pin(loop->cpu);
        (void) pthread_setname_np(pthread_self(), LOOP_COMM);
        touch_stack();
        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int) loop->tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (loop->grant)
                loop->granted.error = grant_acquire(&grant, loop->grant, &loop->granted);
        if (!loop->grant || loop->granted.error >= 0) {
                run_cycles(loop, fd);
                (void) scheduling_read(0, &scheduling);
                loop->policy_after = scheduling.policy;
                loop->priority_after = scheduling.priority;
        }
        grant_release(&grant);
        if (fd >= 0)
                (void) close(fd);
        atomic_store(&loop->ended, true);
        return NULL;
}

int loop_init(struct loop *loop, size_t n_max) {
        size_t size = n_max * sizeof(*loop->samples);

        *loop = (struct loop){ .n_max = n_max };
        loop->samples = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (loop->samples == MAP_FAILED) {
                loop->samples = NULL;
                return -ENOMEM;
        }
        loop->locked = mlock(loop->samples, size) == 0;
        (void) mlock(loop, sizeof(*loop)); /* written to in the loop as well */
        return 0;
}

void loop_done(struct loop *loop) {
        (void) munlock(loop, sizeof(*loop));
        if (loop->samples)
                (void) munmap(loop->samples, loop->n_max * sizeof(*loop->samples));
        loop->samples = NULL;
}

int loop_start(struct loop *loop) {
        return -pthread_create(&loop->thread, NULL, run_thread, loop);
}

void loop_join(struct loop *loop) {
        (void) pthread_join(loop->thread, NULL);
}
