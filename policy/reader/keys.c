/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "policy/reader/keys.h"
#include "policy/reader/values.h"

#define US_PER_MS UINT64_C(1000)
#define US_PER_S (1000 * US_PER_MS)
#define US_PER_MIN (60 * US_PER_S)
#define US_PER_H (60 * US_PER_MIN)

#define COUNT(field) \
        .parse = parse_count, .offset = offsetof(struct policy, field), .min = 1, .max = 1000000, \
        .range = "1 to 1000000"

#define BROKER_KEY(symbol) [BROKER_KEY_##symbol]
#define ROLE_KEY(symbol) [ROLE_KEY_##symbol]

const struct key broker_keys[_BROKER_KEY_MAX] = {
        BROKER_KEY(DEFAULT_ROLE) = { "DefaultRole", "", .parse = parse_role_name },
        BROKER_KEY(THREADS_MAX) = { "ThreadsMax", "4096", COUNT(threads_max) },
        BROKER_KEY(THREADS_PER_USER) = { "ThreadsPerUser", "256", COUNT(threads_per_user_max) },
        BROKER_KEY(CONNECTIONS_MAX) = { "ConnectionsMax", "2048", COUNT(connections_max) },
        BROKER_KEY(CONNECTIONS_PER_USER) = { "ConnectionsPerUser", "64",
                                             COUNT(connections_per_user_max) },
        BROKER_KEY(GRANT_BURST) = { "GrantBurst", "64", COUNT(grant_burst) },
        BROKER_KEY(GRANT_REFILL) = { "GrantRefill", "200ms", .parse = parse_time,
                                     .offset = offsetof(struct policy, grant_refill_ms),
                                     .unit_us = US_PER_MS, .min = US_PER_MS, .max = US_PER_H,
                                     .range = "1ms to 1h in whole milliseconds" },
        BROKER_KEY(MESSAGE_BURST) = { "MessageBurst", "2000", COUNT(message_burst) },
        BROKER_KEY(MESSAGE_REFILL) = { "MessageRefill", "1ms", .parse = parse_time,
                                       .offset = offsetof(struct policy, message_refill_us),
                                       .unit_us = 1, .min = 1, .max = US_PER_MIN,
                                       .range = "1us to 1min" },
        BROKER_KEY(USER_NAMESPACES) = { "UserNamespaces", "no", .parse = parse_bool,
                                        .offset = offsetof(struct policy, user_namespaces),
                                        .no = "no", .yes = "yes" },
        BROKER_KEY(RESERVE_CPU) = { "ReserveCPU", "10%", .parse = parse_percent,
                                    .offset = offsetof(struct policy, reserve_cpu_percent),
                                    .min = 0, .max = 90, .range = "0% to 90%" },
        BROKER_KEY(CPU_PER_USER) = { "CPUPerUser", "80%", .parse = parse_percent,
                                     .offset = offsetof(struct policy, cpu_per_user_percent_max),
                                     .min = 1, .max = 100, .range = "1% to 100%" },
        BROKER_KEY(BACK_OFF) = { "BackOff", "5s", .parse = parse_time,
                                 .offset = offsetof(struct policy, back_off_ms),
                                 .unit_us = US_PER_MS, .min = 100 * US_PER_MS, .max = US_PER_H,
                                 .range = "100ms to 1h in whole milliseconds" },
        BROKER_KEY(BACK_OFF_MAX) = { "BackOffMax", "5min", .parse = parse_time,
                                     .offset = offsetof(struct policy, back_off_ms_max),
                                     .unit_us = US_PER_MS, .min = 100 * US_PER_MS,
                                     .max = 24 * US_PER_H,
                                     .range = "100ms to 24h in whole milliseconds" },
        BROKER_KEY(LOG_LEVEL) = { "LogLevel", "", .parse = parse_log_level },
        BROKER_KEY(AUTHORITY) = { "Authority", "static", .parse = parse_bool,
                                  .offset = offsetof(struct policy, ask_polkit),
                                  .no = "static", .yes = "polkit" },
        BROKER_KEY(REALTIMEKIT_ROLE) = { "RealtimeKitRole", "", .parse = parse_role_name },
        BROKER_KEY(REALTIMEKIT_POLICY) = { "RealtimeKitPolicy", "rr",
                                           .parse = parse_realtime_policy,
                                           .offset = offsetof(struct policy, realtimekit_policy) },
        BROKER_KEY(REALTIMEKIT_RTTIME) = { "RealtimeKitRTTime", "200ms", .parse = parse_time,
                                           .offset = offsetof(struct policy,
                                                              realtimekit_rttime_us),
                                           .unit_us = 1, .min = 10 * US_PER_MS,
                                           .max = 10 * US_PER_S, .range = "10ms to 10s" },
        BROKER_KEY(REALTIMEKIT_RTTIME_UNSET) = { "RealtimeKitRTTimeUnset", "refuse",
                                                 .parse = parse_bool,
                                                 .offset = offsetof(struct policy,
                                                                    realtimekit_rttime_unset),
                                                 .no = "refuse", .yes = "accept" },
        BROKER_KEY(MEMLOCK_MAX) = { "MemlockMax", "75%", .parse = parse_size,
                                    .offset = offsetof(struct policy, memlock_max) },
        BROKER_KEY(SYSTEM_THREADS_PER_USER) = { "SystemThreadsPerUser", "",
                                                .parse = parse_count_or_none,
                                                .offset = offsetof(struct policy,
                                                                   system_threads_per_user_max),
                                                .min = 1, .max = 1000000,
                                                .range = "1 to 1000000" },
        BROKER_KEY(OBSERVE_GROUPS) = { "ObserveGroups", "", .parse = parse_groups,
                                       .offset = offsetof(struct policy, observe_groups) },
};

