/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_RELOAD_H
#define RTGRANT_BROKER_RELOAD_H

/* A new policy, and what becomes of the leases that the old one allowed. */

#include "broker/broker.h"

/*
 * Reads the policy again. Leases above its limits are lowered to them and their holders told; those
 * whose role or policy is no more, or whose user is denied by name, are ended.
 *
 * REASON_RELOAD_FAILED if the policy has a fault: nothing changes then, and broker->policy_error
 * says what. *ret_n_lowered, which may be NULL, counts leases lowered or ended.
 */
enum reason broker_reload(struct broker *broker, unsigned *ret_n_lowered);

/* Lowers or ends leases that the policy in force does not allow. Returns how many. */
unsigned broker_fit_leases(struct broker *broker);

/* One line of log for each line of @messages, which may be NULL. */
void broker_log_policy_messages(struct broker *broker, int level, const char *messages);

/* The level of the command line, else of the policy, else LOG_NOTICE. */
void broker_apply_log_level(struct broker *broker);

#endif
