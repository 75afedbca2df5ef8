/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_LOAD_H
#define RTGRANT_LATENCY_LOAD_H

/*
 * What keeps the machine busy while it is measured. Each load is processes of their own, in a group
 * of their own, at normal priority; bounded in processes, memory and disk space. The kernel ends
 * them when the program that started them ends, however it does. Their files have no name, so
 * that nothing can be left behind, nor a file of others be touched.
 */

#include <stddef.h>
#include <sys/types.h>

struct load {
        const char *name;
        const char *text;                                        /* what it does, for people */
        void (*run)(const char *directory, const char *command); /* in a child; never returns */
};

/* In the order of a series; NULL past the last. @index from 0. */
const struct load *load_by_index(size_t index);
const struct load *load_by_name(const char *name);

/* The one that runs a shell command. */
extern const struct load load_command;

/* The group's id, to be given to load_stop(); 0 for the load that is none. Errors: fork(2). */
pid_t load_start(const struct load *load, const char *directory, const char *command);
void load_stop(pid_t group);

/*
 * max_sectors_kb of the disk below @directory. Errors: -ENODEV if there is none, as on tmpfs;
 * those of stat(2) and open(2).
 */
int load_max_sectors_kb(const char *directory, unsigned *ret);

#endif
