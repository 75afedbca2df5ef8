/* SPDX-License-Identifier: MIT */

/*
 * The same figures by another program: cyclictest, in turns with our own loop without work, under
 * no load and with the same interval, CPU and policy.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/latency/run.h"

#define TURNS   4
#define TURN_NS 1000000000ULL
#define BUCKETS 20000 /* of 1 µs, as cyclictest has them */

struct counts {
        uint64_t of_us[BUCKETS];
        uint64_t n;
};

static uint32_t percentile(const struct counts *counts, unsigned percent) {
        uint64_t rank = (counts->n * percent + 99) / 100, sum = 0;

        for (uint32_t us = 0; us < BUCKETS; us++) {
                sum += counts->of_us[us];
                if (sum >= rank)
                        return us;
        }
        return BUCKETS;
}

static void read_counts(struct counts *counts, FILE *file) {
        _cleanup_free_ char *line = NULL;
        unsigned us, count;
        size_t size = 0;

        while (getline(&line, &size, file) >= 0) {
                if (line[0] == '#' || sscanf(line, "%u %u", &us, &count) != 2 || us >= BUCKETS)
                        continue;
                counts->of_us[us] += count;
                counts->n += count;
        }
}

uint64_t crosscheck_parse(FILE *file, uint32_t *ret_p50_us, uint32_t *ret_p99_us) {
        _cleanup_free_ struct counts *counts = calloc(1, sizeof(*counts));

        if (!counts)
                return 0;
        read_counts(counts, file);
        *ret_p50_us = percentile(counts, 50);
        *ret_p99_us = percentile(counts, 99);
        return counts->n;
}

static void exec_cyclictest(const struct run *run, bool realtime, int fd) {
        char interval[40], loops[40], histogram[40], cpu[40], priority[40];
        const char *argv[24] = {
                "cyclictest",       "-q",     "-t1",
                interval,           loops,    histogram,
                "--default-system", priority, realtime ? "--policy=fifo" : "--policy=other"
        };

        (void) snprintf(interval, sizeof(interval), "--interval=%lu",
                        (unsigned long) (run->period_ns / 1000));
        (void) snprintf(loops, sizeof(loops), "--loops=%lu",
                        (unsigned long) (TURN_NS / run->period_ns));
        (void) snprintf(histogram, sizeof(histogram), "--histogram=%d", BUCKETS);
        (void) snprintf(priority, sizeof(priority), "--priority=%d",
                        realtime ? run->variants[1].grant.priority : 0);
        if (run->options->cpu >= 0) {
                (void) snprintf(cpu, sizeof(cpu), "--affinity=%d", run->options->cpu);
                argv[9] = cpu;
        }
        (void) dup2(fd, STDOUT_FILENO);
        (void) dup2(fd, STDERR_FILENO);
        (void) execvp("cyclictest", (char **) argv);
        _exit(127);
}

static int run_cyclictest(const struct run *run, bool realtime, struct counts *counts) {
        int fds[2], status;
        FILE *file;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                exec_cyclictest(run, realtime, fds[1]);
        }
        (void) close(fds[1]);
        file = fdopen(fds[0], "r");
        if (pid < 0 || !file) {
                (void) close(fds[0]);
                return -ENOMEM;
        }
        read_counts(counts, file);
        (void) fclose(file);
        if (waitpid(pid, &status, 0) < 0)
                return -errno;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return -ENOENT;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int run_own(const struct run *run, bool realtime, struct counts *counts) {
        _cleanup_free_ struct loop *loop = calloc(1, sizeof(*loop));
        uint32_t us;
        int r;

        if (!loop)
                return -ENOMEM;
        r = loop_init(loop, (size_t) (TURN_NS / run->period_ns) + 1);
        if (r < 0)
                return r;
        loop->period_ns = run->period_ns;
        loop->deadline_ns = run->deadline_ns;
        loop->cpu = run->options->cpu;
        loop->grant = realtime ? &run->variants[1].grant : NULL;
        r = loop_start(loop);
        if (r >= 0) {
                loop_join(loop);
                r = loop->granted.error;
        }
        for (size_t i = 0; i < loop->n; i++) {
                us = loop->samples[i].late_ns / 1000;
                counts->of_us[us < BUCKETS ? us : BUCKETS - 1]++;
                counts->n++;
        }
        loop_done(loop);
        return r;
}

void crosscheck_run(struct run *run) {
        _cleanup_free_ struct counts *counts = calloc(2, sizeof(*counts));
        struct crosscheck *c = &run->crosscheck;
        /* cyclictest makes its thread real-time itself, which takes rights of its own. */
        bool realtime = geteuid() == 0 && run->n_variants > 1 && !run->variants[1].unusable;
        int r = counts ? 0 : -ENOMEM;

        c->policy = realtime ? SCHED_FIFO : SCHED_OTHER;
        for (int i = 0; i < TURNS && r >= 0; i++) {
                /* whoever is first finds another machine than who comes second */
                r = i % 2 == 0 ? run_own(run, realtime, &counts[0]) : 0;
                if (r >= 0)
                        r = run_cyclictest(run, realtime, &counts[1]);
                if (r >= 0 && i % 2 == 1)
                        r = run_own(run, realtime, &counts[0]);
        }
        if (r < 0 || counts[0].n == 0 || counts[1].n == 0) {
                (void) snprintf(c->why, sizeof(c->why), "%s",
                                r == -ENOENT ? "not installed (package rt-tests)"
                                : geteuid() != 0
                                        ? "it needs rights of its own, root or RLIMIT_RTPRIO"
                                        : "could not be run");
                return;
        }
        c->done = true;
        c->own_n = counts[0].n;
        c->other_n = counts[1].n;
        c->own_p50_us = percentile(&counts[0], 50);
        c->own_p99_us = percentile(&counts[0], 99);
        c->other_p50_us = percentile(&counts[1], 50);
        c->other_p99_us = percentile(&counts[1], 99);
}
