/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_CLI_BROKER_H
#define RTGRANT_CLI_BROKER_H

/* The programs' connection to the broker, opened when it is first needed. */

#include <stdbool.h>

#include "client/cli/agent.h"
#include "client/cli/options.h"
#include "client/cli/thread.h"
#include "client/rtgrant.h"

/* A lease by the thread it is for. */
struct lease_ref {
        pid_t tid;
        struct rtgrant_id id;
};

struct broker {
        const char *socket;     /* borrowed; NULL: where rtgrant_open() looks for it */
        struct rtgrant *handle; /* owned; NULL until broker_connect() succeeded */
        bool may_ask;           /* the user for a password, on this terminal if it is one */
        struct agent agent;
        bool tried;
        int error;              /* what came of it */
        struct lease_ref *leases; /* owned; the caller's, once broker_find_lease() was asked */
        size_t n_leases;
        bool leases_known;
};

/* Connects at the first call; later ones say again what came of it. Errors: rtgrant_open(). */
int broker_connect(struct broker *broker);
void broker_done(struct broker *broker);

/*
 * The lease that the caller has for a thread. They are listed once, however many are looked for.
 * Errors: those of the connection; -ENOENT.
 */
int broker_find_lease(struct broker *broker, pid_t tid, struct rtgrant_id *ret);

/* Where the broker is expected. */
const char *broker_socket(const struct broker *broker);

/* Whether @error means that no answer was to be had, rather than what the answer was. */
bool broker_is_error(int error);

/* One line for people: why the broker could not be asked; printable. */
#define BROKER_ERROR_SIZE 512
void broker_error_text(const struct broker *broker, int error, char *buffer, size_t size);

/*
 * What @options ask for @thread. The strings and the pidfd stay those of @options and @thread,
 * which must outlive the request. @thread may be the calling one.
 */
void broker_request(const struct options *options, const struct thread *thread,
                    struct rtgrant_request *ret);

/*
 * options_complete(), and where a role stands in for PRIORITY, what that gives: the lowest of its
 * band, which leaves room above for whoever names one; and its policy, if none is asked for. What
 * is wrong is said on stderr. Returns 0, or the exit status.
 */
int broker_complete_options(struct broker *broker, struct options *options);

#endif
