/* SPDX-License-Identifier: MIT */

#include "broker/broker1-values.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/text.h"

enum field_type {
        NUMBER,                 /* any of D-Bus's integers, if the value fits */
        FLAG,                   /* b: or'ed into a 64-bit field */
        STRING,
        WORD,                   /* s: one of a list of words, as a number */
};

struct field {
        const char *key;
        enum field_type type;
        uint32_t want;          /* or'ed into the record's `want` */
        uint64_t flag;          /* what a FLAG sets; of a NUMBER: set in `flags` too */
        size_t offset;
        size_t size;
        const struct word *words;
        bool is_signed;
};

const struct word values_policies[] = {
        { "fifo", SCHED_FIFO }, { "rr", SCHED_RR }, { "other", SCHED_OTHER }, {}
};

const struct word values_lifetimes[] = {
        { "thread", WIRE_LIFETIME_THREAD },
        { "connection", WIRE_LIFETIME_CONNECTION },
        { "seconds", WIRE_LIFETIME_SECONDS },
        {}
};

#define AT(record, member) \
        .offset = offsetof(struct record, member), .size = sizeof(((struct record *) NULL)->member)
#define SIGNED(record, member) AT(record, member), .is_signed = true

static const struct field acquire_fields[] = {
        { "role", STRING, AT(wire_acquire, role) },
        { "policy", WORD, AT(wire_acquire, policy), .want = WIRE_WANT_SCHED, .words = values_policies },
        { "priority", NUMBER, SIGNED(wire_acquire, priority), .want = WIRE_WANT_SCHED },
        { "nice", NUMBER, SIGNED(wire_acquire, nice), .want = WIRE_WANT_NICE },
        { "pid", NUMBER, AT(wire_acquire, pid) },
        { "tid", NUMBER, AT(wire_acquire, tid) },
        { "pidfd-inode", NUMBER, AT(wire_acquire, pidfd_inode) },
        { "interactive", FLAG, AT(wire_acquire, flags), .flag = WIRE_ACQUIRE_MAY_ASK },
        { "lifetime", WORD, AT(wire_acquire, lifetime), .words = values_lifetimes },
        { "seconds", NUMBER, AT(wire_acquire, lifetime_s) },
        { "reason", STRING, AT(wire_acquire, reason) },
        { "clamp", FLAG, AT(wire_acquire, flags), .flag = WIRE_ACQUIRE_CLAMP },
        { "dry-run", FLAG, AT(wire_acquire, flags), .flag = WIRE_ACQUIRE_DRY_RUN },
        { "or-less", FLAG, AT(wire_acquire, flags), .flag = WIRE_ACQUIRE_OR_LESS },
        { "relative", NUMBER, SIGNED(wire_acquire, relative), .flag = WIRE_ACQUIRE_RELATIVE,
          .want = WIRE_WANT_SCHED },
        { "feeds-tid", NUMBER, AT(wire_acquire, feeds_tid) },
        { "feeds", STRING, AT(wire_acquire, feeds) },
        { "period-ns", NUMBER, AT(wire_acquire, period_ns) },
        { "computation-ns", NUMBER, AT(wire_acquire, computation_ns) },
        { "deadline-ns", NUMBER, AT(wire_acquire, deadline_ns) },
        { "memlock-bytes", NUMBER, AT(wire_acquire, memlock_bytes), .want = WIRE_WANT_MEMLOCK },
        { "cpu-latency-us", NUMBER, AT(wire_acquire, cpu_latency_us),
          .want = WIRE_WANT_CPU_LATENCY },
        { "irq", STRING, AT(wire_acquire, irq), .want = WIRE_WANT_IRQ },
        { "irq-priority", NUMBER, SIGNED(wire_acquire, irq_priority) },
        { "block", STRING, AT(wire_acquire, block), .want = WIRE_WANT_BLOCK_QUEUE },
        { "block-max-sectors-kb", NUMBER, AT(wire_acquire, block_max_sectors_kb),
          .want = WIRE_WANT_BLOCK_QUEUE },
        {}
};

