/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_DEMOTE_H
#define RTGRANT_BROKER_DEMOTE_H

/*
 * Takes real-time and strong nice values away, whoever gave them. Less than before is nobody's
 * privilege: no policy is asked and nothing is counted.
 */

#include "broker/methods.h"

/*
 * Ends the lease of a thread that @call's peer may speak for, and makes it SCHED_OTHER with @nice.
 * True if that is done or cannot be: *ret_reason as that of target_resolve(). False if what the
 * thread has of its own is less already, so that it would be a raise, which the policy decides on.
 */
bool demote_thread(const struct call *call, const struct target_request *target, int nice,
                   enum reason *ret_reason);

/*
 * Makes every real-time thread of every process that does not run as root SCHED_OTHER with nice 0;
 * init and this process are left alone. Returns how many.
 */
unsigned demote_everybody(void);

#endif
