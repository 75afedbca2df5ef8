/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_H
#define RTGRANT_H

/**
 * librtgrant asks the broker rtgrantd for real-time priority, or a better nice value, for a thread.
 *
 * Conventions, unless a function says otherwise:
 *
 *  - Functions return 0 or a positive number on success and a negative errno on failure. Nothing
 *    here ever aborts, prints, logs, starts a thread, installs a signal handler or changes the
 *    thread it was not asked to change. Every failure is harmless: the thread goes on as it was.
 *  - A refusal is not a failure of the call: it returns -EPERM and the answer says why.
 *  - No broker on this machine is one code, RTGRANT_ABSENT, returned at once.
 *  - Policies and priorities are those of sched(7). Names of numbers end in their unit.
 *  - A handle may be used by several threads; calls on it wait for one another. Different handles
 *    are independent. A handle is of the process that opened it: after fork(2) open another
 *    (calls on the inherited one return -ECHILD).
 *  - Calls block until the broker answers, at most for the handle's time-out (1000 ms unless
 *    changed); then they return -ETIMEDOUT, and what was asked may have been done or not: close
 *    the handle, which ends its leases. For event loops there is the pollable form:
 *    rtgrant_send_acquire() and rtgrant_process().
 *  - Callbacks run in the thread that called the library, with no lock held: they may call it
 *    again, and may close the handle. Those of one handle never run at the same time, but for the
 *    `each` of a listing.
 *  - Structures passed in or out begin with `size`: set it to sizeof of the structure. Programs
 *    built against an older header go on working; one built against a newer header gets -E2BIG
 *    if it sets what this library does not know.
 *
 * Errors that any call on a handle may return: RTGRANT_ABSENT (the broker went away), -ETIMEDOUT,
 * -EPROTO (something else is listening there), -EUSERS, -ENOBUFS or -EACCES (the broker ended the
 * connection: it is too busy, short of memory, or does not serve us), -ECHILD, -EINVAL, -ENOMEM.
 * After all of them but -ETIMEDOUT, -EINVAL and -ENOMEM the handle is of no more use, until
 * rtgrant_reconnect().
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RTGRANT_ABSENT (-EHOSTDOWN)     /**< no broker is running here */

/** A connection to the broker. */
struct rtgrant;

/** Why the broker refused, or why a lease ended. An unknown (newer) one is still a refusal. */
enum rtgrant_reason {
        RTGRANT_REASON_NONE = 0,

        RTGRANT_REASON_MALFORMED = 1,           /**< not a record of this protocol */
        RTGRANT_REASON_VERSION = 2,             /**< the broker does not speak this version */
        RTGRANT_REASON_INVALID = 3,             /**< a value that the kernel does not know */
        RTGRANT_REASON_UNSUPPORTED = 4,         /**< a kind this broker or kernel cannot give */

        RTGRANT_REASON_NO_SUCH_THREAD = 10,     /**< gone, hidden, or somebody else's */
        RTGRANT_REASON_TARGET_PRIVILEGED = 11,  /**< runs with more rights than its user */
        RTGRANT_REASON_NAMESPACE = 12,          /**< an id that cannot be mapped: pass a pidfd */
        RTGRANT_REASON_TARGET_CHANGED = 13,     /**< became another program meanwhile; undone */
        RTGRANT_REASON_NO_SUCH_LEASE = 14,
        RTGRANT_REASON_NOT_CONNECTOR = 15,      /**< the sender did not open this connection */

        RTGRANT_REASON_NOT_ALLOWED = 20,        /**< no rule allows this user */
        RTGRANT_REASON_DENIED = 21,             /**< a rule denies this user */
        RTGRANT_REASON_NO_SUCH_ROLE = 22,
        RTGRANT_REASON_POLICY_NOT_IN_ROLE = 23, /**< the role does not give this policy */
        RTGRANT_REASON_PRIORITY_LIMIT = 24,     /**< outside the role's band */
        RTGRANT_REASON_NICE_LIMIT = 25,
        RTGRANT_REASON_LIFETIME_LIMIT = 26,
        RTGRANT_REASON_USER_NAMESPACE = 27,
        RTGRANT_REASON_ADMIN_ONLY = 28,
        RTGRANT_REASON_NOT_AUTHORIZED = 29,     /**< polkit said no */
        RTGRANT_REASON_AUTHORITY_UNAVAILABLE = 30, /**< polkit is gone, hangs or errs */
        RTGRANT_REASON_AUTHORITY_BUSY = 31,     /**< too many questions to polkit on their way */
        RTGRANT_REASON_NEEDS_AUTHORIZATION = 32, /**< polkit would have to be asked */
        RTGRANT_REASON_RTTIME = 33,             /**< RLIMIT_RTTIME is unset or too long */
        RTGRANT_REASON_NO_ACTIVE_SESSION = 34,  /**< the user does not sit at the machine */
        RTGRANT_REASON_ADMISSION = 35,          /**< no room for the declared timing */
        RTGRANT_REASON_ABOVE_SERVER = 36,       /**< would outrank what it feeds */
        RTGRANT_REASON_RTTIME_LETHAL = 37,      /**< RLIMIT_RTTIME would kill it at once */

