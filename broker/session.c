/* SPDX-License-Identifier: MIT */

#include "broker/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "broker/cleanup.h"
#include "broker/text.h"

static int find_session(pid_t pid, uid_t uid, char **ret_id) {
        uid_t owner;
        int r;

        r = sd_pid_get_session(pid, ret_id);
        if (r >= 0)
                return r;

        r = sd_pid_get_owner_uid(pid, &owner);
        if (r < 0)
                return r;
        return owner == uid ? sd_uid_get_display(uid, ret_id) : -ENXIO;
}

enum session_state session_read(pid_t pid, uid_t uid) {
        _cleanup_free_ char *id = NULL;

        if (access("/run/systemd/seats", F_OK) < 0) /* as sd_booted(3), of logind */
                return SESSION_UNREAD;
        if (find_session(pid, uid, &id) < 0)
                return SESSION_NONE;
        if (sd_session_is_remote(id) > 0)
                return SESSION_REMOTE;

        return sd_session_is_active(id) > 0 ? SESSION_ACTIVE : SESSION_INACTIVE;
}

void session_read_unit(pid_t pid, char *buffer, size_t size) {
        _cleanup_free_ char *unit = NULL;

        buffer[0] = '\0';
        if (sd_pid_get_user_unit(pid, &unit) >= 0 || sd_pid_get_unit(pid, &unit) >= 0)
                text_copy(buffer, size, unit);
}

void session_read_executable(pid_t pid, char *buffer, size_t size) {
        char link[64];
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/proc/%d/exe", pid);
        n = readlink(link, buffer, size - 1);
        buffer[n > 0 ? n : 0] = '\0';
}
