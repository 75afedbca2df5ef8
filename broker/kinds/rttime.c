/* SPDX-License-Identifier: MIT */

#include "broker/kinds/rttime.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/kinds/process.h"
#include "broker/kinds/resources.h"
#include "broker/proc.h"
#include "broker/resource-books.h"
#include "broker/rttime.h"

#define SECOND_US UINT64_C(1000000)
/* Far above what the guard needs, and what a stuck machine is still worth waiting for. */
#define BACKSTOP_US (10 * SECOND_US)
#define BACKSTOP_RUNS 4U        /* times RunMax= */

/* CAUGHT: the program has a handler of SIGXCPU, or ignores it; of saved values alone. */
enum { SOFT, HARD, CAUGHT };

static struct rttime limits_of(const struct resource_value *value) {
        return (struct rttime) { (uint64_t) value->n[SOFT], (uint64_t) value->n[HARD] };
}

static void keep(const struct rttime *limits, struct resource_value *ret) {
        ret->n[SOFT] = (int64_t) limits->soft_us;
        ret->n[HARD] = (int64_t) limits->hard_us;
}

static bool has_signal(const char *status, const char *field) {
        const char *line = strstr(status, field);
        uint64_t mask;

        return line && sscanf(line + strlen(field), "%" SCNx64, &mask) == 1 &&
               mask & UINT64_C(1) << (SIGXCPU - 1);
}

/* Whether SIGXCPU does not kill it. A name with a newline is escaped: no line can be feigned. */
static bool catches(pid_t pid) {
        _cleanup_free_ char *status = NULL;

        return proc_read(pid, 0, "status", &status, NULL) >= 0 &&
               (has_signal(status, "\nSigCgt:") || has_signal(status, "\nSigIgn:"));
}

/* Whether that is what was set, but for what the kernel adds with each SIGXCPU. */
static bool is_as_set(const struct rttime *now, const struct rttime *set) {
        return now->hard_us == set->hard_us && now->soft_us >= set->soft_us &&
               (now->soft_us - set->soft_us) % SECOND_US == 0;
}

static bool rttime_probe(char *cause, size_t size) {
        struct proc_status status;
        struct rttime now, more;
        bool can;

        if (rttime_read(getpid(), &now) < 0) {
                (void) snprintf(cause, size, "this kernel has no RLIMIT_RTTIME");
                return false;
        }
        if (now.hard_us == RTTIME_UNLIMITED) {
                can = proc_read_status(getpid(), 0, &status) >= 0 &&
                      status.cap_effective & UINT64_C(1) << CAP_SYS_RESOURCE;
        } else {
                more = (struct rttime) { now.soft_us, now.hard_us + SECOND_US };
                can = rttime_write(getpid(), &more) >= 0;
                if (can)
                        (void) rttime_write(getpid(), &now);
        }
        if (!can)
                (void) snprintf(cause, size,
                                "the broker lacks CAP_SYS_RESOURCE, which raising RLIMIT_RTTIME "
                                "takes; programs that limit themselves may be killed there");
        return can;
}

static int rttime_capture(struct resource *resource, struct resource_value *ret) {
        struct rttime now;
        int r;

        r = process_resource_open(resource);
        if (r >= 0)
                r = rttime_read(resource->name.pid, &now);
        if (r < 0)
                return r;

        *ret = (struct resource_value) {};
        keep(&now, ret);
        ret->n[CAUGHT] = catches(resource->name.pid);
        return 0;
}

static void rttime_aim(const struct resource *resource, int64_t value, struct resource_value *ret) {
        struct rttime limits = limits_of(&resource->saved);
        uint64_t backstop = (uint64_t) value;

        if (limits.hard_us < backstop)
                limits.hard_us = backstop;
        if (limits.soft_us < backstop && !resource->saved.n[CAUGHT])
                limits.soft_us = backstop;
        keep(&limits, ret);
}

static int rttime_apply(struct resource *resource, const struct resource_value *set) {
        const struct rttime limits = limits_of(set);

        if (process_resource_has_ended(resource))
                return -ESRCH;

        return rttime_write(resource->name.pid, &limits);
}

static int rttime_verify(struct resource *resource, const struct resource_value *set) {
        const struct rttime limits = limits_of(set);
        struct rttime now;
        int r;

        if (process_resource_has_ended(resource))
                return -ESRCH;
        r = rttime_read(resource->name.pid, &now);
        return r < 0 ? r : is_as_set(&now, &limits);
}