        RTGRANT_REASON_THREADS_PER_USER = 40,
        RTGRANT_REASON_THREADS_PER_ROLE = 41,
        RTGRANT_REASON_THREADS_TOTAL = 42,
        RTGRANT_REASON_RATE = 43,               /**< too many grants; see retry_after_ms */
        RTGRANT_REASON_CONNECTIONS_PER_USER = 44,
        RTGRANT_REASON_CONNECTIONS_TOTAL = 45,
        RTGRANT_REASON_RESOURCES = 46,          /**< the broker is out of memory or descriptors */

        RTGRANT_REASON_RESOURCE_NOT_IN_ROLE = 50, /**< the role gives nothing of that */
        RTGRANT_REASON_RESOURCE_LIMIT = 51,     /**< outside of what the role gives of that */
        RTGRANT_REASON_MEMLOCK_QUOTA = 52,      /**< of the user, or of all */
        RTGRANT_REASON_RESOURCE_UNAVAILABLE = 53, /**< this machine or broker cannot give that */
        RTGRANT_REASON_NO_SUCH_DEVICE = 54,
        RTGRANT_REASON_ON_BATTERY = 55,         /**< the role gives that on mains power only */
        RTGRANT_REASON_IRQ_NOT_IN_ROLE = 56,    /**< of a device that the role does not name */
        RTGRANT_REASON_IRQ_NOT_THREADED = 57,   /**< the kernel was booted without threadirqs */
        RTGRANT_REASON_IRQ_NOT_THREADABLE = 58, /**< the driver does not let it have a thread */
        RTGRANT_REASON_IRQ_AMBIGUOUS = 59,      /**< one of several threads has to be named */

        RTGRANT_REASON_KERNEL_CAPABILITY = 60,  /**< the broker lacks CAP_SYS_NICE */
        RTGRANT_REASON_KERNEL_RT_GROUP = 61,    /**< the cgroup has no real-time budget */
        RTGRANT_REASON_KERNEL_SECCOMP = 62,     /**< a system call filter on the broker */
        RTGRANT_REASON_KERNEL_LSM = 63,         /**< a security module */
        RTGRANT_REASON_KERNEL_OTHER = 64,
        RTGRANT_REASON_KERNEL_MISMATCH = 65,    /**< the kernel agreed but did otherwise; undone */
        RTGRANT_REASON_DEGRADED = 66,           /**< the broker itself cannot run real-time */

        RTGRANT_REASON_RELEASED = 80,
        RTGRANT_REASON_THREAD_ENDED = 81,
        RTGRANT_REASON_DISCONNECTED = 82,
        RTGRANT_REASON_EXPIRED = 83,
        RTGRANT_REASON_REVOKED = 84,
        RTGRANT_REASON_SHUTDOWN = 85,
        RTGRANT_REASON_CHANGED_BY_OTHERS = 86,
        RTGRANT_REASON_CREDENTIALS_CHANGED = 87,
        RTGRANT_REASON_POLICY_RELOAD = 88,
        RTGRANT_REASON_RESTART = 89,

        RTGRANT_REASON_RAN_ON = 90,             /**< the thread ran too long without sleeping */
        RTGRANT_REASON_CPU_SHARE = 91,          /**< the thread took too much of a CPU */
        RTGRANT_REASON_CPU_PER_USER = 92,       /**< all threads of the user took too much */
        RTGRANT_REASON_CPU_RESERVE = 93,        /**< all threads of all users took too much */
        RTGRANT_REASON_BACK_OFF = 94,           /**< after that, for a while; see retry_after_ms */
        RTGRANT_REASON_BACK_OFF_OVER = 95,      /**< the while is over, the priority is back */
        RTGRANT_REASON_STARVED = 96,            /**< nothing else got to run on its CPU */

        RTGRANT_REASON_RELOAD_FAILED = 100,
};

/** The word of a reason, as in "priority-limit"; "unknown" for one that is none. Static. */
const char *rtgrant_reason_to_string(int reason);

/** Identifies a lease. Unguessable, and of use only to the user it was given to. */
struct rtgrant_id {
        uint8_t bytes[16];
};

#define RTGRANT_ID_STRING_SIZE 33       /**< 32 hexadecimal digits and a NUL */

/** Writes the id as 32 hexadecimal digits into @buffer. */
void rtgrant_id_to_string(const struct rtgrant_id *id, char buffer[RTGRANT_ID_STRING_SIZE]);

