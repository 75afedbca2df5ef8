/* SPDX-License-Identifier: MIT */

/*
 * Talks nonsense to a broker that runs: mutated records, descriptors where none belong, clients
 * that do not read, that end in the middle, that come by the dozen. At the end the broker must
 * answer one who asks properly. Starts nothing itself; as root it becomes user 65534 first.
 *
 * Only the main thread and its neighbours, which sleep, ask for real-time priority; nonsense may
 * hit the thread that talks, which then steps down at once (and RLIMIT_RTTIME is there as well).
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/protocol.h"
#include "tests/fuzz/broker/records.h"

#define UID_NOBODY 65534
#define CLIENTS_MAX 24
#define ANSWER_MS 10000 /* in which the broker must answer in the end */

struct fuzzer {
        const char *path;
        unsigned seconds;
        struct source source;
        int clients[CLIENTS_MAX];       /* -1: none */
        unsigned n_connections, n_refused, n_answers, n_granted, n_closed;
};

static uint64_t now_ms(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

/* ---- descriptors ---- */

static int some_descriptor(struct fuzzer *f, int client) {
        static const char *const paths[] = { "/dev/null", "/proc/self", "/proc/self/stat", "/",
                                             "/dev/zero" };
        int pair[2];

        switch (below(&f->source, 4)) {
        case 0:
                return (int) syscall(SYS_pidfd_open, getpid(), 0);
        case 1:
                return (int) syscall(SYS_pidfd_open, one_in(&f->source, 2) ? 1 : getppid(), 0);
        case 2:
                if (pipe2(pair, O_CLOEXEC) < 0)
                        return -1;
                (void) close(pair[1]);
                return pair[0];
        default:
                return one_in(&f->source, 4) ? dup(client)
                                             : open(paths[below(&f->source, ELEMENTS(paths))],
                                                    O_RDONLY | O_CLOEXEC);
        }
}

static bool send_record(struct fuzzer *f, int client, const struct record *record) {
        _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(253 * sizeof(int))] = {};
        struct iovec iov = { (void *) record->bytes, record->length };
        struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
        int fds[253];
        unsigned n = one_in(&f->source, 6)     ? 1
                     : one_in(&f->source, 40)  ? 2 + below(&f->source, 4)
                     : one_in(&f->source, 400) ? 253
                                               : 0;
        ssize_t r;

        for (unsigned i = 0; i < n; i++) {
                fds[i] = some_descriptor(f, client);
                if (fds[i] < 0)
                        n = i;
        }
        if (n > 0) {
                struct cmsghdr *c = (struct cmsghdr *) control;

                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(n * sizeof(int));
                memcpy(CMSG_DATA(c), fds, n * sizeof(int));
                header.msg_control = control;
                header.msg_controllen = CMSG_SPACE(n * sizeof(int));
        }

        r = sendmsg(client, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
        for (unsigned i = 0; i < n; i++)
                (void) close(fds[i]);
        return r >= 0 || errno == EAGAIN || errno == ETOOMANYREFS;
}

/* ---- clients ---- */

static int connect_client(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd;

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -1;
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0) {
                (void) close(fd);
                return -1;
        }
        return fd;
}

static int *some_client(struct fuzzer *f) {
        int *client = &f->clients[below(&f->source, CLIENTS_MAX)];

        if (*client >= 0)
                return client;

        *client = connect_client(f->path);
        if (*client >= 0)
                f->n_connections++;
        else
                f->n_refused++;
        return client;
}

static void drop_client(int *client) {
        (void) close(*client);
        *client = -1;
}

static void take_answer(struct fuzzer *f, const uint8_t *bytes, size_t length) {
        const struct wire_answer *answer = (const struct wire_answer *) bytes;

        f->n_answers++;
        if (length < offsetof(struct wire_answer, explanation) ||
            answer->header.verb != (WIRE_ACQUIRE | WIRE_REPLY) || answer->reason != 0)
                return;

        f->n_granted++;
        memcpy(f->source.leases[below(&f->source, LEASES_KNOWN)], answer->id, sizeof(answer->id));
}

