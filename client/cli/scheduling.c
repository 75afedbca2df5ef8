/* SPDX-License-Identifier: MIT */

#include "client/cli/scheduling.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/cli/cleanup.h"

#define POLICY_EXT 7
#define ATTR_RESET_ON_FORK 0x01U        /* SCHED_FLAG_RESET_ON_FORK */
#define POLICY_RESET_ON_FORK 0x40000000 /* SCHED_RESET_ON_FORK */

/* The first version of struct sched_attr: all that is used here, and known to every kernel. */
struct attr {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns;
        uint64_t deadline_ns;
        uint64_t period_ns;
};

/* In the order of `chrt --max`. */
static const struct {
        int policy;
        const char *name;
} policies[] = {
        { SCHED_OTHER, "SCHED_OTHER" },
        { SCHED_FIFO, "SCHED_FIFO" },
        { SCHED_RR, "SCHED_RR" },
        { SCHED_BATCH, "SCHED_BATCH" },
        { SCHED_IDLE, "SCHED_IDLE" },
        { POLICY_DEADLINE, "SCHED_DEADLINE" },
};

int scheduling_read(pid_t tid, struct scheduling *ret) {
        struct attr attr = { .size = sizeof(attr) };

        if (syscall(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) < 0)
                return -errno;

        *ret = (struct scheduling) {
                .policy = (int) attr.policy,
                .priority = (int) attr.priority,
                .reset_on_fork = attr.flags & ATTR_RESET_ON_FORK,
        };
        if (attr.policy == POLICY_DEADLINE) {
                ret->runtime_ns = attr.runtime_ns;
                ret->deadline_ns = attr.deadline_ns;
                ret->period_ns = attr.period_ns;
        }
        return 0;
}

static int write_deadline(pid_t tid, const struct scheduling *scheduling) {
        struct attr attr = {
                .size = sizeof(attr),
                .policy = POLICY_DEADLINE,
                .flags = scheduling->reset_on_fork ? ATTR_RESET_ON_FORK : 0,
                .runtime_ns = scheduling->runtime_ns,
                .deadline_ns = scheduling->deadline_ns,
                .period_ns = scheduling->period_ns,
        };

        return syscall(SYS_sched_setattr, tid, &attr, 0) < 0 ? -errno : 0;
}

int scheduling_write(pid_t tid, const struct scheduling *scheduling) {
        struct sched_param param = { .sched_priority = scheduling->priority };
        int policy = scheduling->policy;

        if (policy == POLICY_DEADLINE)
                return write_deadline(tid, scheduling);
        if (scheduling->reset_on_fork)
                policy |= POLICY_RESET_ON_FORK;

        return syscall(SYS_sched_setscheduler, tid, policy, &param) < 0 ? -errno : 0;
}

int scheduling_read_nice(pid_t tid, int *ret_nice) {
        int nice;

        errno = 0;
        nice = getpriority(PRIO_PROCESS, (id_t) tid);
        if (nice == -1 && errno != 0)
                return -errno;

        *ret_nice = nice;
        return 0;
}

int scheduling_write_nice(pid_t tid, int nice) {
        return setpriority(PRIO_PROCESS, (id_t) tid, nice) < 0 ? -errno : 0;
}

const char *policy_name(int policy) {
        for (size_t i = 0; i < ELEMENTS(policies); i++)
                if (policies[i].policy == policy)
                        return policies[i].name;

        return policy == POLICY_EXT ? "SCHED_EXT" : NULL;
}

void policy_range(int policy, int *ret_min, int *ret_max) {
        long min = syscall(SYS_sched_get_priority_min, policy);
        long max = syscall(SYS_sched_get_priority_max, policy);

        *ret_min = min < 0 ? 0 : (int) min;
        *ret_max = max < 0 ? 0 : (int) max;
}

bool policy_by_index(size_t index, int *ret_policy) {
        if (index >= ELEMENTS(policies))
                return false;

        *ret_policy = policies[index].policy;
        return true;
}
