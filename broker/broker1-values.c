/* SPDX-License-Identifier: MIT */

#include "broker/broker1-values.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/lease.h"
#include "broker/text.h"

enum field_type {
        NUMBER,                 /* any of D-Bus's integers, if the value fits */
        FLAG,                   /* b: or'ed into a 64-bit field */
        STRING,
        WORD,                   /* s: one of a list of words, as a number */
};

struct word {
        const char *word;
        uint32_t number;
};

struct field {
        const char *key;
        enum field_type type;
        size_t offset;
        size_t size;
        bool is_signed;
        uint64_t flag;          /* what a FLAG sets; of a NUMBER: set in `flags` too */
        uint32_t want;          /* or'ed into the record's `want` */
        const struct word *words;
};

static const struct word policies[] = {
        { "fifo", SCHED_FIFO }, { "rr", SCHED_RR }, { "other", SCHED_OTHER }, {}
};

static const struct word lifetimes[] = {
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
        { "policy", WORD, AT(wire_acquire, policy), .want = WIRE_WANT_SCHED, .words = policies },
        { "priority", NUMBER, SIGNED(wire_acquire, priority), .want = WIRE_WANT_SCHED },
        { "nice", NUMBER, SIGNED(wire_acquire, nice), .want = WIRE_WANT_NICE },
        { "pid", NUMBER, AT(wire_acquire, pid) },
        { "tid", NUMBER, AT(wire_acquire, tid) },
        { "pidfd-inode", NUMBER, AT(wire_acquire, pidfd_inode) },
        { "interactive", FLAG, AT(wire_acquire, flags), .flag = WIRE_ACQUIRE_MAY_ASK },
        { "lifetime", WORD, AT(wire_acquire, lifetime), .words = lifetimes },
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
        { "policy", WORD, AT(wire_update, policy), .want = WIRE_WANT_SCHED, .words = policies },
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

static const char *policy_to_string(uint32_t policy) {
        for (const struct word *word = policies; word->word; word++)
                if (word->number == policy)
                        return word->word;
        return "unknown";
}

/* Each pair is one call, and the first error ends the row. */
#define PAIR(type, key, value) \
        if (r >= 0)            \
        r = sd_bus_message_append(message, "{sv}", key, type, value)

static const char *rung_to_string(uint32_t rung) {
        static const char *const words[] = {
                [WIRE_RUNG_AS_ASKED] = "as-asked",
                [WIRE_RUNG_RR] = "rr",
                [WIRE_RUNG_NICE] = "nice",
        };

        return rung < ELEMENTS(words) ? words[rung] : "unknown";
}

static int append_answer(sd_bus_message *message, const struct wire_answer *answer) {
        char id[LEASE_ID_STRING_SIZE];
        int r;

        lease_id_to_string(answer->id, id);
        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "id", answer->flags & WIRE_ANSWER_DRY_RUN ? "" : id);
        PAIR("t", "pid", answer->pid);
        PAIR("t", "tid", answer->tid);
        PAIR("s", "role", answer->role);
        PAIR("s", "policy", policy_to_string(answer->policy));
        PAIR("i", "priority", answer->priority);
        PAIR("i", "nice", answer->nice);
        PAIR("b", "reset-on-fork", (int) answer->reset_on_fork);
        PAIR("s", "previous-policy", policy_to_string(answer->previous_policy));
        PAIR("i", "previous-priority", answer->previous_priority);
        PAIR("i", "previous-nice", answer->previous_nice);
        PAIR("b", "clamped", (answer->flags & WIRE_ANSWER_CLAMPED) != 0);
        PAIR("b", "dry-run", (answer->flags & WIRE_ANSWER_DRY_RUN) != 0);
        PAIR("b", "updated", (answer->flags & WIRE_ANSWER_UPDATED) != 0);
        PAIR("s", "note", answer->flags & WIRE_ANSWER_NOTED ? answer->explanation.text : "");
        PAIR("t", "memlock-bytes", answer->memlock_bytes);
        PAIR("t", "memlock-locked", answer->memlock_locked);
        PAIR("u", "cpu-latency-us", answer->cpu_latency_us);
        PAIR("u", "block-max-sectors-kb", answer->block_max_sectors_kb);
        PAIR("i", "irq-priority", answer->irq_priority);
        PAIR("s", "rung", rung_to_string(answer->rung));
        PAIR("s", "text", answer->explanation.text);
        PAIR("s", "rule", answer->explanation.rule);
        PAIR("x", "asked", answer->explanation.asked);
        PAIR("x", "limit", answer->explanation.limit);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static const char *step_to_string(const struct wire_step *step) {
        return step->reason != REASON_NONE       ? reason_to_string((enum reason) step->reason)
               : step->flags & WIRE_STEP_ASK     ? "asks-polkit"
               : step->flags & WIRE_STEP_CLAMPED ? "lowered"
                                                 : "passed";
}

static int append_step(sd_bus_message *message, const struct wire_step *step) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "role", step->role);
        PAIR("s", "rule", step->rule);
        PAIR("s", "says", step_to_string(step));
        PAIR("x", "asked", step->asked);
        PAIR("x", "limit", step->limit);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_steps(sd_bus_message *message, const struct wire_why_reply *why) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < why->n_steps; i++)
                r = append_step(message, &why->steps[i]);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_offer(sd_bus_message *message, const struct wire_offer *offer) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "role", offer->role);
        PAIR("s", "refusal", offer->reason == REASON_NONE
                                     ? ""
                                     : reason_to_string((enum reason) offer->reason));
        PAIR("b", "fifo", (offer->policies & 1U << SCHED_FIFO) != 0);
        PAIR("b", "rr", (offer->policies & 1U << SCHED_RR) != 0);
        PAIR("b", "other", (offer->policies & 1U << SCHED_OTHER) != 0);
        PAIR("i", "priority-min", offer->priority_min);
        PAIR("i", "priority-max", offer->priority_max);
        PAIR("i", "nice-min", offer->nice_min);
        PAIR("u", "threads-held", offer->threads_held);
        PAIR("u", "threads-max", offer->threads_max);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_offers(sd_bus_message *message, const struct wire_hello_reply *hello) {
        int r;

        r = sd_bus_message_open_container(message, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(message, "s", "offers");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'v', "aa{sv}");
        if (r >= 0)
                r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < hello->n_offers; i++)
                r = append_offer(message, &hello->offers[i]);
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(message);
        return r;
}

