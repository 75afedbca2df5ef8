/* SPDX-License-Identifier: MIT */

/*
 * SIGXCPU as a demotion instead of a death. What the handler has to say goes through a queue without
 * locks: it may interrupt anything, in several threads at a time.
 */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>

#include "client/librtgrant/public.h"
#include "client/librtgrant/thread.h"

#define QUEUE 16U
#define SECOND_NS UINT64_C(1000000000)
#define SECOND_US 1000000U

/* A place is free for the overrun @turn if that is its turn, and holds it if one more is. */
struct place {
        _Atomic uint64_t turn;
        struct rtgrant_overrun overrun;
};

/* Of the process, as the handler of a signal is. */
static struct {
        pthread_mutex_t lock;
        bool installed;
        int fd;                         /* readable while the queue is not empty */
        uint64_t cpu_limit_ns;          /* soft RLIMIT_CPU then; UINT64_MAX: none */
        _Atomic uint64_t head, tail;
        struct place places[QUEUE];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static uint64_t read_clock(clockid_t clock) {
        struct timespec now;

        (void) clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * SECOND_NS + (uint64_t) now.tv_nsec;
}

/* Signal-safe. What does not fit is left out: who reads late knows enough by the first ones. */
static void push(const struct rtgrant_overrun *overrun) {
        uint64_t turn = atomic_load(&state.tail);
        struct place *place;

        for (;;) {
                uint64_t at;

                place = &state.places[turn % QUEUE];
                at = atomic_load(&place->turn);
                if (at < turn)
                        return;
                if (at == turn && atomic_compare_exchange_weak(&state.tail, &turn, turn + 1))
                        break;
                if (at != turn)
                        turn = atomic_load(&state.tail);
        }

        place->overrun = *overrun;
        atomic_store(&place->turn, turn + 1);
        (void) eventfd_write(state.fd, 1);
}

static bool pop(struct rtgrant_overrun *ret) {
        uint64_t turn = atomic_load(&state.head);
        struct place *place;

        for (;;) {
                uint64_t at;

                place = &state.places[turn % QUEUE];
                at = atomic_load(&place->turn);
                if (at < turn + 1)
                        return false;
                if (at == turn + 1 && atomic_compare_exchange_weak(&state.head, &turn, turn + 1))
                        break;
                if (at != turn + 1)
                        turn = atomic_load(&state.head);
        }

        *ret = place->overrun;
        atomic_store(&place->turn, turn + QUEUE);
        return true;
}

/*
 * With each SIGXCPU the kernel raises the soft limit by a second, for all threads: the next that
 * runs on would be at the hard one, and dead, before its signal.
 */
static void rearm(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
            limit.rlim_cur <= SECOND_US)
                return;

        limit.rlim_cur -= SECOND_US;
        (void) setrlimit(RLIMIT_RTTIME, &limit);
}

static void on_sigxcpu(int number, siginfo_t *info, void *context) {
        struct rtgrant_overrun overrun = { .tid = thread_self() };
        int saved_errno = errno;
        struct thread_values values;

        if (thread_read(overrun.tid, &values) >= 0 && policy_is_rt(values.policy)) {
                overrun.at_ns = read_clock(CLOCK_MONOTONIC);
                overrun.cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
                overrun.priority = values.priority;
                overrun.error = rtgrant_demote_self();
                push(&overrun);
        } else if (read_clock(CLOCK_PROCESS_CPUTIME_ID) >= state.cpu_limit_ns) {
                /* RLIMIT_CPU sends the same signal, and means it */
                (void) signal(number, SIG_DFL);
                (void) raise(number);
        }

        /* also where it is another thread's signal: that one gets it again then */
        if (info->si_code == SI_KERNEL)
                rearm();
        errno = saved_errno;
}

static int install(void) {
        struct sigaction action = { .sa_sigaction = on_sigxcpu,
                                    .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
        struct sigaction before;
        struct rlimit cpu;

        if (sigaction(SIGXCPU, NULL, &before) < 0)
                return -errno;
        if ((before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL)
                return -EBUSY;
        if (state.fd < 0)
                state.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (state.fd < 0)
                return -errno;

        for (uint64_t i = 0; i < QUEUE; i++)
                atomic_store(&state.places[i].turn, i);
        state.cpu_limit_ns = getrlimit(RLIMIT_CPU, &cpu) < 0 || cpu.rlim_cur == RLIM_INFINITY
                                     ? UINT64_MAX
                                     : (uint64_t) cpu.rlim_cur * SECOND_NS;
        (void) sigemptyset(&action.sa_mask);
        return sigaction(SIGXCPU, &action, NULL) < 0 ? -errno : 0;
}

int rtgrant_survive_overruns(int *ret_fd) {
        int r = 0;

        (void) pthread_mutex_lock(&state.lock);
        if (!state.installed)
                r = install();
        if (r >= 0) {
                state.installed = true;
                if (ret_fd)
                        *ret_fd = state.fd;
        }
        (void) pthread_mutex_unlock(&state.lock);
        return r;
}

int rtgrant_next_overrun(struct rtgrant_overrun *ret) {
        eventfd_t value;

        if (state.fd < 0)
                return 0;
        if (pop(ret))
                return 1;

        /* emptied first, or one that comes just now would not be told of */
        (void) eventfd_read(state.fd, &value);
        return pop(ret);
}
