/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLIENT_RTGRANT_CHANGE_H
#define RTGRANT_CLIENT_RTGRANT_CHANGE_H

/*
 * Changes the scheduling of one thread: by the kernel exactly as chrt(1) does it, and by the broker
 * only where the kernel answers EPERM.
 */

#include "client/cli/broker.h"
#include "client/cli/options.h"
#include "client/cli/thread.h"

enum change_result {
        CHANGE_DIRECT,    /* done, by the caller's own right */
        CHANGE_GRANTED,   /* done, by the broker: see the answer */
        CHANGE_RELEASED,  /* done, by the end of the lease the thread had */
        CHANGE_FAILED,    /* the kernel said why not: see the error */
        CHANGE_REFUSED,   /* the broker said why not, or has nothing of the kind: see the answer */
        CHANGE_NO_BROKER, /* the kernel refused, and no broker could be asked: see the error */
};

struct change {
        enum change_result result;
        int error;                      /* negative errno */
        struct rtgrant_answer answer;   /* of the broker */
};

static inline bool change_is_done(const struct change *change) {
        return change->result <= CHANGE_RELEASED;
}

/* Does what @options ask to @thread, all or nothing. With dry_run, the broker alone is asked. */
void change_thread(struct broker *broker, const struct options *options,
                   const struct thread *thread, struct change *ret);

#endif
