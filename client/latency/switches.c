/* SPDX-License-Identifier: MIT */

#include "client/latency/switches.h"

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

#define RING_BYTES (1U << 20)
#define TEXTS_MAX  4096
#define TASKS_MAX  256 /* that are told apart in one window */

/* What sample_id_all appends to each record for PERF_SAMPLE_TID | PERF_SAMPLE_TIME. */
struct sample_id {
        uint32_t pid, tid;
        uint64_t time;
};

static struct name *name_slot(const struct switches *s, int32_t tid) {
        return &s->names[(uint32_t) tid % NAMES_MAX];
}

static void set_name(struct switches *s, int32_t tid, const char *comm, size_t size) {
        struct name *name = name_slot(s, tid);
        size_t n = strnlen(comm, size < COMM_SIZE - 1 ? size : COMM_SIZE - 1);

        name->tid = tid;
        memset(name->comm, 0, sizeof(name->comm));
        memcpy(name->comm, comm, n);
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

static uint32_t intern(struct switches *s, const char *comm) {
        for (uint32_t i = 0; i < s->n_texts; i++)
                if (strcmp(s->texts[i], comm) == 0)
                        return i;
        if (s->n_texts == TEXTS_MAX)
                return 1;
        memcpy(s->texts[s->n_texts], comm, COMM_SIZE);
        return s->n_texts++;
}

static uint32_t find_name(struct switches *s, int32_t tid) {
        struct name *name = name_slot(s, tid);

        if (tid == 0)
                return 0;
        if (name->tid != tid)
                read_name(s, tid);
        return intern(s, name->comm);
}

static void add(struct switches *s, int32_t tid, uint64_t time_ns) {
        if (s->n == SWITCHES_MAX) {
                s->lost++;
                return;
        }
        s->list[s->n++] = (struct switch_in){ time_ns, tid, find_name(s, tid) };
}

int switches_init(struct switches *s, int cpu) {
        *s = (struct switches){ .cpu = cpu, .fd = -1 };
        s->list = calloc(SWITCHES_MAX, sizeof(*s->list));
        s->names = calloc(NAMES_MAX, sizeof(*s->names));
        s->texts = calloc(TEXTS_MAX, sizeof(*s->texts));
        if (!s->list || !s->names || !s->texts) {
                switches_done(s);
                return -ENOMEM;
        }
        memcpy(s->texts[0], "idle", 5);
        memcpy(s->texts[1], "?", 2);
        s->n_texts = 2;
        return 0;
}

void switches_done(struct switches *s) {
        if (s->ring)
                (void) munmap(s->ring, s->ring_size + (size_t) sysconf(_SC_PAGESIZE));
        if (s->fd >= 0)
                (void) close(s->fd);
        free(s->list);
        free(s->names);
        free(s->texts);
        *s = (struct switches){ .fd = -1 };
}

int switches_open(struct switches *s, int cpu) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_DUMMY,
                .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                .sample_id_all = 1,
                .context_switch = 1,
                .comm = 1,
                .task = 1,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
        };
        int r;

        r = switches_init(s, cpu);
        if (r < 0)
                return r;
        s->fd = (int) syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (s->fd < 0)
                goto fail;
        s->ring_size = RING_BYTES;
        s->ring = mmap(NULL, s->ring_size + (size_t) sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                       MAP_SHARED, s->fd, 0);
        if (s->ring == MAP_FAILED) {
                s->ring = NULL;
                goto fail;
        }
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
        const struct name *parent;
        struct name copy;
        int32_t tid, ptid;

        memcpy(&tid, body + 8, sizeof(tid));
        memcpy(&ptid, body + 12, sizeof(ptid));
        (void) find_name(s, ptid);
        parent = name_slot(s, ptid);
        copy = *parent;
        set_name(s, tid, copy.comm, sizeof(copy.comm));
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
                if (!(header.misc & PERF_RECORD_MISC_SWITCH_OUT))
                        add(s, (int32_t) id.tid, id.time);
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

void switches_read(struct switches *s) {
        struct perf_event_mmap_page *page = s->ring;
        struct perf_event_header header;
        uint8_t record[4096];
        const uint8_t *data;
        uint64_t head, tail;

        if (!page)
                return;
        data = (const uint8_t *) s->ring + sysconf(_SC_PAGESIZE);
        head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        tail = page->data_tail;
        while (tail + sizeof(header) <= head) {
                copy_out(data, s->ring_size, tail, &header, sizeof(header));
                if (header.size < sizeof(header))
                        break;
                if (header.size <= sizeof(record)) {
                        copy_out(data, s->ring_size, tail, record, header.size);
                        (void) switches_add_record(s, record, header.size);
                }
                tail += header.size;
        }
        __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

void switches_clear(struct switches *s) {
        s->n = 0;
        s->lost = 0;
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

static void charge(struct culprit *all, size_t *n, const char *comm, int32_t tid, uint64_t ns) {
        for (size_t i = 0; i < *n; i++)
                if (all[i].tid == tid && strcmp(all[i].comm, comm) == 0) {
                        all[i].ns += ns;
                        return;
                }
        if (*n == TASKS_MAX)
                return;
        all[*n].tid = tid;
        all[*n].ns = ns;
        memcpy(all[*n].comm, comm, COMM_SIZE);
        (*n)++;
}

static int by_time(const void *a, const void *b) {
        uint64_t x = ((const struct culprit *) a)->ns, y = ((const struct culprit *) b)->ns;

        return (x < y) - (x > y);
}

size_t switches_culprits(const struct switches *s, uint64_t from_ns, uint64_t to_ns, pid_t self,
                         struct culprit culprits[CULPRITS_MAX]) {
        struct culprit all[TASKS_MAX];
        uint64_t begin, end;
        size_t n = 0;

        for (size_t i = find_switch(s, from_ns); i < s->n && s->list[i].time_ns < to_ns; i++) {
                begin = s->list[i].time_ns > from_ns ? s->list[i].time_ns : from_ns;
                end = i + 1 < s->n && s->list[i + 1].time_ns < to_ns ? s->list[i + 1].time_ns
                                                                     : to_ns;
                if (end > begin && s->list[i].tid != self)
                        charge(all, &n, s->texts[s->list[i].name], s->list[i].tid, end - begin);
        }
        qsort(all, n, sizeof(*all), by_time);
        if (n > CULPRITS_MAX)
                n = CULPRITS_MAX;
        memcpy(culprits, all, n * sizeof(*all));
        return n;
}
