/* SPDX-License-Identifier: MIT */

#include "broker/demote.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "broker/cleanup.h"
#include "broker/ids.h"
#include "broker/proc.h"
#include "broker/target.h"

#define THREADS_MAX 65536               /* looked at by demote_everybody() */

static void cleanup_closedir(DIR **dir) {
        if (*dir)
                (void) closedir(*dir);
}

static bool is_demotion(const struct sched_values *now, int nice) {
        return now->nice <= nice && now->policy != SCHED_IDLE && now->policy != SCHED_POLICY_EXT;
}

static int write_demoted(pid_t tid, const struct sched_values *now, int nice) {
        const struct sched_values demoted = {
                .policy = SCHED_OTHER,
                .nice = nice,
                .reset_on_fork = now->reset_on_fork,
        };

        if (sched_is_rt(now->policy) || now->policy == SCHED_POLICY_DEADLINE)
                return sched_write(tid, &demoted);
        return now->nice == nice ? 0 : sched_write_nice(tid, nice);
}

static enum reason lower(const struct broker *broker, const struct target *target,
                         const struct sched_values *now, int nice) {
        enum reason reason;

        reason = target_check(&broker->kernel, &target->thread, &target->creds);
        if (reason != REASON_NONE)
                return reason;
        if (write_demoted(target->thread.tid, now, nice) < 0)
                return REASON_KERNEL_OTHER;

        /* it ended, and its number became another thread's in between: that gets back what it had
         */
        reason = target_check(&broker->kernel, &target->thread, &target->creds);
        if (reason != REASON_NONE)
                (void) sched_write(target->thread.tid, now);
        return reason;
}

static void end_lease(struct broker *broker, const struct peer *peer,
                      const struct target *target) {
        struct lease *lease = lease_find_by_tid(&broker->leases, target->thread.tid);

        if (lease && lease->uid == peer->uid && lease->thread.inode == target->thread.inode &&
            lease->thread.start_time == target->thread.start_time)
                lease_end(broker, lease, REASON_RELEASED, "its holder asked for normal priority");
}

bool demote_thread(const struct call *call, const struct target_request *wanted, int nice,
                   enum reason *ret_reason) {
        struct target target = { .thread = THREAD_NONE };
        struct sched_values now;
        bool done = true;

        *ret_reason = target_resolve(&call->broker->kernel, call->peer, wanted, &target);
        /* looking through the threads of a namespace is work: four of them count for a message */
        for (unsigned n = target.n_scanned / 4; n > 0; n--)
                (void) bucket_take(&call->user->messages, broker_now_us(call->broker));
        if (*ret_reason != REASON_NONE)
                return true;

        end_lease(call->broker, call->peer, &target);
        if (sched_read(target.thread.tid, &now) < 0)
                *ret_reason = REASON_NO_SUCH_THREAD;
        else if (is_demotion(&now, nice))
                *ret_reason = lower(call->broker, &target, &now, nice);
        else
                done = false;

        thread_close(&target.thread);
        return done;
}

static bool is_realtime(pid_t tid, struct sched_values *ret_now) {
        return sched_read(tid, ret_now) >= 0 && sched_is_rt(ret_now->policy);
}

static unsigned demote_process(pid_t pid, unsigned *n_seen) {
        _cleanup_(cleanup_closedir) DIR *dir = NULL;
        struct sched_values now;
        struct dirent *entry;
        unsigned n = 0;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/task", pid);
        dir = opendir(path);
        while (dir && (entry = readdir(dir)) && *n_seen < THREADS_MAX) {
                pid_t tid = (pid_t) strtol(entry->d_name, NULL, 10);

                if (tid <= 0)
                        continue;
                (*n_seen)++;
                if (is_realtime(tid, &now) && write_demoted(tid, &now, 0) >= 0)
                        n++;
        }
        return n;
}

unsigned demote_everybody(void) {
        _cleanup_(cleanup_closedir) DIR *dir = opendir("/proc");
        struct proc_status status;
        struct dirent *entry;
        unsigned n = 0, n_seen = 0;

        while (dir && (entry = readdir(dir)) && n_seen < THREADS_MAX) {
                pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);

                if (pid <= 1 || pid == getpid())
                        continue;
                /* kernel threads are root's too */
                if (proc_read_status(pid, 0, &status) >= 0 && status.uids[PROC_EFFECTIVE] != 0)
                        n += demote_process(pid, &n_seen);
        }
        return n;
}
