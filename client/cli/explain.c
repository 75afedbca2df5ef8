/* SPDX-License-Identifier: MIT */

#include "client/cli/explain.h"

#include "client/cli/scheduling.h"
#include "client/cli/text.h"

#define LINE_SIZE 1536

void explain_line(FILE *file, const char *name, const char *value) {
        char printable[LINE_SIZE];

        if (value[0] == '\0')
                return;
        text_printable(printable, sizeof(printable), value);
        fprintf(file, "  %s: %s\n", name, printable);
}

void explain_refusal(FILE *file, const char *program, const char *who,
                     const struct rtgrant_answer *answer) {
        const char *text =
                answer->text[0] ? answer->text : rtgrant_reason_to_string(answer->reason);
        char printable[LINE_SIZE];

        text_printable(printable, sizeof(printable), text);
        fprintf(file, "%s: ", program);
        if (who)
                fprintf(file, "%s: ", who);
        fprintf(file, "refused: %s\n", printable);
        explain_line(file, "rule", answer->rule);
        explain_line(file, "help", answer->help);
}

void explain_values(char buffer[EXPLAIN_VALUES_SIZE], const struct values *values) {
        const char *name = policy_name(values->policy);
        size_t size = EXPLAIN_VALUES_SIZE, n = 0;

        buffer[0] = '\0';
        if (values->has_policy)
                n += (size_t) snprintf(buffer, size, "%s", name ? name : "another policy");
        if (values->has_policy && policy_is_realtime(values->policy))
                n += (size_t) snprintf(buffer + n, size - n, " %d", values->priority);
        if (values->has_nice)
                (void) snprintf(buffer + n, size - n, "%snice %d", n > 0 ? ", " : "", values->nice);
}

struct values explain_given(const struct values *asked, const struct rtgrant_answer *answer) {
        struct values given = *asked;

        given.policy = answer->policy;
        given.priority = answer->priority;
        given.nice = answer->nice;
        return given;
}
