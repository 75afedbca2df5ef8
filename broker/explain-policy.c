/* SPDX-License-Identifier: MIT */

/* What the policy refused, in words. */

#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/explain.h"
#include "broker/explain-authority.h"
#include "broker/resource.h"
#include "broker/sched-values.h"
#include "broker/text.h"

static void describe_wanted(const struct request *request, char *buffer, size_t size) {
        int n = 0;

        buffer[0] = '\0';
        if (request->wants_sched && request->is_relative)
                n = snprintf(buffer, size, "SCHED_%s at place %+d of the band",
                             sched_policy_to_string(request->policy), request->relative);
        else if (request->wants_sched && sched_is_rt(request->policy))
                n = snprintf(buffer, size, "SCHED_%s %d", sched_policy_to_string(request->policy),
                             request->priority);
        else if (request->wants_sched)
                n = snprintf(buffer, size, "SCHED_%s", sched_policy_to_string(request->policy));
        if (request->wants_nice && n >= 0 && (size_t) n < size)
                n += snprintf(buffer + n, size - (size_t) n, "%snice %d", n > 0 ? " and " : "",
                              request->nice);
        for (enum resource_index i = 0; i < _RESOURCE_MAX; i++) {
                char text[64];

                if (!(request->resources & 1U << i) || n < 0 || (size_t) n >= size)
                        continue;
                resource_to_string(i, request->values[i], text, sizeof(text));
                n += snprintf(buffer + n, size - (size_t) n, "%s%s", n > 0 ? " and " : "", text);
        }
}

static void describe_policies(unsigned policies, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "%s%s%s", policies & (1U << SCHED_FIFO) ? " FIFO" : "",
                        policies & (1U << SCHED_RR) ? " RR" : "",
                        policies & (1U << SCHED_OTHER) ? " OTHER" : "");
}

/* The bands there are, for one who asked for a priority that no role gives. */
static void describe_bands(const struct policy *policy, char *buffer, size_t size) {
        size_t n = 0;

        buffer[0] = '\0';
        for (size_t i = 0; policy && i < policy->n_roles && n < size; i++) {
                const struct role *role = &policy->roles[i];

                if (role->priority_max == 0)
                        continue;
                n += (size_t) snprintf(buffer + n, size - n, "%s%s %d-%d", n > 0 ? ", " : "",
                                       role->name, role->priority_min, role->priority_max);
        }
}

#define TEXT(...) (void) snprintf(ret->text, sizeof(ret->text), __VA_ARGS__)
#define HELP(...) (void) snprintf(ret->help, sizeof(ret->help), __VA_ARGS__)

static void explain_who(struct wire_explanation *ret, const struct refusal *refusal,
                        const char *wanted) {
        const struct role *role = refusal->decision->role;

        switch (refusal->reason) {
        case REASON_NOT_ALLOWED:
                TEXT("user %u asked for %s; no rule of role %s allows this user", refusal->uid,
                     wanted, role ? role->name : "(none)");
                HELP("an administrator can add the user to a group that the role allows (then log "
                     "in anew), or to "
                     "AllowUsers= of [Role %s]",
                     role ? role->name : "NAME");
                break;
        case REASON_DENIED:
                TEXT("user %u asked for %s; a rule of role %s denies this user", refusal->uid,
                     wanted, role ? role->name : "(none)");
                HELP("an administrator decided so; the rule's place is given");
                break;
        case REASON_NO_SUCH_ROLE: {
                char bands[200];

                describe_bands(refusal->policy, bands, sizeof(bands));
                TEXT("user %u asked for a role that the policy does not have", refusal->uid);
                HELP("roles with their priorities: %s", bands);
                break;
        }
        case REASON_USER_NAMESPACE:
                TEXT("user %u asked from within a user namespace (a container or sandbox), which "
                     "the policy does "
                     "not serve",
                     refusal->uid);
                HELP("an administrator can set UserNamespaces=yes in [Broker]; quotas are then "
                     "those of the "
                     "namespace's owner");
                break;
        default:
                break;
        }
}

static void describe_superior(const struct refusal *refusal, const char *device, char *buffer,
                              size_t size) {
        switch (refusal->decision->superior) {
        case SUPERIOR_THREAD:
                (void) snprintf(buffer, size, "thread %d, which it feeds,", refusal->feeds_tid);
                break;
        case SUPERIOR_IRQ:
                (void) snprintf(buffer, size, "the interrupt of %s, which it feeds,", device);
                break;
        case SUPERIOR_NONE:
        case SUPERIOR_ROLE:
                text_copy(buffer, size,
                          "a thread of the user in a role that this one is to stay below");
                break;
        }
}

