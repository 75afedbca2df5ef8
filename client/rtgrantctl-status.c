/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/scheduling.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

static const struct {
        int policy;
        const char *name;
} granted_policies[] = {
        { SCHED_FIFO, "FIFO" },
        { SCHED_RR, "RR" },
        { SCHED_OTHER, "OTHER" },
};

static const char *const kinds[] = { "scheduling",  "nice", "memlock",
                                     "cpu-latency", "irq",  "block-queue" };

/* Highest band first: that is the order in which threads get a CPU. */
static int by_band(const void *a, const void *b) {
        const struct rtgrant_offer *x = a, *y = b;

        if (x->priority_max != y->priority_max)
                return y->priority_max - x->priority_max;
        return x->nice_min - y->nice_min;
}

static void add_offer_row(struct table *table, const struct rtgrant_offer *offer) {
        char role[64], policies[32] = "", band[32] = "-", nice[16] = "-", threads[48],
                       answer[64] = "yes";
        bool ask_polkit = offer->reason == RTGRANT_REASON_NEEDS_AUTHORIZATION;
        size_t n = 0;

        text_printable(role, sizeof(role), offer->role);
        for (size_t i = 0; i < ELEMENTS(granted_policies); i++)
                if (offer->policies & 1U << granted_policies[i].policy)
                        n += (size_t) snprintf(policies + n, sizeof(policies) - n, "%s%s",
                                               n > 0 ? " " : "", granted_policies[i].name);
        if (offer->priority_max > 0)
                (void) snprintf(band, sizeof(band), "%d-%d", offer->priority_min,
                                offer->priority_max);
        if (offer->nice_min < 0)
                (void) snprintf(nice, sizeof(nice), "%d", offer->nice_min);
        (void) snprintf(threads, sizeof(threads), "%u of %u", offer->threads_held,
                        offer->threads_max);
        if (ask_polkit)
                (void) snprintf(answer, sizeof(answer), "if polkit allows");
        else if (offer->reason != RTGRANT_REASON_NONE)
                (void) snprintf(answer, sizeof(answer), "no: %s",
                                rtgrant_reason_to_string(offer->reason));

        table_add(table,
                  offer->reason == RTGRANT_REASON_NONE || ask_polkit ? STYLE_PLAIN : STYLE_DIM,
                  (const char *const[]) { role, band, policies, nice, threads, answer });
}

static void print_offers(const struct ctl *ctl, const struct rtgrant_status *status) {
        static const char *const headers[] = { "ROLE",    "PRIORITY", "POLICY", "NICE",
                                               "THREADS", "FOR YOU",  NULL };
        _cleanup_(cleanup_table) struct table *table = table_new(headers);

        if (!table || status->n_offers == 0)
                return;
        for (unsigned i = 0; i < status->n_offers; i++)
                add_offer_row(table, &status->offers[i]);
        putchar('\n');
        table_print(table, ctl->colour);
}

static void print_warning(const struct ctl *ctl, const char *text) {
        printf("%sWarning%s      %s\n", style_begin(ctl->colour, STYLE_WARNING),
               style_end(ctl->colour, STYLE_WARNING), text);
}

static void print_warnings(const struct ctl *ctl, const struct rtgrant_status *status) {
        char printable[1100];

        if (status->degraded)
                print_warning(ctl, "degraded: no real-time grants, since the broker cannot be "
                                   "real-time itself");
        if (status->policy_broken) {
                print_warning(ctl, "the policy has a fault; the one before stays in force");
                text_printable(printable, sizeof(printable), status->policy_error);
                printf("             %s\n", printable);
        }
        if (status->old_kernel)
                print_warning(ctl, "old kernel without pidfds of threads (before 6.9)");
}

/* Until when a user gets nothing new, and how many others do not. */
static void print_back_off(const struct ctl *ctl, const struct rtgrant_status *status) {
        unsigned others = status->n_users_in_back_off - (status->back_off_ms > 0);
        time_t end_s = (time_t) ((text_now_ms() + status->back_off_ms + 999) / 1000);
        char end[16] = "";
        struct tm tm;

        if (status->back_off_ms > 0) {
                if (localtime_r(&end_s, &tm))
                        (void) strftime(end, sizeof(end), "%H:%M:%S", &tm);
                printf("%sBack-off%s     no new real-time priority for you until %s (%.1f s): a thread "
                       "of yours took too much CPU time\n",
                       style_begin(ctl->colour, STYLE_WARNING), style_end(ctl->colour, STYLE_WARNING),
                       end, status->back_off_ms / 1000.0);
        }
        if (others > 0)
                printf("Back-off     no new real-time priority for %u%s user%s, by the guard\n", others,
                       status->back_off_ms > 0 ? " other" : "", others == 1 ? "" : "s");
}

