/* SPDX-License-Identifier: MIT */

/*
 * Times round trips on the broker's socket as an unprivileged user, with so many leases of other
 * threads alive: ACQUIRE and RELEASE for the own thread and for a thread of another process, and
 * UPDATE. Prints a table in µs.
 *
 *   bench-socket SOCKET [ROUNDS [LEASES…]]
 *   bench-socket SOCKET --hold LEASES             holds so many until it is ended
 *   bench-socket SOCKET --beside-flood [ROUNDS]   while another user asks in vain all the time
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
        return (struct wire_header) {
                .size = (uint32_t) size, .version = WIRE_VERSION, .verb = verb, .serial = 1
        };
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
        (void) printf("%-44s %7u %8.1f %8.1f %8.1f %9.1f\n", what, n_leases,
                      (double) ns[n / 2] / 1e3, (double) ns[n * 99 / 100] / 1e3,
                      (double) ns[n * 999 / 1000] / 1e3, (double) ns[n - 1] / 1e3);
        (void) fflush(stdout);
}

static void measure_pairs(int fd, const char *what, pid_t pid, pid_t tid, unsigned n_leases,
                          size_t n) {
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

/* Another process asks one question and answers another, with nothing in between: what the
 * machine takes for a round trip of this size, to be compared with. */
static void measure_socket(size_t n) {
        uint64_t *ns = calloc(n, sizeof(*ns));
        char request[sizeof(struct wire_acquire)] = {}, answer[128] = {};
        int pair[2];
        pid_t pid;

        if (!ns || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
                die("socketpair");
        pid = fork();
        if (pid == 0) {
                (void) close(pair[0]);
                while (recv(pair[1], request, sizeof(request), 0) > 0)
                        (void) send(pair[1], answer, sizeof(answer), MSG_NOSIGNAL);
                exit(EXIT_SUCCESS);
        }

        (void) close(pair[1]);
        for (size_t i = 0; i < n; i++) {
                uint64_t begin = now_ns();

                if (send(pair[0], request, sizeof(request), MSG_NOSIGNAL) < 0 ||
                    recv(pair[0], answer, sizeof(answer), 0) <= 0)
                        die("echo");
                ns[i] = now_ns() - begin;
        }
        (void) close(pair[0]);
        (void) waitpid(pid, NULL, 0);
        print_row("an echo between two processes", 0, ns, n);
        free(ns);
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

        become(uid);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid(2) would undo it */
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

/* A sleeping process of the measured user. */
static pid_t start_other(void) {
        pid_t pid = fork();

        if (pid == 0) {
                become(UID_MEASURED);
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid(2) would undo it */
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

static pid_t crowd[256];
static unsigned n_crowd, n_crowd_leases;

static void grow_crowd(const char *path, unsigned wanted, const int ready[2]) {
        while (n_crowd_leases < wanted && n_crowd < 256) {
                unsigned n = wanted - n_crowd_leases < THREADS_PER_CROWD ? wanted - n_crowd_leases
                                                                         : THREADS_PER_CROWD;

                crowd[n_crowd] = start_crowd(path, UID_CROWD + n_crowd, n, ready[1]);
                n_crowd++;
                wait_crowd(ready[0]);
                n_crowd_leases += n;
        }
}

static void end_crowd(void) {
        for (unsigned i = 0; i < n_crowd; i++)
                (void) kill(crowd[i], SIGKILL);
        for (unsigned i = 0; i < n_crowd; i++)
                (void) waitpid(crowd[i], NULL, 0);
}

static void hold(const char *path, unsigned n, const int ready[2]) {
        sigset_t signals;
        int signal;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        grow_crowd(path, n, ready);
        (void) printf("held\n");
        (void) fflush(stdout);
        (void) sigwait(&signals, &signal);
}

/* Asks for too high a priority, as fast as it is answered. */
static pid_t start_flood(const char *path) {
        pid_t pid = fork();
        struct wire_acquire request = {
                .header = header(WIRE_ACQUIRE, sizeof(request)),
                .want = WIRE_WANT_SCHED,
                .policy = SCHED_FIFO,
                .priority = 90,
        };
        struct wire_answer answer;
        int fd;

        if (pid != 0)
                return pid;

        become(UID_CROWD);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid(2) would undo it */
        fd = dial(path);
        while (send(fd, &request, sizeof(request), MSG_NOSIGNAL) > 0 &&
               recv(fd, &answer, sizeof(answer), 0) > 0)
                ;
        exit(EXIT_FAILURE);
}

static void measure_beside_flood(const char *path, pid_t other, size_t rounds) {
        pid_t flood;

        (void) printf("alone:\n");
        (void) fflush(stdout); /* or each child says it again */
        measure(path, other, 0, rounds);
        flood = start_flood(path);
        (void) printf("beside a user whose every request is refused:\n");
        (void) fflush(stdout);
        measure(path, other, 0, rounds);
        (void) kill(flood, SIGKILL);
        (void) waitpid(flood, NULL, 0);
}

static int run(int argc, char *argv[]) {
        size_t rounds = 20000;
        pid_t other;
        int ready[2];

        if (argc < 2 || pipe(ready) < 0) {
                (void) fprintf(stderr,
                               "Usage: %s SOCKET [ROUNDS [LEASES...]] | --hold LEASES | "
                               "--beside-flood [ROUNDS]\n",
                               argv[0]);
                return 2;
        }
        if (argc > 3 && strcmp(argv[2], "--hold") == 0) {
                hold(argv[1], (unsigned) strtoul(argv[3], NULL, 10), ready);
                end_crowd();
                return 0;
        }

        other = start_other();
        (void) printf("%-44s %7s %8s %8s %8s %9s\n", "round trip in us", "leases", "p50", "p99",
                      "p99.9", "max");
        (void) fflush(stdout);
        if (argc > 2 && strcmp(argv[2], "--beside-flood") == 0) {
                measure_beside_flood(argv[1], other,
                                     argc > 3 ? strtoul(argv[3], NULL, 10) : rounds);
        } else {
                if (argc > 2)
                        rounds = strtoul(argv[2], NULL, 10);
                measure_socket(rounds);
                for (int i = 3; i < argc || i == 3; i++) {
                        grow_crowd(argv[1], argc > 3 ? (unsigned) strtoul(argv[i], NULL, 10) : 1,
                                   ready);
                        measure(argv[1], other, n_crowd_leases, rounds);
                }
        }

        (void) kill(other, SIGKILL);
        (void) waitpid(other, NULL, 0);
        end_crowd();
        return 0;
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
