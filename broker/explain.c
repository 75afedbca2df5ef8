/* SPDX-License-Identifier: MIT */

#include "broker/explain.h"

#include <stdio.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/resource.h"
#include "broker/sched-values.h"
#include "broker/text.h"

static const struct {
        enum reason reason;
        const char *text;
        const char *help;
} plain[] = {
        { REASON_MALFORMED, "this is no record of the broker's protocol",
          "use librtgrant, or the layouts in its protocol.h; the connection is closed" },
        { REASON_VERSION, "the broker does not speak this version of the protocol",
          "update librtgrant or rtgrantd so that they match; the connection is closed" },
        { REASON_INVALID, "a value in the request is none that the kernel knows",
          "priorities are 1..99 with FIFO and RR and 0 else, nice is -20..19, ids are 1..4194304; "
          "see sched(7)" },
        { REASON_UNSUPPORTED, "this broker does not give what was asked for",
          "rtgrantctl status shows which kinds of grant it has; SCHED_FIFO, SCHED_RR, SCHED_OTHER "
          "and nice are served" },
        { REASON_NO_SUCH_THREAD, "there is no such thread, or it is not yours",
          "it may have ended meanwhile; ps -eLo pid,tid,user,comm lists threads with their "
          "owners" },
        { REASON_TARGET_PRIVILEGED,
          "the thread runs with more rights than its user (another group, or capabilities)",
          "such a program must ask for itself, or be given its priority by an administrator with "
          "chrt(1)" },
        { REASON_NAMESPACE,
          "the thread's number is of another pid namespace and cannot be mapped to a thread here",
          "ask for threads of your own process, or pass a pidfd of the other one" },
        { REASON_TARGET_CHANGED,
          "the thread became another program or user while it was served; what was set is undone",
          "ask again once the program runs" },
        { REASON_NO_SUCH_LEASE, "there is no such lease, or it is not yours",
          "it may have ended meanwhile; rtgrantctl list shows your leases" },
        { REASON_NOT_CONNECTOR,
          "this connection was opened by another process than the one that asks",
          "after fork(2), or when handed a socket, open a connection of your own" },
        { REASON_ADMIN_ONLY, "only an administrator may do this",
          "do it as root, outside any container, or have a rule of polkit allow "
          "org.rtgrant.manage" },
        { REASON_NOT_AUTHORIZED, "polkit does not allow this",
          "do it from a session at the machine itself, or ask an administrator for a rule in "
          "/etc/polkit-1/rules.d/" },
        { REASON_AUTHORITY_UNAVAILABLE, "polkit should decide this, and did not answer",
          "an administrator can look at systemctl status polkit; then try again" },
        { REASON_AUTHORITY_BUSY,
          "polkit should decide this, and has too many questions to answer already",
          "answer those that wait for a password, or try again in a moment" },
        { REASON_NEEDS_AUTHORIZATION, "polkit decides this, and was not asked yet",
          "ask in earnest, and polkit decides" },
        { REASON_RTTIME,
          "RLIMIT_RTTIME of the process is unset, above what the policy allows, or so low that its "
          "real-time threads would be killed",
          "set its hard limit with setrlimit(2), to RTTimeUSecMax at most; RealtimeKitRTTime= and "
          "RealtimeKitRTTimeUnset= in [Broker] say what is allowed" },
        { REASON_CONNECTIONS_PER_USER, "your user has too many connections to the broker",
          "close some; ConnectionsPerUser= in the policy sets the limit" },
        { REASON_CONNECTIONS_TOTAL, "the broker has too many connections",
          "try again later; ConnectionsMax= in the policy sets the limit" },
        { REASON_RESOURCES, "the broker is out of memory or file descriptors", "try again later" },
        { REASON_RESOURCE_UNAVAILABLE, "this cannot be granted here",
          "rtgrantctl status shows which kinds of grant there are" },
        { REASON_NO_SUCH_DEVICE, "there is no such device", "rtgrantctl irq lists sound cards, ls /sys/class/block disks" },
        { REASON_IRQ_NOT_THREADED, "the interrupt has no thread",
          "boot with threadirqs on the kernel's command line, or a PREEMPT_RT kernel" },
        { REASON_IRQ_NOT_THREADABLE, "the interrupt has no thread",
          "use another device; rtgrantctl irq shows which have one" },
        { REASON_IRQ_AMBIGUOUS, "the device cannot be told from others on its interrupt",
          "name the thread exactly, as irq/130-enp3s0-TxRx-0; rtgrantctl irq --all lists them" },
        { REASON_KERNEL_CAPABILITY, "the kernel refused: the broker may not set priorities",
          "give rtgrantd CAP_SYS_NICE (CapabilityBoundingSet= of its unit)" },
        { REASON_KERNEL_RT_GROUP, "the kernel refused: the cgroup has no real-time budget",
          "boot with rt_group_sched=0, or move the program to a cgroup with cpu.rt_runtime_us; "
          "nice can be had meanwhile" },
        { REASON_KERNEL_SECCOMP, "the kernel refused: a system call filter on the broker",
          "allow sched_setattr in SystemCallFilter= of rtgrantd's unit" },
        { REASON_KERNEL_LSM, "the kernel refused: a security module forbids it",
          "look into the audit log, and allow rtgrantd to set the scheduling of other processes" },
        { REASON_KERNEL_OTHER, "the kernel refused", "see sched_setattr(2)" },
        { REASON_KERNEL_MISMATCH,
          "the kernel agreed, but other values are in force; what was set is undone",
          "another program may be changing the thread at the same time: ananicy, gamemode, a game "
          "launcher" },
        { REASON_DEGRADED,
          "the broker cannot run real-time itself, so it gives no real-time priority",
          "rtgrantctl status and the log say why; nice can be had meanwhile" },
        { REASON_NO_ACTIVE_SESSION, "this needs a session at the machine itself",
          "log in at the machine itself, or ask an administrator for a place on a list of the role" },
        { REASON_ADMISSION, "there is no room for the timing that was declared",
          "declare less computation or a longer period" },
        { REASON_ABOVE_SERVER, "the thread would outrank what it feeds",
          "ask for a lower priority; rtgrantctl status draws who stands where" },
        { REASON_BACK_OFF, "a thread of this user took too much CPU time a short time ago",
          "wait as long as the answer says" },
        { REASON_RATE, "too many requests in a short time", "wait as long as the answer says" },
        { REASON_RELOAD_FAILED, "the policy has a fault, and the one before stays in force",
          "mend the file and reload again" },
};

