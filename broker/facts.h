/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_FACTS_H
#define RTGRANT_BROKER_FACTS_H

/*
 * Facts for policy_evaluate() that cost something to find out, and only some requests need: the
 * caller's session and program, what others declared, who stands where.
 */

#include "broker/decide.h"

/* The memory that a situation points to. */
struct facts {
        char unit[256];
        char executable[256];
        uint64_t declared_ppm[_DECLARED_MAX][POLICY_ROLES_MAX];
        int lowest_by_role[POLICY_ROLES_MAX];
};

/* All but the session, as far as @ask needs it. @facts lives as long as @now. */
void facts_gather(const struct call *call, const struct ask *ask, struct facts *facts,
                  struct situation *now);

/* Looking through all leases is work: it counts for messages. */
void facts_charge(const struct call *call);

/* Whether some role of the policy allows by session: then it is read before anything is decided. */
bool facts_session_matters(const struct policy *policy);

#endif