/** Errors: -EINVAL if @string is not 32 hexadecimal digits. */
int rtgrant_id_from_string(const char *string, struct rtgrant_id *ret);

/** How long a lease lasts at the most. Each ends with its thread. */
enum rtgrant_lifetime {
        RTGRANT_LIFETIME_CONNECTION = 0,        /**< until the handle is closed */
        RTGRANT_LIFETIME_THREAD = 1,            /**< outlives the handle */
        RTGRANT_LIFETIME_SECONDS = 2,           /**< for lifetime_s seconds; rtgrant_renew() */
};

enum rtgrant_flags {
        RTGRANT_DRY_RUN = 1 << 0,       /**< answer, but change nothing */
        RTGRANT_CLAMP = 1 << 1,         /**< rather less than nothing; the answer says what */
        RTGRANT_MAY_ASK = 1 << 2,       /**< the user may be asked for a password: can take
                                         *   27 s, whatever the time-out of rtgrant_open(), and 25
                                         *   more for each of memory, latency, disk, interrupt */
        RTGRANT_DIRECT = 1 << 3,        /**< first try without the broker, as far as the caller's
                                         *   own rlimits or capabilities allow it; own process
                                         *   only, and not with RTGRANT_DRY_RUN */
        RTGRANT_OR_LESS = 1 << 4,       /**< what is refused is tried with less: a lower priority
                                         *   round robin, then nice, then, by the caller's own
                                         *   right, a shorter time slice (Linux 6.12);
                                         *   answer->rung says what it came to */
};

/** What to ask for. Zero everything, set `size`, then what is wanted. */
struct rtgrant_request {
        size_t size;            /**< sizeof(struct rtgrant_request) */
        unsigned flags;         /**< enum rtgrant_flags */
        const char *role;       /**< at most 31 bytes; NULL: the broker picks one */
        const char *reason;     /**< free text for the listing, cut at 63 bytes; NULL: none */
        pid_t pid;              /**< 0: the calling process */
        pid_t tid;              /**< 0: the calling thread, or the main thread of another process */
        int pidfd_plus_one;     /**< a pidfd of the target process or thread, plus one; 0: none.
                                 *   The descriptor stays the caller's. */
        bool wants_sched;       /**< policy and priority are meant */
        bool wants_nice;        /**< nice is meant */
        int policy;             /**< SCHED_FIFO, SCHED_RR or SCHED_OTHER */
        int priority;           /**< 1..99 with SCHED_FIFO and SCHED_RR, else 0 */
        int nice;               /**< -20..19, takes effect whenever the thread is not real-time */
        enum rtgrant_lifetime lifetime;
        unsigned lifetime_s;    /**< with RTGRANT_LIFETIME_SECONDS, at least 1 */
        bool is_relative;       /**< a place in the role's band is meant; priority is then 0 */
        int relative;           /**< then -2 (the low end) .. 2 (the top); the answer says what
                                 *   priority that is */
        pid_t feeds_tid;        /**< a thread to stay below, as a client below its server: of any
                                 *   user, interrupt threads too; 0: none. Above it is refused,
                                 *   or with RTGRANT_CLAMP lowered. */
        uint64_t period_ns;     /**< declared timing: one cycle; all three 0 if not declared */
        uint64_t computation_ns; /**< CPU time needed in each, <= deadline_ns */
        uint64_t deadline_ns;   /**< from its start, <= period_ns */
        uint64_t memlock_bytes; /**< memory that the process may lock (RLIMIT_MEMLOCK) for as long
                                 *   as the lease; this and the following as far as not 0 or NULL */
        unsigned cpu_latency_us; /**< time that CPUs may take to wake up; for a thread pinned to
                                 *   one CPU, that CPU, else all */
        unsigned block_max_sectors_kb; /**< with @block: KiB that the disk is given at a time */
        const char *block;      /**< a path on the disk, or the name of a block device */
        const char *irq;        /**< a device whose interrupt threads are meant: card:0, usb:1-4,
                                 *   irq:16, … */
        int irq_priority;       /**< with @irq: their priority; 0: the highest of the role */
        const char *feeds;      /**< a device, named as @irq, whose interrupt threads the thread is to
                                 *   stay below, as @feeds_tid; NULL: none */
};

/** What a lease may hold, or'ed in rtgrant_answer.granted. */
enum rtgrant_kind {
        RTGRANT_KIND_SCHED = 1 << 0,
        RTGRANT_KIND_NICE = 1 << 1,
        RTGRANT_KIND_MEMLOCK = 1 << 2,
        RTGRANT_KIND_CPU_LATENCY = 1 << 3,
        RTGRANT_KIND_IRQ = 1 << 4,
        RTGRANT_KIND_BLOCK_QUEUE = 1 << 5,
};