static void explain_order(struct wire_explanation *ret, const struct refusal *refusal,
                          const char *wanted, const char *name) {
        const struct decision *decision = refusal->decision;
        bool has_room = decision->limit >= decision->limit_low;
        char what[80], bands[200], less[64] = "", device[40] = "";

        if (refusal->feeds)
                text_escape(device, sizeof(device), refusal->feeds, strlen(refusal->feeds));
        describe_superior(refusal, device, what, sizeof(what));
        describe_bands(refusal->policy, bands, sizeof(bands));
        TEXT("user %u asked for %s in role %s, which is %lld; %s has %lld and must come first",
             refusal->uid, wanted, name, (long long) decision->asked, what,
             (long long) decision->limit + 1);
        if (has_room)
                (void) snprintf(less, sizeof(less), "ask for %lld at most, or use --clamp",
                                (long long) decision->limit);
        if (decision->superior == SUPERIOR_IRQ)
                HELP("%s%sraise the interrupt, by --irq %s in a role that gives it or by [Irq "
                     "NAME] of the policy; the bands: %s",
                     less, has_room ? "; or " : "", device, bands);
        else
                HELP("%s; the bands: %s; rtgrantctl status draws who stands where",
                     has_room ? less : "ask in a role below that", bands);
}

static void explain_admission(struct wire_explanation *ret, const struct refusal *refusal,
                              const char *name) {
        const struct decision *decision = refusal->decision;
        const struct request *request = refusal->request;
        const struct policy *policy = refusal->policy;
        bool role = decision->role && decision->rule.line != 0 &&
                    decision->rule.line == decision->role->rules[ROLE_KEY_DECLARED_CPU].line &&
                    decision->rule.file == decision->role->rules[ROLE_KEY_DECLARED_CPU].file;
        double missing = (double) (decision->asked - decision->limit) / 10000;

        TEXT("user %u declared %.3f ms of computation every %.3f ms; with what is declared already "
             "that is %.1f %% of a CPU where %s leaves %.1f %%: %.1f %% too much",
             refusal->uid, (double) request->computation_ns / 1e6,
             (double) request->period_ns / 1e6, (double) decision->asked / 10000,
             role ? "DeclaredCPU=" : "ReserveCPU=", (double) decision->limit / 10000, missing);
        HELP("declare less computation or a longer period, end what declared too (rtgrantctl list), "
             "or let the thread run on more CPUs; ReserveCPU= in [Broker] (%u%%) and DeclaredCPU= "
             "in [Role %s] set the limits",
             policy ? policy->reserve_cpu_percent : 0, name);
}

static void explain_limit(struct wire_explanation *ret, const struct refusal *refusal,
                          const char *wanted) {
        const struct decision *decision = refusal->decision;
        const struct role *role = decision->role;
        const char *name = role ? role->name : "(none)";
        char buffer[200];

        switch (refusal->reason) {
        case REASON_POLICY_NOT_IN_ROLE:
                describe_policies(role ? role->policies : 0, buffer, sizeof(buffer));
                TEXT("user %u asked for %s; role %s gives only:%s", refusal->uid, wanted, name,
                     role && role->priority_max == 0 ? " nice" : buffer);
                HELP("ask for one of these, or in another role (rtgrantctl status lists them)");
                break;
        case REASON_PRIORITY_LIMIT:
                describe_bands(refusal->policy, buffer, sizeof(buffer));
                TEXT("user %u asked for %s; role %s gives %lld to %lld", refusal->uid, wanted, name,
                     (long long) decision->limit_low, (long long) decision->limit);
                HELP("the roles give: %s; with --clamp you get the highest that is allowed",
                     buffer);
                break;
        case REASON_ABOVE_SERVER:
                explain_order(ret, refusal, wanted, name);
                break;
        case REASON_ADMISSION:
                explain_admission(ret, refusal, name);
                break;
        case REASON_NICE_LIMIT:
                TEXT("user %u asked for %s; role %s gives nice %lld and weaker", refusal->uid,
                     wanted, name, (long long) decision->limit);
                HELP("ask for nice %lld, or use --clamp", (long long) decision->limit);
                break;
        case REASON_LIFETIME_LIMIT:
                TEXT("user %u asked for a lease of %lld s; role %s gives at most %lld s",
                     refusal->uid, (long long) decision->asked, name, (long long) decision->limit);
                HELP("ask for less and renew the lease before it ends");
                break;
        default:
                break;
        }
}

static const char *resource_key(enum resource_index index) {
        static const char *const keys[_RESOURCE_MAX] = {
                [RESOURCE_MEMLOCK] = "Memlock",
                [RESOURCE_CPU_LATENCY] = "CpuLatency",
                [RESOURCE_BLOCK_QUEUE] = "BlockQueue",
                [RESOURCE_IRQ] = "IrqPriority",
        };

        return keys[index];
}

