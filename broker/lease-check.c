/* SPDX-License-Identifier: MIT */

#include "broker/lease-check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/cleanup.h"
#include "broker/grant.h"
#include "broker/guard/act.h"
#include "broker/kinds/rttime.h"
#include "broker/proc.h"
#include "broker/text.h"

#define CHECK_US (2U * 1000 * 1000)
#define CHECK_CHUNK 64U         /* leases in one go: about a millisecond */
#define HURRY_US 1000U          /* between two such, where all are to be looked at now */

/*
 * exec(3) by a thread that does not lead its process kills the others and goes on under the number
 * of the leader, with its scheduling: the same thread under another number.
 */
static bool follow_exec(struct broker *broker, struct lease *lease) {
        pid_t pid = lease->thread.pid;
        struct lease *leaders = lease_find_by_tid(&broker->leases, pid);
        struct sched_values now;
        struct thread leader;
        struct creds creds;

        /* of a thread without values of its own nothing can be recognised */
        if (!lease->grants[KIND_SCHED].held && !lease->grants[KIND_NICE].held)
                return false;
        if (lease->thread.tid == pid || thread_open(&broker->kernel, pid, pid, &leader, &creds) < 0)
                return false;

        if (sched_read(pid, &now) < 0 ||
            !(grant_is_in_force(lease, pid, &now) || grant_remains(lease, &now)) ||
            (leaders && grant_is_in_force(leaders, pid, &now))) {
                thread_close(&leader);
                return false;
        }

        /* The former leader is gone, and its pidfd stands for the thread that took its number. */
        if (leaders)
                lease_end(broker, leaders, REASON_THREAD_ENDED,
                          "its thread ended by another's exec");
        lease_rebind_thread(broker, lease, &leader, &creds);
        return true;
}

/*
 * REASON_NONE if the thread still runs as the user it was granted to, with no more rights;
 * REASON_THREAD_ENDED if it is the main one and ended before the others, which its pidfd does not
 * tell, and the kernel grants it whatever is asked.
 */
static enum reason check_rights(struct broker *broker, struct lease *lease, const struct creds *now,
                                bool caps_too) {
        struct proc_status status;

        if (now->ruid != lease->uid || now->euid != lease->uid || now->suid != lease->uid ||
            now->fsuid != lease->uid)
                return REASON_CREDENTIALS_CHANGED;
        if (now->rgid != now->egid || now->rgid != now->sgid || now->rgid != now->fsgid)
                return REASON_CREDENTIALS_CHANGED;

        /* Only exec(3) adds capabilities, and that leaves one thread; only a process of one thread can
         * enter a user namespace: one look a process will do. */
        if (!caps_too)
                return REASON_NONE;
        if (!broker_policy(broker)->user_namespaces &&
            proc_in_initial_userns(lease->thread.pid) == 0)
                return REASON_USER_NAMESPACE;
        if (proc_read_status(lease->thread.pid, lease->thread.tid, &status) < 0)
                return REASON_NONE;
        if (status.state == 'Z' && lease->thread.tid == lease->thread.pid)
                return REASON_THREAD_ENDED;
        if ((status.cap_permitted & ~lease->cap_permitted) == 0)
                return REASON_NONE;

        /* Making a user namespace gives all capabilities, within it. */
        if (proc_in_initial_userns(lease->thread.pid) != 0)
                return REASON_CREDENTIALS_CHANGED;

        lease->cap_permitted = status.cap_permitted;
        return REASON_NONE;
}

/* Where a service manager or an administrator put it: its lease goes on, and its holder is told. */
static void tell_moved(struct broker *broker, struct lease *lease) {
        static const char unified[] = "0::";
        _cleanup_free_ char *cgroups = NULL;
        const char *path = NULL;
        char name[128], text[200];

        if (proc_read(lease->thread.pid, lease->thread.tid, "cgroup", &cgroups, NULL) >= 0)
                path = strstr(cgroups, unified); /* the last line, or the only one */
        if (!path)
                return;

        path += strlen(unified);
        text_escape(name, sizeof(name), path, strcspn(path, "\n"));
        (void) snprintf(text, sizeof(text), "its thread was moved to the cgroup %s", name);
        broker_tell(broker, lease, WIRE_EVENT_CHANGED, REASON_CHANGED_BY_OTHERS, text);
}

