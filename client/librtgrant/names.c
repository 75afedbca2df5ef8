/* SPDX-License-Identifier: MIT */

/* Words of numbers, and the digits of an id. */

#include <string.h>

#include "client/cleanup.h"
#include "client/librtgrant/public.h"

static const char *const reason_words[] = {
        [RTGRANT_REASON_NONE] = "none",
        [RTGRANT_REASON_MALFORMED] = "malformed",
        [RTGRANT_REASON_VERSION] = "version",
        [RTGRANT_REASON_INVALID] = "invalid",
        [RTGRANT_REASON_UNSUPPORTED] = "unsupported",
        [RTGRANT_REASON_NO_SUCH_THREAD] = "no-such-thread",
        [RTGRANT_REASON_TARGET_PRIVILEGED] = "target-privileged",
        [RTGRANT_REASON_NAMESPACE] = "namespace",
        [RTGRANT_REASON_TARGET_CHANGED] = "target-changed",
        [RTGRANT_REASON_NO_SUCH_LEASE] = "no-such-lease",
        [RTGRANT_REASON_NOT_CONNECTOR] = "not-connector",
        [RTGRANT_REASON_NOT_ALLOWED] = "not-allowed",
        [RTGRANT_REASON_DENIED] = "denied",
        [RTGRANT_REASON_NO_SUCH_ROLE] = "no-such-role",
        [RTGRANT_REASON_POLICY_NOT_IN_ROLE] = "policy-not-in-role",
        [RTGRANT_REASON_PRIORITY_LIMIT] = "priority-limit",
        [RTGRANT_REASON_NICE_LIMIT] = "nice-limit",
        [RTGRANT_REASON_LIFETIME_LIMIT] = "lifetime-limit",
        [RTGRANT_REASON_USER_NAMESPACE] = "user-namespace",
        [RTGRANT_REASON_ADMIN_ONLY] = "admin-only",
        [RTGRANT_REASON_NOT_AUTHORIZED] = "not-authorized",
        [RTGRANT_REASON_AUTHORITY_UNAVAILABLE] = "authority-unavailable",
        [RTGRANT_REASON_AUTHORITY_BUSY] = "authority-busy",
        [RTGRANT_REASON_NEEDS_AUTHORIZATION] = "needs-authorization",
        [RTGRANT_REASON_RTTIME] = "rttime",
        [RTGRANT_REASON_NO_ACTIVE_SESSION] = "no-active-session",
        [RTGRANT_REASON_ADMISSION] = "admission",
        [RTGRANT_REASON_ABOVE_SERVER] = "above-server",
        [RTGRANT_REASON_RTTIME_LETHAL] = "rttime-lethal",
        [RTGRANT_REASON_THREADS_PER_USER] = "threads-per-user",
        [RTGRANT_REASON_THREADS_PER_ROLE] = "threads-per-role",
        [RTGRANT_REASON_THREADS_TOTAL] = "threads-total",
        [RTGRANT_REASON_RATE] = "rate",
        [RTGRANT_REASON_CONNECTIONS_PER_USER] = "connections-per-user",
        [RTGRANT_REASON_CONNECTIONS_TOTAL] = "connections-total",
        [RTGRANT_REASON_RESOURCES] = "resources",
        [RTGRANT_REASON_RESOURCE_NOT_IN_ROLE] = "resource-not-in-role",
        [RTGRANT_REASON_RESOURCE_LIMIT] = "resource-limit",
        [RTGRANT_REASON_MEMLOCK_QUOTA] = "memlock-quota",
        [RTGRANT_REASON_RESOURCE_UNAVAILABLE] = "resource-unavailable",
        [RTGRANT_REASON_NO_SUCH_DEVICE] = "no-such-device",
        [RTGRANT_REASON_ON_BATTERY] = "on-battery",
        [RTGRANT_REASON_IRQ_NOT_IN_ROLE] = "irq-not-in-role",
        [RTGRANT_REASON_IRQ_NOT_THREADED] = "irq-not-threaded",
        [RTGRANT_REASON_IRQ_NOT_THREADABLE] = "irq-not-threadable",
        [RTGRANT_REASON_IRQ_AMBIGUOUS] = "irq-ambiguous",
        [RTGRANT_REASON_KERNEL_CAPABILITY] = "kernel-capability",
        [RTGRANT_REASON_KERNEL_RT_GROUP] = "kernel-rt-group",
        [RTGRANT_REASON_KERNEL_SECCOMP] = "kernel-seccomp",
        [RTGRANT_REASON_KERNEL_LSM] = "kernel-lsm",
        [RTGRANT_REASON_KERNEL_OTHER] = "kernel-other",
        [RTGRANT_REASON_KERNEL_MISMATCH] = "kernel-mismatch",
        [RTGRANT_REASON_DEGRADED] = "degraded",
        [RTGRANT_REASON_RELEASED] = "released",
        [RTGRANT_REASON_THREAD_ENDED] = "thread-ended",
        [RTGRANT_REASON_DISCONNECTED] = "disconnected",
        [RTGRANT_REASON_EXPIRED] = "expired",
        [RTGRANT_REASON_REVOKED] = "revoked",
        [RTGRANT_REASON_SHUTDOWN] = "shutdown",
        [RTGRANT_REASON_CHANGED_BY_OTHERS] = "changed-by-others",
        [RTGRANT_REASON_CREDENTIALS_CHANGED] = "credentials-changed",
        [RTGRANT_REASON_POLICY_RELOAD] = "policy-reload",
        [RTGRANT_REASON_RESTART] = "restart",
        [RTGRANT_REASON_RAN_ON] = "ran-on",
        [RTGRANT_REASON_CPU_SHARE] = "cpu-share",
        [RTGRANT_REASON_CPU_PER_USER] = "cpu-per-user",
        [RTGRANT_REASON_CPU_RESERVE] = "cpu-reserve",
        [RTGRANT_REASON_STARVED] = "starved",
        [RTGRANT_REASON_BACK_OFF] = "back-off",
        [RTGRANT_REASON_BACK_OFF_OVER] = "back-off-over",
        [RTGRANT_REASON_RELOAD_FAILED] = "reload-failed",
};

