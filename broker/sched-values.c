/* SPDX-License-Identifier: MIT */

#include "broker/sched-values.h"

#include <assert.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAG_RESET_ON_FORK UINT64_C(0x01)
#define FLAG_RECLAIM UINT64_C(0x02)
#define FLAG_DL_OVERRUN UINT64_C(0x04)

/* struct sched_attr, first published size (48); include/uapi/linux/sched/types.h */
struct kernel_attr {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
};

int sched_read(pid_t tid, struct sched_values *ret) {
        struct kernel_attr attr = {};
        int nice;

        assert(tid >= 1);

        if (syscall(SYS_sched_getattr, tid, &attr, (unsigned) sizeof(attr), 0U) < 0)
                return -errno;

        /* sched_getattr says 0 for the nice of a real-time thread; getpriority says what it is. */
        errno = 0;
        nice = getpriority(PRIO_PROCESS, (id_t) tid);
        if (nice == -1 && errno != 0)
                return -errno;

        *ret = (struct sched_values) {
                .policy = (int) attr.policy,
                .priority = (int) attr.priority,
                .nice = nice,
                .reset_on_fork = attr.flags & FLAG_RESET_ON_FORK,
                .runtime_ns = attr.runtime,
                .deadline_ns = attr.deadline,
                .period_ns = attr.period,
                .other_flags = attr.flags & (FLAG_RECLAIM | FLAG_DL_OVERRUN),
        };
        return 0;
}

int sched_write(pid_t tid, const struct sched_values *values) {
        bool deadline = values->policy == SCHED_POLICY_DEADLINE;
        bool slice = values->policy == SCHED_OTHER || values->policy == SCHED_BATCH;
        struct kernel_attr attr = {
                .size = sizeof(attr),
                .policy = (uint32_t) values->policy,
                .flags = (values->reset_on_fork ? FLAG_RESET_ON_FORK : 0) |
                         (deadline ? values->other_flags : 0),
                .nice = slice ? values->nice : 0,
                .priority = sched_is_rt(values->policy) ? (uint32_t) values->priority : 0,
                .runtime = deadline || slice ? values->runtime_ns : 0,
                .deadline = deadline ? values->deadline_ns : 0,
                .period = deadline ? values->period_ns : 0,
        };

        assert(tid >= 1);

        if (syscall(SYS_sched_setattr, tid, &attr, 0U) < 0)
                return -errno;

        return 0;
}

int sched_write_nice(pid_t tid, int nice) {
        assert(tid >= 1);

        if (setpriority(PRIO_PROCESS, (id_t) tid, nice) < 0)
                return -errno;

        return 0;
}

int sched_rank(int policy, int priority) {
        if (policy == SCHED_IDLE)
                return 0;
        if (sched_is_rt(policy))
                return 1 + priority;

        return policy == SCHED_POLICY_DEADLINE ? 1000 : 1;
}

const char *sched_policy_to_string(int policy) {
        switch (policy) {
        case SCHED_OTHER:
                return "OTHER";
        case SCHED_FIFO:
                return "FIFO";
        case SCHED_RR:
                return "RR";
        case SCHED_BATCH:
                return "BATCH";
        case SCHED_IDLE:
                return "IDLE";
        case SCHED_POLICY_DEADLINE:
                return "DEADLINE";
        case SCHED_POLICY_EXT:
                return "EXT";
        }

        return "unknown";
}
