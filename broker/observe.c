/* SPDX-License-Identifier: MIT */

#include "broker/observe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/cleanup.h"
#include "broker/text.h"
#include "broker/worker.h"
#include "perf/switches.h"

#define READ_MS   20
#define READ_MAX  128 /* records while the dispatcher may have to wait */
#define TURNS_MAX 256 /* of these one after the other; more than the ring has */
#define AT_END_MS 1000

enum state {
        STATE_FREE,
        STATE_WANTED,   /* the thread is to open it */
        STATE_OPEN,
        STATE_FAILED,   /* it could not be opened, or its time is over: see error */
        STATE_UNWANTED, /* the thread is to close and free it */
};

struct observed {
        enum state state;
        int cpu;
        uid_t quota_uid;
        uint64_t until_ns;      /* how long it is recorded */
        uint64_t read_ns;       /* until when the records are in */
        int error;
        struct switches switches; /* while open */
};

struct observe {
        pthread_mutex_t lock;   /* inherits priority: the dispatcher may wait for the thread */
        pthread_cond_t changed;
        pthread_t thread;
        bool running;           /* the thread */
        bool stopping;
        bool over;              /* the thread touches nothing of this any more */
        struct observed all[OBSERVED_MAX];
};

static uint64_t clock_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* The ring is opened and closed without the lock: the kernel may take its time for both. */
static void open_one(struct observe *o, struct observed *one) {
        static const struct switches_room room = { 512 * 1024, 65536, 1024, 1024 };
        struct switches switches;
        int cpu = one->cpu, r;

        (void) pthread_mutex_unlock(&o->lock);
        r = switches_open(&switches, cpu, &room);
        (void) pthread_mutex_lock(&o->lock);

        if (r < 0) {
                one->error = r;
                if (one->state == STATE_WANTED)
                        one->state = STATE_FAILED;
                return;
        }
        one->switches = switches;
        one->read_ns = switches.since_ns;
        if (one->state == STATE_WANTED)
                one->state = STATE_OPEN;
}

static void close_one(struct observe *o, struct observed *one, enum state after, int error) {
        struct switches switches = one->switches;

        one->switches = (struct switches) { .fd = -1 };
        (void) pthread_mutex_unlock(&o->lock);
        switches_done(&switches);
        (void) pthread_mutex_lock(&o->lock);

        /* unwanted meanwhile? then in the next round */
        if (after == STATE_FAILED && one->state != STATE_OPEN)
                return;
        one->error = error;
        one->state = after;
}

static void read_one(struct observe *o, struct observed *one) {
        uint64_t begin_ns = clock_ns();
        unsigned n = 0;

        if (begin_ns >= one->until_ns) {
                close_one(o, one, STATE_FAILED, -ETIME);
                return;
        }
        while (one->state == STATE_OPEN && n++ < TURNS_MAX &&
               switches_read(&one->switches, READ_MAX)) {
                (void) pthread_mutex_unlock(&o->lock);
                (void) pthread_mutex_lock(&o->lock);
        }
        one->read_ns = begin_ns;
}

static void serve(struct observe *o, struct observed *one) {
        if (one->state == STATE_WANTED)
                open_one(o, one);
        if (one->state == STATE_OPEN)
                read_one(o, one);
        if (one->state == STATE_UNWANTED)
                close_one(o, one, STATE_FREE, 0);
}

/* Looked at in one go: what was asked meanwhile must not be slept through. */
static bool any_to_serve(const struct observe *o) {
        for (unsigned i = 0; i < OBSERVED_MAX; i++)
                if (o->all[i].state != STATE_FREE && o->all[i].state != STATE_FAILED)
                        return true;
        return false;
}

static void *observe_thread(void *userdata) {
        struct observe *o = userdata;
        struct timespec until;

        (void) pthread_setname_np(pthread_self(), "observe");
        (void) pthread_mutex_lock(&o->lock);
        while (!o->stopping) {
                for (unsigned i = 0; i < OBSERVED_MAX; i++)
                        serve(o, &o->all[i]);
                if (!any_to_serve(o)) {
                        (void) pthread_cond_wait(&o->changed, &o->lock);
                        continue;
                }
                until = worker_deadline(READ_MS);
                (void) pthread_cond_timedwait(&o->changed, &o->lock, &until);
        }
        for (unsigned i = 0; i < OBSERVED_MAX; i++)
                close_one(o, &o->all[i], STATE_FREE, 0);
        o->over = true;
        (void) pthread_cond_broadcast(&o->changed);
        (void) pthread_mutex_unlock(&o->lock);
        return NULL;
}

/* With the first who observes; a broker that nobody asks has no such thread. */
static int start_thread(struct observe *o) {
        int r;

        if (o->running)
                return 0;
        r = worker_start(observe_thread, o, WORKER_STACK_BYTES, &o->thread);
        o->running = r >= 0;
        return r;
}