enum rtgrant_route {
        RTGRANT_ROUTE_BROKER = 0,
        RTGRANT_ROUTE_DIRECT = 1,       /**< by the caller's own right; there is no lease */
};

/** How far down RTGRANT_OR_LESS had to go. */
enum rtgrant_rung {
        RTGRANT_RUNG_AS_ASKED = 0,      /**< that, or clamped */
        RTGRANT_RUNG_RR = 1,
        RTGRANT_RUNG_NICE = 2,
        RTGRANT_RUNG_SLICE = 3,         /**< no lease: the thread's own right */
        RTGRANT_RUNG_NOTHING = 4,       /**< refused; the reason is that of the whole request */
};

/** What came of it. `size` is set by the caller; strings are "" where they do not apply. */
struct rtgrant_answer {
        size_t size;            /**< sizeof(struct rtgrant_answer) */
        int reason;             /**< enum rtgrant_reason; 0: done */
        enum rtgrant_route route;
        enum rtgrant_rung rung; /**< with RTGRANT_OR_LESS */
        bool clamped;           /**< less is in force than was asked */
        bool updated;           /**< the thread had a lease already, which was changed */
        struct rtgrant_id id;   /**< all zero on the direct route and if refused */
        pid_t pid;              /**< the target, as numbered where the broker runs */
        pid_t tid;
        int policy;             /**< in force now, read back from the kernel */
        int priority;
        int nice;
        bool reset_on_fork;
        int previous_policy;    /**< in force before this call */
        int previous_priority;
        int previous_nice;
        unsigned count;         /**< leases ended (restore-all) or lowered (reload) */
        unsigned retry_after_ms; /**< with RTGRANT_REASON_RATE */
        int64_t asked;          /**< with a limit: what was asked */
        int64_t limit;          /**< and the limit */
        char role[32];          /**< that served, or that came nearest */
        char rule[160];         /**< FILE:LINE that decided */
        char text[320];         /**< who asked what, and why not */
        char help[320];         /**< what would help */
        unsigned granted;       /**< enum rtgrant_kind that the lease holds now: with RTGRANT_CLAMP
                                 *   what could not be had is missing; 0 on the direct route */
        uint64_t memlock_bytes; /**< what it holds, as in the request; 0 if nothing of it */
        uint64_t memlock_locked; /**< of it, what the process has locked already */
        unsigned cpu_latency_us;
        unsigned block_max_sectors_kb;
        int irq_priority;
        bool noted;             /**< it is in force, and text says what could not be had all the
                                 *   same: that an interrupt cannot be moved to other CPUs */
};

/**
 * Connects and says hello.
 *
 * @socket_path  NULL: $RTGRANT_SOCKET if set (ignored in set-user-ID programs), else
 *               /run/rtgrant/socket
 * @timeout_ms   for this and every later call on the handle; 0: 1000
 *
 * On success *ret is freed by rtgrant_close().
 *
 * Errors: RTGRANT_ABSENT, -EACCES (the socket is closed to us, or the broker does not serve us),
 * -EUSERS (too many connections), -ENOBUFS (the broker is short of memory), -ENAMETOOLONG, -EMFILE.
 */
int rtgrant_open(struct rtgrant **ret, const char *socket_path, int timeout_ms);

/**
 * Disconnects and frees; ends leases bound to the connection. @handle may be NULL. Returns NULL.
 * In a child of fork(2) it only closes the descriptor: the parent's connection and leases stay.
 */
struct rtgrant *rtgrant_close(struct rtgrant *handle);

/**
 * After RTGRANT_ABSENT: connects again, and goes on with the leases that are bound to the connection
 * and with rtgrant_watch(). A broker that was killed and started again keeps such leases for 10 s.
 * One that is restarted for an upgrade under a service manager keeps connections too: then there is
 * nothing to do. Blocks. The descriptor of rtgrant_get_fd() has the same number, but is another:
 * epoll(7) has to be told.
 *
 * Returns how many leases go on, of the latest 1024; ask anew for the others. 0 at once if the
 * connection is there.
 *
 * Errors: as rtgrant_open(): RTGRANT_ABSENT and -ETIMEDOUT if the broker is not back yet, try again
 * later; -EBUSY while another thread waits in a call; -EPERM if all but the watch goes on.
 */
int rtgrant_reconnect(struct rtgrant *handle);

/**
 * Asks for @request. Returns 0 if it is in force; *ret_answer, which may be NULL, says what is.
 * For a thread of the calling process that is never the broker's word alone: it is read back.
 *
 * With RTGRANT_DIRECT the thread is set by the caller's own right if that suffices, with
 * RESET_ON_FORK as the broker would; only where the kernel refuses (EPERM, EACCES, ENOSYS) is the
 * broker asked. @handle may then be NULL: one is opened if need be and closed again, and the lease
 * is the thread's. Change a thread that holds a lease by rtgrant_update(): set directly, its
 * lease would count as changed by others.
 *
 * Errors: -EPERM if refused: see ret_answer->reason. -ESRCH or -EINVAL with RTGRANT_DIRECT if the
 * kernel says so: no broker could help, and none was asked. stat(2) or -ENODEV if request->block
 * cannot be looked at or is on no block device: that is done here, with the caller's rights. -EPROTO if the broker said yes but the
 * thread reads back otherwise: ret_answer then says what is in force. -EBADF if the pidfd is bad.
 */
