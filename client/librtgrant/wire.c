/* SPDX-License-Identifier: MIT */

#include "client/librtgrant/wire.h"

#include <limits.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "client/librtgrant/thread.h"

/* Copies one array of characters to another of the same or a larger size, and ends it. */
#define STRING_COPY(ret, from)                                                                    \
        do {                                                                                      \
                static_assert(sizeof(ret) >= sizeof(from), "nothing is lost");                    \
                memcpy((ret), (from), sizeof(from));                                              \
                (ret)[sizeof(from) - 1] = '\0';                                                   \
        } while (false)

static pid_t pid_from_wire(uint64_t pid) {
        return pid <= INT_MAX ? (pid_t) pid : 0;
}

static bool is_device(const char *name) {
        return !name || (name[0] != '\0' && strlen(name) < WIRE_DEVICE_SIZE);
}

int request_read(const struct rtgrant_request *request, struct rtgrant_request *ret) {
        struct rtgrant_request copy;
        char device[WIRE_DEVICE_SIZE];
        int r;

        r = public_copy_in(request, REQUEST_SIZE_FIRST, &copy, sizeof(copy));
        if (r < 0)
                return r;

        if (copy.flags & ~(unsigned) (RTGRANT_DRY_RUN | RTGRANT_CLAMP | RTGRANT_MAY_ASK |
                                      RTGRANT_DIRECT | RTGRANT_OR_LESS))
                return -EINVAL;
        if (copy.feeds_tid < 0 || (!copy.is_relative && copy.relative != 0))
                return -EINVAL;
        if (copy.pid < 0 || copy.tid < 0 || copy.pidfd_plus_one < 0)
                return -EINVAL;
        if (copy.role && strlen(copy.role) >= WIRE_ROLE_SIZE)
                return -EINVAL;
        if ((unsigned) copy.lifetime > RTGRANT_LIFETIME_SECONDS)
                return -EINVAL;
        if (copy.lifetime == RTGRANT_LIFETIME_SECONDS && copy.lifetime_s == 0)
                return -EINVAL;

        if (!copy.block != (copy.block_max_sectors_kb == 0) || (copy.irq_priority != 0 && !copy.irq))
                return -EINVAL;
        if (!is_device(copy.irq) || !is_device(copy.feeds))
                return -EINVAL;
        if (copy.block) {
                r = block_find(copy.block, device);
                if (r < 0)
                        return r;
        }

        if (request_is_own(&copy) && copy.tid == 0)
                copy.tid = thread_self();

        *ret = copy;
        return 0;
}

bool request_is_own(const struct rtgrant_request *request) {
        return request->pidfd_plus_one == 0 && (request->pid == 0 || request->pid == getpid());
}

/* At most @size - 1 bytes of @text, not ending within a UTF-8 character; the rest stays 0. */
static void string_encode(const char *text, char *ret, size_t size) {
        size_t length;

        if (!text)
                return;

        length = strnlen(text, size);
        if (length == size)
                for (length--; length > 0 && ((unsigned char) text[length] & 0xc0) == 0x80;)
                        length--;

        memcpy(ret, text, length);
}

static uint32_t request_wants(const struct rtgrant_request *request) {
        return (request->wants_sched ? WIRE_WANT_SCHED : 0U) |
               (request->wants_nice ? WIRE_WANT_NICE : 0U);
}

static uint32_t request_wants_resources(const struct rtgrant_request *request) {
        return (request->memlock_bytes != 0 ? WIRE_WANT_MEMLOCK : 0U) |
               (request->cpu_latency_us != 0 ? WIRE_WANT_CPU_LATENCY : 0U) |
               (request->block ? WIRE_WANT_BLOCK_QUEUE : 0U) |
               (request->irq ? WIRE_WANT_IRQ : 0U);
}

bool request_is_of_thread(const struct rtgrant_request *request) {
        return request_wants_resources(request) == 0;
}

static uint64_t request_wire_flags(const struct rtgrant_request *request) {
        return (request->flags & RTGRANT_DRY_RUN ? WIRE_ACQUIRE_DRY_RUN : 0U) |
               (request->flags & RTGRANT_CLAMP ? WIRE_ACQUIRE_CLAMP : 0U) |
               (request->flags & RTGRANT_MAY_ASK ? WIRE_ACQUIRE_MAY_ASK : 0U) |
               (request->flags & RTGRANT_OR_LESS ? WIRE_ACQUIRE_OR_LESS : 0U) |
               (request->is_relative ? WIRE_ACQUIRE_RELATIVE : 0U) |
               (request->pidfd_plus_one > 0 ? WIRE_ACQUIRE_PIDFD : 0U);
}

static enum wire_lifetime lifetime_encode(enum rtgrant_lifetime lifetime) {
        switch (lifetime) {
        case RTGRANT_LIFETIME_THREAD:
                return WIRE_LIFETIME_THREAD;
        case RTGRANT_LIFETIME_SECONDS:
                return WIRE_LIFETIME_SECONDS;
        case RTGRANT_LIFETIME_CONNECTION:
                break;
        }

