/* SPDX-License-Identifier: MIT */

#include "broker/closer.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "broker/cleanup.h"
#include "broker/worker.h"

#define THREADS_MAX 32
#define THREADS_PER_USER 2
#define UNREAD_MAX 64
#define AT_END_MS 1000

struct job {
        int fd;                         /* owned */
        uid_t uid;
        bool drop;
        GList link;
};

struct closer {
        pthread_mutex_t lock;           /* inherits priority: the dispatcher may wait for a thread */
        pthread_cond_t changed;
        GQueue jobs;                    /* of struct job, embedded links; owned */
        unsigned n_threads;
        unsigned n_idle;
        uid_t busy[THREADS_MAX];        /* whose descriptors are being closed */
        unsigned n_busy;
        bool stopping;
};

/* Closing ends the wait for what was not sent yet, for a socket that was told to wait. */
static void stop_lingering(int fd) {
        const struct linger off = {};

        (void) setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
}

static void do_job(const struct job *job) {
        char byte;

        if (job->drop) {
                (void) shutdown(job->fd, SHUT_RD);
                for (unsigned i = 0; i < UNREAD_MAX; i++)
                        if (recv(job->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC) <= 0)
                                break;
        } else {
                stop_lingering(job->fd);
        }
        (void) close(job->fd);
}

static unsigned count_busy(const struct closer *closer, uid_t uid) {
        unsigned n = 0;

        for (unsigned i = 0; i < closer->n_busy; i++)
                n += closer->busy[i] == uid;
        return n;
}

static void forget_busy(struct closer *closer, uid_t uid) {
        for (unsigned i = 0; i < closer->n_busy; i++)
                if (closer->busy[i] == uid) {
                        closer->busy[i] = closer->busy[--closer->n_busy];
                        return;
                }
}

/* The first of a user who does not keep two threads busy already; NULL if there is none. */
static struct job *take_job(struct closer *closer) {
        for (GList *link = closer->jobs.head; link; link = link->next) {
                struct job *job = link->data;

                if (count_busy(closer, job->uid) >= THREADS_PER_USER)
                        continue;
                g_queue_unlink(&closer->jobs, link);
                closer->busy[closer->n_busy++] = job->uid;
                return job;
        }

        return NULL;
}

static void *closer_thread(void *userdata) {
        struct closer *closer = userdata;
        struct job *job;

        (void) pthread_setname_np(pthread_self(), "closer");
        (void) pthread_mutex_lock(&closer->lock);
        for (;;) {
                job = take_job(closer);
                if (!job) {
                        if (closer->stopping)
                                break;
                        closer->n_idle++;
                        (void) pthread_cond_wait(&closer->changed, &closer->lock);
                        closer->n_idle--;
                        continue;
                }

                (void) pthread_mutex_unlock(&closer->lock);
                do_job(job);
                (void) pthread_mutex_lock(&closer->lock);
                forget_busy(closer, job->uid);
                free(job);
        }

        closer->n_threads--;
        (void) pthread_cond_broadcast(&closer->changed);
        (void) pthread_mutex_unlock(&closer->lock);
        return NULL;
}

static int start_thread(struct closer *closer) {
        int r = worker_start(closer_thread, closer, WORKER_STACK_BYTES, NULL);

        if (r >= 0)
                closer->n_threads++;
        return r;
}

int closer_new(struct closer **ret) {
        _cleanup_free_ struct closer *closer = NULL;
        int r;

        closer = calloc(1, sizeof(*closer));
        if (!closer)
                return -ENOMEM;

        g_queue_init(&closer->jobs);
        r = worker_lock_init(&closer->lock);
        if (r >= 0)
                r = worker_condition_init(&closer->changed);
        if (r < 0)
                return r;

        (void) pthread_mutex_lock(&closer->lock);
        r = start_thread(closer);
        (void) pthread_mutex_unlock(&closer->lock);
        if (r < 0)
                return r;

        *ret = STEAL(closer);
        return 0;
}

struct closer *closer_free(struct closer *closer) {
        struct timespec until;
        bool over;

        if (!closer)
                return NULL;

        until = worker_deadline(AT_END_MS);
        (void) pthread_mutex_lock(&closer->lock);
        closer->stopping = true;
        (void) pthread_cond_broadcast(&closer->changed);
        while (closer->n_threads > 0)
                if (pthread_cond_timedwait(&closer->changed, &closer->lock, &until) == ETIMEDOUT)
                        break;
        over = closer->n_threads == 0;
        (void) pthread_mutex_unlock(&closer->lock);

        /* A thread that is stuck keeps its memory; the process is about to end. */
        if (over) {
                (void) pthread_cond_destroy(&closer->changed);
                (void) pthread_mutex_destroy(&closer->lock);
                free(closer);
        }
        return NULL;
}

static void push(struct closer *closer, int fd, uid_t uid, bool drop) {
        struct job *job = calloc(1, sizeof(*job));

        if (!job) {
                (void) close(fd);
                return;
        }
        *job = (struct job) { .fd = fd, .uid = uid, .drop = drop, .link.data = job };

        (void) pthread_mutex_lock(&closer->lock);
        g_queue_push_tail_link(&closer->jobs, &job->link);
        if (closer->n_idle == 0 && closer->n_threads < THREADS_MAX &&
            count_busy(closer, uid) < THREADS_PER_USER)
                (void) start_thread(closer);
        (void) pthread_cond_signal(&closer->changed);
        (void) pthread_mutex_unlock(&closer->lock);
}

void closer_close(struct closer *closer, int fd, uid_t uid) {
        push(closer, fd, uid, /* drop= */ false);
}

void closer_drop(struct closer *closer, int fd, uid_t uid) {
        push(closer, fd, uid, /* drop= */ true);
}
