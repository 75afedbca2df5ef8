/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_MERGE_H
#define RTGRANT_POLICY_READER_MERGE_H

/* Reads one more text over what the policy has so far, key by key. */

#include "policy/reader/book.h"

#define POLICY_TEXT_MAX 1048576U /* bytes */

/* @file stands for the text in rules and messages; copied. Faults go to @report. */
void merge_text(struct policy_store *store, const char *file, const char *text, size_t length,
                struct report *report);

#endif
