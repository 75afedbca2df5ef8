/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_SESSION_H
#define RTGRANT_BROKER_SESSION_H

/*
 * The login session, unit and program of a process: what systemd-logind and the kernel say of it.
 * Files of root's in /proc and /run/systemd, which are memory: no reading of them waits for anybody.
 */

#include <stddef.h>

#include "policy/policy.h"

/*
 * The state of the session that @pid belongs to. What runs under the user's own manager, as
 * PipeWire does, has no session of its own: then the one that the user sits at counts, as polkit
 * does it too. SESSION_UNREAD on a machine without logind.
 */
enum session_state session_read(pid_t pid, uid_t uid);

/* As in "pipewire.service"; "" if there is none. */
void session_read_unit(pid_t pid, char *buffer, size_t size);

/* The path of its program; "" if that cannot be told. The user chooses it: a hint at most. */
void session_read_executable(pid_t pid, char *buffer, size_t size);

#endif
