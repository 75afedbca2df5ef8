/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_IRQBALANCE_H
#define RTGRANT_BROKER_IRQ_IRQBALANCE_H

/*
 * The socket of irqbalance(1). One message for each connection; who connects should send it, and who
 * asked should read the answer to its end: version 1.9.2 does not survive the lack of either.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct irqbalance {
        pid_t pid;
        uint64_t start_time;
};

/*
 * A connection to the one that listens in @directory, which has to be root's alone, as it has to run
 * as root. Returns the descriptor. Errors: -ENOENT if there is none, -EAGAIN if others wait there;
 * connect(2).
 */
int irqbalance_connect(const char *directory, struct irqbalance *ret);

/* It serves nobody who does not say that he is root: that is said too. Errors: sendmsg(2). */
int irqbalance_send(int fd, const char *text);

bool irqbalance_is_gone(const struct irqbalance *instance);

#endif
