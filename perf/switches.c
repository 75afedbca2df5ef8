/* SPDX-License-Identifier: MIT */

#include "perf/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TASKS_MAX 512 /* slots for those that are told apart in one window; a power of two */

/* Of texts. */
#define TEXT_IDLE    0
#define TEXT_UNKNOWN 1

/* What sample_id_all appends to each record for PERF_SAMPLE_TID | PERF_SAMPLE_TIME. */
struct sample_id {
        uint32_t pid, tid;
        uint64_t time;
};

static struct name *name_slot(const struct switches *s, int32_t tid) {
        return &s->names[(uint32_t) tid % s->room.n_names];
}

static uint32_t intern(struct switches *s, const char comm[COMM_SIZE]) {
        for (uint32_t i = 0; i < s->n_texts; i++)
                if (strcmp(s->texts[i], comm) == 0)
                        return i;
        if (s->n_texts == s->room.n_texts)
                return TEXT_UNKNOWN;
        memcpy(s->texts[s->n_texts], comm, COMM_SIZE);
        return s->n_texts++;
}

static void set_name(struct switches *s, int32_t tid, const char *text, size_t size) {
        size_t n = strnlen(text, size < COMM_SIZE - 1 ? size : COMM_SIZE - 1);
        char comm[COMM_SIZE] = "";

        memcpy(comm, text, n);
        *name_slot(s, tid) = (struct name){ tid, intern(s, comm) };
}

/* Names of threads that began before us, or elsewhere. */
static void read_name(struct switches *s, int32_t tid) {
        char path[64], comm[COMM_SIZE] = "";
        ssize_t n = -1;
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/comm", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                n = read(fd, comm, sizeof(comm) - 1);
                (void) close(fd);
        }
        if (n > 0 && comm[n - 1] == '\n')
                comm[n - 1] = '\0';
        set_name(s, tid, n > 0 ? comm : "?", sizeof(comm));
}

static uint32_t find_name(struct switches *s, int32_t tid) {
        if (tid == 0)
                return TEXT_IDLE;
        if (name_slot(s, tid)->tid != tid)
                read_name(s, tid);
        return name_slot(s, tid)->text;
}

/* What is asked about is seldom long ago. */
static void drop_older_half(struct switches *s) {
        size_t half = s->n / 2;

        memmove(s->list, s->list + half, (s->n - half) * sizeof(*s->list));
        s->n -= half;
        s->since_ns = s->list[0].time_ns;
}

static void add(struct switches *s, int32_t tid, uint64_t time_ns) {
        if (s->n > 0 && s->list[s->n - 1].tid == tid)
                return; /* told already by the one before it */
        if (s->n == s->room.n_switches)
                drop_older_half(s);
        s->list[s->n++] = (struct switch_in){ time_ns, tid, find_name(s, tid) };
}

int switches_init(struct switches *s, int cpu, const struct switches_room *room) {
        *s = (struct switches){ .cpu = cpu, .fd = -1, .room = *room };
        s->list = calloc(room->n_switches, sizeof(*s->list));
        s->names = calloc(room->n_names, sizeof(*s->names));
        s->texts = calloc(room->n_texts, sizeof(*s->texts));
        if (!s->list || !s->names || !s->texts) {
                switches_done(s);
                return -ENOMEM;
        }
        memcpy(s->texts[TEXT_IDLE], "idle", 5);
        memcpy(s->texts[TEXT_UNKNOWN], "?", 2);
        s->n_texts = 2;
        return 0;
}

void switches_done(struct switches *s) {
        if (s->ring)
                (void) munmap(s->ring, s->room.ring_bytes + (size_t) sysconf(_SC_PAGESIZE));
        if (s->fd >= 0)
                (void) close(s->fd);
        free(s->list);
        free(s->names);
        free(s->texts);
        *s = (struct switches){ .fd = -1 };
}

int switches_open(struct switches *s, int cpu, const struct switches_room *room) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                .exclude_kernel = 1,
                .exclude_hv = 1,
                .sample_id_all = 1,
                .context_switch = 1,
                .comm = 1,
                .task = 1,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
        };
        struct timespec now;
        int r;

        r = switches_init(s, cpu, room);
        if (r < 0)
                return r;
        /* -1 in all 64 bits: the broker's filter lets it be called for nobody's thread */
        s->fd = (int) syscall(SYS_perf_event_open, &attr, -1L, (long) cpu, -1L,
                              (long) PERF_FLAG_FD_CLOEXEC);
        if (s->fd < 0)
                goto fail;
        s->ring = mmap(NULL, room->ring_bytes + (size_t) sysconf(_SC_PAGESIZE),
                       PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
        if (s->ring == MAP_FAILED) {
                s->ring = NULL;
                goto fail;
        }
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        s->since_ns = (uint64_t) now.tv_sec * 1000000000ULL + (uint64_t) now.tv_nsec;
        return 0;

fail:
        r = -errno;
        switches_done(s);
        return r;
}

static void add_comm(struct switches *s, const uint8_t *body, size_t size) {
        int32_t tid;

        memcpy(&tid, body + 4, sizeof(tid));
        set_name(s, tid, (const char *) body + 8, size - 8);
}

/* A new thread has the name of its maker until it takes another. */
static void add_fork(struct switches *s, const uint8_t *body) {
        int32_t tid, ptid;

        memcpy(&tid, body + 8, sizeof(tid));
        memcpy(&ptid, body + 12, sizeof(ptid));
        *name_slot(s, tid) = (struct name){ tid, find_name(s, ptid) };
}

