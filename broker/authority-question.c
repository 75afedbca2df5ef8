/* SPDX-License-Identifier: MIT */

#include "broker/authority-question.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/proc.h"

/*
 * By process, also on the bus: programs connect anew for each call. A pid alone is not who asks; by
 * its start time it is.
 */
char *question_key(const struct authority_question *question) {
        struct proc_stat stat;

        if (proc_read_stat(question->pid, 0, &stat) < 0)
                return NULL;

        return g_strdup_printf("%s %d %" PRIu64 " %u %s %d %s %s %d %d %" PRIi64 " %s",
                               question->bus_name ? "bus" : "socket", question->pid,
                               stat.start_time, question->uid, question->action,
                               question->interactive, question->role, question->policy,
                               question->priority, question->nice, question->value,
                               question->device);
}

GVariant *question_subject(const struct authority_question *question) {
        GVariantBuilder builder;
        struct proc_stat stat;

        g_variant_builder_init(&builder, G_VARIANT_TYPE_VARDICT);
        if (question->bus_name) {
                g_variant_builder_add(&builder, "{sv}", "name", g_variant_new_string(question->bus_name));
                return g_variant_ref_sink(g_variant_new("(sa{sv})", "system-bus-name", &builder));
        }
        if (proc_read_stat(question->pid, 0, &stat) < 0) {
                g_variant_builder_clear(&builder);
                return NULL;
        }

        g_variant_builder_add(&builder, "{sv}", "pid", g_variant_new_uint32((guint32) question->pid));
        g_variant_builder_add(&builder, "{sv}", "start-time", g_variant_new_uint64(stat.start_time));
        /* never without it, which polkit would look up by itself, and racily; of another type it takes it for absent */
        g_variant_builder_add(&builder, "{sv}", "uid", g_variant_new_int32((gint32) question->uid));
        return g_variant_ref_sink(g_variant_new("(sa{sv})", "unix-process", &builder));
}

GVariant *question_details(const struct authority_question *question) {
        char number[24], path[64], program[512] = "";
        _cleanup_free_ char *unit = NULL;
        GVariantBuilder builder;
        ssize_t n;

        g_variant_builder_init(&builder, G_VARIANT_TYPE("a{ss}"));
        (void) snprintf(number, sizeof(number), "%d", question->priority);
        g_variant_builder_add(&builder, "{ss}", "priority", number);
        (void) snprintf(number, sizeof(number), "%d", question->nice);
        g_variant_builder_add(&builder, "{ss}", "nice", number);
        g_variant_builder_add(&builder, "{ss}", "role", question->role);
        g_variant_builder_add(&builder, "{ss}", "policy", question->policy);
        if (question->device[0] != '\0')
                g_variant_builder_add(&builder, "{ss}", "device", question->device);
        if (question->value != 0) {
                (void) snprintf(number, sizeof(number), "%" PRIi64, question->value);
                g_variant_builder_add(&builder, "{ss}", "value", number);
        }

        /* a hint: whoever owns the process can make it any program */
        (void) snprintf(path, sizeof(path), "/proc/%d/exe", question->pid);
        n = readlink(path, program, sizeof(program) - 1);
        if (n > 0 && g_utf8_validate(program, n, NULL))
                g_variant_builder_add(&builder, "{ss}", "program", program);
        if ((sd_pid_get_user_unit(question->pid, &unit) >= 0 || sd_pid_get_unit(question->pid, &unit) >= 0) &&
            g_utf8_validate(unit, -1, NULL))
                g_variant_builder_add(&builder, "{ss}", "unit", unit);

        return g_variant_ref_sink(g_variant_builder_end(&builder));
}
