/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_CPUS_H
#define RTGRANT_POLICY_CPUS_H

/* Sets of CPUs as the kernel writes them: "0-3,8". Nothing is looked up here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPUS_MAX 1024

struct cpus {
        uint64_t bits[CPUS_MAX / 64];   /* all 0: none */
};

/* Errors: -EINVAL; -ERANGE for a CPU from CPUS_MAX on. An empty text is the empty set. */
int cpus_parse(const char *text, struct cpus *ret);

/* As text; what does not fit is left out at the end, and shown as "...". */
void cpus_format(const struct cpus *cpus, char *buffer, size_t size);

bool cpus_is_empty(const struct cpus *cpus);
bool cpus_equal(const struct cpus *a, const struct cpus *b);

#endif