void explain_wire(struct wire_explanation *ret, enum reason reason) {
        *ret = (struct wire_explanation) {};

        for (size_t i = 0; i < ELEMENTS(plain); i++)
                if (plain[i].reason == reason) {
                        text_copy(ret->text, sizeof(ret->text), plain[i].text);
                        text_copy(ret->help, sizeof(ret->help), plain[i].help);
                        return;
                }

        text_copy(ret->text, sizeof(ret->text), reason_to_string(reason));
}

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

static const char *session_words(enum session_state state) {
        switch (state) {
        case SESSION_REMOTE:
                return "it came from afar, by ssh or the like";
        case SESSION_INACTIVE:
                return "its session is not the one in front";
        default:
                return "it has no login session at all, as cron jobs and services";
        }
}

static void explain_authority(struct wire_explanation *ret, const struct refusal *refusal,
                              const char *wanted) {
        const struct role *role = refusal->decision->role;
        const char *name = role ? role->name : "(none)";
        const char *action = refusal->decision->about_resource
                                     ? resource_action(refusal->decision->resource)
                             : refusal->action ? refusal->action
                             : role            ? role->action
                                               : "(none)";
        bool asked = role && refusal->decision->rule.line == role->rules[ROLE_KEY_ACTION].line;

        switch (refusal->reason) {
        case REASON_NOT_AUTHORIZED:
                TEXT("user %u asked for %s in role %s; polkit does not allow it (action %s)",
                     refusal->uid, wanted, name, action);
                HELP("log in at the machine itself rather than by ssh, or ask an administrator to "
                     "allow %s by a rule in /etc/polkit-1/rules.d/, or to add the user to a group "
                     "that the role allows",
                     action);
                break;
        case REASON_NO_ACTIVE_SESSION:
                TEXT("user %u asked for %s in role %s; %s%s%s, and the user has no active session: %s",
                     refusal->uid, wanted, name,
                     asked ? "polkit does not allow it (action " : "no list allows it",
                     asked ? action : "", asked ? ")" : "", session_words(refusal->session));
                HELP("log in at the machine itself; or an administrator adds the user to a group "
                     "that the role allows, or the kind of session to AllowSessions= of [Role %s]",
                     name);
                break;
        case REASON_AUTHORITY_UNAVAILABLE:
                TEXT("user %u asked for %s in role %s; polkit should decide, and did not answer "
                     "(action %s)",
                     refusal->uid, wanted, name, action);
                HELP("an administrator can look at systemctl status polkit; users and groups that "
                     "[Role %s] allows do not depend on it",
                     name);
                break;
        case REASON_AUTHORITY_BUSY:
                TEXT("user %u asked for %s in role %s; polkit should decide, and has too many "
                     "questions to answer already (action %s)",
                     refusal->uid, wanted, name, action);
                HELP("answer those that wait for a password, or try again in a moment");
                break;
        case REASON_NEEDS_AUTHORIZATION:
                TEXT("user %u may have %s in role %s if polkit allows it (action %s)", refusal->uid,
                     wanted, name, action);
                HELP("ask in earnest, and polkit decides; pkaction --verbose --action-id %s shows "
                     "whom it allows",
                     action);
                break;
        default:
                break;
        }
}

