/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/explain.h"
#include "client/cli/json.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

#define SHORT_ID_LENGTH 8

struct listing {
        struct table *table;
        json_object *array;     /* instead of the table, with --json; NULL otherwise */
        uint64_t now_ms;
};

static const char *lifetime_name(enum rtgrant_lifetime lifetime) {
        switch (lifetime) {
        case RTGRANT_LIFETIME_CONNECTION:
                return "connection";
        case RTGRANT_LIFETIME_THREAD:
                return "thread";
        case RTGRANT_LIFETIME_SECONDS:
                return "seconds";
        }
        return "unknown";
}

json_object *ctl_lease_json(const struct rtgrant_lease *lease) {
        json_object *object = json_object_new_object();
        char user[TEXT_USER_SIZE];

        text_user(user, sizeof(user), lease->uid);
        json_add_id(object, "id", &lease->id);
        json_add_int(object, "uid", lease->uid);
        json_add_string(object, "user", user);
        json_add_int(object, "pid", lease->pid);
        json_add_int(object, "tid", lease->tid);
        json_add_string(object, "comm", lease->comm);
        json_add_string(object, "role", lease->role);
        json_add_policy(object, "policy", lease->policy);
        json_add_int(object, "priority", lease->priority);
        json_add_int(object, "nice", lease->nice);
        json_add_string(object, "state", ctl_lease_state(lease->state));
        if (lease->holds_sched) {
                json_add_policy(object, "granted_policy", lease->granted_policy);
                json_add_int(object, "granted_priority", lease->granted_priority);
        } else {
                json_add_null(object, "granted_policy");
                json_add_null(object, "granted_priority");
        }
        if (lease->holds_nice)
                json_add_int(object, "granted_nice", lease->granted_nice);
        else
                json_add_null(object, "granted_nice");
        explain_resources_json(object, &(struct rtgrant_answer) {
                                               .memlock_bytes = lease->memlock_bytes,
                                               .cpu_latency_us = lease->cpu_latency_us,
                                               .block_max_sectors_kb = lease->block_max_sectors_kb,
                                               .irq_priority = lease->irq_priority,
                                       });
        json_add_text(object, "block", lease->block);
        json_add_text(object, "irq", lease->irq);
        json_add_time(object, "since", lease->since_ms);
        json_add_time(object, "expires", lease->expires_ms);
        json_add_string(object, "lifetime", lifetime_name(lease->lifetime));
        json_add_text(object, "reason", lease->reason);
        json_add_string(object, "transport", lease->transport);
        return object;
}

static const char *text_or_null(const char *text) {
        return text[0] != '\0' ? text : NULL;
}

void ctl_describe_granted(char buffer[EXPLAIN_VALUES_SIZE], const struct rtgrant_lease *lease) {
        explain_values(buffer, &(struct values) {
                                       .has_policy = lease->holds_sched,
                                       .policy = lease->granted_policy,
                                       .priority = lease->granted_priority,
                                       .has_nice = lease->holds_nice,
                                       .nice = lease->granted_nice,
                                       .resources = {
                                               .memlock_bytes = lease->memlock_bytes,
                                               .cpu_latency_us = lease->cpu_latency_us,
                                               .block_max_sectors_kb = lease->block_max_sectors_kb,
                                               .block = text_or_null(lease->block),
                                               .irq = text_or_null(lease->irq),
                                               .irq_priority = lease->irq_priority,
                                       },
                               });
}

/* "in force", "changed: SCHED_OTHER" */
static void describe_state(char *buffer, size_t size, const struct rtgrant_lease *lease) {
        struct values values = {
                .has_policy = lease->holds_sched,
                .policy = lease->policy,
                .priority = lease->priority,
                .has_nice = lease->holds_nice,
                .nice = lease->nice,
        };
        char now[EXPLAIN_VALUES_SIZE];

        explain_values(now, &values);
        if (lease->state == RTGRANT_LEASE_IN_FORCE)
                (void) snprintf(buffer, size, "in force");
        else
                (void) snprintf(buffer, size, "%s: %s", ctl_lease_state(lease->state), now);
}

