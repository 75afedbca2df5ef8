/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_UPDATE_H
#define RTGRANT_BROKER_UPDATE_H

/*
 * Changes of a lease that is there, which its holder asks for.
 */

#include "broker/methods.h"

/* UPDATE of a lease of the caller; as acquire_lease(). */
bool update_lease(const struct call *call, struct lease *lease, const struct wire_update *wire,
                  struct wire_answer *answer, struct authority_question *ret_question);

/* RENEW of a lease of the caller. */
void update_renew(const struct call *call, struct lease *lease, unsigned lifetime_s,
                  struct wire_answer *answer);

#endif
