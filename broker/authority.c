/* SPDX-License-Identifier: MIT */

#include "broker/authority.h"

#include <errno.h>
#include <inttypes.h>
#include <polkit/polkit.h>
#include <string.h>
#include <systemd/sd-login.h>

#include "broker/authority-question.h"
#include "broker/broker.h"
#include "broker/text.h"

#define S_US UINT64_C(1000000)

/* How long polkit may take before that is an answer; and how long answers are kept. */
#define LIMIT_US (S_US * 8 / 10) /* less than librtgrant waits for us */
/*
 * Who asks on the bus waits 25 s for its answer as a rule, and asks only once: sound servers do so while
 * a login begins and polkit has yet to find out about the session.
 */
#define LIMIT_BUS_US (3 * S_US)
#define LIMIT_INTERACTIVE_US (25 * S_US)
#define KEEP_YES_US (60 * S_US)
#define KEEP_OTHERS_US (2 * S_US)

#define PENDING_MAX 64
#define PENDING_PER_USER_MAX 2
#define ANSWERS_MAX 1024
#define COMPLAINT_US (60 * S_US)

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE POLKIT_NAME ".Authority"
#define NO_LIMIT_MS G_MAXINT /* we have our own */

/* Comes back with polkit's answer, which may be later than anybody wants to know it. */
struct ticket {
        struct flight *flight;          /* borrowed; NULL once that is no more */
};

/* A question on its way to polkit, of one or more who asked it. */
struct flight {
        struct authority *authority;    /* borrowed; outlives the flight */
        struct ticket *ticket;          /* borrowed; NULL before polkit is asked */
        char *key;                      /* owned; as in authority->flights */
        uid_t quota_uid;
        GVariant *subject;              /* owned; (sa{sv}) */
        GVariant *details;              /* owned; a{ss} */
        char *cancellation;             /* owned; how polkit knows the question; NULL before it is asked */
        char *action;                   /* owned */
        bool interactive;
        bool user_is_asked;             /* polkit wants a password, and may ask for it now */
        bool landing;                   /* its askers are being told */
        GCancellable *cancellable;      /* owned */
        sd_event_source *limit;         /* owned */
        GQueue checks;                  /* of struct authority_check, embedded links */
};

struct authority_check {
        struct flight *flight;          /* borrowed */
        authority_done_fn done;
        void *userdata;
        GList in_flight;
};

struct remembered {
        enum authority_answer answer;
        bool by_user;           /* who was asked for a password */
        uint64_t until_us;
};

struct authority {
        struct broker *broker;          /* borrowed; outlives this */
        GDBusConnection *bus;           /* owned; NULL while not connected */
        PolkitAuthority *polkit;        /* owned; NULL while not connected */
        gulong closed;                  /* signal handlers */
        gulong changed;
        GCancellable *connecting;       /* owned; NULL while nobody is */
        GHashTable *flights;            /* owned: key -> owned struct flight */
        GHashTable *pending;            /* owned: uid -> flights of its */
        GHashTable *answers;            /* owned: key -> owned struct remembered */
        sd_login_monitor *monitor;      /* owned; NULL without logind */
        sd_event_source *sessions;      /* owned */
        uint64_t complained_us;
        uint64_t n_asked;
};

/* Until then the call keeps the connection, which a reload may be about to give up. */
static void on_called_off(GObject *source, GAsyncResult *async, gpointer userdata) {
        GVariant *nothing = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), async, NULL);

        g_clear_pointer(&nothing, g_variant_unref);
}

/* So that a user who is being asked need not answer any more. */
static void flight_call_off(struct flight *flight) {
        g_dbus_connection_call(flight->authority->bus, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                               "CancelCheckAuthorization", g_variant_new("(s)", flight->cancellation), NULL,
                               G_DBUS_CALL_FLAGS_NO_AUTO_START, -1, NULL, on_called_off, NULL);
}

static void flight_free(gpointer data) {
        struct flight *flight = data;
        struct authority_check *check;

        while ((check = g_queue_peek_head(&flight->checks))) {
                g_queue_unlink(&flight->checks, &check->in_flight);
                free(check);
        }
        if (flight->ticket) {
                flight->ticket->flight = NULL;
                if (flight->authority->bus)
                        flight_call_off(flight);
        }
        (void) sd_event_source_disable_unref(flight->limit);
        g_cancellable_cancel(flight->cancellable);
        g_object_unref(flight->cancellable);
        g_variant_unref(flight->subject);
        g_variant_unref(flight->details);
        g_free(flight->cancellation);
        g_free(flight->action);
        g_free(flight->key);
        g_free(flight);
}

