/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cleanup.h"
#include "client/cli/exit-status.h"
#include "client/cli/json.h"
#include "client/cli/text.h"
#include "client/rtgrantctl.h"

#define PREFIX_LENGTH_MIN 4

/* Leases that are meant, found in the list. */
struct selection {
        const char *prefix;     /* of their id; NULL: any */
        bool any_user;
        uid_t uid;
        struct rtgrant_id *ids; /* owned */
        size_t n_ids;
};

static void selection_done(struct selection *selection) {
        free(selection->ids);
}

static int on_lease(const struct rtgrant_lease *lease, void *userdata) {
        struct selection *selection = userdata;
        char id[RTGRANT_ID_STRING_SIZE];
        struct rtgrant_id *ids;

        rtgrant_id_to_string(&lease->id, id);
        if (selection->prefix && strncasecmp(id, selection->prefix, strlen(selection->prefix)) != 0)
                return 0;
        if (!selection->any_user && lease->uid != selection->uid)
                return 0;

        ids = reallocarray(selection->ids, selection->n_ids + 1, sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        selection->ids = ids;
        selection->ids[selection->n_ids++] = lease->id;
        return 0;
}

static void print_count(const struct ctl *ctl, size_t n) {
        if (ctl->json) {
                json_object *object = json_object_new_object();

                json_add_int(object, "ended", (int64_t) n);
                json_print(object);
        } else
                printf("%zu lease%s ended\n", n, n == 1 ? "" : "s");
}

/* The administrator's way, or for one's own leases everybody's. Errors: as rtgrant_release(). */
static int end_lease(struct ctl *ctl, bool admin, const struct rtgrant_id *id,
                     struct rtgrant_answer *ret_answer) {
        *ret_answer = (struct rtgrant_answer) { .size = sizeof(*ret_answer) };
        if (admin)
                return rtgrant_revoke(ctl->broker.handle, id, ret_answer);
        return rtgrant_release(ctl->broker.handle, id, ret_answer);
}

static int end_selected(struct ctl *ctl, bool admin, const struct selection *selection,
                        size_t *n_ended) {
        struct rtgrant_answer answer;
        int r;

        for (size_t i = 0; i < selection->n_ids; i++) {
                r = end_lease(ctl, admin, &selection->ids[i], &answer);
                if (r >= 0)
                        (*n_ended)++;
                else if (r != -EPERM || answer.reason != RTGRANT_REASON_NO_SUCH_LEASE)
                        return ctl_fail(ctl, r, &answer);
                /* else it ended by itself meanwhile */
        }
        return STATUS_DONE;
}

static int revoke_by_prefix(struct ctl *ctl, bool admin, const char *prefix, size_t *n_ended) {
        _cleanup_(selection_done) struct selection selection = {
                .prefix = prefix,
                .any_user = true,
        };
        size_t length = strlen(prefix);
        int r;

        if (length < PREFIX_LENGTH_MIN || strspn(prefix, "0123456789abcdefABCDEF") != length)
                return ctl_misuse("'%s' is no lease: give at least %d digits of its ID", prefix,
                                  PREFIX_LENGTH_MIN);
        r = rtgrant_list(ctl->broker.handle, admin, on_lease, &selection);
        if (r < 0)
                return ctl_fail(ctl, r, NULL);
        if (selection.n_ids > 1)
                return ctl_misuse("the ID of more than one lease begins with %s", prefix);
        if (selection.n_ids == 1)
                return end_selected(ctl, admin, &selection, n_ended);

        fprintf(stderr, CTL_PROGRAM ": refused: no lease%s has an ID that begins with %s\n",
                admin ? "" : " of yours", prefix);
        return STATUS_REFUSED;
}

static int revoke_by_id(struct ctl *ctl, bool admin, const char *string, size_t *n_ended) {
        struct rtgrant_answer answer;
        struct rtgrant_id id;
        int r;

        if (rtgrant_id_from_string(string, &id) < 0)
                return revoke_by_prefix(ctl, admin, string, n_ended);

        r = end_lease(ctl, admin, &id, &answer);
        if (r < 0)
                return ctl_fail(ctl, r, &answer);
        (*n_ended)++;
        return STATUS_DONE;
}

static int parse_user(const char *string, uid_t *ret) {
        const struct passwd *user = getpwnam(string);
        int64_t number;

        if (user) {
                *ret = user->pw_uid;
                return 0;
        }
        if (text_parse_number(string, 0, UINT32_MAX - 1, &number) < 0)
                return -ENOENT;
        *ret = (uid_t) number;
        return 0;
}

static int revoke_by_user(struct ctl *ctl, bool admin, size_t *n_ended) {
        _cleanup_(selection_done) struct selection selection = { 0 };
        int r;

        r = parse_user(ctl->user, &selection.uid);
        if (r < 0)
                return ctl_misuse("there is no user '%s'", ctl->user);
        if (!admin && selection.uid != getuid())
                return ctl_fail(ctl, -EPERM, NULL);
        r = rtgrant_list(ctl->broker.handle, admin, on_lease, &selection);
        return r < 0 ? ctl_fail(ctl, r, NULL) : end_selected(ctl, admin, &selection, n_ended);
}

static int revoke_all(struct ctl *ctl) {
        struct rtgrant_answer answer = { .size = sizeof(answer) };
        int r;

        r = rtgrant_restore_all(ctl->broker.handle, &answer);
        if (r < 0)
                return ctl_fail(ctl, r, &answer);

        print_count(ctl, answer.count);
        return STATUS_DONE;
}

int ctl_revoke(struct ctl *ctl, char **argv) {
        size_t n_ended = 0;
        int status;
        bool admin;

        if ((argv[0] != NULL) + ctl->all + (ctl->user != NULL) != 1)
                return ctl_misuse("revoke takes either IDs, or --user USER, or --all");
        status = ctl_connect(ctl);
        if (status != 0)
                return status;
        if (ctl->all)
                return revoke_all(ctl);

        admin = ctl_is_admin(ctl);
        if (ctl->user)
                status = revoke_by_user(ctl, admin, &n_ended);
        for (; *argv && status == 0; argv++)
                status = revoke_by_id(ctl, admin, *argv, &n_ended);
        if (status == 0 || n_ended > 0)
                print_count(ctl, n_ended);
        return status;
}