static uint64_t lower(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* What its owner lowered meanwhile is still ours to take, as far as it is above what was there. */
static int rttime_restore(struct resource *resource) {
        const struct rttime saved = limits_of(&resource->saved), set = limits_of(&resource->set);
        struct rttime now, next;
        int r;

        if (process_resource_has_ended(resource))
                return -ESRCH;
        r = rttime_read(resource->name.pid, &now);
        if (r < 0)
                return r;
        if (now.hard_us > set.hard_us)
                return 0;

        next = (struct rttime) { lower(now.soft_us, saved.soft_us), lower(now.hard_us, saved.hard_us) };
        next.soft_us = lower(next.soft_us, next.hard_us);
        if (next.soft_us == now.soft_us && next.hard_us == now.hard_us)
                return 0;

        r = rttime_write(resource->name.pid, &next);
        return r < 0 ? r : 1;
}

const struct resource_kind resource_rttime = {
        .name = "rttime",
        .index = RESOURCE_RTTIME,
        .highest = true,
        .probe = rttime_probe,
        .capture = rttime_capture,
        .aim = rttime_aim,
        .apply = rttime_apply,
        .verify = rttime_verify,
        .restore = rttime_restore,
};

static bool is_served(const struct broker *broker) {
        return broker->resources.served & 1U << RESOURCE_RTTIME;
}

/* That of a process whose limits are lifted; NULL if they are not. */
static struct resource *find(struct broker *broker, pid_t pid, struct resource_name *ret_name) {
        return process_resource_name(pid, ret_name) >= 0
                       ? resource_lookup(broker, RESOURCE_RTTIME, ret_name->key)
                       : NULL;
}

enum reason rttime_check(struct broker *broker, pid_t pid, bool required) {
        struct resource_name name;
        struct resource *resource;
        struct rttime now, set;
        int r;

        r = rttime_read(pid, &now);
        if (r == -ESRCH)
                return REASON_NO_SUCH_THREAD;
        if (r < 0)
                return required ? REASON_RTTIME : REASON_NONE;

        if (required && is_served(broker) && now.hard_us != RTTIME_UNLIMITED) {
                resource = find(broker, pid, &name);
                set = resource ? limits_of(&resource->set) : now;
                if (resource && is_as_set(&now, &set))
                        now = limits_of(&resource->saved);
        }
        return rttime_judge(broker_policy(broker), &now, required);
}

enum reason rttime_admit(struct broker *broker, struct decision *decision, pid_t pid) {
        enum reason reason;

        if (!sched_is_rt(decision->policy))
                return REASON_NONE;

        reason = rttime_check(broker, pid, decision->role->rttime == RTTIME_REQUIRE);
        if (reason == REASON_RTTIME)
                decision->rule = decision->role->rules[ROLE_KEY_RTTIME];
        return reason;
}

static uint64_t backstop_of(const struct role *role) {
        uint64_t runs = UINT64_C(1) * BACKSTOP_RUNS * role->run_us_max;

        return runs > BACKSTOP_US ? runs : BACKSTOP_US;
}

static bool is_short(pid_t pid, const struct rttime *now, uint64_t backstop) {
        return now->hard_us < backstop || (now->soft_us < backstop && !catches(pid));
}

void rttime_supervise(struct broker *broker, struct lease *lease) {
        const struct role *role = &broker_policy(broker)->roles[lease->role_index];
        uint64_t backstop = backstop_of(role);
        pid_t pid = lease->thread.pid;
        struct resource_name name;
        struct resource *resource;
        struct rttime now, set;
        char cause[160] = "";
        enum reason reason;

        if (!is_served(broker))
                return;
        if (role->rttime != RTTIME_SUPERVISE || !lease_is_rt(lease)) {
                resource_detach(broker, lease, RESOURCE_RTTIME);
                return;
        }
        if (rttime_read(pid, &now) < 0 ||
            (now.soft_us == RTTIME_UNLIMITED && now.hard_us == RTTIME_UNLIMITED &&
             !resource_of(lease, RESOURCE_RTTIME)))
                return;

        resource = find(broker, pid, &name);
        if (!resource && !is_short(pid, &now, backstop))
                return;
        if (resource) {
                set = limits_of(&resource->set);
                /* the program has limited itself anew: that is what it is to have in the end */
                if (!is_as_set(&now, &set))
                        keep(&now, &resource->saved);
                resource->saved.n[CAUGHT] = catches(pid);
        }

        reason = resource_attach(broker, lease, RESOURCE_RTTIME, &name, (int64_t) backstop, cause,
                                 sizeof(cause));
        if (reason != REASON_NONE && reason != REASON_NO_SUCH_THREAD)
                log_write(broker->log, LOG_NOTICE,
                          &(struct log_fields) { .event = "rttime", .pid = pid,
                                                 .uid_plus_one = lease->uid + 1 },
                          "RLIMIT_RTTIME of process %d stays as it is: %s%s%s", pid,
                          reason_to_string(reason), cause[0] ? ": " : "", cause);
}

void rttime_revise(struct broker *broker, struct lease *lease) {
        struct resource *resource = resource_of(lease, RESOURCE_RTTIME);
        struct rttime now, set;
        bool caught;

        if (!resource || process_resource_has_ended(resource) ||
            rttime_read(resource->name.pid, &now) < 0)
                return;
        set = limits_of(&resource->set);
        if (!is_as_set(&now, &set))
                return; /* others' doing */

        caught = catches(resource->name.pid);
        if (caught != (resource->saved.n[CAUGHT] != 0)) {
                resource->saved.n[CAUGHT] = caught;
                (void) books_settle(broker, resource);
        } else if (now.soft_us != set.soft_us) {
                (void) rttime_write(resource->name.pid, &set);
        }
}