static void print_status(struct ctl *ctl, const struct rtgrant_status *status) {
        char version[128], socket[512], user[TEXT_USER_SIZE], age[TEXT_DURATION_SIZE];
        uint64_t now = text_now_ms();

        text_printable(version, sizeof(version), status->version);
        text_printable(socket, sizeof(socket), broker_socket(&ctl->broker));
        text_user(user, sizeof(user), status->uid);
        text_duration(age, sizeof(age), now > status->started_ms ? now - status->started_ms : 0);

        printf("Broker       %srunning%s for %s: rtgrantd %s at %s\n",
               style_begin(ctl->colour, STYLE_GOOD), style_end(ctl->colour, STYLE_GOOD), age,
               version, socket);
        print_warnings(ctl, status);
        printf("You          %s%s\n", user, status->admin ? ", an administrator" : "");
        print_back_off(ctl, status);
        printf("Leases       %u of %u, of %u user%s; %u yours\n", status->n_leases,
               status->n_leases_max, status->n_users, status->n_users == 1 ? "" : "s",
               status->n_leases_own);
        printf("Connections  %u\n", status->n_connections);
        printf("Policy       loaded %u time%s; details: rtgrantctl policy\n",
               status->policy_generation, status->policy_generation == 1 ? "" : "s");
        printf("Gives       ");
        for (size_t i = 0; i < ELEMENTS(kinds); i++)
                if (status->kinds & 1U << i)
                        printf(" %s", kinds[i]);
        putchar('\n');
        print_offers(ctl, status);
        ctl_print_ladder(ctl, status);
}

static json_object *offer_json(const struct rtgrant_offer *offer) {
        json_object *object = json_object_new_object();
        json_object *policies = json_object_new_array();

        for (size_t i = 0; i < ELEMENTS(granted_policies); i++)
                if (offer->policies & 1U << granted_policies[i].policy)
                        (void) json_object_array_add(
                                policies,
                                json_object_new_string(policy_name(granted_policies[i].policy)));
        json_add_string(object, "role", offer->role);
        json_add_bool(object, "allowed", offer->reason == RTGRANT_REASON_NONE);
        json_add_string(object, "reason", offer->reason == RTGRANT_REASON_NONE ? NULL
                                          : rtgrant_reason_to_string(offer->reason));
        (void) json_object_object_add(object, "policies", policies);
        json_add_int(object, "priority_min", offer->priority_min);
        json_add_int(object, "priority_max", offer->priority_max);
        json_add_int(object, "nice_min", offer->nice_min);
        json_add_int(object, "threads_held", offer->threads_held);
        json_add_int(object, "threads_max", offer->threads_max);
        return object;
}

static void print_status_json(struct ctl *ctl, const struct rtgrant_status *status) {
        json_object *object = json_object_new_object();
        json_object *offered = json_object_new_array();
        json_object *roles = json_object_new_array();

        json_add_bool(object, "running", true);
        json_add_string(object, "version", status->version);
        json_add_string(object, "socket", broker_socket(&ctl->broker));
        json_add_time(object, "started", status->started_ms);
        json_add_int(object, "uid", status->uid);
        json_add_bool(object, "admin", status->admin);
        json_add_bool(object, "degraded", status->degraded);
        json_add_bool(object, "old_kernel", status->old_kernel);
        json_add_int(object, "policy_generation", status->policy_generation);
        json_add_string(object, "policy_error",
                        status->policy_broken ? status->policy_error : NULL);
        json_add_int(object, "leases", status->n_leases);
        json_add_int(object, "leases_own", status->n_leases_own);
        json_add_int(object, "leases_max", status->n_leases_max);
        json_add_int(object, "users", status->n_users);
        json_add_int(object, "connections", status->n_connections);
        if (status->back_off_ms > 0)
                json_add_time(object, "back_off_until", text_now_ms() + status->back_off_ms);
        json_add_int(object, "back_off_ms", status->back_off_ms);
        json_add_int(object, "users_in_back_off", status->n_users_in_back_off);
        for (size_t i = 0; i < ELEMENTS(kinds); i++)
                if (status->kinds & 1U << i)
                        (void) json_object_array_add(offered, json_object_new_string(kinds[i]));
        (void) json_object_object_add(object, "kinds", offered);
        for (unsigned i = 0; i < status->n_offers; i++)
                (void) json_object_array_add(roles, offer_json(&status->offers[i]));
        (void) json_object_object_add(object, "roles", roles);
        (void) json_object_object_add(object, "ladder", ctl_ladder_json(ctl, status));
        json_print(object);
}

/* To a script, no broker is an answer as well. */
static void print_absent_json(const struct ctl *ctl) {
        json_object *object = json_object_new_object();
        char why[BROKER_ERROR_SIZE];

        broker_error_text(&ctl->broker, ctl->broker.error, why, sizeof(why));
        json_add_bool(object, "running", false);
        json_add_string(object, "socket", broker_socket(&ctl->broker));
        json_add_string(object, "error", why);
        json_print(object);
}

int ctl_status(struct ctl *ctl, char **argv) {
        struct rtgrant_status status = { .size = sizeof(status) };
        int r, failed;

        failed = ctl_connect(ctl);
        if (failed != 0) {
                if (ctl->json)
                        print_absent_json(ctl);
                return failed;
        }
        r = rtgrant_get_status(ctl->broker.handle, &status);
        if (r < 0)
                return ctl_fail(ctl, r, NULL);
        status.admin = ctl_is_admin(ctl);

        qsort(status.offers, status.n_offers, sizeof(status.offers[0]), by_band);
        if (ctl->json)
                print_status_json(ctl, &status);
        else
                print_status(ctl, &status);
        return STATUS_DONE;
}