/* Reads what is there, or at the most a moment for what is to come. */
static void read_answers(struct fuzzer *f, int *client) {
        _Alignas(struct wire_answer) uint8_t bytes[WIRE_RECORD_MAX];

        for (unsigned i = 0; i < 8; i++) {
                struct pollfd pollfd = { .fd = *client, .events = POLLIN };
                ssize_t n;

                if (poll(&pollfd, 1, i == 0 ? 5 : 0) <= 0)
                        return;
                n = recv(*client, bytes, sizeof(bytes), MSG_DONTWAIT);
                if (n <= 0) {
                        f->n_closed++;
                        drop_client(client);
                        return;
                }
                take_answer(f, bytes, (size_t) n);
        }
}

/* The thread that talks must not become a hog, if nonsense made it real-time. */
static void step_down(void) {
        const struct sched_param none = {};
        int policy = sched_getscheduler(0);

        if (policy == (SCHED_FIFO | SCHED_RESET_ON_FORK) ||
            policy == (SCHED_RR | SCHED_RESET_ON_FORK))
                (void) sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
}

static void one_round(struct fuzzer *f) {
        struct record record;
        int *client = some_client(f);

        if (*client < 0) {
                (void) poll(NULL, 0, 20); /* it is turned away for its speed */
                return;
        }

        make_record(&f->source, &record);
        if (!send_record(f, *client, &record)) {
                f->n_closed++;
                drop_client(client);
                return;
        }
        if (!one_in(&f->source, 8))
                read_answers(f, client);
        if (*client >= 0 && one_in(&f->source, 60))
                (void) shutdown(*client, (int) below(&f->source, 3));
        if (*client >= 0 && one_in(&f->source, 40))
                drop_client(client);
        step_down();
}

static void *talk(void *userdata) {
        struct fuzzer *f = userdata;
        uint64_t end_ms = now_ms() + f->seconds * UINT64_C(1000);

        while (now_ms() < end_ms)
                one_round(f);
        for (size_t i = 0; i < CLIENTS_MAX; i++)
                if (f->clients[i] >= 0)
                        drop_client(&f->clients[i]);
        return NULL;
}

/* ---- in the end ---- */

/* 1: an answer as it should be; 0: turned away or none, to be tried again; negative: a wrong one.
 */
static int ask_properly(const char *path, uint64_t serial) {
        const struct wire_hello hello = {
                .header = { sizeof(hello), WIRE_VERSION, WIRE_HELLO, serial },
        };
        struct wire_hello_reply reply;
        struct pollfd pollfd = { .fd = connect_client(path), .events = POLLIN };
        ssize_t n = -1;

        if (pollfd.fd < 0)
                return 0;
        if (send(pollfd.fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) &&
            poll(&pollfd, 1, 1000) > 0)
                n = recv(pollfd.fd, &reply, sizeof(reply), MSG_DONTWAIT);
        (void) close(pollfd.fd);

        if (n < (ssize_t) offsetof(struct wire_hello_reply, state) || reply.reason != 0)
                return 0;
        return n == sizeof(reply) && reply.header.serial == serial &&
                               reply.header.verb == (WIRE_HELLO | WIRE_REPLY) &&
                               reply.uid == geteuid() && reply.pid == (uint64_t) getpid()
                       ? 1
                       : -1;
}

static int check_alive(const char *path) {
        uint64_t end_ms = now_ms() + ANSWER_MS;
        int r;

        do {
                r = ask_properly(path, now_ms());
                if (r > 0)
                        return 0;
                if (r < 0) {
                        (void) fprintf(stderr, "the broker's answer to a good HELLO is wrong\n");
                        return 1;
                }
                (void) poll(NULL, 0, 50);
        } while (now_ms() < end_ms);

        (void) fprintf(stderr, "the broker does not answer a good HELLO within %u s\n",
                       ANSWER_MS / 1000);
        return 1;
}

