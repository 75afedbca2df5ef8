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
          "RLIMIT_RTTIME of the process is unset, or above what the policy allows",
          "set its hard limit with setrlimit(2), to RTTimeUSecMax at most; RealtimeKitRTTime= and "
          "RealtimeKitRTTimeUnset= in [Broker] say what is allowed" },
        { REASON_RTTIME_LETHAL,
          "RLIMIT_RTTIME of the process is so low that the kernel would kill it as soon as it ran "
          "real-time",
          "set it to 50 ms or more with setrlimit(2); if the program did not set it, rtgrantctl why "
          "--pid says where it comes from" },
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
          "boot with rt_group_sched=0, or move the program to a cgroup with cpu.rt_runtime_us (v2: "
          "with the cpu controller off); nice can be had meanwhile" },
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

#define TEXT(...) (void) snprintf(ret->text, sizeof(ret->text), __VA_ARGS__)

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

void explain_message(char buffer[EXPLAIN_MESSAGE_SIZE], const struct wire_explanation *why) {
        bool rule = why->rule[0] != '\0', help = why->help[0] != '\0';

        (void) snprintf(buffer, EXPLAIN_MESSAGE_SIZE, "%s%s%s%s%s%s", why->text, rule ? " [" : "",
                        why->rule, rule ? "]" : "", help ? "; " : "", why->help);
}
