/* SPDX-License-Identifier: MIT */

#include "client/cli/explain.h"

#include <inttypes.h>

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

bool resources_are_wanted(const struct resources *resources) {
        return resources->memlock_bytes != 0 || resources->cpu_latency_us != 0 ||
               resources->block || resources->irq;
}

/* "512 MiB" */
static void explain_size(char *buffer, size_t size, uint64_t bytes) {
        static const char units[] = "KMGT";
        size_t unit = 0;

        bytes /= 1024;
        while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
                bytes /= 1024;
                unit++;
        }
        (void) snprintf(buffer, size, "%" PRIu64 " %ciB", bytes, units[unit]);
}

/* At the end of @buffer, in which @n bytes are used. Devices are cut short rather than the rest. */
static void explain_resources(char buffer[EXPLAIN_VALUES_SIZE], size_t n,
                              const struct resources *r) {
        const size_t size = EXPLAIN_VALUES_SIZE;
        char text[64];

        if (r->memlock_bytes != 0) {
                explain_size(text, sizeof(text), r->memlock_bytes);
                n += (size_t) snprintf(buffer + n, size - n, "%smemlock %s", n > 0 ? ", " : "", text);
        }
        if (r->cpu_latency_us != 0)
                n += (size_t) snprintf(buffer + n, size - n, "%scpu-latency %u us",
                                       n > 0 ? ", " : "", r->cpu_latency_us);
        if (r->block) {
                text_printable(text, sizeof(text), r->block);
                n += (size_t) snprintf(buffer + n, size - n, "%sblock-queue %.40s %u KiB",
                                       n > 0 ? ", " : "", text, r->block_max_sectors_kb);
        }
        if (r->irq) {
                text_printable(text, sizeof(text), r->irq);
                n += (size_t) snprintf(buffer + n, size - n, "%sirq %.40s", n > 0 ? ", " : "", text);
                if (r->irq_priority != 0)
                        (void) snprintf(buffer + n, size - n, " %d", r->irq_priority);
        }
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
                n += (size_t) snprintf(buffer + n, size - n, "%snice %d", n > 0 ? ", " : "",
                                       values->nice);
        explain_resources(buffer, n, &values->resources);
}

struct values explain_given(const struct values *asked, const struct rtgrant_answer *answer) {
        struct values given = *asked;

        given.policy = answer->policy;
        given.priority = answer->priority;
        given.nice = answer->nice;
        if (answer->rung == RTGRANT_RUNG_NICE) {
                given.has_policy = false;
                given.has_nice = true;
        }
        given.resources.memlock_bytes = answer->memlock_bytes;
        given.resources.cpu_latency_us = answer->cpu_latency_us;
        given.resources.block_max_sectors_kb = answer->block_max_sectors_kb;
        given.resources.irq_priority = answer->irq_priority;
        if (!(answer->granted & RTGRANT_KIND_BLOCK_QUEUE))
                given.resources.block = NULL;
        if (!(answer->granted & RTGRANT_KIND_IRQ))
                given.resources.irq = NULL;
        return given;
}

static void add_number(json_object *object, const char *key, uint64_t number) {
        if (number != 0)
                json_add_int(object, key, (int64_t) number);
        else
                json_add_null(object, key);
}

void explain_resources_json(json_object *object, const struct rtgrant_answer *answer) {
        static const struct rtgrant_answer nothing;

        if (!answer)
                answer = &nothing;
        add_number(object, "memlock_bytes", answer->memlock_bytes);
        add_number(object, "cpu_latency_us", answer->cpu_latency_us);
        add_number(object, "block_max_sectors_kb", answer->block_max_sectors_kb);
        add_number(object, "irq_priority", (uint64_t) answer->irq_priority);
}
