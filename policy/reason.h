/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_REASON_H
#define RTGRANT_POLICY_REASON_H

/*
 * Why a request was refused or a lease ended. One row a reason: its number on the wire (never
 * reused), its word in tables, JSON and logs. The numbers are those of enum rtgrant_reason in
 * client/rtgrant.h; a test does not compile if they differ.
 */

#include <stdbool.h>

#define REASONS(X)                                                                                \
        X(NONE, 0, "none")                                                                        \
        /* the request itself */                                                                  \
        X(MALFORMED, 1, "malformed")            /* not a record of this protocol */               \
        X(VERSION, 2, "version")                /* one that the broker does not speak */          \
        X(INVALID, 3, "invalid")                /* a value that the kernel does not know */       \
        X(UNSUPPORTED, 4, "unsupported")        /* a kind that broker or kernel cannot give */    \
        /* its target */                                                                          \
        X(NO_SUCH_THREAD, 10, "no-such-thread") /* gone, hidden, somebody else's: never which */  \
        X(TARGET_PRIVILEGED, 11, "target-privileged") /* runs with more rights than its user */   \
        X(NAMESPACE, 12, "namespace")           /* an id that cannot be mapped to a thread */     \
        X(TARGET_CHANGED, 13, "target-changed") /* became another program meanwhile; undone */    \
        X(NO_SUCH_LEASE, 14, "no-such-lease")                                                     \
        X(NOT_CONNECTOR, 15, "not-connector")   /* the sender did not open this connection */     \
        /* the policy */                                                                          \
        X(NOT_ALLOWED, 20, "not-allowed")       /* no rule allows this user */                    \
        X(DENIED, 21, "denied")                 /* a rule denies this user */                     \
        X(NO_SUCH_ROLE, 22, "no-such-role")                                                       \
        X(POLICY_NOT_IN_ROLE, 23, "policy-not-in-role")                                           \
        X(PRIORITY_LIMIT, 24, "priority-limit")                                                   \
        X(NICE_LIMIT, 25, "nice-limit")                                                           \
        X(LIFETIME_LIMIT, 26, "lifetime-limit")                                                   \
        X(USER_NAMESPACE, 27, "user-namespace")                                                   \
        X(ADMIN_ONLY, 28, "admin-only")                                                           \
        X(NOT_AUTHORIZED, 29, "not-authorized") /* polkit said no */                              \
        X(AUTHORITY_UNAVAILABLE, 30, "authority-unavailable") /* polkit is gone, hangs or errs */ \
        X(AUTHORITY_BUSY, 31, "authority-busy") /* too many questions on their way */             \
        X(NEEDS_AUTHORIZATION, 32, "needs-authorization") /* polkit was not asked yet */          \
        X(RTTIME, 33, "rttime")                 /* RLIMIT_RTTIME unset or too long */             \
        X(NO_ACTIVE_SESSION, 34, "no-active-session") /* the user does not sit at the machine */  \
        X(ADMISSION, 35, "admission")           /* no room for the declared timing */             \
        X(ABOVE_SERVER, 36, "above-server")     /* would outrank what it feeds */                 \
        X(RTTIME_LETHAL, 37, "rttime-lethal")   /* RLIMIT_RTTIME would kill it at once */         \
        /* quotas */                                                                              \
        X(THREADS_PER_USER, 40, "threads-per-user")                                               \
        X(THREADS_PER_ROLE, 41, "threads-per-role") /* of one user */                             \
        X(THREADS_TOTAL, 42, "threads-total")                                                     \
        X(RATE, 43, "rate")                                                                       \
        X(CONNECTIONS_PER_USER, 44, "connections-per-user")                                       \
        X(CONNECTIONS_TOTAL, 45, "connections-total")                                             \
        X(RESOURCES, 46, "resources")           /* the broker is out of memory or descriptors */  \
        /* memory, latency, queues, devices */                                                    \
        X(RESOURCE_NOT_IN_ROLE, 50, "resource-not-in-role")                                       \
        X(RESOURCE_LIMIT, 51, "resource-limit")                                                   \
        X(MEMLOCK_QUOTA, 52, "memlock-quota")   /* of the user, or of all */                      \
        X(RESOURCE_UNAVAILABLE, 53, "resource-unavailable") /* this machine or broker has none */ \
        X(NO_SUCH_DEVICE, 54, "no-such-device")                                                   \
        X(ON_BATTERY, 55, "on-battery")                                                           \
        X(IRQ_NOT_IN_ROLE, 56, "irq-not-in-role") /* an interrupt that the role does not name */  \
        X(IRQ_NOT_THREADED, 57, "irq-not-threaded") /* no threadirqs: the kernel has no thread */ \
        X(IRQ_NOT_THREADABLE, 58, "irq-not-threadable") /* its driver does not let it have one */ \
        X(IRQ_AMBIGUOUS, 59, "irq-ambiguous")   /* which of several threads? */                   \
        /* the kernel; told apart by probing, broker/kernel-cause.c */                            \
        X(KERNEL_CAPABILITY, 60, "kernel-capability") /* the broker lacks CAP_SYS_NICE */         \
        X(KERNEL_RT_GROUP, 61, "kernel-rt-group") /* cgroup without real-time budget */           \
        X(KERNEL_SECCOMP, 62, "kernel-seccomp") /* a filter on the broker */                      \
        X(KERNEL_LSM, 63, "kernel-lsm")         /* a security module */                           \
        X(KERNEL_OTHER, 64, "kernel-other")     /* any other errno */                             \
        X(KERNEL_MISMATCH, 65, "kernel-mismatch") /* agreed, but reads back otherwise; undone */  \
        X(DEGRADED, 66, "degraded")             /* the broker cannot outrank its grants */        \
        /* how a lease ends or changes */                                                         \
        X(RELEASED, 80, "released")                                                               \
        X(THREAD_ENDED, 81, "thread-ended")                                                       \
        X(DISCONNECTED, 82, "disconnected")                                                       \
        X(EXPIRED, 83, "expired")                                                                 \
        X(REVOKED, 84, "revoked")                                                                 \
        X(SHUTDOWN, 85, "shutdown")                                                               \
        X(CHANGED_BY_OTHERS, 86, "changed-by-others")                                             \
        X(CREDENTIALS_CHANGED, 87, "credentials-changed")                                         \
        X(POLICY_RELOAD, 88, "policy-reload")                                                     \
        X(RESTART, 89, "restart")               /* the broker was killed while it held this */    \
        /* the guard */                                                                           \
        X(RAN_ON, 90, "ran-on")                 /* without sleeping, longer than allowed */       \
        X(CPU_SHARE, 91, "cpu-share")           /* a thread */                                    \
        X(CPU_PER_USER, 92, "cpu-per-user")     /* all threads of a user */                       \
        X(CPU_RESERVE, 93, "cpu-reserve")       /* all threads, of a CPU or of all */             \
        X(BACK_OFF, 94, "back-off")             /* a thread of the user is demoted by the guard */ \
        X(BACK_OFF_OVER, 95, "back-off-over")   /* and has its priority again */                  \
        X(STARVED, 96, "starved")               /* all others on its CPU, for seconds */          \
        X(RELOAD_FAILED, 100, "reload-failed")

enum reason {
#define X(symbol, number, word) REASON_##symbol = number,
        REASONS(X)
#undef X
};

/* The word of a reason; "unknown" for a number that is none. Never NULL. */
const char *reason_to_string(enum reason reason);

#endif
