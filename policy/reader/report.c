/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <string.h>

#include "policy/reader/report.h"

/* Enough to work on, and a bound on what a file full of rubbish can make of itself. */
#define MESSAGES_MAX 100

void report_init(struct report *report) {
        *report = (struct report) { .text = g_string_new(NULL) };
}

void report_done(struct report *report) {
        g_string_free(report->text, TRUE);
        report->text = NULL;
}

static bool begin_message(struct report *report, struct rule at) {
        report->n_messages++;
        if (report->n_messages > MESSAGES_MAX)
                return false;

        g_string_append_printf(report->text, "%s:", at.file);
        if (at.line > 0)
                g_string_append_printf(report->text, "%u:", at.line);
        g_string_append_c(report->text, ' ');
        return true;
}

static G_GNUC_PRINTF(4, 0) void add_message(struct report *report, struct rule at,
                                             const char *prefix, const char *format,
                                             va_list args) {
        if (!begin_message(report, at))
                return;

        g_string_append(report->text, prefix);
        g_string_append_vprintf(report->text, format, args);
        g_string_append_c(report->text, '\n');
}

void report_fault(struct report *report, struct rule at, const char *format, ...) {
        va_list args;

        if (report->error == 0)
                report->error = -EINVAL;

        va_start(args, format);
        add_message(report, at, "", format, args);
        va_end(args);
}

void report_errno(struct report *report, const char *file, int error, const char *format, ...) {
        va_list args;

        if (report->error == 0)
                report->error = error;

        va_start(args, format);
        add_message(report, (struct rule) { .file = file }, "", format, args);
        va_end(args);
}

void report_warning(struct report *report, struct rule at, const char *format, ...) {
        va_list args;

        va_start(args, format);
        add_message(report, at, "warning: ", format, args);
        va_end(args);
}

char *report_steal_text(struct report *report) {
        char *text;

        if (report->n_messages > MESSAGES_MAX)
                g_string_append_printf(report->text, "and %u more\n",
                                       report->n_messages - MESSAGES_MAX);

        text = g_string_free(report->text, FALSE);
        report_init(report);
        return text;
}

struct excerpt excerpt(const char *text, size_t length) {
        static const char more[] = "...";
        struct excerpt e = { 0 };
        size_t n = length;

        if (length >= sizeof(e.text)) {
                n = sizeof(e.text) - sizeof(more);
                while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80)
                        n--;
        }

        memcpy(e.text, text, n);
        if (n < length)
                memcpy(e.text + n, more, sizeof(more));
        return e;
}
