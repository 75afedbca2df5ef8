/* SPDX-License-Identifier: MIT */

/*
 * A program to be prioritised: its threads sleep, and do what they are told.
 *
 * A line on stdin is "TID COMMAND ARGUMENTS", with 0 for the main thread; each is answered by one
 * line on stdout: "ok …" or "error ERRNO". It ends when stdin does.
 */

#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 64
#define CHILDREN_MAX 1000
#define LINE_SIZE 512

struct worker {
        pid_t tid;
        pthread_t thread;
        bool ends;
        sem_t asked;
        sem_t answered;
        char line[LINE_SIZE];
        char reply[LINE_SIZE];
};

struct target {
        struct worker main;
        struct worker *workers[WORKERS_MAX]; /* owned */
        size_t n_workers;
};

/* A thread on its way: what its first function needs. */
struct birth {
        struct target *target;
        struct worker *worker;
        const char *name;
};

/* linux/sched/types.h cannot be included beside sched.h. */
struct attributes {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t timing_ns[3];
};

static void obey(struct target *target, struct worker *w);

__attribute__((format(printf, 2, 3))) static int answer(struct worker *w, const char *format, ...) {
        va_list list;

        va_start(list, format);
        vsnprintf(w->reply, sizeof(w->reply), format, list);
        va_end(list);
        return 0;
}

static void *worker_main(void *userdata) {
        struct birth *birth = userdata;
        struct target *target = birth->target;
        struct worker *w = birth->worker;

        w->tid = gettid();
        prctl(PR_SET_NAME, birth->name);
        sem_post(&w->answered);

        while (!w->ends) {
                sem_wait(&w->asked);
                obey(target, w);
                if (!w->ends)
                        sem_post(&w->answered);
        }

        return NULL;
}

static int run_thread(struct target *target, struct worker *w, char *arguments) {
        struct worker *born;
        struct birth birth;
        int r;

        if (target->n_workers >= WORKERS_MAX)
                return -EAGAIN;
        born = calloc(1, sizeof(*born));
        if (!born)
                return -ENOMEM;

        sem_init(&born->asked, 0, 0);
        sem_init(&born->answered, 0, 0);
        birth = (struct birth) { target, born, arguments };
        r = pthread_create(&born->thread, NULL, worker_main, &birth);
        if (r != 0) {
                free(born);
                return -r;
        }
        sem_wait(&born->answered);

        target->workers[target->n_workers++] = born;
        return answer(w, "ok %d", born->tid);
}

static int run_end(struct target *target, struct worker *w, char *arguments) {
        w->ends = true;
        return 0;
}

static int run_name(struct target *target, struct worker *w, char *arguments) {
        char name[16] = { 0 };

        /* Hexadecimal, for names that a line cannot hold. */
        for (size_t i = 0; i < sizeof(name) - 1 && arguments[2 * i]; i++)
                if (sscanf(arguments + 2 * i, "%2hhx", (unsigned char *) &name[i]) != 1)
                        return -EINVAL;

        return prctl(PR_SET_NAME, name) < 0 ? -errno : 0;
}

static int run_exec(struct target *target, struct worker *w, char *arguments) {
        char *argv[8] = { NULL }, *rest = NULL;
        size_t n = 0;

        for (char *word = strtok_r(arguments, " ", &rest); word && n < 7;
             word = strtok_r(NULL, " ", &rest))
                argv[n++] = word;
        if (n == 0)
                return -EINVAL;

        execv(argv[0], argv);
        return -errno;
}

/* A child that sleeps, or for the "bomb" spins, until its parent ends. */
static pid_t make_child(bool spins) {
        pid_t parent = getpid(), child = fork();

        if (child != 0)
                return child < 0 ? -errno : child;

        setrlimit(RLIMIT_CPU, &(struct rlimit) { 5, 5 });
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXIT_FAILURE); /* it ended already */
        for (;;)
                if (!spins)
                        pause();
}

static int run_fork(struct target *target, struct worker *w, char *arguments) {
        pid_t child = make_child(false);

        return child < 0 ? child : answer(w, "ok %d", child);
}

/* Answers with policy, priority and flags as the child found them. */
static int run_vfork(struct target *target, struct worker *w, char *arguments) {
        static struct attributes a;
        pid_t child = vfork();

        if (child < 0)
                return -errno;
        if (child == 0) {
                syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0);
                _exit(0);
        }

        waitpid(child, NULL, 0);
        return answer(w, "ok %u %u %llu", a.policy, a.priority, (unsigned long long) a.flags);
}