const struct key role_keys[_ROLE_KEY_MAX] = {
        ROLE_KEY(DESCRIPTION) = { "Description", "", .parse = parse_description },
        ROLE_KEY(POLICY) = { "Policy", "any", .parse = parse_policies },
        ROLE_KEY(PRIORITY) = { "Priority", "none", .parse = parse_band },
        ROLE_KEY(NICE) = { "Nice", "0", .parse = parse_nice },
        ROLE_KEY(THREADS_PER_USER) = { "ThreadsPerUser", "64", .parse = parse_count,
                                       .offset = offsetof(struct role, threads_per_user_max),
                                       .min = 1, .max = 1000000, .range = "1 to 1000000" },
        ROLE_KEY(LIFETIME_MAX) = { "LifetimeMax", "1h", .parse = parse_time,
                                   .offset = offsetof(struct role, lifetime_s_max),
                                   .unit_us = US_PER_S, .min = US_PER_S, .max = 8760 * US_PER_H,
                                   .range = "1s to 8760h in whole seconds" },
        ROLE_KEY(RUN_MAX) = { "RunMax", "500ms", .parse = parse_time,
                              .offset = offsetof(struct role, run_us_max), .unit_us = 1,
                              .min = 50 * US_PER_MS, .max = US_PER_MIN, .range = "50ms to 1min" },
        ROLE_KEY(CPU_MAX) = { "CPUMax", "90%", .parse = parse_percent,
                              .offset = offsetof(struct role, cpu_percent_max), .min = 1,
                              .max = 100, .range = "1% to 100%" },
        ROLE_KEY(CPU_WINDOW) = { "CPUWindow", "1s", .parse = parse_time,
                                 .offset = offsetof(struct role, cpu_window_us), .unit_us = 1,
                                 .min = 100 * US_PER_MS, .max = US_PER_MIN,
                                 .range = "100ms to 1min" },
        ROLE_KEY(ALLOW_USERS) = { "AllowUsers", "", .parse = parse_users,
                                  .offset = offsetof(struct role, allow_users) },
        ROLE_KEY(ALLOW_GROUPS) = { "AllowGroups", "", .parse = parse_groups,
                                   .offset = offsetof(struct role, allow_groups) },
        ROLE_KEY(DENY_USERS) = { "DenyUsers", "", .parse = parse_users,
                                 .offset = offsetof(struct role, deny_users) },
        ROLE_KEY(DENY_GROUPS) = { "DenyGroups", "", .parse = parse_groups,
                                  .offset = offsetof(struct role, deny_groups) },
        ROLE_KEY(ACTION) = { "PolkitAction", "", .parse = parse_action },
        ROLE_KEY(MEMLOCK) = { "Memlock", "none", .parse = parse_memlock },
        ROLE_KEY(MEMLOCK_PER_USER) = { "MemlockPerUser", "none", .parse = parse_size,
                                       .offset = offsetof(struct role, memlock_per_user_max) },
        ROLE_KEY(CPU_LATENCY) = { "CpuLatency", "none", .parse = parse_cpu_latency },
        ROLE_KEY(CPU_LATENCY_ON_BATTERY) = { "CpuLatencyOnBattery", "yes", .parse = parse_bool,
                                             .offset = offsetof(struct role,
                                                                cpu_latency_on_battery),
                                             .no = "no", .yes = "yes" },
        ROLE_KEY(BLOCK_QUEUE) = { "BlockQueue", "none", .parse = parse_block_queue },
        ROLE_KEY(BLOCK_REQUESTS) = { "BlockRequests", "", .parse = parse_count_or_none,
                                     .offset = offsetof(struct role, block_requests), .min = 4,
                                     .max = 65536, .range = "4 to 65536" },
        ROLE_KEY(BLOCK_SCHEDULER) = { "BlockScheduler", "", .parse = parse_block_scheduler },
        ROLE_KEY(IRQ_PRIORITY) = { "IrqPriority", "none", .parse = parse_irq_priority },
        ROLE_KEY(IRQ_DEVICES) = { "IrqDevices", "sound", .parse = parse_irq_devices },
        ROLE_KEY(IRQ_AFFINITY) = { "IrqAffinity", "none", .parse = parse_cpus,
                                   .offset = offsetof(struct role, irq_affinity) },
        ROLE_KEY(ALLOW_SESSIONS) = { "AllowSessions", "", .parse = parse_sessions },
        ROLE_KEY(UNITS) = { "Units", "", .parse = parse_words,
                            .offset = offsetof(struct role, units) },
        ROLE_KEY(EXECUTABLES) = { "Executables", "", .parse = parse_words,
                                  .offset = offsetof(struct role, executables) },
        ROLE_KEY(BELOW) = { "Below", "", .parse = parse_words,
                            .offset = offsetof(struct role, below) },
        ROLE_KEY(PRIORITY_BY_PERIOD) = { "PriorityByPeriod", "no", .parse = parse_bool,
                                         .offset = offsetof(struct role, priority_by_period),
                                         .no = "no", .yes = "yes" },
        ROLE_KEY(DECLARED_CPU) = { "DeclaredCPU", "100%", .parse = parse_percent,
                                   .offset = offsetof(struct role, declared_cpu_percent),
                                   .min = 1, .max = 100, .range = "1% to 100%" },
        ROLE_KEY(RTTIME) = { "RTTime", "supervise", .parse = parse_rttime },
};