static void explain_order(struct wire_explanation *ret, const struct refusal *refusal,
                          const char *wanted, const char *name) {
        const struct decision *decision = refusal->decision;
        char what[64] = "a thread of the user in a role that this one is to stay below", bands[200];

        if (!decision->rule.file)
                (void) snprintf(what, sizeof(what), "thread %d, which it feeds",
                                refusal->feeds_tid);
        describe_bands(refusal->policy, bands, sizeof(bands));
        TEXT("user %u asked for %s in role %s, which is %lld; %s, has %lld and must come first",
             refusal->uid, wanted, name, (long long) decision->asked, what,
             (long long) decision->limit + 1);
        HELP("ask for %lld at most, or use --clamp; the bands: %s; rtgrantctl status draws who "
             "stands where",
             (long long) decision->limit, bands);
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

static void explain_policy(struct wire_explanation *ret, const struct refusal *refusal) {
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

void explain_grant(struct wire_explanation *ret, const struct decision *decision) {
        const char *name = decision->role ? decision->role->name : "(none)";
        struct rule rule = decision->clamped ? decision->rule : decision->pick_rule;
        size_t n;

        switch (decision->pick) {
        case PICK_NONE:
                break;
        case PICK_FIRST:
                TEXT("role %s: the first that allows you and gives this", name);
                break;
        case PICK_MOST:
                TEXT("role %s: of those that allow you it gives most of this", name);
                break;
        case PICK_UNIT:
                TEXT("role %s: its Units= name the unit of this process", name);
                break;
        case PICK_EXECUTABLE:
                TEXT("role %s: its Executables= name this program", name);
                break;
        }
        n = strlen(ret->text);
        if (decision->clamped) {
                (void) snprintf(ret->text + n, sizeof(ret->text) - n,
                                "%sless than was asked, since role %s has a limit",
                                n > 0 ? "; " : "", name);
                ret->asked = decision->asked;
                ret->limit = decision->limit;
        }
        if (rule.file)
                (void) snprintf(ret->rule, sizeof(ret->rule), "%s:%u", rule.file, rule.line);
}

void explain_refusal(struct wire_explanation *ret, const struct refusal *refusal) {
        explain_wire(ret, refusal->reason);

        if (refusal->decision && refusal->request)
                explain_policy(ret, refusal);
        if (refusal->reason == REASON_NO_SUCH_THREAD && refusal->tid != 0 && refusal->pid != 0)
                TEXT("there is no thread %llu of process %llu, or it is not yours",
                     (unsigned long long) refusal->tid, (unsigned long long) refusal->pid);
        else if (refusal->reason == REASON_NO_SUCH_THREAD &&
                 (refusal->tid != 0 || refusal->pid != 0))
                TEXT("there is no %s %llu, or it is not yours",
                     refusal->pid != 0 ? "process" : "thread",
                     (unsigned long long) (refusal->pid != 0 ? refusal->pid : refusal->tid));

        if (refusal->cause && refusal->cause[0] != '\0') {
                size_t length = strlen(ret->text);

                (void) snprintf(ret->text + length, sizeof(ret->text) - length, ": %s",
                                refusal->cause);
        }
}
