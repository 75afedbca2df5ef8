/* SPDX-License-Identifier: MIT */

#include "client/cli/broker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/exit-status.h"
#include "client/cli/text.h"
#include "client/protocol.h"

int broker_connect(struct broker *broker) {
        if (!broker->tried) {
                broker->tried = true;
                broker->error = rtgrant_open(&broker->handle, broker->socket, 0);
                if (broker->error >= 0 && broker->may_ask)
                        agent_start(&broker->agent);
        }
        return broker->error < 0 ? broker->error : 0;
}

void broker_done(struct broker *broker) {
        broker->handle = rtgrant_close(broker->handle);
        agent_stop(&broker->agent);
        free(broker->leases);
        *broker = (struct broker) { .socket = broker->socket };
}

static int on_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct broker *broker = userdata;
        struct lease_ref *leases;

        leases = reallocarray(broker->leases, broker->n_leases + 1, sizeof(*leases));
        if (!leases)
                return -ENOMEM;

        leases[broker->n_leases++] = (struct lease_ref) { .tid = lease->tid, .id = lease->id };
        broker->leases = leases;
        return 0;
}

int broker_find_lease(struct broker *broker, pid_t tid, struct rtgrant_id *ret) {
        int r;

        r = broker_connect(broker);
        if (r < 0)
                return r;
        if (!broker->leases_known) {
                r = rtgrant_list(broker->handle, /* all= */ false, on_lease, broker);
                if (r < 0)
                        return r;
                broker->leases_known = true;
        }

        for (size_t i = 0; i < broker->n_leases; i++)
                if (broker->leases[i].tid == tid) {
                        *ret = broker->leases[i].id;
                        return 0;
                }
        return -ENOENT;
}

const char *broker_socket(const struct broker *broker) {
        const char *socket = broker->socket ? broker->socket : secure_getenv("RTGRANT_SOCKET");

        return socket && socket[0] ? socket : WIRE_SOCKET_PATH;
}

bool broker_is_error(int error) {
        return error < 0 && error != -EPERM && error != -ESRCH && error != -EINVAL;
}

void broker_error_text(const struct broker *broker, int error, char *buffer, size_t size) {
        char path[256];

        text_printable(path, sizeof(path), broker_socket(broker));
        switch (error) {
        case RTGRANT_ABSENT:
                (void) snprintf(buffer, size, "no broker is running at %s", path);
                break;
        case -EACCES:
                (void) snprintf(buffer, size, "%s is closed to this user", path);
                break;
        case -EUSERS:
                (void) snprintf(buffer, size, "the broker has too many connections already");
                break;
        case -ENOBUFS:
                (void) snprintf(buffer, size, "the broker is out of memory or descriptors");
                break;
        case -ETIMEDOUT:
                (void) snprintf(buffer, size, "the broker at %s does not answer", path);
                break;
        case -EPROTO:
                (void) snprintf(buffer, size, "what answers at %s is no rtgrant broker", path);
                break;
        default:
                (void) snprintf(buffer, size, "asking the broker at %s: %s", path,
                                strerror(-error));
        }
}

void broker_request(const struct options *options, const struct thread *thread,
                    struct rtgrant_request *ret) {
        bool own = thread->tid == gettid();
        bool pinned = !own && thread->pidfd >= 0; /* then numbers could only contradict it */

        *ret = (struct rtgrant_request) {
                .size = sizeof(*ret),
                .flags = (options->clamp ? RTGRANT_CLAMP : 0U) |
                         (options->dry_run ? RTGRANT_DRY_RUN : 0U) |
                         (options->ask ? RTGRANT_MAY_ASK : 0U) |
                         (options->or_less ? RTGRANT_OR_LESS : 0U),
                .role = options->role,
                .reason = options->reason,
                .pid = own || pinned ? 0 : thread->pid,
                .tid = own || pinned ? 0 : thread->tid,
                .pidfd_plus_one = pinned ? thread->pidfd + 1 : 0,
                .wants_sched = options->sched_wanted,
                .wants_nice = options->nice_wanted,
                .policy = options->scheduling.policy,
                .priority = options->scheduling.priority,
                .nice = options->nice,
                .is_relative = options->is_relative,
                .relative = options->relative,
                .feeds_tid = options->feeds_tid,
                .feeds = options->feeds,
                .lifetime = options->lifetime_s > 0 ? RTGRANT_LIFETIME_SECONDS
                                                    : RTGRANT_LIFETIME_THREAD,
                .lifetime_s = options->lifetime_s,
                .memlock_bytes = options->resources.memlock_bytes,
                .cpu_latency_us = options->resources.cpu_latency_us,
                .block_max_sectors_kb = options->resources.block_max_sectors_kb,
                .block = options->resources.block,
                .irq = options->resources.irq,
                .irq_priority = options->resources.irq_priority,
        };
        options_timing(options, &ret->period_ns, &ret->computation_ns);
        ret->deadline_ns = ret->period_ns;
}

static const struct rtgrant_offer *find_offer(const struct rtgrant_status *status,
                                              const char *role) {
        for (unsigned i = 0; i < status->n_offers; i++)
                if (strcmp(status->offers[i].role, role) == 0)
                        return &status->offers[i];

        return NULL;
}

/* Errors: the connection's; -ENOENT if there is no such role, -EOPNOTSUPP if it has no band. */
static int take_from_role(struct broker *broker, struct options *options) {
        struct rtgrant_status status = { .size = sizeof(status) };
        const struct rtgrant_offer *offer;
        int *policy = &options->scheduling.policy;
        int r;

        r = broker_connect(broker);
        if (r < 0)
                return r;
        r = rtgrant_get_status(broker->handle, &status);
        if (r < 0)
                return r;
        offer = find_offer(&status, options->role);
        if (!offer)
                return -ENOENT;
        if (offer->priority_max == 0)
                return -EOPNOTSUPP;

        if (!options->policy_given && !(offer->policies & 1U << *policy))
                *policy = SCHED_FIFO;
        options->scheduling.priority = offer->priority_min;
        return 0;
}

int broker_complete_options(struct broker *broker, struct options *options) {
        char role[128], why[BROKER_ERROR_SIZE];
        int r;

        if (!options->role || !options_lack_priority(options))
                return options_complete(options);

        r = take_from_role(broker, options);
        if (r >= 0)
                return options_complete(options);
        text_printable(role, sizeof(role), options->role);
        if (r == -ENOENT || r == -EOPNOTSUPP) {
                fprintf(stderr,
                        "%s: refused: role %s %s\n  help: rtgrantctl status shows the roles there "
                        "are\n",
                        options->program, role,
                        r == -ENOENT ? "does not exist" : "gives no real-time priority");
                return STATUS_REFUSED;
        }
        broker_error_text(broker, r, why, sizeof(why));
        fprintf(stderr, "%s: %s, so there is nobody to say which priority role %s gives\n"
                        "  help: name a PRIORITY\n", options->program, why, role);
        return STATUS_NO_BROKER;
}
