/* SPDX-License-Identifier: MIT */

#include "client/cli/option-values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/exit-status.h"
#include "client/cli/text.h"

#define ROLE_LENGTH_MAX 31

int option_complain(const struct options *o, int status, const char *format, ...) {
        char message[512], printable[1024];
        va_list args;

        va_start(args, format);
        (void) vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        text_printable(printable, sizeof(printable), message);
        fprintf(stderr, "%s: %s\nTry '%s --help'.\n", o->program, printable, o->program);
        return status;
}

int option_parse_number(const struct options *o, const char *name, const char *string, int64_t min,
                        int64_t max, int64_t *ret) {
        if (text_parse_number(string, min, max, ret) >= 0)
                return 0;

        if (max == INT64_MAX)
                return option_complain(o, STATUS_FAILED, "%s: '%s' is not a number from %lld", name,
                                       string, (long long) min);
        return option_complain(o, STATUS_FAILED, "%s: '%s' is not a number from %lld to %lld", name,
                               string, (long long) min, (long long) max);
}

int option_parse_role(struct options *o, const char *role) {
        if (strlen(role) > ROLE_LENGTH_MAX || role[0] == '\0')
                return option_complain(o, STATUS_FAILED,
                                       "--role: a name has 1 to %d letters, unlike '%s'",
                                       ROLE_LENGTH_MAX, role);
        o->role = role;
        return 0;
}

int option_parse_memlock(struct options *o, const char *string) {
        int64_t bytes;

        if (text_parse_size(string, &bytes) < 0)
                return option_complain(
                        o, STATUS_FAILED,
                        "--memlock: '%s' is not a number with K, M, G or T, as in 512M", string);
        o->resources.memlock_bytes = (uint64_t) bytes;
        return 0;
}

int option_parse_device(struct options *o, const char *name, char *string, int64_t max,
                        int64_t *ret_number) {
        char *equals = strrchr(string, '=');

        *ret_number = 0;
        if (equals)
                *equals = '\0';
        if (string[0] == '\0')
                return option_complain(o, STATUS_FAILED, "%s: a device is missing", name);
        return equals ? option_parse_number(o, name, equals + 1, 1, max, ret_number) : 0;
}

int option_parse_load(struct options *o, const char *string) {
        char digits[8];
        size_t length = strlen(string);
        int64_t number;

        if (length > 0 && string[length - 1] == '%')
                length--;
        if (length >= sizeof(digits))
                length = 0;
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) length, string);
        if (text_parse_number(digits, 1, 100, &number) < 0)
                return option_complain(o, STATUS_FAILED,
                                       "--load: '%s' is not a share from 1%% to 100%%", string);
        o->load_percent = (unsigned) number;
        return 0;
}

int option_parse_pid(struct options *o, const char *string) {
        char digits[32];
        const char *colon = strchrnul(string, ':');
        int64_t number;
        int status;

        if (colon - string >= (ptrdiff_t) sizeof(digits))
                return option_complain(o, STATUS_FAILED,
                                       "-p: '%s' is not the id of a process or thread", string);
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) (colon - string), string);
        if (text_parse_number(digits, 0, INT32_MAX, &number) < 0)
                return option_complain(o, STATUS_FAILED,
                                       "-p: '%s' is not the id of a process or thread", string);
        o->pid = (pid_t) number;
        if (*colon == '\0')
                return 0;

        status = option_parse_number(o, "-p PID:INODE", colon + 1, 1, INT64_MAX, &number);
        o->inode = (uint64_t) number;
        return status;
}