int observe_new(struct observe **ret) {
        _cleanup_free_ struct observe *o = NULL;
        int r;

        o = calloc(1, sizeof(*o));
        if (!o)
                return -ENOMEM;

        for (unsigned i = 0; i < OBSERVED_MAX; i++)
                o->all[i].switches.fd = -1;
        r = worker_lock_init(&o->lock);
        if (r >= 0)
                r = worker_condition_init(&o->changed);
        if (r < 0)
                return r;

        *ret = STEAL(o);
        return 0;
}

struct observe *observe_free(struct observe *o) {
        struct timespec until;
        bool over;

        if (!o)
                return NULL;

        until = worker_deadline(AT_END_MS);
        (void) pthread_mutex_lock(&o->lock);
        o->stopping = true;
        (void) pthread_cond_broadcast(&o->changed);
        while (o->running && !o->over)
                if (pthread_cond_timedwait(&o->changed, &o->lock, &until) == ETIMEDOUT)
                        break;
        over = !o->running || o->over;
        (void) pthread_mutex_unlock(&o->lock);

        /* A thread that is stuck keeps its memory; the process is about to end. */
        if (!over)
                return NULL;
        if (o->running)
                (void) pthread_join(o->thread, NULL);
        (void) pthread_cond_destroy(&o->changed);
        (void) pthread_mutex_destroy(&o->lock);
        free(o);
        return NULL;
}

int observe_start(struct observe *o, uid_t quota_uid, int cpu, uint64_t now_ns) {
        unsigned n_of_user = 0;
        int number = -EBUSY, r;

        (void) pthread_mutex_lock(&o->lock);
        for (int i = 0; i < OBSERVED_MAX; i++) {
                if (o->all[i].state == STATE_FREE)
                        number = number < 0 ? i : number;
                else if (o->all[i].state != STATE_UNWANTED && o->all[i].quota_uid == quota_uid)
                        n_of_user++;
        }
        if (n_of_user >= OBSERVED_PER_USER_MAX)
                number = -EUSERS;
        if (number >= 0) {
                r = start_thread(o);
                number = r < 0 ? r : number;
        }
        if (number >= 0) {
                o->all[number] = (struct observed) {
                        .state = STATE_WANTED,
                        .cpu = cpu,
                        .quota_uid = quota_uid,
                        .until_ns = now_ns + OBSERVED_NS,
                        .switches.fd = -1,
                };
                (void) pthread_cond_broadcast(&o->changed);
        }
        (void) pthread_mutex_unlock(&o->lock);
        return number;
}

bool observe_renew(struct observe *o, int number, int cpu, uint64_t now_ns) {
        struct observed *one = &o->all[number];
        bool same;

        (void) pthread_mutex_lock(&o->lock);
        same = one->cpu == cpu && (one->state == STATE_OPEN || one->state == STATE_WANTED);
        if (same)
                one->until_ns = now_ns + OBSERVED_NS;
        (void) pthread_mutex_unlock(&o->lock);
        return same;
}

void observe_stop(struct observe *o, int number) {
        (void) pthread_mutex_lock(&o->lock);
        o->all[number].state = STATE_UNWANTED;
        (void) pthread_cond_broadcast(&o->changed);
        (void) pthread_mutex_unlock(&o->lock);
}

static void fill(const struct observed *one, uint64_t from_ns, uint64_t to_ns,
                 struct wire_occupants_reply *ret) {
        struct culprit culprits[CULPRITS_MAX];

        static_assert(CULPRITS_MAX <= WIRE_OCCUPANTS_MAX, "all fit");

        ret->since_ns = one->switches.since_ns;
        ret->until_ns = one->read_ns;
        ret->n_occupants = (uint32_t) switches_culprits(&one->switches, from_ns, to_ns, -1,
                                                        culprits);
        for (unsigned i = 0; i < ret->n_occupants; i++) {
                ret->occupants[i].ns = culprits[i].ns;
                text_escape(ret->occupants[i].comm, sizeof(ret->occupants[i].comm),
                            culprits[i].comm, strnlen(culprits[i].comm, COMM_SIZE));
        }
}

int observe_ask(struct observe *o, int number, uint64_t from_ns, uint64_t to_ns,
                struct wire_occupants_reply *ret) {
        const struct observed *one = &o->all[number];
        int r = 0;

        if (to_ns < from_ns || to_ns - from_ns > OBSERVED_WINDOW_NS)
                return -EINVAL;

        memset(ret, 0, sizeof(*ret));
        ret->occupant_size = sizeof(struct wire_occupant);
        (void) pthread_mutex_lock(&o->lock);
        if (one->state == STATE_OPEN)
                fill(one, from_ns, to_ns, ret);
        else if (one->state == STATE_FAILED)
                r = one->error;
        (void) pthread_mutex_unlock(&o->lock);
        return r;
}
