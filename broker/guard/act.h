/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_GUARD_ACT_H
#define RTGRANT_BROKER_GUARD_ACT_H

/*
 * The dispatcher's part of the guard: which threads it watches, with what budgets, and the books of
 * what it did: who is demoted until when, and whose user gets nothing new meanwhile.
 */

#include <stdbool.h>

struct broker;
struct lease;
struct user;

/* Starts the guard. Errors: logged. */
int guard_act_start(struct broker *broker);
void guard_act_stop(struct broker *broker);

/* The policy's limits are in force, for all leases there are. */
void guard_act_apply_policy(struct broker *broker);

/*
 * Watches the lease's thread if it is real-time, and not if it is not; called after any change of
 * what it holds, of its role or timing. Errors: as guard_add().
 */
int guard_act_watch(struct broker *broker, struct lease *lease);

/*
 * The lease is about to become real-time: makes room for it, since what cannot be watched must not be
 * given. If that comes to nothing, guard_act_watch() gives it up. Errors: as guard_add().
 */
int guard_act_reserve(struct broker *broker, struct lease *lease);

/* It goes on as another thread. */
void guard_act_rebind(struct broker *broker, struct lease *lease);

/* Watches no more. @restore: what was before the lease is put back if it is demoted. */
void guard_act_forget(struct broker *broker, struct lease *lease, bool restore);

/* A predecessor had demoted it, until lease->demoted_until_ms. */
void guard_act_resume(struct broker *broker, struct lease *lease);

/* Whether it is the guard's doing that the thread has not what the lease holds; then it is booked. */
bool guard_act_is_demoted(struct broker *broker, struct lease *lease);

/* How long the user gets no new real-time priority; 0: it does. */
unsigned guard_act_back_off_ms(const struct broker *broker, const struct user *user);

#endif
