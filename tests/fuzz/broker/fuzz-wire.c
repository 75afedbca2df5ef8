/* SPDX-License-Identifier: MIT */

/*
 * Records from the socket, as far as they go without a process behind them: decoded, decided on by
 * a policy, and the refusal put into words.
 */

#include <sched.h>

#include "broker/explain.h"
#include "broker/wire.h"
#include "policy/policy.h"
#include "tests/fuzz/broker/fuzz.h"

/* Nothing of each may be missing. */
static const size_t sizes[] = {
        [WIRE_HELLO] = 24,  [WIRE_ACQUIRE] = sizeof(struct wire_acquire), [WIRE_UPDATE] = 80,
        [WIRE_RENEW] = 40,  [WIRE_RELEASE] = 40,     [WIRE_LIST] = 32,
        [WIRE_WATCH] = 32,  [WIRE_REVOKE] = 40,      [WIRE_RELOAD] = 16,
        [WIRE_POLICY] = 32, [WIRE_WHY] = sizeof(struct wire_acquire), [WIRE_RESTORE_ALL] = 16,
        [WIRE_OBSERVE] = 32, [WIRE_OCCUPANTS] = 32,
};

static bool is_zero(const void *from, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (((const uint8_t *) from)[i] != 0)
                        return false;

        return true;
}

static bool is_text(const char *text, size_t size) {
        size_t length = strnlen(text, size);

        for (size_t i = 0; i < length; i++)
                if ((uint8_t) text[i] < 0x20 || (uint8_t) text[i] >= 0x7f)
                        return false;

        return length < size;
}

static void check_explanation(const struct wire_explanation *e) {
        REQUIRE(is_text(e->rule, sizeof(e->rule)));
        REQUIRE(is_text(e->text, sizeof(e->text)) && e->text[0] != '\0');
        REQUIRE(is_text(e->help, sizeof(e->help)));
        REQUIRE(e->padding == 0);
}

static const uint32_t ids[] = { 1000 };
static const struct role roles[] = {
        {
                .name = "low",
                .description = "",
                .policies = 1 << SCHED_RR | 1 << SCHED_OTHER,
                .priority_min = 1,
                .priority_max = 20,
                .nice_min = -11,
                .threads_per_user_max = 3,
                .lifetime_s_max = 60,
                .allow_users = { .everybody = true },
                .rules = { [ROLE_KEY_PRIORITY] = { "/etc/rtgrant/policy.conf", 7 } },
        },
        {
                .name = "high",
                .description = "",
                .policies = 1 << SCHED_FIFO,
                .priority_min = 50,
                .priority_max = 94,
                .threads_per_user_max = 1,
                .lifetime_s_max = 10,
                .allow_users = { .ids = ids, .n_ids = 1 },
        },
};
static const struct policy policy = {
        .roles = roles,
        .n_roles = 2,
        .threads_max = 10,
        .threads_per_user_max = 4,
};

static void decide(const struct wire_acquire *wire) {
        const gid_t gid = wire->header.serial >> 8 & 1 ? 1000 : 4;
        const unsigned held[POLICY_ROLES_MAX] = { wire->header.serial & 3,
                                                  wire->header.serial >> 2 & 1 };
        const struct situation now = {
                .uid = gid,
                .gids = &gid,
                .n_gids = 1,
                .in_user_namespace = wire->header.serial >> 9 & 1,
                .rt_possible = !(wire->header.serial >> 10 & 1),
                .threads_held = held[0] + held[1],
                .threads_held_by_role = held,
                .threads_total = wire->header.serial >> 12 & 15,
                .grant_tokens = !(wire->header.serial >> 11 & 1),
                .grant_wait_ms = 5,
        };
        const struct request request = {
                .role = wire->role,
                .wants_sched = wire->want & WIRE_WANT_SCHED,
                .policy = (int) wire->policy,
                .priority = wire->priority,
                .wants_nice = wire->want & WIRE_WANT_NICE,
                .nice = wire->nice,
                .lifetime = wire->lifetime % 3,
                .lifetime_s = wire->lifetime_s,
                .clamp = wire->flags & WIRE_ACQUIRE_CLAMP,
        };
        const struct decision decision = policy_evaluate(&policy, &now, &request);
        const struct refusal refusal = {
                .reason = decision.reason,
                .uid = now.uid,
                .pid = wire->pid,
                .tid = wire->tid,
                .policy = &policy,
                .request = &request,
                .decision = &decision,
                .cause = wire->header.serial >> 16 & 1 ? "the kernel says so" : NULL,
        };
        struct wire_explanation explanation;

        if (decision.verdict == VERDICT_GRANT) {
                REQUIRE(decision.role && decision.reason == REASON_NONE);
                REQUIRE(!request.wants_sched || decision.priority <= decision.role->priority_max);
                REQUIRE(!request.wants_nice || decision.nice >= decision.role->nice_min);
                return;
        }

        REQUIRE(decision.reason != REASON_NONE);
        explain_refusal(&explanation, &refusal);
        check_explanation(&explanation);
}

static void refuse(enum reason reason, const struct wire_header *request) {
        struct wire_answer answer = { .reason = reason };

        explain_wire(&answer.explanation, reason);
        check_explanation(&answer.explanation);
        REQUIRE(wire_finish_answer(&answer, request) == sizeof(answer));
        REQUIRE(answer.header.serial == request->serial);
        REQUIRE(answer.header.verb & WIRE_REPLY);
}

/* What was taken for a request is one from its first byte to its last. */
static void check_request(const union wire_request *request, const char *record, size_t size) {
        const struct wire_acquire *acquire = &request->acquire;
        uint16_t verb = request->header.verb;

        REQUIRE(request->header.size == size && size <= WIRE_RECORD_MAX);
        REQUIRE(request->header.version == WIRE_VERSION);
        REQUIRE(verb >= WIRE_HELLO && verb <= WIRE_OCCUPANTS);
        REQUIRE(size >= sizes[verb] && memcmp(request, record, sizes[verb]) == 0);
        REQUIRE(is_zero(record + sizes[verb], size - sizes[verb]));
        REQUIRE(is_zero((const uint8_t *) request + sizes[verb], sizeof(*request) - sizes[verb]));
        if (verb != WIRE_ACQUIRE)
                return;

        REQUIRE(memchr(acquire->role, '\0', sizeof(acquire->role)));
        REQUIRE(memchr(acquire->reason, '\0', sizeof(acquire->reason)));
        REQUIRE(memchr(acquire->irq, '\0', sizeof(acquire->irq)));
        REQUIRE(memchr(acquire->block, '\0', sizeof(acquire->block)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *record = fuzz_text(data, size); /* so that a byte too many read is seen */
        union wire_request request;
        enum reason reason;

        memset(&request, 0xaa, sizeof(request));
        reason = wire_decode(record, size, &request);
        if (reason == REASON_NONE) {
                check_request(&request, record, size);
                if (request.header.verb == WIRE_ACQUIRE)
                        decide(&request.acquire);
        } else {
                REQUIRE(reason == REASON_MALFORMED || reason == REASON_VERSION ||
                        reason == REASON_UNSUPPORTED);
                REQUIRE(memcmp(&request, record,
                               size < sizeof(request.header) ? size : sizeof(request.header)) == 0);
                refuse(reason, &request.header);
        }
        free(record);
        return 0;
}