static void count_pending(struct authority *authority, uid_t uid, int by) {
        gpointer key = GUINT_TO_POINTER(uid);
        int n = GPOINTER_TO_INT(g_hash_table_lookup(authority->pending, key)) + by;

        if (n > 0)
                (void) g_hash_table_insert(authority->pending, key, GINT_TO_POINTER(n));
        else
                (void) g_hash_table_remove(authority->pending, key);
}

/* Takes it off the books; it is freed once its askers are told. */
static void flight_remove(struct flight *flight) {
        (void) g_hash_table_steal(flight->authority->flights, flight->key);
        count_pending(flight->authority, flight->quota_uid, -1);
}

static void keep_answer(struct flight *flight, enum authority_answer answer) {
        struct authority *authority = flight->authority;
        struct remembered *remembered;

        if (g_hash_table_size(authority->answers) >= ANSWERS_MAX)
                g_hash_table_remove_all(authority->answers);

        remembered = g_new(struct remembered, 1);
        *remembered = (struct remembered) {
                .answer = answer,
                .by_user = flight->user_is_asked,
                .until_us = broker_now_us(authority->broker) +
                            (answer == AUTHORITY_YES ? KEEP_YES_US : KEEP_OTHERS_US),
        };
        (void) g_hash_table_replace(authority->answers, g_strdup(flight->key), remembered);
}

static void flight_land(struct flight *flight, enum authority_answer answer) {
        struct authority_check *check;

        flight->landing = true;
        flight_remove(flight);
        keep_answer(flight, answer);
        while ((check = g_queue_peek_head(&flight->checks))) {
                g_queue_unlink(&flight->checks, &check->in_flight);
                check->done(answer, check->userdata);
                free(check);
        }
        flight_free(flight);
}

static void complain(struct authority *authority, const char *what) {
        uint64_t now_us = broker_now_us(authority->broker);
        char text[200];

        if (authority->complained_us != 0 && now_us < authority->complained_us + COMPLAINT_US)
                return;

        authority->complained_us = now_us;
        text_escape(text, sizeof(text), what, strlen(what));
        log_write(authority->broker->log, LOG_WARNING, &(struct log_fields) { .event = "authority" },
                  "polkit cannot be asked, so only the policy's lists decide: %s (said once a minute)", text);
}

static int on_limit(sd_event_source *source, uint64_t usec, void *userdata) {
        struct flight *flight = userdata;

        if (flight->user_is_asked) {
                flight_land(flight, AUTHORITY_UNANSWERED);
                return 0;
        }
        complain(flight->authority, "it did not answer in time");
        flight_land(flight, AUTHORITY_FAILED);
        return 0;
}

static enum authority_answer read_answer(const struct flight *flight, GVariant *result) {
        g_autoptr(GVariant) details = NULL;
        gboolean authorized = FALSE, challenge = FALSE;

        g_variant_get(result, "((bb@a{ss}))", &authorized, &challenge, &details);
        if (authorized)
                return AUTHORITY_YES;
        if (challenge)
                return flight->user_is_asked ? AUTHORITY_NO_AGENT : AUTHORITY_CHALLENGE;
        if (g_variant_lookup(details, "polkit.dismissed", "&s", NULL))
                return AUTHORITY_DISMISSED;
        return flight->user_is_asked ? AUTHORITY_REJECTED : AUTHORITY_NO;
}

static void flight_start(struct flight *flight);

static void on_checked(GObject *source, GAsyncResult *async, gpointer userdata) {
        g_autoptr(GVariant) result = NULL;
        g_autoptr(GError) error = NULL;
        g_autofree struct ticket *ticket = userdata;
        struct flight *flight = ticket->flight;
        enum authority_answer answer;

        result = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), async, &error);
        if (!flight)
                return;

        flight->ticket = NULL;
        if (!result) {
                complain(flight->authority, error->message);
                flight_land(flight, AUTHORITY_FAILED);
                return;
        }

        answer = read_answer(flight, result);
        if (answer == AUTHORITY_CHALLENGE && flight->interactive) {
                flight->user_is_asked = true;
                flight_start(flight);
                return;
        }
        flight_land(flight, answer);
}

/*
 * Not by libpolkit, which takes an answer of another type than it should have for one, and crashes.
 * First without the user, since after that polkit does not tell a wrong password from a plain no.
 */
