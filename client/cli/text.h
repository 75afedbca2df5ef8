/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_TEXT_H
#define RTGRANT_CLI_TEXT_H

/*
 * Words for people. Whatever comes from outside (thread names, roles, reasons, arguments) goes
 * through text_printable() before a terminal or a script sees it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Copies @string, what is not printable as \xNN: control characters, marks that turn the direction
 * of text around, and bytes that are no UTF-8. Backslashes stay, so that the broker's own \xNN do.
 * What does not fit is cut between characters.
 */
void text_printable(char *buffer, size_t size, const char *string);

/* Columns on a terminal, as far as counting characters goes. */
size_t text_width(const char *string);

/* "12 s", "3 min", "2 h", "5 d" */
#define TEXT_DURATION_SIZE 32
void text_duration(char *buffer, size_t size, uint64_t duration_ms);

/* Now, as the broker's times count: CLOCK_REALTIME. */
uint64_t text_now_ms(void);

/* The user's name, or the number if there is none. */
#define TEXT_USER_SIZE 64
void text_user(char *buffer, size_t size, uid_t uid);

/* A whole decimal number with an optional sign and leading blanks. Errors: -EINVAL, -ERANGE. */
int text_parse_number(const char *string, int64_t min, int64_t max, int64_t *ret);

/* "512M", "64K", "4096": bytes, at least 1. Errors: -EINVAL, -ERANGE. */
int text_parse_size(const char *string, int64_t *ret);

/* Whether it looks like one, be it in range or not. */
bool text_is_number(const char *string);

/* The word of @words (NULL-terminated) that @string was probably meant to be; NULL if none. */
const char *text_nearest(const char *string, const char *const *words);

#endif
