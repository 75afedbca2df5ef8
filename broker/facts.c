/* SPDX-License-Identifier: MIT */

#include "broker/facts.h"

#include <sched.h>
#include <unistd.h>

#include "broker/sched-values.h"
#include "broker/session.h"

/* Leases looked at for the price of one message. */
#define LEASES_PER_MESSAGE 64

static uint64_t lease_demand_ppm(const struct timing *timing) {
        return (timing->computation_ns * UINT64_C(1000000) + timing->period_ns - 1) /
               timing->period_ns;
}

static bool is_subset(const cpu_set_t *a, const cpu_set_t *b) {
        cpu_set_t both;

        CPU_AND(&both, a, b);
        return CPU_EQUAL(&both, a);
}

static void add_declared(const struct lease *lease, const cpu_set_t *own, struct facts *facts,
                         struct situation *now) {
        uint64_t ppm = lease_demand_ppm(&lease->timing);
        cpu_set_t set;

        if (sched_getaffinity(lease->thread.tid, sizeof(set), &set) < 0)
                return;

        for (int i = 0; i < _DECLARED_MAX; i++)
                if (i == DECLARED_MACHINE || is_subset(&set, own)) {
                        now->declared[i].ppm += ppm;
                        facts->declared_ppm[i][lease->role_index] += ppm;
                }
}

/* What other leases declared of the CPUs that this thread may run on, and of all. */
static void gather_declared(struct broker *broker, const struct ask *ask, struct facts *facts,
                            struct situation *now) {
        struct lease *lease;
        cpu_set_t own;
        long n_online;

        if (ask->request->period_ns == 0)
                return;
        n_online = sysconf(_SC_NPROCESSORS_ONLN); /* which reads a file */
        if (n_online < 1 || sched_getaffinity(ask->tid, sizeof(own), &own) < 0)
                return;

        now->declared[DECLARED_OWN].n_cpus = (unsigned) MIN(CPU_COUNT(&own), n_online);
        now->declared[DECLARED_MACHINE].n_cpus = (unsigned) n_online;
        for (int i = 0; i < _DECLARED_MAX; i++)
                now->declared[i].ppm_by_role = facts->declared_ppm[i];

        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq)
                if (lease != ask->lease && lease->timing.period_ns != 0)
                        add_declared(lease, &own, facts, now);
}

static bool any_role_is_below(const struct policy *policy) {
        for (size_t i = 0; i < policy->n_roles; i++)
                if (policy->roles[i].below.n_words > 0)
                        return true;

        return false;
}

static void gather_order(struct broker *broker, const struct ask *ask, struct facts *facts,
                         struct situation *now) {
        struct sched_values feeds;
        struct lease *lease;

        if (ask->feeds_tid > 0 && sched_read(ask->feeds_tid, &feeds) >= 0 &&
            sched_is_rt(feeds.policy))
                now->feeds_priority = feeds.priority;
        now->feeds_irq_priority = ask->fed.priority;

        if (!ask->request->wants_sched || !any_role_is_below(broker_policy(broker)))
                return;
        for (uint64_t seq = 0; (lease = lease_find_after(&broker->leases, seq)); seq = lease->seq) {
                int *lowest = &facts->lowest_by_role[lease->role_index];
                int priority = lease->grants[KIND_SCHED].set.sched.priority;

                if (lease->user == ask->user && lease != ask->lease && lease_is_rt(lease) &&
                    (*lowest == 0 || priority < *lowest))
                        *lowest = priority;
        }
        now->lowest_by_role = facts->lowest_by_role;
}

static void gather_hints(const struct call *call, const struct ask *ask, struct facts *facts,
                         struct situation *now) {
        const struct policy *policy = broker_policy(call->broker);
        bool units = false, executables = false;

        if (ask->request->role && ask->request->role[0] != '\0')
                return;
        for (size_t i = 0; i < policy->n_roles; i++) {
                units = units || policy->roles[i].units.n_words > 0;
                executables = executables || policy->roles[i].executables.n_words > 0;
        }

        if (units) {
                session_read_unit(ask->pid, facts->unit, sizeof(facts->unit));
                now->unit = facts->unit;
        }
        if (executables) {
                session_read_executable(ask->pid, facts->executable, sizeof(facts->executable));
                now->executable = facts->executable;
        }
}

void facts_charge(const struct call *call) {
        struct broker *broker = call->broker;
        unsigned n = lease_table_size(&broker->leases) / LEASES_PER_MESSAGE;

        for (; n > 0; n--)
                (void) bucket_take(&call->user->messages, broker_now_us(broker));
}

void facts_gather(const struct call *call, const struct ask *ask, struct facts *facts,
                  struct situation *now) {
        *facts = (struct facts) {};
        gather_declared(call->broker, ask, facts, now);
        gather_order(call->broker, ask, facts, now);
        gather_hints(call, ask, facts, now);
        if (now->declared[DECLARED_OWN].n_cpus > 0 || now->lowest_by_role)
                facts_charge(call);
}

bool facts_session_matters(const struct policy *policy) {
        for (size_t i = 0; i < policy->n_roles; i++)
                if (policy->roles[i].sessions != 0)
                        return true;

        return false;
}