/* "with its thread", "in 3 min" */
static void describe_end(char *buffer, size_t size, const struct rtgrant_lease *lease,
                         uint64_t now_ms) {
        char left[TEXT_DURATION_SIZE];

        if (lease->expires_ms == 0) {
                (void) snprintf(buffer, size, "with its %s", lifetime_name(lease->lifetime));
                return;
        }
        text_duration(left, sizeof(left),
                      lease->expires_ms > now_ms ? lease->expires_ms - now_ms : 0);
        (void) snprintf(buffer, size, "in %s", left);
}

static void add_row(struct table *table, const struct rtgrant_lease *lease, uint64_t now_ms) {
        char id[RTGRANT_ID_STRING_SIZE], user[TEXT_USER_SIZE], pid[16], tid[16], comm[128],
                role[128];
        char granted[EXPLAIN_VALUES_SIZE], state[EXPLAIN_VALUES_SIZE + 16], age[TEXT_DURATION_SIZE],
                end[48], reason[512];
        bool in_force = lease->state == RTGRANT_LEASE_IN_FORCE;

        rtgrant_id_to_string(&lease->id, id);
        id[SHORT_ID_LENGTH] = '\0';
        text_user(user, sizeof(user), lease->uid);
        (void) snprintf(pid, sizeof(pid), "%d", (int) lease->pid);
        (void) snprintf(tid, sizeof(tid), "%d", (int) lease->tid);
        text_printable(comm, sizeof(comm), lease->comm);
        text_printable(role, sizeof(role), lease->role);
        ctl_describe_granted(granted, lease);
        describe_state(state, sizeof(state), lease);
        text_duration(age, sizeof(age), now_ms > lease->since_ms ? now_ms - lease->since_ms : 0);
        describe_end(end, sizeof(end), lease, now_ms);
        text_printable(reason, sizeof(reason), lease->reason);

        table_add(table, in_force ? STYLE_PLAIN : STYLE_WARNING,
                  (const char *const[]){ id, user, pid, tid, comm, role, granted, state, age, end,
                                         reason });
}

static int on_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct listing *listing = userdata;

        if (listing->array)
                (void) json_object_array_add(listing->array, ctl_lease_json(lease));
        else
                add_row(listing->table, lease, listing->now_ms);
        return 0;
}

/* Why the list may be empty, and what to do. */
static void print_hint(struct ctl *ctl) {
        struct rtgrant_status status = { .size = sizeof(status) };

        printf(ctl->all ? "No leases.\n" : "You have no leases.\n");
        if (rtgrant_get_status(ctl->broker.handle, &status) < 0)
                return;
        if (!ctl->all && status.n_leases > 0 && ctl_is_admin(ctl))
                printf("Others have %u: rtgrantctl list --all\n", status.n_leases);
        else if (!ctl->all)
                printf("To get one: rtgrant -r PRIORITY COMMAND; what you may have: rtgrantctl "
                       "status\n");
}

int ctl_list(struct ctl *ctl, char **argv) {
        static const char *const headers[] = { "ID",      "USER", "PID",     "TID",
                                               "COMMAND", "ROLE", "GRANTED", "STATE",
                                               "SINCE",   "ENDS", "REASON",  NULL };
        _cleanup_(cleanup_table) struct table *table = NULL;
        struct listing listing = { .now_ms = text_now_ms() };
        int r, status;

        status = ctl_connect(ctl);
        if (status != 0)
                return status;
        listing.table = table = table_new(headers);
        listing.array = ctl->json ? json_object_new_array() : NULL;
        if (!table)
                return ctl_fail(ctl, -ENOMEM, NULL);

        r = rtgrant_list(ctl->broker.handle, ctl->all, on_lease, &listing);
        if (r < 0) {
                (void) json_object_put(listing.array);
                return ctl_fail(ctl, r, NULL);
        }
        if (ctl->json)
                json_print(listing.array);
        else if (table_rows(table) > 0)
                table_print(table, ctl->colour);
        else
                print_hint(ctl);
        return STATUS_DONE;
}
