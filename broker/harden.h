/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_HARDEN_H
#define RTGRANT_BROKER_HARDEN_H

/*
 * Takes away what the daemon does not need, before it has threads and before it serves anybody:
 * capabilities, core dumps, debuggers, and system calls that it never makes.
 */

#include <stddef.h>

/*
 * What cannot be taken away is not fatal. *ret_missing says in words what the daemon should have
 * and does not; "" if nothing. @size is at least 200.
 */
void harden(char *ret_missing, size_t size);

/*
 * Once started: gives back the program pages that only the start needed, and locks what is used
 * from now on, as it is used.
 */
void harden_memory(void);

#endif