int rtgrant_acquire(struct rtgrant *handle, const struct rtgrant_request *request,
                    struct rtgrant_answer *ret_answer);

/** Is told of each thread by rtgrant_acquire_all(); @result as rtgrant_acquire() returned it. */
typedef void (*rtgrant_thread_fn)(pid_t tid, int result, const struct rtgrant_answer *answer,
                                  void *userdata);

/**
 * rtgrant_acquire() for every thread of request->pid, those too that are born meanwhile: passes
 * are made until one finds no new thread. A thread that ended meanwhile is not reported. Where the
 * broker asks to wait (RTGRANT_REASON_RATE), it waits, 5 s in all at the most.
 * Returns the number of threads granted. @each may be NULL. request->tid is not looked at.
 *
 * Errors: -ESRCH if there is no such process, -EPERM if each thread was refused, -EAGAIN if the
 * process makes threads faster than they can be granted, -EINVAL with a pidfd. With any other error
 * than -EPERM and -ESRCH it ends at once; the threads granted till then stay so.
 */
int rtgrant_acquire_all(struct rtgrant *handle, const struct rtgrant_request *request,
                        rtgrant_thread_fn each, void *userdata);

/**
 * Changes a lease in place: policy, priority, nice, timing, as far as @request wants them; its
 * target, role and lifetime are not looked at. Errors: -EPERM as rtgrant_acquire().
 */
int rtgrant_update(struct rtgrant *handle, const struct rtgrant_id *id,
                   const struct rtgrant_request *request, struct rtgrant_answer *ret_answer);

/**
 * Puts the lease's values in force again if somebody changed them, and lets a lease for seconds
 * last @lifetime_s from now (0 with other leases). Idempotent. Errors: -EPERM.
 */
int rtgrant_renew(struct rtgrant *handle, const struct rtgrant_id *id, unsigned lifetime_s,
                  struct rtgrant_answer *ret_answer);

/** Ends a lease and restores what was there before. Errors: -EPERM (no such lease). */
int rtgrant_release(struct rtgrant *handle, const struct rtgrant_id *id,
                    struct rtgrant_answer *ret_answer);

/** Administrator: ends anybody's lease. Errors: -EPERM. */
int rtgrant_revoke(struct rtgrant *handle, const struct rtgrant_id *id,
                   struct rtgrant_answer *ret_answer);

/** Administrator: reads the policy again. -EPERM, RELOAD_FAILED if it has a fault: none changed. */
int rtgrant_reload(struct rtgrant *handle, struct rtgrant_answer *ret_answer);

/** Administrator: ends all leases. */
int rtgrant_restore_all(struct rtgrant *handle, struct rtgrant_answer *ret_answer);

enum rtgrant_lease_state {
        RTGRANT_LEASE_IN_FORCE = 0,
        RTGRANT_LEASE_CHANGED = 1,      /**< by others: the thread has other values than granted */
        RTGRANT_LEASE_DEMOTED = 2,      /**< by the guard, for a while */
};

/** A lease as listed. */
struct rtgrant_lease {
        size_t size;            /**< sizeof(struct rtgrant_lease) of the library */
        struct rtgrant_id id;
        uid_t uid;
        pid_t pid;
        pid_t tid;
        enum rtgrant_lease_state state;
        int policy;             /**< in force now */
        int priority;
        int nice;
        bool holds_sched;       /**< the lease is for policy and priority */
        bool holds_nice;        /**< the lease is for nice */
        int granted_policy;
        int granted_priority;
        int granted_nice;
        enum rtgrant_lifetime lifetime;
        uint64_t since_ms;      /**< CLOCK_REALTIME */
        uint64_t expires_ms;    /**< CLOCK_REALTIME; 0: with its thread or connection */
        uint64_t period_ns;
        uint64_t computation_ns;
        uint64_t deadline_ns;
        const char *comm;       /**< printable; as the other strings, valid during the call */
        const char *role;
        const char *reason;
        const char *transport;  /**< "socket", "Broker1", "RealtimeKit1" */
        uint64_t memlock_bytes; /**< this and the following: 0 and "" if it holds nothing of it */
        unsigned cpu_latency_us;
        unsigned block_max_sectors_kb;
        int irq_priority;
        const char *irq;        /**< the device */
        const char *block;      /**< the disk */
};

