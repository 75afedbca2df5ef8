/* SPDX-License-Identifier: MIT */

/* Words of numbers, and the digits of an id. */

#include <string.h>

#include "client/librtgrant/public.h"

const char *rtgrant_reason_to_string(int reason) {
        switch (reason) {
        case RTGRANT_REASON_NONE:
                return "none";
        case RTGRANT_REASON_MALFORMED:
                return "malformed";
        case RTGRANT_REASON_VERSION:
                return "version";
        case RTGRANT_REASON_INVALID:
                return "invalid";
        case RTGRANT_REASON_UNSUPPORTED:
                return "unsupported";
        case RTGRANT_REASON_NO_SUCH_THREAD:
                return "no-such-thread";
        case RTGRANT_REASON_TARGET_PRIVILEGED:
                return "target-privileged";
        case RTGRANT_REASON_NAMESPACE:
                return "namespace";
        case RTGRANT_REASON_TARGET_CHANGED:
                return "target-changed";
        case RTGRANT_REASON_NO_SUCH_LEASE:
                return "no-such-lease";
        case RTGRANT_REASON_NOT_CONNECTOR:
                return "not-connector";
        case RTGRANT_REASON_NOT_ALLOWED:
                return "not-allowed";
        case RTGRANT_REASON_DENIED:
                return "denied";
        case RTGRANT_REASON_NO_SUCH_ROLE:
                return "no-such-role";
        case RTGRANT_REASON_POLICY_NOT_IN_ROLE:
                return "policy-not-in-role";
        case RTGRANT_REASON_PRIORITY_LIMIT:
                return "priority-limit";
        case RTGRANT_REASON_NICE_LIMIT:
                return "nice-limit";
        case RTGRANT_REASON_LIFETIME_LIMIT:
                return "lifetime-limit";
        case RTGRANT_REASON_USER_NAMESPACE:
                return "user-namespace";
        case RTGRANT_REASON_ADMIN_ONLY:
                return "admin-only";
        case RTGRANT_REASON_THREADS_PER_USER:
                return "threads-per-user";
        case RTGRANT_REASON_THREADS_PER_ROLE:
                return "threads-per-role";
        case RTGRANT_REASON_THREADS_TOTAL:
                return "threads-total";
        case RTGRANT_REASON_RATE:
                return "rate";
        case RTGRANT_REASON_CONNECTIONS_PER_USER:
                return "connections-per-user";
        case RTGRANT_REASON_CONNECTIONS_TOTAL:
                return "connections-total";
        case RTGRANT_REASON_RESOURCES:
                return "resources";
        case RTGRANT_REASON_KERNEL_CAPABILITY:
                return "kernel-capability";
        case RTGRANT_REASON_KERNEL_RT_GROUP:
                return "kernel-rt-group";
        case RTGRANT_REASON_KERNEL_SECCOMP:
                return "kernel-seccomp";
        case RTGRANT_REASON_KERNEL_LSM:
                return "kernel-lsm";
        case RTGRANT_REASON_KERNEL_OTHER:
                return "kernel-other";
        case RTGRANT_REASON_KERNEL_MISMATCH:
                return "kernel-mismatch";
        case RTGRANT_REASON_DEGRADED:
                return "degraded";
        case RTGRANT_REASON_RELEASED:
                return "released";
        case RTGRANT_REASON_THREAD_ENDED:
                return "thread-ended";
        case RTGRANT_REASON_DISCONNECTED:
                return "disconnected";
        case RTGRANT_REASON_EXPIRED:
                return "expired";
        case RTGRANT_REASON_REVOKED:
                return "revoked";
        case RTGRANT_REASON_SHUTDOWN:
                return "shutdown";
        case RTGRANT_REASON_CHANGED_BY_OTHERS:
                return "changed-by-others";
        case RTGRANT_REASON_CREDENTIALS_CHANGED:
                return "credentials-changed";
        case RTGRANT_REASON_POLICY_RELOAD:
                return "policy-reload";
        case RTGRANT_REASON_RESTART:
                return "restart";
        case RTGRANT_REASON_RELOAD_FAILED:
                return "reload-failed";
        }

        return "unknown";
}

const char *rtgrant_event_to_string(int kind) {
        switch (kind) {
        case RTGRANT_EVENT_GRANTED:
                return "granted";
        case RTGRANT_EVENT_UPDATED:
                return "updated";
        case RTGRANT_EVENT_ENDED:
                return "ended";
        case RTGRANT_EVENT_REVOKED:
                return "revoked";
        case RTGRANT_EVENT_CHANGED:
                return "changed";
        case RTGRANT_EVENT_LOWERED:
                return "lowered";
        case RTGRANT_EVENT_DEMOTED:
                return "demoted";
        case RTGRANT_EVENT_RESTORED:
                return "restored";
        case RTGRANT_EVENT_OVER_BUDGET:
                return "over-budget";
        }

        return "unknown";
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