static int append_hello(sd_bus_message *message, const struct wire_hello_reply *hello) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "version", hello->version);
        PAIR("u", "uid", hello->uid);
        PAIR("t", "pid", hello->pid);
        PAIR("b", "admin", (hello->state & WIRE_STATE_ADMIN) != 0);
        PAIR("b", "degraded", (hello->state & WIRE_STATE_DEGRADED) != 0);
        PAIR("b", "old-kernel", (hello->state & WIRE_STATE_OLD_KERNEL) != 0);
        PAIR("s", "policy-error", hello->policy_error);
        PAIR("u", "policy-generation", hello->policy_generation);
        PAIR("u", "leases", hello->n_leases);
        PAIR("u", "leases-own", hello->n_leases_own);
        PAIR("u", "leases-max", hello->n_leases_max);
        PAIR("u", "users", hello->n_users);
        PAIR("t", "started-ms", hello->started_ms);
        if (r >= 0)
                r = append_offers(message, hello);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static const char *state_to_string(uint32_t state) {
        static const char *const words[] = {
                [WIRE_LEASE_IN_FORCE] = "in-force",
                [WIRE_LEASE_CHANGED] = "changed",
                [WIRE_LEASE_DEMOTED] = "demoted",
        };

        return state < ELEMENTS(words) ? words[state] : "unknown";
}

int values_append_lease(sd_bus_message *message, const struct wire_lease *lease) {
        char id[LEASE_ID_STRING_SIZE];
        int r;

        lease_id_to_string(lease->id, id);
        r = sd_bus_message_open_container(message, 'a', "{sv}");
        PAIR("s", "id", id);
        PAIR("u", "uid", lease->uid);
        PAIR("t", "pid", lease->pid);
        PAIR("t", "tid", lease->tid);
        PAIR("s", "name", lease->comm);
        PAIR("s", "role", lease->role);
        PAIR("s", "reason", lease->reason);
        PAIR("s", "state", state_to_string(lease->state));
        PAIR("s", "policy", policy_to_string(lease->policy));
        PAIR("i", "priority", lease->priority);
        PAIR("i", "nice", lease->nice);
        PAIR("s", "granted-policy", policy_to_string(lease->granted_policy));
        PAIR("i", "granted-priority", lease->granted_priority);
        PAIR("i", "granted-nice", lease->granted_nice);
        PAIR("s", "lifetime", lease->lifetime < ELEMENTS(lifetimes) - 1
                                      ? lifetimes[lease->lifetime].word
                                      : "unknown");
        PAIR("t", "since-ms", lease->since_ms);
        PAIR("t", "expires-ms", lease->expires_ms);
        PAIR("t", "period-ns", lease->period_ns);
        PAIR("t", "computation-ns", lease->computation_ns);
        PAIR("t", "deadline-ns", lease->deadline_ns);
        PAIR("t", "memlock-bytes", lease->memlock_bytes);
        PAIR("u", "cpu-latency-us", lease->cpu_latency_us);
        PAIR("s", "irq", lease->irq);
        PAIR("i", "irq-priority", lease->irq_priority);
        PAIR("s", "block", lease->block);
        PAIR("u", "block-max-sectors-kb", lease->block_max_sectors_kb);
        return r < 0 ? r : sd_bus_message_close_container(message);
}

static int append_list(sd_bus_message *message, const struct wire_list_reply *list) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "a{sv}");
        for (uint32_t i = 0; r >= 0 && i < list->n_leases; i++)
                r = values_append_lease(message, &list->leases[i]);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_append(message, "t", list->next);
}

static int append_policy(sd_bus_message *message, const struct wire_policy_reply *policy) {
        int r;

        r = sd_bus_message_open_container(message, 'a', "(ssss)");
        for (uint32_t i = 0; r >= 0 && i < policy->n_entries; i++)
                r = sd_bus_message_append(message, "(ssss)", policy->entries[i].section,
                                          policy->entries[i].key, policy->entries[i].value,
                                          policy->entries[i].origin);
        if (r >= 0)
                r = sd_bus_message_close_container(message);
        return r < 0 ? r : sd_bus_message_append(message, "t", policy->next);
}

int values_append_reply(sd_bus_message *message, enum wire_verb verb,
                        const union wire_response *response) {
        switch (verb) {
        case WIRE_HELLO:
                return append_hello(message, &response->hello);
        case WIRE_LIST:
                return append_list(message, &response->list);
        case WIRE_POLICY:
                return append_policy(message, &response->policy);
        case WIRE_WHY:
                return append_steps(message, &response->why);
        case WIRE_WATCH:
                return sd_bus_message_append(message, "a{sv}", 0);
        case WIRE_RELOAD:
        case WIRE_RESTORE_ALL:
                return sd_bus_message_append(message, "a{sv}", 1, "count", "u",
                                             response->answer.count);
        default:
                return append_answer(message, &response->answer);
        }
}