/** What one rule of the policy says of a request; strings are valid during the call. */
struct rtgrant_step {
        size_t size;
        const char *role;
        const char *rule;       /**< FILE:LINE; "" for a built-in default */
        int reason;             /**< why it refuses; 0: it does not */
        bool clamped;           /**< it lowers what was asked, to limit */
        bool asks_polkit;       /**< it leaves it to polkit */
        int64_t asked;
        int64_t limit;
};

/** Is given one step; a non-zero return ends the listing. */
typedef int (*rtgrant_step_fn)(const struct rtgrant_step *step, void *userdata);

/**
 * Calls @each for every rule that speaks of @request, in order; without a role in it, those of every
 * role. Nothing is done, and polkit is not asked. Returns what @each returned last, 0 if it was
 * never called. Errors: -EPERM if it does not come to the policy: see rtgrant_acquire() with
 * RTGRANT_DRY_RUN for the reason.
 */
int rtgrant_get_steps(struct rtgrant *handle, const struct rtgrant_request *request,
                      rtgrant_step_fn each, void *userdata);

/** Is given one lease; a non-zero return ends the listing. */
typedef int (*rtgrant_lease_fn)(const struct rtgrant_lease *lease, void *userdata);

/**
 * Calls @each for every own lease, or with @all for everybody's (administrator). What is in force
 * is read from the kernel for each. Returns what @each returned last, 0 if it was never called.
 * Errors: -EPERM.
 */
int rtgrant_list(struct rtgrant *handle, bool all, rtgrant_lease_fn each, void *userdata);

/**
 * Has the broker record who has @cpu, which is one that the calling process may run on: from a moment
 * later, for 10 minutes, until the handle is closed or another CPU is asked for; asked again for the
 * same it lasts longer. Takes a permission of its own, see ObserveGroups= in rtgrant-policy(5).
 *
 * @flags       RTGRANT_MAY_ASK or 0
 *
 * Errors: -EPERM if refused: see ret_answer->reason, of which nothing else is set; it may be NULL.
 */
int rtgrant_observe(struct rtgrant *handle, int cpu, unsigned flags,
                    struct rtgrant_answer *ret_answer);

/** Is given one name, printable and valid during the call, and how long those threads had the CPU;
 *  "idle" if nobody had. A non-zero return ends the listing. */
typedef int (*rtgrant_occupant_fn)(const char *comm, uint64_t ns, void *userdata);

/**
 * Calls @each for those who had the observed CPU longest, 5 at most, the caller's own threads among
 * them.
 *
 * @from_ns, @to_ns     of CLOCK_MONOTONIC, at most 100 ms
 * @ret_since_ns        what was before that is not known; 0: the recording has not begun yet; may be
 *                      NULL
 * @ret_until_ns        what was after that is not known yet: ask again 20 ms later; may be NULL
 *
 * Returns what @each returned last, 0 if it was never called. Errors: -EPERM if no CPU is observed
 * (any more), or the kernel does not record it.
 */
int rtgrant_get_occupants(struct rtgrant *handle, uint64_t from_ns, uint64_t to_ns,
                          rtgrant_occupant_fn each, void *userdata, uint64_t *ret_since_ns,
                          uint64_t *ret_until_ns);

/** What the broker is and what it could give the caller without asking anyone; from the hello. */
struct rtgrant_status {
        size_t size;            /**< set by the caller: sizeof(struct rtgrant_status) */
        uid_t uid;              /**< who the broker takes the caller for */
        bool admin;             /**< as far as is known without asking: see rtgrant_is_admin() */
        bool degraded;          /**< no real-time grants: the broker itself cannot run real-time */
        bool policy_broken;     /**< the last reload failed; see policy_error */
        bool old_kernel;        /**< no PIDFD_THREAD */
        unsigned kinds;         /**< bit 0 sched, bit 1 nice, … as in the protocol */
        unsigned n_leases;
        unsigned n_users;
        unsigned n_leases_own;
        unsigned n_leases_max;
        unsigned n_connections;
        unsigned policy_generation;
        uint64_t started_ms;    /**< CLOCK_REALTIME */
        char version[32];
        char policy_error[256];
        unsigned n_offers;
        struct rtgrant_offer {
                char role[32];
                int reason;             /**< 0: allowed; else why not */
                unsigned policies;      /**< bit 1 << SCHED_FIFO and so on */
                int priority_min;
                int priority_max;
                int nice_min;
                unsigned threads_held;
                unsigned threads_max;
        } offers[16];
        unsigned back_off_ms;   /**< the user gets no new real-time priority for so long, since the
                                 *   guard demoted a thread of his; 0: he does */
        unsigned n_users_in_back_off; /**< of all users: how many do not */
};

/** Asks anew on each call; never waits for anybody but the broker. */
int rtgrant_get_status(struct rtgrant *handle, struct rtgrant_status *ret_status);