        return WIRE_LIFETIME_CONNECTION;
}

static enum rtgrant_lifetime lifetime_decode(uint32_t lifetime) {
        switch (lifetime) {
        case WIRE_LIFETIME_THREAD:
                return RTGRANT_LIFETIME_THREAD;
        case WIRE_LIFETIME_SECONDS:
                return RTGRANT_LIFETIME_SECONDS;
        }

        return RTGRANT_LIFETIME_CONNECTION;
}

void request_encode_acquire(const struct rtgrant_request *request, struct wire_acquire *ret) {
        bool seconds = request->lifetime == RTGRANT_LIFETIME_SECONDS;

        *ret = (struct wire_acquire) {
                .header = { .size = sizeof(*ret), .verb = WIRE_ACQUIRE },
                .flags = request_wire_flags(request),
                .pid = (uint64_t) request->pid,
                .tid = (uint64_t) request->tid,
                .want = request_wants(request) | request_wants_resources(request),
                .policy = request->wants_sched ? (uint32_t) request->policy : 0,
                .priority = request->wants_sched ? request->priority : 0,
                .nice = request->wants_nice ? request->nice : 0,
                .memlock_bytes = request->memlock_bytes,
                .cpu_latency_us = request->cpu_latency_us,
                .block_max_sectors_kb = request->block_max_sectors_kb,
                .irq_priority = request->irq_priority,
                .lifetime = lifetime_encode(request->lifetime),
                .lifetime_s = seconds ? request->lifetime_s : 0,
                .period_ns = request->period_ns,
                .computation_ns = request->computation_ns,
                .deadline_ns = request->deadline_ns,
                .feeds_tid = (uint64_t) request->feeds_tid,
                .relative = request->relative,
        };
        string_encode(request->role, ret->role, sizeof(ret->role));
        string_encode(request->reason, ret->reason, sizeof(ret->reason));
        string_encode(request->irq, ret->irq, sizeof(ret->irq));
        string_encode(request->feeds, ret->feeds, sizeof(ret->feeds));
        /* It was found before; what has gone since the broker does not find either. */
        if (request->block)
                (void) block_find(request->block, ret->block);
}

void request_encode_update(const struct rtgrant_request *request, const struct rtgrant_id *id,
                           struct wire_update *ret) {
        *ret = (struct wire_update) {
                .header = { .size = sizeof(*ret), .verb = WIRE_UPDATE },
                .flags = request_wire_flags(request) &
                         (WIRE_ACQUIRE_DRY_RUN | WIRE_ACQUIRE_CLAMP | WIRE_ACQUIRE_MAY_ASK),
                .want = request_wants(request),
                .policy = request->wants_sched ? (uint32_t) request->policy : 0,
                .priority = request->wants_sched ? request->priority : 0,
                .nice = request->wants_nice ? request->nice : 0,
                .period_ns = request->period_ns,
                .computation_ns = request->computation_ns,
                .deadline_ns = request->deadline_ns,
        };
        memcpy(ret->id, id->bytes, sizeof(ret->id));
}

void answer_decode(const struct wire_answer *wire, struct rtgrant_answer *ret) {
        const struct wire_explanation *why = &wire->explanation;

        *ret = (struct rtgrant_answer) {
                .size = sizeof(*ret),
                .reason = (int) wire->reason,
                .route = RTGRANT_ROUTE_BROKER,
                .clamped = wire->flags & WIRE_ANSWER_CLAMPED,
                .updated = wire->flags & WIRE_ANSWER_UPDATED,
                .noted = wire->flags & WIRE_ANSWER_NOTED,
                .pid = pid_from_wire(wire->pid),
                .tid = pid_from_wire(wire->tid),
                .policy = (int) wire->policy,
                .priority = wire->priority,
                .nice = wire->nice,
                .reset_on_fork = wire->reset_on_fork != 0,
                .previous_policy = (int) wire->previous_policy,
                .previous_priority = wire->previous_priority,
                .previous_nice = wire->previous_nice,
                .count = wire->count,
                .rung = (enum rtgrant_rung) wire->rung,
                .retry_after_ms = why->retry_after_ms,
                .asked = why->asked,
                .limit = why->limit,
                .granted = wire->granted_want,
                .memlock_bytes = wire->memlock_bytes,
                .memlock_locked = wire->memlock_locked,
                .cpu_latency_us = wire->cpu_latency_us,
                .block_max_sectors_kb = wire->block_max_sectors_kb,
                .irq_priority = wire->irq_priority,
        };
        memcpy(ret->id.bytes, wire->id, sizeof(ret->id.bytes));
        STRING_COPY(ret->role, wire->role);
        STRING_COPY(ret->rule, why->rule);
        STRING_COPY(ret->text, why->text);
        STRING_COPY(ret->help, why->help);
}

