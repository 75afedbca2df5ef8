/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_AGENT_H
#define RTGRANT_CLI_AGENT_H

/*
 * polkit's authentication agent for terminals, pkttyagent(1), while it may have to ask: a desktop has
 * an agent of its own, which comes before this one, a text console has none.
 */

#include <signal.h>
#include <sys/types.h>
#include <termios.h>

#define AGENT_SIGNALS 3

struct agent {
        pid_t pid;              /* 0: none runs */
        struct termios before;  /* how it found the terminal */
        struct sigaction actions[AGENT_SIGNALS]; /* and the signals that would end us before it */
};

/*
 * Starts one for the calling process, and waits until polkit knows it; one at a time. Does nothing if
 * nobody can answer: where standard input is no terminal, or belongs to a job in front; and root is
 * not asked.
 */
void agent_start(struct agent *agent);

/* Ends it if it runs, whatever it is about to ask. */
void agent_stop(struct agent *agent);

#endif