/**
 * 1 if the caller may list, watch and revoke everybody's leases: root, and whom polkit lets manage
 * (action org.rtgrant.manage) without asking a user; else 0. Waits for polkit's answer, 2 s at most.
 */
int rtgrant_is_admin(struct rtgrant *handle);

/**
 * The same, and polkit may ask the user for a password, which can take 27 s. After that the calling
 * process is an administrator on this handle for a minute, and as long as polkit keeps it.
 *
 * Errors: -EPERM if it is none: ret_answer->reason, text and help say why. It may be NULL.
 */
int rtgrant_authenticate(struct rtgrant *handle, struct rtgrant_answer *ret_answer);

/** One key of the policy in force; strings valid during the call. @origin: FILE:LINE, or "" if it
 *  is a built-in default. */
typedef int (*rtgrant_policy_fn)(const char *section, const char *key, const char *value,
                                 const char *origin, void *userdata);

/** Calls @each for every key. Returns what @each returned last. */
int rtgrant_get_policy(struct rtgrant *handle, rtgrant_policy_fn each, void *userdata);

/* ---- event loops: nothing below blocks unless it says so ---- */

/** The descriptor to poll, for what rtgrant_get_events() says. Not the caller's to close. */
int rtgrant_get_fd(struct rtgrant *handle);

/** POLLIN, or POLLIN | POLLOUT while something waits to be sent. */
short rtgrant_get_events(struct rtgrant *handle);

/** Is given the answer to what was sent; @result as rtgrant_acquire() returns it. */
typedef void (*rtgrant_answer_fn)(int result, const struct rtgrant_answer *answer, void *userdata);

/**
 * Like rtgrant_acquire() without waiting: @done is called once, from rtgrant_process(), from a call
 * of any thread that waits on the handle meanwhile or, with -ECANCELED, from rtgrant_close(). Its
 * @answer is NULL if there was none. The request is copied, its pidfd too; there is no time-out.
 *
 * Errors: -EBUSY with 16 on their way, -EINVAL with RTGRANT_DIRECT; @done is then not called.
 */
int rtgrant_send_acquire(struct rtgrant *handle, const struct rtgrant_request *request,
                         rtgrant_answer_fn done, void *userdata);

/** Likewise for rtgrant_release(). */
int rtgrant_send_release(struct rtgrant *handle, const struct rtgrant_id *id,
                         rtgrant_answer_fn done, void *userdata);

enum rtgrant_event_kind {
        RTGRANT_EVENT_GRANTED = 1,
        RTGRANT_EVENT_UPDATED = 2,
        RTGRANT_EVENT_ENDED = 3,
        RTGRANT_EVENT_REVOKED = 4,
        RTGRANT_EVENT_CHANGED = 5,
        RTGRANT_EVENT_LOWERED = 6,
        RTGRANT_EVENT_DEMOTED = 7,
        RTGRANT_EVENT_RESTORED = 8,
        RTGRANT_EVENT_OVER_BUDGET = 9,
        RTGRANT_EVENT_RESTARTED = 10, /**< the broker, for an upgrade; the lease is all zero */
};

/** The word of an event kind, as in "revoked"; "unknown" for one that is none. Static. */
const char *rtgrant_event_to_string(int kind);

/** Something happened to a lease. @n_lost: events this connection was too slow for, so far. */
typedef void (*rtgrant_event_fn)(enum rtgrant_event_kind kind, int reason,
                                 const struct rtgrant_lease *lease, const char *text,
                                 uint64_t n_lost, void *userdata);

/**
 * From now on @each is told of events of own leases, or with @all of everybody's (administrator).
 * Blocks for the broker's answer. Events are delivered by rtgrant_process(), or at the end of other
 * calls during which they came. Errors: -EPERM.
 */
int rtgrant_watch(struct rtgrant *handle, bool all, rtgrant_event_fn each, void *userdata);

/**
 * Sends and reads what can be, and calls back. Returns the number of records read: 0 too while
 * another thread waits in a call, which then reads and calls back for all. RTGRANT_ABSENT when the
 * broker is gone.
 */
int rtgrant_process(struct rtgrant *handle);

/* ---- helpers ---- */

/**
 * Makes the calling thread real-time, by its own right or by the broker, and says how. The shortest
 * way to use this library. The lease, if any, is the thread's.
 *
 * @role        NULL: the broker picks one
 * @policy      SCHED_FIFO or SCHED_RR
 * @priority    1..99
 *
 * Errors: as rtgrant_acquire().
 */
int rtgrant_promote_self(const char *role, int policy, int priority,
                         struct rtgrant_answer *ret_answer);

/**
 * Puts the calling thread back from SCHED_FIFO or SCHED_RR to SCHED_OTHER with the nice it has,
 * keeping RESET_ON_FORK where it is set: without it the kernel refuses (EPERM), see sched(7).
 * Any other thread is left alone. Needs no broker, which sees the change by itself.
 */
