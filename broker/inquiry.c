/* SPDX-License-Identifier: MIT */

#include "broker/inquiry.h"

#include <errno.h>
#include <fcntl.h>

#include "broker/cleanup.h"
#include "broker/decide.h"

struct inquiry {
        struct call call;               /* what it borrows lives as long as the inquiry */
        union wire_request request;
        struct authority_check *check;  /* borrowed; NULL once it is answered */
        int pidfd;                      /* owned: the caller's may be closed by then */
        size_t role;
        int resource;
        unsigned policy_generation;     /* in which that index and the question mean something */
        inquiry_reply_fn reply;
        void *userdata;
};

static struct inquiry *inquiry_free(struct inquiry *inquiry) {
        (void) close_fd(inquiry->pidfd);
        free(inquiry);
        return NULL;
}

static void on_answer(enum authority_answer answer, void *userdata);

/* Errors: as authority_ask(). */
static int put_question(struct inquiry *inquiry, const struct authority_question *question) {
        inquiry->role = question->role_index;
        inquiry->resource = question->resource;
        inquiry->policy_generation = inquiry->call.broker->policy_generation;
        return authority_ask(inquiry->call.broker->authority, question, on_answer, inquiry,
                             &inquiry->check);
}

static void on_answer(enum authority_answer answer, void *userdata) {
        struct inquiry *inquiry = userdata;
        struct authority_question question;
        union wire_response response;
        size_t size;

        inquiry->check = NULL;
        /* A yes under another policy may be one to something else by now. */
        if (inquiry->policy_generation != inquiry->call.broker->policy_generation)
                answer = inquiry->call.authority = AUTHORITY_FAILED;
        decide_answered(&inquiry->call, inquiry->resource, inquiry->role, answer);
        size = methods_call(&inquiry->call, &inquiry->request, &response, &question);
        if (size == 0 && put_question(inquiry, &question) >= 0)
                return;
        while (size == 0) {
                decide_answered(&inquiry->call, question.resource, question.role_index,
                                AUTHORITY_FAILED);
                size = methods_call(&inquiry->call, &inquiry->request, &response, &question);
        }
        inquiry->reply(&response, size, inquiry->userdata);
        (void) inquiry_free(inquiry);
}

static int inquiry_new(const struct call *call, const union wire_request *request,
                       const struct authority_question *question, inquiry_reply_fn reply,
                       void *userdata, struct inquiry **ret) {
        struct inquiry *inquiry;
        int r;

        inquiry = calloc(1, sizeof(*inquiry));
        if (!inquiry)
                return -ENOMEM;

        inquiry->call = *call;
        inquiry->request = *request;
        inquiry->reply = reply;
        inquiry->userdata = userdata;
        inquiry->pidfd = call->pidfd < 0 ? -1 : fcntl(call->pidfd, F_DUPFD_CLOEXEC, 0);
        inquiry->call.pidfd = inquiry->pidfd;
        r = call->pidfd >= 0 && inquiry->pidfd < 0 ? -errno : 0;
        if (r >= 0)
                r = put_question(inquiry, question);
        if (r < 0) {
                (void) inquiry_free(inquiry);
                return r;
        }

        *ret = inquiry;
        return 0;
}

size_t inquiry_call(const struct call *call, const union wire_request *request,
                    union wire_response *ret, inquiry_reply_fn reply, void *userdata,
                    struct inquiry **ret_inquiry) {
        struct authority_question question;
        struct call again = *call;
        size_t size;
        int r;

        size = methods_call(call, request, ret, &question);
        if (size > 0)
                return size;

        r = inquiry_new(call, request, &question, reply, userdata, ret_inquiry);
        if (r >= 0)
                return 0;

        do {
                decide_answered(&again, question.resource, question.role_index,
                                r == -EBUSY ? AUTHORITY_OVERRUN : AUTHORITY_FAILED);
                size = methods_call(&again, request, ret, &question);
        } while (size == 0);
        return size;
}

struct inquiry *inquiry_cancel(struct inquiry *inquiry) {
        if (!inquiry)
                return NULL;

        inquiry->check = authority_cancel(inquiry->check);
        return inquiry_free(inquiry);
}