/* ---- the beginning ---- */

struct sleeper {
        sem_t started;
        pid_t tid;
};

static void *sleeper_run(void *userdata) {
        struct sleeper *sleeper = userdata;

        sleeper->tid = (pid_t) syscall(SYS_gettid);
        (void) sem_post(&sleeper->started);
        for (;;)
                (void) pause();
        return NULL;
}

static int start_sleepers(struct fuzzer *f) {
        f->source.tids[0] = getpid();
        for (unsigned i = 1; i <= SLEEPERS; i++) {
                struct sleeper sleeper;
                pthread_t thread;

                if (sem_init(&sleeper.started, 0, 0) < 0 ||
                    pthread_create(&thread, NULL, sleeper_run, &sleeper) != 0)
                        return -1;
                while (sem_wait(&sleeper.started) < 0)
                        ;
                f->source.tids[i] = sleeper.tid;
                (void) sem_destroy(&sleeper.started);
        }
        return 0;
}

static int become_nobody(void) {
        const struct rlimit rttime = { 1000 * 1000, 2000 * 1000 };

        if (setrlimit(RLIMIT_RTTIME, &rttime) < 0)
                return -1;
        if (geteuid() != 0)
                return 0;

        return setgroups(0, NULL) < 0 || setresgid(UID_NOBODY, UID_NOBODY, UID_NOBODY) < 0 ||
                               setresuid(UID_NOBODY, UID_NOBODY, UID_NOBODY) < 0
                       ? -1
                       : 0;
}

static void print_help(void) {
        (void) printf(
                "Usage: fuzz-socket [--seconds N] [--seed N] SOCKET\n"
                "\n"
                "Sends mutated records to the broker at SOCKET for N seconds (10), then checks "
                "that it\n"
                "still answers: exits with 0 if so, else with 1. The broker is best built with "
                "the\n"
                "address sanitizer, and its policy should allow many messages (MessageBurst=).\n");
}

static int parse_options(int argc, char *argv[], struct fuzzer *f) {
        static const struct option options[] = {
                { "seconds", required_argument, NULL, 't' },
                { "seed", required_argument, NULL, 's' },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case 't':
                        f->seconds = (unsigned) strtoul(optarg, NULL, 10);
                        break;
                case 's':
                        f->source.random = strtoull(optarg, NULL, 10);
                        break;
                case 'h':
                        print_help();
                        exit(0);
                default:
                        return -1;
                }

        if (optind + 1 != argc)
                return -1;
        f->path = argv[optind];
        return 0;
}

static int run(int argc, char *argv[]) {
        struct fuzzer f = { .seconds = 10, .source.random = now_ms() };
        pthread_t talker;

        if (parse_options(argc, argv, &f) < 0) {
                (void) fprintf(stderr, "Try 'fuzz-socket --help'.\n");
                return 2;
        }
        for (size_t i = 0; i < CLIENTS_MAX; i++)
                f.clients[i] = -1;
        (void) printf("seed %llu, %u s\n", (unsigned long long) f.source.random, f.seconds);
        (void) fflush(stdout);
        if (become_nobody() < 0 || start_sleepers(&f) < 0) {
                perror("fuzz-socket");
                return 2;
        }
        if (check_alive(f.path) != 0)
                return 1;

        if (pthread_create(&talker, NULL, talk, &f) != 0) {
                perror("pthread_create");
                return 2;
        }
        (void) pthread_join(talker, NULL);
        (void) printf("%u connections (%u refused, %u closed by the broker), %u records sent, %u "
                      "answers, %u grants\n",
                      f.n_connections, f.n_refused, f.n_closed, f.source.n_records, f.n_answers,
                      f.n_granted);
        return check_alive(f.path);
}

int main(int argc, char *argv[]) {
        return run(argc, argv);
}
