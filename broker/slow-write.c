/* SPDX-License-Identifier: MIT */

#include "broker/slow-write.h"

#include <errno.h>
#include <stdlib.h>

#include "broker/cleanup.h"
#include "broker/sysfs.h"
#include "broker/worker.h"

#define SOON_MS   1000
#define AT_END_MS 1000

struct work {
        struct slow_writer *writer; /* borrowed; waits for it, or is never freed */
        struct slow_job job;
        int result;
        bool is_done;
        bool given_up; /* nobody waits: it frees itself */
        struct work *next;
};

struct slow_writer {
        pthread_mutex_t lock; /* inherits priority: the dispatcher may wait for a thread */
        pthread_cond_t changed;
        struct work *works; /* under way */
};

static int run_steps(struct slow_step *steps, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                int r = sysfs_write(steps[i].path, steps[i].text);

                steps[i].is_done = r >= 0;
                if (r < 0 && !steps[i].optional)
                        return r;
        }
        return 0;
}

static int run(struct slow_job *job) {
        int r = run_steps(job->steps, job->n_steps);

        if (r < 0)
                (void) run_steps(job->undo, job->n_undo);
        return r;
}

static void forget(struct slow_writer *writer, const struct work *work) {
        struct work **at = &writer->works;

        while (*at != work)
                at = &(*at)->next;
        *at = work->next;
}

static void *work_thread(void *userdata) {
        struct work *work = userdata;
        struct slow_writer *writer = work->writer;
        int r = run(&work->job);

        (void) pthread_mutex_lock(&writer->lock);
        if (work->given_up && r >= 0) {
                (void) pthread_mutex_unlock(&writer->lock);
                (void) run_steps(work->job.undo, work->job.n_undo);
                (void) pthread_mutex_lock(&writer->lock);
        }
        work->result = r;
        work->is_done = true;
        forget(writer, work);
        if (work->given_up)
                free(work);
        (void) pthread_cond_broadcast(&writer->changed);
        (void) pthread_mutex_unlock(&writer->lock);
        return NULL;
}

int slow_writer_new(struct slow_writer **ret) {
        _cleanup_free_ struct slow_writer *writer = calloc(1, sizeof(*writer));
        int r;

        if (!writer)
                return -ENOMEM;
        r = worker_lock_init(&writer->lock);
        if (r >= 0)
                r = worker_condition_init(&writer->changed);
        if (r < 0)
                return r;

        *ret = STEAL(writer);
        return 0;
}

struct slow_writer *slow_writer_free(struct slow_writer *writer) {
        struct timespec until = worker_deadline(AT_END_MS);
        bool is_idle;

        if (!writer)
                return NULL;
        (void) pthread_mutex_lock(&writer->lock);
        while (writer->works &&
               pthread_cond_timedwait(&writer->changed, &writer->lock, &until) != ETIMEDOUT)
                continue;
        is_idle = !writer->works;
        (void) pthread_mutex_unlock(&writer->lock);
        if (!is_idle)
                return NULL; /* a disk that does not answer: its thread needs the lock yet */

        (void) pthread_cond_destroy(&writer->changed);
        (void) pthread_mutex_destroy(&writer->lock);
        free(writer);
        return NULL;
}

static bool is_busy(const struct slow_writer *writer, uint64_t key) {
        for (const struct work *work = writer->works; work; work = work->next)
                if (work->job.key == key)
                        return true;
        return false;
}

/* Takes @work; with the lock held. */
static int await(struct slow_writer *writer, struct work *work, struct slow_job *job) {
        struct timespec until = worker_deadline(SOON_MS);
        int r;

        while (!work->is_done)
                if (pthread_cond_timedwait(&writer->changed, &writer->lock, &until) == ETIMEDOUT &&
                    !work->is_done) {
                        work->given_up = true;
                        return -EBUSY;
                }
        *job = work->job;
        r = work->result;
        free(work);
        return r;
}

int slow_write(struct slow_writer *writer, struct slow_job *job) {
        struct work *work;
        int r;

        if (!writer)
                return run(job);
        work = calloc(1, sizeof(*work));
        if (!work)
                return -ENOMEM;
        work->writer = writer;
        work->job = *job;

        (void) pthread_mutex_lock(&writer->lock);
        if (is_busy(writer, job->key)) {
                r = -EBUSY;
        } else {
                work->next = writer->works;
                writer->works = work;
                r = worker_start(work_thread, work, WORKER_STACK_BYTES, NULL);
                if (r < 0)
                        forget(writer, work);
        }
        if (r < 0)
                free(work);
        else
                r = await(writer, work, job);
        (void) pthread_mutex_unlock(&writer->lock);
        return r;
}