static void flight_start(struct flight *flight) {
        guint32 flags = flight->user_is_asked ? POLKIT_CHECK_AUTHORIZATION_FLAGS_ALLOW_USER_INTERACTION
                                              : POLKIT_CHECK_AUTHORIZATION_FLAGS_NONE;

        g_free(flight->cancellation);
        flight->cancellation = g_strdup_printf("%" PRIu64, ++flight->authority->n_asked);
        flight->ticket = g_new(struct ticket, 1);
        flight->ticket->flight = flight;
        g_dbus_connection_call(flight->authority->bus, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                               "CheckAuthorization",
                               g_variant_new("(@(sa{sv})s@a{ss}us)", flight->subject, flight->action,
                                             flight->details, flags, flight->cancellation),
                               G_VARIANT_TYPE("((bba{ss}))"), G_DBUS_CALL_FLAGS_NONE, NO_LIMIT_MS,
                               flight->cancellable, on_checked, flight->ticket);
}

static gboolean is_by_rules(gpointer key, gpointer value, gpointer userdata) {
        return !((const struct remembered *) value)->by_user;
}

/*
 * Rules; or an agent came or left, as that does which a program has for its one question and ends
 * before it goes on: what was proven to that stays so for its minute.
 */
static void on_changed(PolkitAuthority *polkit, gpointer userdata) {
        struct authority *authority = userdata;

        (void) g_hash_table_foreach_remove(authority->answers, is_by_rules, NULL);
}

static void authority_disconnect(struct authority *authority) {
        if (authority->polkit)
                g_signal_handler_disconnect(authority->polkit, authority->changed);
        if (authority->bus)
                g_signal_handler_disconnect(authority->bus, authority->closed);
        g_clear_object(&authority->polkit);
        g_clear_object(&authority->bus);
}

static void connect_failed(struct authority *authority, const GError *error) {
        g_clear_object(&authority->connecting);
        authority_disconnect(authority);
        complain(authority, error->message);
        authority_give_up(authority);
}

/* A bus that is restarted takes all connections along; the next question makes a new one. */
static void on_closed(GDBusConnection *bus, gboolean by_peer, GError *error, gpointer userdata) {
        struct authority *authority = userdata;

        authority_forget(authority);
        authority_give_up(authority);
        authority_disconnect(authority);
}

static void on_polkit(GObject *source, GAsyncResult *async, gpointer userdata) {
        g_autoptr(GError) error = NULL;
        struct authority *authority;
        PolkitAuthority *polkit;
        GHashTableIter iter;
        gpointer flight;

        polkit = polkit_authority_get_finish(async, &error);
        if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
                return;

        authority = userdata;
        if (!polkit) {
                connect_failed(authority, error);
                return;
        }

        g_clear_object(&authority->connecting);
        authority->polkit = polkit;
        authority->changed = g_signal_connect(polkit, "changed", G_CALLBACK(on_changed), authority);
        g_hash_table_iter_init(&iter, authority->flights);
        while (g_hash_table_iter_next(&iter, NULL, &flight))
                flight_start(flight);
}

static void on_bus(GObject *source, GAsyncResult *async, gpointer userdata) {
        g_autoptr(GError) error = NULL;
        struct authority *authority;
        GDBusConnection *bus;

        bus = g_bus_get_finish(async, &error);
        if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
                return;

        authority = userdata;
        if (!bus) {
                connect_failed(authority, error);
                return;
        }

        /* GLib would end the process with the bus. */
        g_dbus_connection_set_exit_on_close(bus, FALSE);
        authority->bus = bus;
        authority->closed = g_signal_connect(bus, "closed", G_CALLBACK(on_closed), authority);
        polkit_authority_get_async(authority->connecting, on_polkit, authority);
}

static void authority_connect(struct authority *authority) {
        if (authority->polkit || authority->connecting)
                return;

        authority->connecting = g_cancellable_new();
        g_bus_get(G_BUS_TYPE_SYSTEM, authority->connecting, on_bus, authority);
}

static int on_sessions(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct authority *authority = userdata;

        (void) sd_login_monitor_flush(authority->monitor);
        authority_forget(authority);
        return 0;
}

/* Who is active at the console decides, and may change without polkit saying so. */
static void watch_sessions(struct authority *authority) {
        int fd;

        if (sd_login_monitor_new(NULL, &authority->monitor) < 0)
                return;
        fd = sd_login_monitor_get_fd(authority->monitor);
        if (fd >= 0)
                (void) sd_event_add_io(authority->broker->event, &authority->sessions, fd,
                                       (uint32_t) sd_login_monitor_get_events(authority->monitor), on_sessions,
                                       authority);
}

int authority_new(struct broker *broker, struct authority **ret) {
        struct authority *authority;

        authority = calloc(1, sizeof(*authority));
        if (!authority)
                return -ENOMEM;

        authority->broker = broker;
        authority->flights = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, flight_free);
        authority->pending = g_hash_table_new(g_direct_hash, g_direct_equal);
        authority->answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        watch_sessions(authority);
        authority_connect(authority);

        *ret = authority;
        return 0;
}

