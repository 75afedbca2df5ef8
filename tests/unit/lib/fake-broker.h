/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_LIB_FAKE_BROKER_H
#define RTGRANT_TESTS_UNIT_LIB_FAKE_BROKER_H

/*
 * A broker that says what a test tells it to, over a real socket, from a thread of its own. It is
 * the library's input, not its judge: a script asserts nothing but takes down what it received.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/protocol.h"
#include "client/rtgrant.h"

struct fake_broker;
typedef void (*fake_script)(struct fake_broker *broker);

struct fake_broker {
        char directory[32];
        char path[64];
        int listener;
        int fd;                         /* the connection that the script talks on */
        int pidfd;                      /* what came along with the last request; -1: nothing */
        pthread_t thread;
        fake_script script;
        void *userdata;                 /* the script's */
        atomic_uint n_requests;         /* that came, without the hellos */
        union {
                struct wire_header header;
                struct wire_acquire acquire;
                struct wire_update update;
                struct wire_lease_ref lease;
                struct wire_list list;
                struct wire_observe observe;
                uint8_t bytes[WIRE_RECORD_MAX];
        } request;                      /* the last one */
        struct wire_acquire acquired;   /* the last ACQUIRE of all */
};

/* A directory and a socket that listens, but nobody who accepts. */
void fake_listen(struct fake_broker *broker, int type, int backlog);

/* Each connection is greeted and then given to @script, which ends it by returning. */
void fake_start(struct fake_broker *broker, fake_script script, void *userdata);

/* Waits for the script to end, and cleans up. */
void fake_stop(struct fake_broker *broker);

/* A broker and a handle on it. */
struct session {
        struct fake_broker broker;
        struct rtgrant *handle;
};

/* @timeout_ms as rtgrant_open() takes it. */
void session_start(struct session *session, fake_script script, void *userdata, int timeout_ms);

/* Closes the handle, unless it is NULL by now, and stops the broker. */
void session_stop(struct session *session);

/* ---- for scripts ---- */

/* The next request; 0 when the client is gone. */
size_t fake_receive(struct fake_broker *broker);

/* Whether another request is there already. */
bool fake_has_request(struct fake_broker *broker);

void fake_send(struct fake_broker *broker, const void *record, size_t size);

/* Sends @reply of @size bytes as the answer to the last request; its header is filled in. */
void fake_reply(struct fake_broker *broker, void *reply, size_t size);

/* The same to the request with that header. */
void fake_reply_to(struct fake_broker *broker, const struct wire_header *request, void *reply,
                   size_t size);

/* Says yes to the last request, which is an ACQUIRE, and does so: as root, on the real thread. */
void fake_grant(struct fake_broker *broker);

/* Says yes in the same words, and does nothing. */
void fake_pretend(struct fake_broker *broker);

/* Grants whatever comes, until the client is gone. */
void script_grant(struct fake_broker *broker);

/* Refuses whatever comes, likewise. */
void script_refuse(struct fake_broker *broker);

/* Pretends to grant whatever comes. */
void script_pretend(struct fake_broker *broker);

/* Answers whatever comes with its own `lifetime_s` as the count. */
void script_echo(struct fake_broker *broker);

/* Reads whatever comes and says nothing. */
void script_silent(struct fake_broker *broker);

#endif