const struct key irq_keys[_IRQ_KEY_MAX] = {
        [IRQ_KEY_DEVICE] = { "Device", "", .parse = parse_irq_device },
        [IRQ_KEY_PRIORITY] = { "Priority", "90", .parse = parse_count,
                               .offset = offsetof(struct irq_rule, priority), .min = 1,
                               .max = POLICY_PRIORITY_CEILING, .range = "1 to 94" },
        [IRQ_KEY_AFFINITY] = { "Affinity", "none", .parse = parse_cpus,
                               .offset = offsetof(struct irq_rule, affinity) },
};

const struct key *key_find(const struct key *keys, size_t n_keys, const char *name,
                           size_t length) {
        for (size_t i = 0; i < n_keys; i++)
                if (strlen(keys[i].name) == length && memcmp(keys[i].name, name, length) == 0)
                        return &keys[i];

        return NULL;
}

#define WORD_MAX 40 /* longer than any word we know */

/* One row of the table of Levenshtein at a time. */
size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
        size_t row[WORD_MAX + 1], diagonal, above, change;

        if (a_length > WORD_MAX || b_length > WORD_MAX)
                return SIZE_MAX;

        for (size_t j = 0; j <= b_length; j++)
                row[j] = j;

        for (size_t i = 1; i <= a_length; i++) {
                diagonal = row[0];
                row[0] = i;
                for (size_t j = 1; j <= b_length; j++) {
                        above = row[j];
                        change = g_ascii_tolower(a[i - 1]) == g_ascii_tolower(b[j - 1]) ? 0 : 1;
                        row[j] = MIN(MIN(above, row[j - 1]) + 1, diagonal + change);
                        diagonal = above;
                }
        }

        return row[b_length];
}

const char *key_suggest(const struct key *keys, size_t n_keys, const char *name, size_t length) {
        const char *nearest = NULL;
        size_t d, best = MAX(2, length / 3) + 1;

        for (size_t i = 0; i < n_keys; i++) {
                d = edit_distance(keys[i].name, strlen(keys[i].name), name, length);
                if (d < best) {
                        best = d;
                        nearest = keys[i].name;
                }
        }

        return nearest;
}

bool role_name_is_valid(const char *name, size_t length) {
        if (length < 1 || length > POLICY_ROLE_NAME_MAX)
                return false;

        for (size_t i = 0; i < length; i++)
                if (!g_ascii_isalnum(name[i]) && name[i] != '_' && name[i] != '-')
                        return false;

        return true;
}