static_assert(ELEMENTS(acquire_fields) <= 33, "a bit of 32 for each that was seen, and the end");

static const struct field update_fields[] = {
        { "interactive", FLAG, AT(wire_update, flags), .flag = WIRE_ACQUIRE_MAY_ASK },
        { "policy", WORD, AT(wire_update, policy), .want = WIRE_WANT_SCHED, .words = values_policies },
        { "priority", NUMBER, SIGNED(wire_update, priority), .want = WIRE_WANT_SCHED },
        { "nice", NUMBER, SIGNED(wire_update, nice), .want = WIRE_WANT_NICE },
        { "clamp", FLAG, AT(wire_update, flags), .flag = WIRE_ACQUIRE_CLAMP },
        { "dry-run", FLAG, AT(wire_update, flags), .flag = WIRE_ACQUIRE_DRY_RUN },
        { "period-ns", NUMBER, AT(wire_update, period_ns) },
        { "computation-ns", NUMBER, AT(wire_update, computation_ns) },
        { "deadline-ns", NUMBER, AT(wire_update, deadline_ns) },
        {}
};

static const struct field renew_fields[] = {
        { "seconds", NUMBER, AT(wire_lease_ref, lifetime_s) },
        {}
};

static const struct field hello_fields[] = {
        { "admin", FLAG, AT(wire_hello, flags), .flag = WIRE_HELLO_ADMIN },
        {}
};

static const struct field list_fields[] = {
        { "all", FLAG, AT(wire_list, flags), .flag = WIRE_LIST_ALL },
        { "after", NUMBER, AT(wire_list, after) },
        {}
};

static const struct field watch_fields[] = {
        { "all", FLAG, AT(wire_list, flags), .flag = WIRE_LIST_ALL },
        {}
};

static const struct field policy_fields[] = {
        { "after", NUMBER, AT(wire_list, after) },
        {}
};

static const struct field no_fields[] = { {} };

static const struct field *fields_of(uint16_t verb) {
        switch (verb) {
        case WIRE_HELLO:
                return hello_fields;
        case WIRE_ACQUIRE:
        case WIRE_WHY:
                return acquire_fields;
        case WIRE_UPDATE:
                return update_fields;
        case WIRE_RENEW:
                return renew_fields;
        case WIRE_LIST:
                return list_fields;
        case WIRE_WATCH:
                return watch_fields;
        case WIRE_POLICY:
                return policy_fields;
        default:
                return no_fields;
        }
}

static const struct field *find_field(const struct field *fields, const char *key) {
        for (; fields->key; fields++)
                if (strcmp(fields->key, key) == 0)
                        return fields;
        return NULL;
}

/* The sender's own text: as it goes into an answer. */
static int complain(char error[VALUES_ERROR_SIZE], const char *key, const char *what) {
        char printable[64];

        text_escape(printable, sizeof(printable), key, strlen(key));
        (void) snprintf(error, VALUES_ERROR_SIZE, "\"%s\" %s", printable, what);
        return -EINVAL;
}

static bool store_number(const struct field *field, void *record, bool negative, uint64_t bits) {
        uint8_t *to = (uint8_t *) record + field->offset;

        if (field->size == sizeof(uint64_t)) {
                if (negative)
                        return false;
                memcpy(to, &bits, sizeof(bits));
                return true;
        }

        if (field->is_signed) {
                int64_t number = (int64_t) bits;
                int32_t narrow = (int32_t) number;

                if ((!negative && bits > INT32_MAX) || number < INT32_MIN)
                        return false;
                memcpy(to, &narrow, sizeof(narrow));
        } else {
                uint32_t narrow = (uint32_t) bits;

                if (negative || bits > UINT32_MAX)
                        return false;
                memcpy(to, &narrow, sizeof(narrow));
        }
        return true;
}

