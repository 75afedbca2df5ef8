/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_TEXT_H
#define RTGRANT_BROKER_TEXT_H

/*
 * Strings from outside (thread names, reasons, roles) on their way into logs and answers: bounded,
 * and printable ASCII or valid UTF-8 without control characters.
 */

#include <stddef.h>

/*
 * Copies at most @length bytes of @string (less if a NUL comes first) into @buffer, always
 * terminated. Control characters, backslashes and bytes that are no UTF-8 become \xNN; what does
 * not fit is cut between characters.
 */
void text_escape(char *buffer, size_t size, const char *string, size_t length);

/* Copies and cuts @string; for text that is ours. */
void text_copy(char *buffer, size_t size, const char *string);

#endif
