/* SPDX-License-Identifier: MIT */

#include "tests/fuzz/broker/records.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* splitmix64 */
uint64_t next(struct source *s) {
        uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

unsigned below(struct source *s, unsigned limit) {
        return (unsigned) (next(s) % limit);
}

bool one_in(struct source *s, unsigned n) {
        return below(s, n) == 0;
}

struct form {
        uint16_t verb;
        size_t size;
};

static const struct form forms[] = {
        { WIRE_HELLO, sizeof(struct wire_hello) },
        { WIRE_ACQUIRE, sizeof(struct wire_acquire) },
        { WIRE_ACQUIRE, sizeof(struct wire_acquire) },
        { WIRE_ACQUIRE, sizeof(struct wire_acquire) },
        { WIRE_UPDATE, sizeof(struct wire_update) },
        { WIRE_RENEW, sizeof(struct wire_lease_ref) },
        { WIRE_RELEASE, sizeof(struct wire_lease_ref) },
        { WIRE_LIST, sizeof(struct wire_list) },
        { WIRE_WATCH, sizeof(struct wire_list) },
        { WIRE_REVOKE, sizeof(struct wire_lease_ref) },
        { WIRE_RELOAD, sizeof(struct wire_plain) },
        { WIRE_RESTORE_ALL, sizeof(struct wire_plain) },
        { WIRE_POLICY, sizeof(struct wire_list) },
        { WIRE_WHY, sizeof(struct wire_acquire) },
        { WIRE_OBSERVE, sizeof(struct wire_observe) },
        { WIRE_OCCUPANTS, sizeof(struct wire_occupants) },
};

static uint64_t some_id(struct source *s) {
        const uint64_t ids[] = {
                0, 0, 0, 1, 2, (uint64_t) getpid(), (uint64_t) getppid(),
                (uint64_t) s->tids[below(s, SLEEPERS + 1)], 4194304, UINT32_MAX,
                UINT64_C(1) << 32, UINT64_MAX,
        };

        return ids[below(s, ELEMENTS(ids))];
}

static void fill_acquire(struct source *s, struct wire_acquire *a) {
        static const char *const roles[] = {
                "", "", "desktop", "worker", "audio-client", "no-such", "\x1b[2J\n"
        };
        const bool rt = one_in(s, 2);

        a->flags = below(s, 4);
        a->pid = one_in(s, 2) ? 0 : some_id(s);
        a->tid = one_in(s, 4) ? some_id(s) : (uint64_t) s->tids[below(s, SLEEPERS + 1)];
        a->want = rt             ? WIRE_WANT_SCHED
                  : one_in(s, 2) ? WIRE_WANT_NICE
                                 : WIRE_WANT_SCHED | WIRE_WANT_NICE;
        a->policy = rt ? 1 + below(s, 2) : below(s, 8);
        a->priority =
                a->policy == SCHED_FIFO || a->policy == SCHED_RR ? (int32_t) (1 + below(s, 99)) : 0;
        a->nice = a->want & WIRE_WANT_NICE ? (int32_t) below(s, 40) - 20 : 0;
        a->lifetime = below(s, 3);
        a->lifetime_s = a->lifetime == WIRE_LIFETIME_SECONDS ? 1 + below(s, 3) : 0;
        (void) snprintf(a->role, sizeof(a->role), "%s", roles[below(s, ELEMENTS(roles))]);
        (void) snprintf(a->reason, sizeof(a->reason), "fuzz\xe2\x80\xae\n%u", s->n_records);
        if (one_in(s, 8))
                a->period_ns = a->deadline_ns = a->computation_ns = 1 + below(s, 1000000);
}

static void fill_body(struct source *s, uint16_t verb, uint8_t *bytes) {
        const uint8_t *id = s->leases[below(s, LEASES_KNOWN)];

        switch (verb) {
        case WIRE_ACQUIRE:
                fill_acquire(s, (struct wire_acquire *) bytes);
                break;
        case WIRE_UPDATE: {
                struct wire_update *u = (struct wire_update *) bytes;

                memcpy(u->id, id, sizeof(u->id));
                u->want = below(s, 4);
                u->policy = below(s, 3);
                u->priority = u->policy != SCHED_OTHER ? (int32_t) (1 + below(s, 60)) : 0;
                u->nice = (int32_t) below(s, 40) - 20;
                break;
        }
        case WIRE_RENEW:
        case WIRE_RELEASE:
        case WIRE_REVOKE: {
                struct wire_lease_ref *r = (struct wire_lease_ref *) bytes;

                memcpy(r->id, id, sizeof(r->id));
                r->lifetime_s = verb == WIRE_RENEW && one_in(s, 2) ? 1 + below(s, 5) : 0;
                break;
        }
        case WIRE_LIST:
        case WIRE_WATCH:
        case WIRE_POLICY: {
                struct wire_list *l = (struct wire_list *) bytes;

                l->flags = one_in(s, 8);
                l->after = one_in(s, 2) ? 0 : one_in(s, 2) ? below(s, 100) : next(s);
                break;
        }
        case WIRE_OBSERVE: {
                struct wire_observe *o = (struct wire_observe *) bytes;

                o->flags = one_in(s, 8);
                o->cpu = one_in(s, 2) ? 0 : (uint32_t) next(s);
                break;
        }
        case WIRE_OCCUPANTS: {
                struct wire_occupants *o = (struct wire_occupants *) bytes;

                o->from_ns = one_in(s, 2) ? 0 : next(s);
                o->to_ns = one_in(s, 2) ? o->from_ns + below(s, 200000000) : next(s);
                break;
        }
        default:
                break;
        }
}

static void make_good_record(struct source *s, struct record *record) {
        const struct form *form = &forms[below(s, ELEMENTS(forms))];
        struct wire_header *header = (struct wire_header *) record->bytes;

        memset(record->bytes, 0, sizeof(record->bytes));
        record->length = form->size;
        *header = (struct wire_header) {
                .size = (uint32_t) form->size,
                .version = WIRE_VERSION,
                .verb = form->verb,
                .serial = ++s->n_records,
        };
        fill_body(s, form->verb, record->bytes);
}

/* ---- and what becomes of them ---- */

static void change_bytes(struct source *s, struct record *record) {
        static const uint32_t numbers[] = { 0,      1,      0x7f,       0x80,       0xff,
                                            0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff };

        for (unsigned n = 1 + below(s, 4); n > 0 && record->length > 0; n--) {
                size_t at = one_in(s, 3) ? below(s, 24) : below(s, (unsigned) record->length);

                if (at >= record->length)
                        continue;
                if (one_in(s, 2) || (at & ~(size_t) 3) + 4 > record->length)
                        record->bytes[at] ^= (uint8_t) (1U << below(s, 8));
                else
                        memcpy(record->bytes + (at & ~(size_t) 3),
                               &numbers[below(s, ELEMENTS(numbers))], 4);
        }
}

static void change_length(struct source *s, struct record *record) {
        struct wire_header *header = (struct wire_header *) record->bytes;

        switch (below(s, 5)) {
        case 0:
                record->length = below(s, (unsigned) record->length + 1);
                break;
        case 1:
                record->length += below(s, 64);
                break;
        case 2:
                record->length = WIRE_RECORD_MAX;
                break;
        case 3:
                record->length = WIRE_RECORD_MAX + 1 + below(s, WIRE_RECORD_MAX);
                break;
        default: {
                size_t more = 1 + below(s, 64);

                for (size_t i = 0; i < more; i++)
                        record->bytes[record->length + i] = (uint8_t) next(s);
                record->length += more;
                break;
        }
        }
        if (!one_in(s, 4) && record->length >= sizeof(*header))
                header->size = (uint32_t) record->length;
}

static void mutate(struct source *s, struct record *record) {
        if (one_in(s, 3))
                return; /* some as they should be, so that there is something to break */
        if (!one_in(s, 4))
                change_bytes(s, record);
        if (one_in(s, 3))
                change_length(s, record);
}

void make_record(struct source *s, struct record *record) {
        make_good_record(s, record);
        mutate(s, record);
}