static const char *const event_words[] = {
        [RTGRANT_EVENT_GRANTED] = "granted",
        [RTGRANT_EVENT_UPDATED] = "updated",
        [RTGRANT_EVENT_ENDED] = "ended",
        [RTGRANT_EVENT_REVOKED] = "revoked",
        [RTGRANT_EVENT_CHANGED] = "changed",
        [RTGRANT_EVENT_LOWERED] = "lowered",
        [RTGRANT_EVENT_DEMOTED] = "demoted",
        [RTGRANT_EVENT_RESTORED] = "restored",
        [RTGRANT_EVENT_OVER_BUDGET] = "over-budget",
        [RTGRANT_EVENT_RESTARTED] = "restarted",
};

/* The tables have holes: newer brokers may use what is one here. */
static const char *word(const char *const *words, size_t n_words, int number) {
        if (number < 0 || (size_t) number >= n_words || !words[number])
                return "unknown";

        return words[number];
}

const char *rtgrant_reason_to_string(int reason) {
        return word(reason_words, ELEMENTS(reason_words), reason);
}

const char *rtgrant_event_to_string(int kind) {
        return word(event_words, ELEMENTS(event_words), kind);
}

void rtgrant_id_to_string(const struct rtgrant_id *id, char buffer[RTGRANT_ID_STRING_SIZE]) {
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < sizeof(id->bytes); i++) {
                buffer[2 * i] = digits[id->bytes[i] >> 4];
                buffer[2 * i + 1] = digits[id->bytes[i] & 0xf];
        }
        buffer[RTGRANT_ID_STRING_SIZE - 1] = '\0';
}

/* -1 if @character is no hexadecimal digit, in any locale. */
static int digit_value(char character) {
        if (character >= '0' && character <= '9')
                return character - '0';
        if (character >= 'a' && character <= 'f')
                return character - 'a' + 10;
        if (character >= 'A' && character <= 'F')
                return character - 'A' + 10;

        return -1;
}

int rtgrant_id_from_string(const char *string, struct rtgrant_id *ret) {
        struct rtgrant_id id;
        int high, low;

        if (!string || !ret || strlen(string) != RTGRANT_ID_STRING_SIZE - 1)
                return -EINVAL;

        for (size_t i = 0; i < sizeof(id.bytes); i++) {
                high = digit_value(string[2 * i]);
                low = digit_value(string[2 * i + 1]);
                if (high < 0 || low < 0)
                        return -EINVAL;

                id.bytes[i] = (uint8_t) (high << 4 | low);
        }

        *ret = id;
        return 0;
}