/* Both sides are needed: of an idle task the kernel tells only whom it follows. */
static void add_switch(struct switches *s, const uint8_t *body, bool out,
                       const struct sample_id *id) {
        int32_t tid = (int32_t) id->tid;

        if (out)
                memcpy(&tid, body + 4, sizeof(tid));
        add(s, tid < 0 ? 0 : tid, id->time);
}

bool switches_add_record(struct switches *s, const void *record, size_t size) {
        const uint8_t *body = (const uint8_t *) record + sizeof(struct perf_event_header);
        struct perf_event_header header;
        struct sample_id id;
        size_t body_size;
        uint64_t lost;

        if (size < sizeof(header) + sizeof(id))
                return false;
        memcpy(&header, record, sizeof(header));
        if (header.size != size)
                return false;
        body_size = size - sizeof(header) - sizeof(id);
        memcpy(&id, body + body_size, sizeof(id));

        switch (header.type) {
        case PERF_RECORD_SWITCH_CPU_WIDE:
                if (body_size < 8)
                        return false;
                add_switch(s, body, header.misc & PERF_RECORD_MISC_SWITCH_OUT, &id);
                return true;
        case PERF_RECORD_COMM:
                if (body_size < 16)
                        return false;
                add_comm(s, body, body_size);
                return true;
        case PERF_RECORD_FORK:
                if (body_size < 24)
                        return false;
                add_fork(s, body);
                return true;
        case PERF_RECORD_LOST:
                if (body_size < 16)
                        return false;
                memcpy(&lost, body + 8, sizeof(lost));
                s->lost += lost;
                s->since_ns = id.time;
                return true;
        default:
                return true;
        }
}

/* Copies @size bytes from @at of the ring, which may run over its end. */
static void copy_out(const uint8_t *data, size_t ring_size, uint64_t at, void *ret, size_t size) {
        size_t offset = at % ring_size, first = ring_size - offset;

        if (first > size)
                first = size;
        memcpy(ret, data + offset, first);
        memcpy((uint8_t *) ret + first, data, size - first);
}

bool switches_read(struct switches *s, size_t max) {
        struct perf_event_mmap_page *page = s->ring;
        struct perf_event_header header;
        uint8_t record[4096];
        const uint8_t *data;
        uint64_t head, tail;

        if (!page)
                return false;
        data = (const uint8_t *) s->ring + sysconf(_SC_PAGESIZE);
        head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        tail = page->data_tail;
        for (; tail + sizeof(header) <= head && max > 0; max--) {
                copy_out(data, s->room.ring_bytes, tail, &header, sizeof(header));
                if (header.size < sizeof(header))
                        break;
                if (header.size <= sizeof(record)) {
                        copy_out(data, s->room.ring_bytes, tail, record, header.size);
                        (void) switches_add_record(s, record, header.size);
                }
                tail += header.size;
        }
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
        return max == 0 && tail < head;
}

void switches_clear(struct switches *s) {
        s->lost = 0;
        if (s->n == 0)
                return;
        s->list[0] = s->list[s->n - 1];
        s->n = 1;
        s->since_ns = s->list[0].time_ns;
}

bool switches_are_incomplete(const struct switches *s, uint64_t from_ns) {
        return from_ns < s->since_ns;
}

/* The last that began at or before @time_ns; 0 if none did. */
static size_t find_switch(const struct switches *s, uint64_t time_ns) {
        size_t low = 0, high = s->n, middle;

        while (low + 1 < high) {
                middle = low + (high - low) / 2;
                if (s->list[middle].time_ns <= time_ns)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

struct share {
        int32_t tid;
        uint32_t name;
        uint64_t ns; /* 0: free */
};

/* The time it takes must not depend on how many there are: the broker answers by it. */
static void charge(struct share shares[TASKS_MAX], size_t *n, int32_t tid, uint32_t name,
                   uint64_t ns) {
        uint32_t i = ((uint32_t) tid * 31 + name) % TASKS_MAX;

        while (shares[i].ns > 0 && (shares[i].tid != tid || shares[i].name != name))
                i = (i + 1) % TASKS_MAX;
        if (shares[i].ns == 0) {
                if (*n == TASKS_MAX / 2)
                        return;
                (*n)++;
        }
        shares[i].tid = tid;
        shares[i].name = name;
        shares[i].ns += ns;
}

static int by_time(const void *a, const void *b) {
        uint64_t x = ((const struct share *) a)->ns, y = ((const struct share *) b)->ns;

        return (x < y) - (x > y);
}

size_t switches_culprits(const struct switches *s, uint64_t from_ns, uint64_t to_ns, pid_t self,
                         struct culprit culprits[CULPRITS_MAX]) {
        struct share shares[TASKS_MAX] = { 0 };
        uint64_t begin, end;
        size_t n = 0;

        for (size_t i = find_switch(s, from_ns); i < s->n && s->list[i].time_ns < to_ns; i++) {
                begin = s->list[i].time_ns > from_ns ? s->list[i].time_ns : from_ns;
                end = i + 1 < s->n && s->list[i + 1].time_ns < to_ns ? s->list[i + 1].time_ns
                                                                     : to_ns;
                if (end > begin && s->list[i].tid != self)
                        charge(shares, &n, self < 0 ? 0 : s->list[i].tid, s->list[i].name,
                               end - begin);
        }
        qsort(shares, TASKS_MAX, sizeof(*shares), by_time);
        if (n > CULPRITS_MAX)
                n = CULPRITS_MAX;
        for (size_t i = 0; i < n; i++) {
                culprits[i] = (struct culprit){ .tid = shares[i].tid, .ns = shares[i].ns };
                memcpy(culprits[i].comm, s->texts[shares[i].name], COMM_SIZE);
        }
        return n;
}
