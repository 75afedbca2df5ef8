/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANTCTL_POLKIT_H
#define RTGRANT_CLIENT_RTGRANTCTL_POLKIT_H

/* What polkit would need for an action, as far as anybody may know: rules may say otherwise. */

#include <json-c/json.h>

#define POLKIT_ACTION_SIZE 200

/* As polkit counts callers: those of a session at the machine itself, and all others. */
enum polkit_place {
        POLKIT_ACTIVE,
        POLKIT_INACTIVE,        /* at the machine itself, and not in front */
        POLKIT_ANY,             /* from afar, or without a session */
        _POLKIT_PLACE_MAX,
};

struct polkit_part {
        char action[POLKIT_ACTION_SIZE]; /* "": polkit has no part in it */
        const char *implicit[_POLKIT_PLACE_MAX]; /* "yes", "no", "auth_admin_keep", …; NULL: unknown */
        enum polkit_place place;        /* of this process */
};

/* Asks polkit about @action. What cannot be found out stays unknown. Blocks for 3 s at most. */
void polkit_part_read(const char *action, struct polkit_part *ret);

/* "  polkit: …" for people; nothing without an action. */
void polkit_part_print(const struct polkit_part *part);

/* The same as an object, owned by the caller; NULL without an action. */
json_object *polkit_part_json(const struct polkit_part *part);

/* What would help this process, in a few words; "" if it is not known. */
void polkit_part_remedy(const struct polkit_part *part, char *buffer, size_t size);

#endif