/* -EINVAL if it is no integer. */
static int read_integer(sd_bus_message *message, char type, bool *ret_negative, uint64_t *ret) {
        union {
                uint8_t y;
                int16_t n;
                uint16_t q;
                int32_t i;
                uint32_t u;
                int64_t x;
                uint64_t t;
        } value;
        int64_t number;
        int r;

        if (!strchr("ynqiuxt", type))
                return -EINVAL;

        r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;

        number = type == 'n' ? value.n : type == 'i' ? value.i : type == 'x' ? value.x : 0;
        *ret_negative = number < 0;
        *ret = type == 'y'   ? value.y
               : type == 'q' ? value.q
               : type == 'u' ? value.u
               : type == 't' ? value.t
                             : (uint64_t) number;
        return 0;
}

static int read_number(sd_bus_message *message, const struct field *field, char type, void *record,
                       char error[VALUES_ERROR_SIZE]) {
        bool negative;
        uint64_t bits;
        int r;

        r = read_integer(message, type, &negative, &bits);
        if (r == -EINVAL)
                return complain(error, field->key, "must be a number");
        if (r < 0)
                return r;

        return store_number(field, record, negative, bits)
                       ? 0
                       : complain(error, field->key, "is out of range");
}

static int read_flag(sd_bus_message *message, const struct field *field, char type, void *record,
                     char error[VALUES_ERROR_SIZE]) {
        uint8_t *to = (uint8_t *) record + field->offset;
        uint64_t flags;
        int value, r;

        if (type != 'b')
                return complain(error, field->key, "must be a boolean");

        r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;

        memcpy(&flags, to, sizeof(flags));
        if (value)
                flags |= field->flag;
        memcpy(to, &flags, sizeof(flags));
        return 0;
}

static int read_string(sd_bus_message *message, const struct field *field, char type, void *record,
                       char error[VALUES_ERROR_SIZE]) {
        char *to = (char *) record + field->offset;
        const char *value;
        int r;

        if (type != 's')
                return complain(error, field->key, "must be a string");

        r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;

        if (field->type == WORD) {
                for (const struct word *word = field->words; word->word; word++)
                        if (strcmp(word->word, value) == 0) {
                                memcpy(to, &word->number, sizeof(word->number));
                                return 0;
                        }
                return complain(error, field->key, "is none of the words for it");
        }

        if (strlen(value) >= field->size)
                return complain(error, field->key, "is too long");
        memcpy(to, value, strlen(value) + 1);
        return 0;
}

static int read_value(sd_bus_message *message, const struct field *field, void *record,
                      char error[VALUES_ERROR_SIZE]) {
        const char *contents;
        char type;
        int r;

        r = sd_bus_message_peek_type(message, &type, &contents);
        if (r < 0)
                return r;
        if (type != 'v' || !contents || contents[0] == '\0' || contents[1] != '\0')
                return complain(error, field->key, "must be a plain value");

        type = contents[0];
        r = sd_bus_message_enter_container(message, 'v', contents);
        if (r < 0)
                return r;
        if (field->type == NUMBER)
                r = read_number(message, field, type, record, error);
        else if (field->type == FLAG)
                r = read_flag(message, field, type, record, error);
        else
                r = read_string(message, field, type, record, error);
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

/* What a key says besides its value. */
static void note_field(union wire_request *request, const struct field *field) {
        if (fields_of(request->header.verb) == acquire_fields) {
                request->acquire.want |= field->want;
                request->acquire.flags |= field->type == NUMBER ? field->flag : 0;
        } else if (request->header.verb == WIRE_UPDATE) {
                request->update.want |= field->want;
        }
}

int values_read(sd_bus_message *message, union wire_request *request,
                char error[VALUES_ERROR_SIZE]) {
        const struct field *fields = fields_of(request->header.verb), *field;
        uint32_t seen = 0;
        const char *key;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                r = sd_bus_message_read(message, "s", &key);
                if (r < 0)
                        return r;

                field = find_field(fields, key);
                if (!field)
                        return complain(error, key, "is not known here");
                if (seen & 1U << (field - fields))
                        return complain(error, key, "is there twice");
                seen |= 1U << (field - fields);

                r = read_value(message, field, request, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
                note_field(request, field);
        }
        return r < 0 ? r : sd_bus_message_exit_container(message);
}
