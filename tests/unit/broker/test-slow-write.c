/* SPDX-License-Identifier: MIT */

/* Attributes that take their time: a disk that the test makes up, which blocks until it is let go. */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "broker/slow-write.h"
#include "broker/sysfs.h"
#include "tests/unit/broker/broker-test.h"

#define WRITES_MAX 16

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_slow;
        unsigned n;
        char writes[WRITES_MAX][32]; /* "path=text", those that failed too */
} disk = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, {} };

int __wrap_sysfs_write(const char *path, const char *text);

/* "slow" waits, "bad" fails. */
int __wrap_sysfs_write(const char *path, const char *text) {
        (void) pthread_mutex_lock(&disk.lock);
        while (disk.is_slow && strcmp(path, "slow") == 0)
                (void) pthread_cond_wait(&disk.changed, &disk.lock);
        (void) snprintf(disk.writes[disk.n++], sizeof(disk.writes[0]), "%.15s=%.15s", path, text);
        (void) pthread_mutex_unlock(&disk.lock);
        return strcmp(path, "bad") == 0 ? -EINVAL : 0;
}

static void be_slow(bool is_slow) {
        (void) pthread_mutex_lock(&disk.lock);
        disk.is_slow = is_slow;
        (void) pthread_cond_broadcast(&disk.changed);
        (void) pthread_mutex_unlock(&disk.lock);
}

static void assert_written(const char *expected) {
        char all[WRITES_MAX * 33] = "";

        for (unsigned i = 0; i < 200; i++) {
                (void) pthread_mutex_lock(&disk.lock);
                all[0] = '\0';
                for (unsigned j = 0; j < disk.n; j++)
                        (void) strcat(strcat(all, disk.writes[j]), " ");
                (void) pthread_mutex_unlock(&disk.lock);
                if (strcmp(all, expected) == 0)
                        return;
                (void) usleep(10000);
        }
        assert_string_equal(all, expected);
}

static struct slow_job job_of(uint64_t key, const char *first, const char *second) {
        struct slow_job job = { .key = key, .n_steps = 2, .n_undo = 1 };

        (void) snprintf(job.steps[0].path, sizeof(job.steps[0].path), "%s", first);
        (void) snprintf(job.steps[0].text, sizeof(job.steps[0].text), "1");
        (void) snprintf(job.steps[1].path, sizeof(job.steps[1].path), "%s", second);
        (void) snprintf(job.steps[1].text, sizeof(job.steps[1].text), "2");
        (void) snprintf(job.undo[0].path, sizeof(job.undo[0].path), "undo");
        (void) snprintf(job.undo[0].text, sizeof(job.undo[0].text), "0");
        return job;
}

static struct slow_writer *begin(void) {
        struct slow_writer *writer;

        disk.n = 0;
        assert_int_equal(slow_writer_new(&writer), 0);
        return writer;
}

static void what_is_quick_is_done_on_return(void **state) {
        struct slow_job job = job_of(1, "a", "b");
        struct slow_writer *writer = begin();

        assert_int_equal(slow_write(writer, &job), 0);
        assert_written("a=1 b=2 ");
        assert_true(job.steps[0].is_done && job.steps[1].is_done);
        assert_null(slow_writer_free(writer));
}

static void a_step_that_fails_undoes_all_unless_it_is_optional(void **state) {
        struct slow_job job = job_of(1, "a", "bad");
        struct slow_writer *writer = begin();

        assert_int_equal(slow_write(writer, &job), -EINVAL);
        assert_written("a=1 bad=2 undo=0 ");
        disk.n = 0;
        job = job_of(1, "bad", "b");
        job.steps[0].optional = true;
        assert_int_equal(slow_write(writer, &job), 0);
        assert_written("bad=1 b=2 ");
        assert_true(!job.steps[0].is_done && job.steps[1].is_done);

        disk.n = 0;
        job = job_of(1, "a", "bad");
        assert_int_equal(slow_write(NULL, &job), -EINVAL);
        assert_written("a=1 bad=2 undo=0 ");
        assert_null(slow_writer_free(writer));
}

/* It is given up soon, keeps others of the same disk away, and is put back when it is over. */
static void what_is_slow_is_given_up_and_put_back(void **state) {
        struct slow_job job = job_of(1, "slow", "b"), other = job_of(2, "x", "y"),
                        again = job_of(1, "c", "d");
        struct slow_writer *writer = begin();
        struct timespec from, to;
        long ms;

        be_slow(true);
        (void) clock_gettime(CLOCK_MONOTONIC, &from);
        assert_int_equal(slow_write(writer, &job), -EBUSY);
        (void) clock_gettime(CLOCK_MONOTONIC, &to);
        ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
        assert_in_range(ms, 990, 5000);

        assert_int_equal(slow_write(writer, &again), -EBUSY);
        assert_int_equal(slow_write(writer, &other), 0);
        assert_written("x=1 y=2 ");
        be_slow(false);
        assert_written("x=1 y=2 slow=1 b=2 undo=0 ");
        for (unsigned i = 0; i < 100 && slow_write(writer, &again) == -EBUSY; i++)
                (void) usleep(1000);
        assert_written("x=1 y=2 slow=1 b=2 undo=0 c=1 d=2 ");
        assert_null(slow_writer_free(writer));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_quick_is_done_on_return),
                cmocka_unit_test(a_step_that_fails_undoes_all_unless_it_is_optional),
                cmocka_unit_test(what_is_slow_is_given_up_and_put_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