static void explain_resource(struct wire_explanation *ret, const struct refusal *refusal) {
        const struct decision *decision = refusal->decision;
        const char *name = decision->role ? decision->role->name : "(none)";
        char asked[64], low[64], high[64];

        resource_to_string(decision->resource, decision->asked, asked, sizeof(asked));
        resource_to_string(decision->resource, decision->limit_low, low, sizeof(low));
        resource_to_string(decision->resource, decision->limit, high, sizeof(high));

        switch (refusal->reason) {
        case REASON_RESOURCE_NOT_IN_ROLE:
                TEXT("user %u asked for %s, of which role %s gives nothing", refusal->uid, asked,
                     name);
                HELP("%s= in [Role %s] sets what it gives; rtgrantctl policy shows the other roles",
                     resource_key(decision->resource), name);
                break;
        case REASON_RESOURCE_LIMIT:
                TEXT("user %u asked for %s; role %s gives from %s to %s", refusal->uid, asked, name,
                     low, high);
                HELP("%s= in [Role %s] sets the limit; with --clamp you get what it gives",
                     resource_key(decision->resource), name);
                break;
        case REASON_MEMLOCK_QUOTA:
                TEXT("user %u asked for %s; only %lld KiB of what may be lent are left", refusal->uid,
                     asked, (long long) decision->limit / 1024);
                HELP("end other programs that have it (rtgrantctl list; children inherit it); "
                     "MemlockPerUser= in [Role %s] and MemlockMax= in [Broker] set the limits",
                     name);
                break;
        case REASON_IRQ_NOT_IN_ROLE:
                TEXT("user %u asked for %s of a device that role %s does not name", refusal->uid,
                     asked, name);
                HELP("ask for the sound card itself, as card:0 (rtgrantctl irq lists them); "
                     "IrqDevices= in [Role %s] names the devices", name);
                break;
        case REASON_ON_BATTERY:
                TEXT("user %u asked for %s; role %s gives it on mains power only", refusal->uid,
                     asked, name);
                HELP("plug the machine in; CpuLatencyOnBattery= in [Role %s] allows it without",
                     name);
                break;
        default:
                break;
        }
}

static void explain_quota(struct wire_explanation *ret, const struct refusal *refusal) {
        const struct decision *decision = refusal->decision;
        const char *name = decision->role ? decision->role->name : "(none)";

        switch (refusal->reason) {
        case REASON_THREADS_PER_USER:
                TEXT("user %u has %lld leased threads already, which is all that a user may have",
                     refusal->uid, (long long) decision->limit);
                HELP("end or release some (rtgrantctl list); ThreadsPerUser= in [Broker] sets the "
                     "limit");
                break;
        case REASON_THREADS_PER_ROLE:
                TEXT("user %u has %lld leased threads in role %s already, which is all that it "
                     "gives a user",
                     refusal->uid, (long long) decision->limit, name);
                HELP("end or release some (rtgrantctl list); ThreadsPerUser= in [Role %s] sets the "
                     "limit",
                     name);
                break;
        case REASON_THREADS_TOTAL:
                TEXT("the broker has given %lld leases, which is all that it may give",
                     (long long) decision->limit);
                HELP("try again later; ThreadsMax= in [Broker] sets the limit");
                break;
        case REASON_BACK_OFF:
                TEXT("user %u has a thread that took too much CPU time and was demoted; until that "
                     "is over, nothing more is given",
                     refusal->uid);
                HELP("try again in %u ms; rtgrantctl list shows the thread, BackOff= and "
                     "BackOffMax= in [Broker] set how long it takes",
                     decision->retry_after_ms);
                break;
        case REASON_RATE:
                TEXT("user %u asked for too many grants in a short time", refusal->uid);
                HELP("try again in %u ms; GrantBurst= and GrantRefill= in [Broker] set the limit",
                     decision->retry_after_ms);
                break;
        default:
                break;
        }
}

void explain_policy(struct wire_explanation *ret, const struct refusal *refusal) {
        const struct decision *decision = refusal->decision;
        char wanted[200];

        describe_wanted(refusal->request, wanted, sizeof(wanted));
        explain_who(ret, refusal, wanted);
        explain_authority(ret, refusal, wanted);
        explain_limit(ret, refusal, wanted);
        explain_quota(ret, refusal);
        explain_resource(ret, refusal);

        ret->asked = decision->asked;
        ret->limit = decision->limit;
        ret->retry_after_ms = decision->retry_after_ms;
        if (decision->rule.file)
                (void) snprintf(ret->rule, sizeof(ret->rule), "%s:%u", decision->rule.file,
                                decision->rule.line);
}