static void check_lease(struct broker *broker, struct lease *lease, bool caps_too) {
        enum reason reason;
        struct creds now;
        bool moved;
        int r;

        r = thread_read_creds(&broker->kernel, &lease->thread, &now);
        if (r == -ESRCH) {
                lease_check_ended(broker, lease);
                return;
        }
        if (r < 0)
                return; /* no descriptor left to look with: next time */

        reason = check_rights(broker, lease, &now,
                              caps_too || lease->thread.tid == lease->thread.pid);
        if (reason == REASON_THREAD_ENDED) {
                lease_end(broker, lease, reason, "its thread, the main one, ended before the others");
                return;
        }
        if (reason != REASON_NONE) {
                lease_end(broker, lease, reason,
                          reason == REASON_USER_NAMESPACE
                                  ? "its process entered a user namespace, which the policy does "
                                    "not serve"
                                  : "its thread runs as another user or with more rights than it "
                                    "was granted to");
                return;
        }
        moved = now.cgroup != lease->creds.cgroup && now.cgroup != 0 && lease->creds.cgroup != 0;
        lease->creds = now;
        if (moved)
                tell_moved(broker, lease);

        r = grant_verify(lease);
        if (r == 1)
                r = resource_in_force(lease);
        if (r == 0 && lease->state == WIRE_LEASE_IN_FORCE)
                lease_check_changed(broker, lease);
        else if (r == 1 && lease->state == WIRE_LEASE_CHANGED)
                lease->state = WIRE_LEASE_IN_FORCE;
        if (lease->guard == 0)
                (void) guard_act_watch(broker, lease);
        if (caps_too)
                rttime_revise(broker, lease);
}

void lease_check_ended(struct broker *broker, struct lease *lease) {
        if (follow_exec(broker, lease)) {
                check_lease(broker, lease, /* caps_too= */ true);
                return;
        }

        lease_end(broker, lease, REASON_THREAD_ENDED, "its thread ended");
}

void lease_check_changed(struct broker *broker, struct lease *lease) {
        if (guard_act_is_demoted(broker, lease))
                return;

        lease->state = WIRE_LEASE_CHANGED;
        broker_tell(broker, lease, WIRE_EVENT_CHANGED, REASON_CHANGED_BY_OTHERS,
                    "its thread has other values than granted, by its owner's or another program's "
                    "doing");
}

static uint64_t interval_us(const struct broker *broker) {
        unsigned n = lease_table_size(&broker->leases);

        if (broker->check_hurries)
                return HURRY_US;
        return n <= CHECK_CHUNK ? CHECK_US : (uint64_t) CHECK_US * CHECK_CHUNK / n;
}

static int on_check(sd_event_source *source, uint64_t usec, void *userdata) {
        struct broker *broker = userdata;
        pid_t last_pid = 0;

        /* work like any other; and after a flood it may be the first there is */
        self_charge(&broker->self, broker_now_us(broker));

        for (unsigned n = 0; n < CHECK_CHUNK; n++) {
                struct lease *lease = lease_find_after(&broker->leases, broker->check_seq);
                pid_t pid;

                if (!lease) {
                        broker->check_seq = 0;
                        broker->check_hurries = false;
                        break;
                }

                pid = lease->thread.pid;
                broker->check_seq = lease->seq;
                check_lease(broker, lease, pid != last_pid);
                last_pid = pid;
        }

        if (lease_table_size(&broker->leases) > 0) {
                (void) sd_event_source_set_time_relative(source, interval_us(broker));
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

void lease_check_schedule(struct broker *broker) {
        bool needed = lease_table_size(&broker->leases) > 0;
        int enabled = SD_EVENT_OFF;

        if (!broker->check) {
                if (!needed)
                        return;
                (void) sd_event_add_time_relative(broker->event, &broker->check, CLOCK_MONOTONIC,
                                                  CHECK_US, CHECK_US / 8, on_check, broker);
                return;
        }

        (void) sd_event_source_get_enabled(broker->check, &enabled);
        if (needed == (enabled != SD_EVENT_OFF))
                return;

        if (needed)
                (void) sd_event_source_set_time_relative(broker->check, CHECK_US);
        (void) sd_event_source_set_enabled(broker->check, needed ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

void lease_check_all(struct broker *broker) {
        if (lease_table_size(&broker->leases) == 0)
                return;

        broker->check_seq = 0;
        broker->check_hurries = true;
        (void) sd_event_source_set_time_relative(broker->check, HURRY_US);
}
