/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_POLICY_READER_REPORT_H
#define RTGRANT_POLICY_READER_REPORT_H

/* Collects what there is to say about policy files, so that all faults are told at once. */

#include <glib.h>

#include "policy/policy.h"

struct report {
        GString *text;          /* owned */
        unsigned n_messages;    /* those past the bound too */
        int error;              /* of the first fault; 0: none */
};

void report_init(struct report *report);
void report_done(struct report *report);

/* A fault: -EINVAL. @at.line 0: of the file as a whole. */
void report_fault(struct report *report, struct rule at, const char *format, ...)
        G_GNUC_PRINTF(3, 4);

/* A failed call on @file; @error is a negative errno. */
void report_errno(struct report *report, const char *file, int error, const char *format, ...)
        G_GNUC_PRINTF(4, 5);

void report_warning(struct report *report, struct rule at, const char *format, ...)
        G_GNUC_PRINTF(3, 4);

/* The messages so far, to be freed by free(3); @report is empty afterwards. */
char *report_steal_text(struct report *report);

#define EXCERPT_SIZE 64

/* The start of a valid UTF-8 text, whole characters, with "..." if it goes on. */
struct excerpt {
        char text[EXCERPT_SIZE];
};

struct excerpt excerpt(const char *text, size_t length);

#endif