int rtgrant_demote_self(void);

/**
 * The same for a handler of SIGXCPU: async-signal-safe, leaves errno alone. The kernel sends
 * SIGXCPU when a real-time thread runs RLIMIT_RTTIME's soft limit without sleeping, to that thread
 * unless it blocks the signal, and SIGKILL at the hard limit: leave room between; getrlimit(2).
 * It also raises the soft limit by a second, for all threads: a handler has to set it again.
 * rtgrant_survive_overruns() is a handler that does.
 */
void rtgrant_demote_self_from_signal(void);

/** A real-time thread that ran for the soft RLIMIT_RTTIME without sleeping, and was demoted for it. */
struct rtgrant_overrun {
        uint64_t at_ns;         /**< CLOCK_MONOTONIC */
        uint64_t cpu_ns;        /**< CPU time of the thread by then, all its life */
        pid_t tid;              /**< as the process sees it */
        int32_t priority;       /**< that it had, 1..99 */
        int32_t error;          /**< 0; negative errno if it could not be demoted, and runs on */
        uint32_t reserved;      /**< 0 */
};

/**
 * Installs a handler of SIGXCPU that makes the thread which runs on a normal one, as
 * rtgrant_demote_self_from_signal(), and keeps for rtgrant_next_overrun() what happened. The rest of
 * the process goes on; the default action of SIGXCPU would end it. A lease of the thread stays, as
 * "changed"; rtgrant_release() it, or ask again once the thread keeps to its time.
 *
 * Once for a process; a second call only gives the descriptor. Children inherit it, as all handlers.
 * At a soft RLIMIT_CPU that was set before the call the process still ends; see getrlimit(2).
 *
 * @ret_fd      readable when there is something to be told; the library's, not to be read or
 *              closed; may be NULL
 *
 * Errors: -EBUSY if the program has a handler of SIGXCPU, or ignores it; eventfd(2).
 */
int rtgrant_survive_overruns(int *ret_fd);

/**
 * The next overrun since the last call, the 16 oldest at the most. Never blocks; for any thread.
 * Returns 1, or 0 if there is none.
 */
int rtgrant_next_overrun(struct rtgrant_overrun *ret_overrun);

/**
 * Locks all memory that the calling process has mapped now, so that no thread waits for a page.
 *
 * Not what is mapped later: with MCL_FUTURE of mlockall(2) the kernel refuses every mapping that
 * does not fit the limit any more, and a program fails to start a thread, load a plug-in or
 * allocate, long after it locked its memory and far from where. Call it again after loading more.
 * An MCL_FUTURE that was set before ends. Needs no broker; rtgrant_request.memlock_bytes raises
 * the limit.
 *
 * @ret_locked_bytes    how much is locked now; may be NULL
 * @ret_limit_bytes     RLIMIT_MEMLOCK, soft; UINT64_MAX if there is none; may be NULL. What is
 *                      left up to it is what can be loaded until the next call fails.
 *
 * Errors: -ENOMEM if the process has more mapped than the limit, -EPERM if that is 0. Nothing was
 * locked then that was not before.
 */
int rtgrant_lock_memory(uint64_t *ret_locked_bytes, uint64_t *ret_limit_bytes);

/**
 * What a sandboxed child hands to its parent so that the parent can ask for the child's thread.
 * Plain bytes of fixed size, to be sent by any means. Nothing in it is believed: the broker checks
 * that the thread exists, is of that process and of the asking user.
 */
struct rtgrant_handover {
        uint32_t size;          /**< sizeof(struct rtgrant_handover) */
        uint32_t version;       /**< 1 */
        uint64_t pid;           /**< as the child sees itself */
        uint64_t tid;
        uint64_t start_time;    /**< of the thread, clock ticks since boot; 0: not known */
        uint64_t reserved[4];   /**< 0 */
};

/**
 * Fills in the calling thread. Makes no call that a seccomp filter of a sandbox would refuse,
 * but for reading /proc, whose failure does no harm.
 */
int rtgrant_handover_init(struct rtgrant_handover *ret_handover);

/**
 * rtgrant_acquire() for the thread that @handover names; request->pid and tid are not looked at.
 *
 * @child_pid   the process it must be of, as the parent knows it: the child's own numbers may be
 *              of another pid namespace. 0: believe the record
 *
 * Errors: -EINVAL if the record is damaged, -ESRCH if it names another process than @child_pid or a
 * thread that was replaced meanwhile.
 */
int rtgrant_handover_acquire(struct rtgrant *handle, const struct rtgrant_handover *handover,
                             pid_t child_pid, const struct rtgrant_request *request,
                             struct rtgrant_answer *ret_answer);

#ifdef __cplusplus
}
#endif

#endif