int answer_check(const struct rtgrant_answer *answer, const struct rtgrant_request *request) {
        if (answer->reason != RTGRANT_REASON_NONE)
                return 0;

        if (request->flags & RTGRANT_OR_LESS)
                return 0;
        if (answer->clamped)
                return request->flags & RTGRANT_CLAMP ? 0 : -EPROTO;

        if (request->wants_sched &&
            (answer->policy != request->policy ||
             (!request->is_relative && answer->priority != request->priority)))
                return -EPROTO;
        if (request->wants_nice && answer->nice != request->nice)
                return -EPROTO;
        if ((request_wants_resources(request) & ~answer->granted) != 0)
                return -EPROTO;

        return 0;
}

static const char *transport_to_string(uint32_t transport) {
        switch (transport) {
        case WIRE_TRANSPORT_SOCKET:
                return "socket";
        case WIRE_TRANSPORT_BROKER1:
                return "Broker1";
        case WIRE_TRANSPORT_REALTIMEKIT:
                return "RealtimeKit1";
        }

        return "unknown";
}

void lease_decode(struct wire_lease *wire, struct rtgrant_lease *ret) {
        WIRE_STRING_END(wire->comm);
        WIRE_STRING_END(wire->role);
        WIRE_STRING_END(wire->reason);
        WIRE_STRING_END(wire->irq);
        WIRE_STRING_END(wire->block);

        *ret = (struct rtgrant_lease) {
                .size = sizeof(*ret),
                .uid = wire->uid,
                .pid = pid_from_wire(wire->pid),
                .tid = pid_from_wire(wire->tid),
                .state = (enum rtgrant_lease_state) wire->state,
                .policy = (int) wire->policy,
                .priority = wire->priority,
                .nice = wire->nice,
                .holds_sched = wire->granted_want & WIRE_WANT_SCHED,
                .holds_nice = wire->granted_want & WIRE_WANT_NICE,
                .granted_policy = (int) wire->granted_policy,
                .granted_priority = wire->granted_priority,
                .granted_nice = wire->granted_nice,
                .lifetime = lifetime_decode(wire->lifetime),
                .since_ms = wire->since_ms,
                .expires_ms = wire->expires_ms,
                .period_ns = wire->period_ns,
                .computation_ns = wire->computation_ns,
                .deadline_ns = wire->deadline_ns,
                .comm = wire->comm,
                .role = wire->role,
                .reason = wire->reason,
                .transport = transport_to_string(wire->transport),
                .memlock_bytes = wire->memlock_bytes,
                .cpu_latency_us = wire->cpu_latency_us,
                .block_max_sectors_kb = wire->block_max_sectors_kb,
                .irq_priority = wire->irq_priority,
                .irq = wire->irq,
                .block = wire->block,
        };
        memcpy(ret->id.bytes, wire->id, sizeof(ret->id.bytes));
}

void status_decode(const struct wire_hello_reply *wire, struct rtgrant_status *ret) {
        *ret = (struct rtgrant_status) {
                .size = sizeof(*ret),
                .uid = wire->uid,
                .admin = wire->state & WIRE_STATE_ADMIN,
                .degraded = wire->state & WIRE_STATE_DEGRADED,
                .policy_broken = wire->state & WIRE_STATE_POLICY_BROKEN,
                .old_kernel = wire->state & WIRE_STATE_OLD_KERNEL,
                .kinds = wire->kinds,
                .n_leases = wire->n_leases,
                .n_users = wire->n_users,
                .n_leases_own = wire->n_leases_own,
                .n_leases_max = wire->n_leases_max,
                .n_connections = wire->n_connections,
                .policy_generation = wire->policy_generation,
                .started_ms = wire->started_ms,
                .back_off_ms = wire->back_off_ms,
                .n_users_in_back_off = wire->n_users_in_back_off,
        };
        STRING_COPY(ret->version, wire->version);
        STRING_COPY(ret->policy_error, wire->policy_error);
}

void offer_decode(const struct wire_offer *wire, struct rtgrant_offer *ret) {
        *ret = (struct rtgrant_offer) {
                .reason = (int) wire->reason,
                .policies = wire->policies,
                .priority_min = wire->priority_min,
                .priority_max = wire->priority_max,
                .nice_min = wire->nice_min,
                .threads_held = wire->threads_held,
                .threads_max = wire->threads_max,
        };
        STRING_COPY(ret->role, wire->role);
}

int reason_to_error(uint32_t reason) {
        switch (reason) {
        case RTGRANT_REASON_NONE:
        case RTGRANT_REASON_MALFORMED:
        case RTGRANT_REASON_VERSION:
                return -EPROTO;
        case RTGRANT_REASON_CONNECTIONS_PER_USER:
        case RTGRANT_REASON_CONNECTIONS_TOTAL:
                return -EUSERS;
        case RTGRANT_REASON_RESOURCES:
                return -ENOBUFS;
        }

        return -EACCES;
}

int wire_element(const void *record, size_t size, size_t offset, uint32_t n, uint32_t stride,
                 uint32_t index, void *ret, size_t ret_size) {
        if (stride == 0 || n > WIRE_RECORD_MAX / stride || offset + (size_t) n * stride > size)
                return -EPROTO;

        memset(ret, 0, ret_size);
        memcpy(ret, (const uint8_t *) record + offset + (size_t) index * stride,
               stride < ret_size ? stride : ret_size);
        return 0;
}
