/* SPDX-License-Identifier: MIT */

/*
 * Times round trips on the broker's socket as an unprivileged user, with so many leases of other
 * threads alive: ACQUIRE and RELEASE for the own thread and for a thread of another process, and
 * UPDATE. Prints a table in µs. Usage: bench-socket SOCKET [ROUNDS [LEASES…]]
 */

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/protocol.h"

#define UID_MEASURED 65534
#define UID_CROWD 64100
#define THREADS_PER_CROWD 250 /* threads of one process, one process a user */

static void die(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void become(uid_t uid) {
        if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
                die("setresuid");
        (void) prctl(PR_SET_DUMPABLE, 1);
}

static int dial(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                die(path);
        return fd;
}

static struct wire_header header(uint16_t verb, size_t size) {
        return (struct wire_header) { .size = (uint32_t) size, .version = WIRE_VERSION, .verb = verb, .serial = 1 };
}

static void ask(int fd, const void *request, size_t size, struct wire_answer *answer) {
        ssize_t n;

        if (send(fd, request, size, MSG_NOSIGNAL) != (ssize_t) size)
                die("send");
        memset(answer, 0, sizeof(*answer));
        n = recv(fd, answer, sizeof(*answer), 0);
        if (n <= 0)
                die("recv");
        if (answer->reason != 0) {
                (void) fprintf(stderr, "refused: %s\n", answer->explanation.text);
                exit(EXIT_FAILURE);
        }
}

static void acquire(int fd, uint64_t pid, uint64_t tid, int priority, struct wire_answer *answer) {
        const struct wire_acquire request = {
                .header = header(WIRE_ACQUIRE, sizeof(request)),
                .pid = pid,
                .tid = tid,
                .want = WIRE_WANT_SCHED,
                .policy = SCHED_FIFO,
                .priority = priority,
        };

        ask(fd, &request, sizeof(request), answer);
}

static void release(int fd, const uint8_t *id, struct wire_answer *answer) {
        struct wire_lease_ref request = { .header = header(WIRE_RELEASE, sizeof(request)) };

        memcpy(request.id, id, sizeof(request.id));
        ask(fd, &request, sizeof(request), answer);
}

static void update(int fd, const uint8_t *id, int priority, struct wire_answer *answer) {
        struct wire_update request = {
                .header = header(WIRE_UPDATE, sizeof(request)),
                .want = WIRE_WANT_SCHED,
                .policy = SCHED_FIFO,
                .priority = priority,
        };

        memcpy(request.id, id, sizeof(request.id));
        ask(fd, &request, sizeof(request), answer);
}

static int compare(const void *a, const void *b) {
        const uint64_t *left = a, *right = b;

        return (*left > *right) - (*left < *right);
}

static void print_row(const char *what, unsigned n_leases, uint64_t *ns, size_t n) {
        qsort(ns, n, sizeof(*ns), compare);
        (void) printf("%-44s %7u %8.1f %8.1f %8.1f %9.1f\n", what, n_leases, (double) ns[n / 2] / 1e3,
                      (double) ns[n * 99 / 100] / 1e3, (double) ns[n * 999 / 1000] / 1e3, (double) ns[n - 1] / 1e3);
        (void) fflush(stdout);
}

static void measure_pairs(int fd, const char *what, pid_t pid, pid_t tid, unsigned n_leases, size_t n) {
        uint64_t *acquired = calloc(n, sizeof(*acquired)), *both = calloc(n, sizeof(*both));
        struct wire_answer answer;
        char name[64];

        if (!acquired || !both)
                die("calloc");
        for (size_t i = 0; i < n; i++) {
                uint64_t begin = now_ns();

                acquire(fd, (uint64_t) pid, (uint64_t) tid, 10, &answer);
                acquired[i] = now_ns() - begin;
                release(fd, answer.id, &answer);
                both[i] = now_ns() - begin;
        }
        (void) snprintf(name, sizeof(name), "ACQUIRE, %s", what);
        print_row(name, n_leases, acquired, n);
        (void) snprintf(name, sizeof(name), "ACQUIRE + RELEASE, %s", what);
        print_row(name, n_leases, both, n);
        free(acquired);
        free(both);
}

static void measure_update(int fd, unsigned n_leases, size_t n) {
        uint64_t *ns = calloc(n, sizeof(*ns));
        struct wire_answer answer;
        uint8_t id[WIRE_LEASE_ID_SIZE];

        if (!ns)
                die("calloc");
        acquire(fd, 0, (uint64_t) syscall(SYS_gettid), 10, &answer);
        memcpy(id, answer.id, sizeof(id));
        for (size_t i = 0; i < n; i++) {
                uint64_t begin = now_ns();

                update(fd, id, i % 2 ? 10 : 11, &answer);
                ns[i] = now_ns() - begin;
        }
        release(fd, id, &answer);
        print_row("UPDATE, own thread", n_leases, ns, n);
        free(ns);
}

static void measure(const char *path, pid_t other, unsigned n_leases, size_t n) {
        pid_t pid = fork();
        int status;

        if (pid < 0)
                die("fork");
        if (pid == 0) {
                int fd;

                become(UID_MEASURED);
                fd = dial(path);
                measure_pairs(fd, "own thread", 0, (pid_t) syscall(SYS_gettid), n_leases, n);
                measure_pairs(fd, "thread of another process", other, other, n_leases, n);
                measure_update(fd, n_leases, n);
                exit(EXIT_SUCCESS);
        }
        if (waitpid(pid, &status, 0) < 0 || status != 0)
                exit(EXIT_FAILURE);
}

static void *crowd_thread(void *userdata) {
        pid_t *tid = userdata;

        __atomic_store_n(tid, (pid_t) syscall(SYS_gettid), __ATOMIC_RELEASE);
        for (;;)
                (void) pause();
        return NULL;
}

/* A process of its own user whose threads all hold a lease and sleep. */
static pid_t start_crowd(const char *path, uid_t uid, unsigned n, int ready) {
        pid_t pid = fork();
        pid_t tids[THREADS_PER_CROWD] = {};
        struct wire_answer answer;
        pthread_attr_t attr;
        int fd;

        if (pid != 0)
                return pid;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        become(uid);
        fd = dial(path);
        (void) pthread_attr_init(&attr);
        (void) pthread_attr_setstacksize(&attr, 64 * 1024);
        for (unsigned i = 0; i < n; i++) {
                pthread_t thread;

                if (pthread_create(&thread, &attr, crowd_thread, &tids[i]) != 0)
                        die("pthread_create");
                while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
                        (void) sched_yield();
                acquire(fd, 0, (uint64_t) tids[i], 5, &answer);
        }
        if (write(ready, "x", 1) != 1)
                die("write");
        for (;;)
                (void) pause();
}

static pid_t start_other(void) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                become(UID_MEASURED);
                for (;;)
                        (void) pause();
        }
        return pid;
}