/* Forks that many spinning children, looks at them, ends them: answers how many are real-time. */
static int run_bomb(struct target *target, struct worker *w, char *arguments) {
        pid_t children[CHILDREN_MAX];
        size_t n_wanted = (size_t) atoi(arguments), n = 0, n_realtime = 0;

        if (n_wanted > CHILDREN_MAX)
                return -EINVAL;

        for (; n < n_wanted; n++) {
                children[n] = make_child(true);
                if (children[n] < 0)
                        break;
        }
        for (size_t i = 0; i < n; i++)
                if ((sched_getscheduler(children[i]) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER)
                        n_realtime++;
        for (size_t i = 0; i < n; i++)
                kill(children[i], SIGKILL);
        for (size_t i = 0; i < n; i++)
                waitpid(children[i], NULL, 0);

        return answer(w, "ok %zu %zu", n, n_realtime);
}

static int run_io_uring(struct target *target, struct worker *w, char *arguments) {
        struct io_uring_params parameters = { .flags = IORING_SETUP_SQPOLL };

        return syscall(SYS_io_uring_setup, 4, &parameters) < 0 ? -errno : 0;
}

static int run_sched(struct target *target, struct worker *w, char *arguments) {
        struct attributes a = { .size = sizeof(a) };
        unsigned long long flags;

        if (sscanf(arguments, "%u %u %d %llu", &a.policy, &a.priority, &a.nice, &flags) != 4)
                return -EINVAL;
        a.flags = flags;

        return syscall(SYS_sched_setattr, 0, &a, 0) < 0 ? -errno : 0;
}

static int run_nice(struct target *target, struct worker *w, char *arguments) {
        return setpriority(PRIO_PROCESS, 0, atoi(arguments)) < 0 ? -errno : 0;
}

static int run_setuid(struct target *target, struct worker *w, char *arguments) {
        uid_t uid = (uid_t) strtoul(arguments, NULL, 10);

        return setresuid(uid, uid, uid) < 0 ? -errno : 0;
}

static int run_seteuid(struct target *target, struct worker *w, char *arguments) {
        return seteuid((uid_t) strtoul(arguments, NULL, 10)) < 0 ? -errno : 0;
}

static int run_mlock(struct target *target, struct worker *w, char *arguments) {
        size_t size = strtoul(arguments, NULL, 10);
        void *memory;

        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return -errno;
        /* the call itself: under a sanitizer the library's does nothing */
        return syscall(SYS_mlock, memory, size) < 0 ? -errno : 0;
}

static int run_hide(struct target *target, struct worker *w, char *arguments) {
        return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

static int run_unshare_user(struct target *target, struct worker *w, char *arguments) {
        return unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
}

static const struct command {
        const char *name;
        int (*run)(struct target *target, struct worker *w, char *arguments);
} commands[] = {
        { "thread", run_thread },
        { "end", run_end },
        { "name", run_name },
        { "exec", run_exec },
        { "fork", run_fork },
        { "vfork", run_vfork },
        { "bomb", run_bomb },
        { "io-uring", run_io_uring },
        { "sched", run_sched },
        { "nice", run_nice },
        { "setuid", run_setuid },
        { "seteuid", run_seteuid },
        { "mlock", run_mlock },
        { "hide", run_hide },
        { "unshare-user", run_unshare_user },
};

/* Does what w->line says, in the thread of @w. */
static void obey(struct target *target, struct worker *w) {
        char *arguments = w->line + strcspn(w->line, " ");
        int r = -ENOSYS;

        if (*arguments)
                *arguments++ = '\0';
        answer(w, "ok");
        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
                if (strcmp(w->line, commands[i].name) == 0)
                        r = commands[i].run(target, w, arguments);
        if (r < 0)
                answer(w, "error %d", -r);
}

static struct worker *find_worker(struct target *target, pid_t tid) {
        for (size_t i = 0; i < target->n_workers; i++)
                if (target->workers[i]->tid == tid)
                        return target->workers[i];

        return &target->main;
}

static void bury(struct target *target, struct worker *w) {
        pthread_join(w->thread, NULL);

        for (size_t i = 0; i < target->n_workers; i++)
                if (target->workers[i] == w)
                        target->workers[i] = target->workers[--target->n_workers];
        free(w);
}

static void *serve(void *userdata) {
        struct target *target = userdata;
        char line[LINE_SIZE];

        while (fgets(line, sizeof(line), stdin)) {
                char *command = line;
                struct worker *w = find_worker(target, (pid_t) strtol(line, &command, 10));

                command += strspn(command, " ");
                command[strcspn(command, "\n")] = '\0';
                snprintf(w->line, sizeof(w->line), "%s", command);

                if (w == &target->main) {
                        obey(target, w);
                        puts(w->reply);
                } else {
                        sem_post(&w->asked);
                        if (strcmp(command, "end") == 0) {
                                bury(target, w);
                                puts("ok");
                        } else {
                                sem_wait(&w->answered);
                                puts(w->reply);
                        }
                }
                fflush(stdout);

                /* The main thread leaves the others behind: a zombie leader. */
                if (target->main.ends) {
                        pthread_t heir;

                        target->main.ends = false;
                        if (pthread_create(&heir, NULL, serve, target) == 0)
                                pthread_exit(NULL);
                }
        }

        _exit(EXIT_SUCCESS);
}

static int run(void) {
        struct target *target;

        /* Not on the stack: that ends with the main thread, which may leave first. */
        target = calloc(1, sizeof(*target));
        if (!target)
                return EXIT_FAILURE;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        target->main.tid = gettid();
        printf("ok %d\n", target->main.tid);
        fflush(stdout);

        serve(target);
        return EXIT_SUCCESS;
}

int main(void) {
        return run();
}