void authority_give_up(struct authority *authority) {
        GHashTableIter iter;
        gpointer flight;

        for (;;) {
                g_hash_table_iter_init(&iter, authority->flights);
                if (!g_hash_table_iter_next(&iter, NULL, &flight))
                        return;
                flight_land(flight, AUTHORITY_FAILED);
        }
}

struct authority *authority_free(struct authority *authority) {
        if (!authority)
                return NULL;

        if (authority->connecting)
                g_cancellable_cancel(authority->connecting);
        g_clear_object(&authority->connecting);
        g_hash_table_unref(authority->flights);
        g_hash_table_unref(authority->pending);
        g_hash_table_unref(authority->answers);
        authority_disconnect(authority);
        (void) sd_event_source_disable_unref(authority->sessions);
        (void) sd_login_monitor_unref(authority->monitor);
        free(authority);
        return NULL;
}

static enum authority_answer remember(struct authority *authority, const struct authority_question *question) {
        g_autofree char *key = question_key(question);
        const struct remembered *remembered;

        remembered = key ? g_hash_table_lookup(authority->answers, key) : NULL;
        if (!remembered || remembered->until_us <= broker_now_us(authority->broker))
                return AUTHORITY_UNASKED;

        return remembered->answer;
}

enum authority_answer authority_remember(struct authority *authority, const struct authority_question *question) {
        struct authority_question of_user = *question;
        enum authority_answer answer = remember(authority, question);

        /* What the user was asked need not be asked again where that is not allowed. */
        of_user.interactive = true;
        return answer == AUTHORITY_UNASKED ? remember(authority, &of_user) : answer;
}

void authority_forget(struct authority *authority) {
        g_hash_table_remove_all(authority->answers);
}

static uint64_t limit_us(const struct authority_question *question) {
        if (question->interactive)
                return LIMIT_INTERACTIVE_US;
        return question->bus_name ? LIMIT_BUS_US : LIMIT_US;
}

/* Takes @key. NULL if who asks is gone. */
static struct flight *flight_new(struct authority *authority, const struct authority_question *question, char *key) {
        GVariant *subject = question_subject(question);
        struct flight *flight;

        if (!subject) {
                g_free(key);
                return NULL;
        }

        flight = g_new0(struct flight, 1);
        flight->authority = authority;
        flight->key = key;
        flight->quota_uid = question->quota_uid;
        flight->subject = subject;
        flight->details = question_details(question);
        flight->action = g_strdup(question->action);
        flight->interactive = question->interactive;
        flight->cancellable = g_cancellable_new();
        g_queue_init(&flight->checks);
        (void) sd_event_add_time_relative(authority->broker->event, &flight->limit, CLOCK_MONOTONIC,
                                          limit_us(question), 0, on_limit, flight);

        (void) g_hash_table_insert(authority->flights, flight->key, flight);
        count_pending(authority, flight->quota_uid, 1);
        authority_connect(authority);
        if (authority->polkit)
                flight_start(flight);
        return flight;
}

static bool is_overrun(const struct authority *authority, uid_t uid) {
        return g_hash_table_size(authority->flights) >= PENDING_MAX ||
               GPOINTER_TO_INT(g_hash_table_lookup(authority->pending, GUINT_TO_POINTER(uid))) >= PENDING_PER_USER_MAX;
}

int authority_ask(struct authority *authority, const struct authority_question *question, authority_done_fn done,
                  void *userdata, struct authority_check **ret_check) {
        char *key = question_key(question);
        struct authority_check *check;
        struct flight *flight;

        if (!key)
                return -ESRCH;

        flight = g_hash_table_lookup(authority->flights, key);
        if (flight) {
                g_free(key);
        } else {
                if (is_overrun(authority, question->quota_uid)) {
                        g_free(key);
                        return -EBUSY;
                }
                flight = flight_new(authority, question, key);
                if (!flight)
                        return -ESRCH;
        }

        check = calloc(1, sizeof(*check));
        if (!check)
                return -ENOMEM;
        check->flight = flight;
        check->done = done;
        check->userdata = userdata;
        check->in_flight.data = check;
        g_queue_push_tail_link(&flight->checks, &check->in_flight);

        *ret_check = check;
        return 0;
}

struct authority_check *authority_cancel(struct authority_check *check) {
        struct flight *flight;

        if (!check)
                return NULL;

        flight = check->flight;
        g_queue_unlink(&flight->checks, &check->in_flight);
        free(check);
        if (!flight->landing && g_queue_is_empty(&flight->checks)) {
                flight_remove(flight);
                flight_free(flight);
        }
        return NULL;
}
