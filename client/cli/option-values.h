/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_OPTION_VALUES_H
#define RTGRANT_CLI_OPTION_VALUES_H

/*
 * The values of options as they are written. What is wrong with one is said on stderr; all return
 * 0, or the exit status.
 */

#include <stdint.h>

#include "client/cli/options.h"

/* Says what is wrong, and where help is. Returns @status. */
__attribute__((format(printf, 3, 4))) int option_complain(const struct options *o, int status,
                                                          const char *format, ...);

/* @name: of the option, for the complaint */
int option_parse_number(const struct options *o, const char *name, const char *string, int64_t min,
                        int64_t max, int64_t *ret);

int option_parse_role(struct options *o, const char *role);

/* "512M" */
int option_parse_memlock(struct options *o, const char *string);

/* DEVICE=NUMBER; without "=NUMBER" *ret_number is 0. Cuts @string at the "=". */
int option_parse_device(struct options *o, const char *name, char *string, int64_t max,
                        int64_t *ret_number);

/* "50%", or "50" */
int option_parse_load(struct options *o, const char *string);

/* PID or PID:INODE */
int option_parse_pid(struct options *o, const char *string);

#endif
