/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_IRQ_BAN_LIST_H
#define RTGRANT_BROKER_IRQ_BAN_LIST_H

/* Interrupts that irqbalance(1) leaves alone, and the two messages to it that are about them. */

#include <stdbool.h>
#include <stddef.h>

#define BAN_LIST_MAX 128

struct ban_list {
        unsigned lines[BAN_LIST_MAX]; /* in rising order, nothing twice */
        unsigned n;
};

/* Newer ones read no more of it, and would take a number that is cut for another. */
#define BAN_NUMBERS_MAX 255

#define BAN_SETUP "setup"
#define BAN_COMMAND "settings ban irqs "
#define BAN_COMMAND_SIZE (sizeof(BAN_COMMAND) + BAN_NUMBERS_MAX)

bool ban_list_has(const struct ban_list *list, unsigned line);

/* Errors: -ENOSPC. */
int ban_list_add(struct ban_list *list, unsigned line);
void ban_list_remove(struct ban_list *list, unsigned line);
bool ban_list_equal(const struct ban_list *a, const struct ban_list *b);

/*
 * What it answers to BAN_SETUP: "SLEEP 10 IRQ 24 LOAD 0 DIFF 0 CLASS 0 BANNED 00000000".
 * Errors: -EBADMSG, -ENOSPC.
 */
int ban_list_parse(const char *reply, struct ban_list *ret);

/*
 * The command by which it forgets its list for this one.
 * Errors: -ENOSPC if it does not read that long ones; -EINVAL: 0 is among them, which ends it.
 */
int ban_list_format(const struct ban_list *list, char command[BAN_COMMAND_SIZE]);

#endif