static void wait_crowd(int ready) {
        struct pollfd pollfd = { .fd = ready, .events = POLLIN };
        char byte;

        if (poll(&pollfd, 1, 60000) != 1 || read(ready, &byte, 1) != 1) {
                (void) fprintf(stderr, "the crowd got no leases\n");
                exit(EXIT_FAILURE);
        }
}

static int run(int argc, char *argv[]) {
        static pid_t crowd[256];
        unsigned n_crowd = 0, n_leases = 0;
        size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
        pid_t other;
        int ready[2];

        if (argc < 2 || rounds == 0 || pipe(ready) < 0) {
                (void) fprintf(stderr, "Usage: %s SOCKET [ROUNDS [LEASES...]]\n", argv[0]);
                return 2;
        }

        other = start_other();
        (void) printf("%-44s %7s %8s %8s %8s %9s\n", "round trip in us", "leases", "p50", "p99", "p99.9", "max");
        for (int i = 3; i < argc || i == 3; i++) {
                unsigned wanted = argc > 3 ? (unsigned) strtoul(argv[i], NULL, 10) : 1;

                while (n_leases < wanted && n_crowd < 256) {
                        unsigned n = wanted - n_leases < THREADS_PER_CROWD ? wanted - n_leases : THREADS_PER_CROWD;

                        crowd[n_crowd] = start_crowd(argv[1], UID_CROWD + n_crowd, n, ready[1]);
                        n_crowd++;
                        wait_crowd(ready[0]);
                        n_leases += n;
                }
                measure(argv[1], other, n_leases, rounds);
        }

        (void) kill(other, SIGKILL);
        for (unsigned i = 0; i < n_crowd; i++)
                (void) kill(crowd[i], SIGKILL);
        while (wait(NULL) > 0)
                ;
        return 0;
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
