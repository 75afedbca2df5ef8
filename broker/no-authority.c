/* SPDX-License-Identifier: MIT */

/* Stands in for authority.c in a build without D-Bus: nobody can be asked. */

#include <errno.h>

#include "broker/authority.h"

int authority_new(struct broker *broker, struct authority **ret) {
        return -EOPNOTSUPP;
}

struct authority *authority_free(struct authority *authority) {
        return NULL;
}

enum authority_answer authority_remember(struct authority *authority,
                                         const struct authority_question *question) {
        return AUTHORITY_FAILED;
}

void authority_forget(struct authority *authority) {
}

int authority_ask(struct authority *authority, const struct authority_question *question,
                  authority_done_fn done, void *userdata, struct authority_check **ret_check) {
        return -EOPNOTSUPP;
}

void authority_give_up(struct authority *authority) {
}

struct authority_check *authority_cancel(struct authority_check *check) {
        return NULL;
}
