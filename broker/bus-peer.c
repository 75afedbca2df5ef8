/* SPDX-License-Identifier: MIT */

#include "broker/bus-peer.h"

#include <errno.h>
#include <string.h>

#include "broker/cleanup.h"
#include "broker/inquiry.h"

#define PEERS_MAX 256
#define WAITING_MAX 256                 /* calls of senders that are not known yet */
#define WAITING_PER_PEER_MAX 16
#define DELAYED_MAX 64                  /* calls that are served a little later */

/* A method call that is not answered yet. */
struct bus_call {
        struct bus_peer *sender;        /* borrowed; outlives the call */
        sd_bus_message *message;        /* owned */
        bus_serve_fn serve;             /* until the sender is known */
        void *userdata;                 /* borrowed; its, or the reply's */
        bus_reply_fn reply;             /* then, until polkit has answered */
        struct inquiry *inquiry;        /* owned; likewise */
        struct user *user;              /* borrowed; counted as a connection; likewise */
        sd_event_source *delay;         /* owned; of one that is served later */
        GList in_sender;
};

struct bus_peers {
        struct broker *broker;          /* borrowed; outlives this */
        GHashTable *by_name;            /* owned: name -> owned struct bus_peer */
        GQueue in_order;                /* of the same; last used last */
        unsigned n_waiting;
        unsigned n_delayed;
};

static void refuse(sd_bus_message *message, const char *text) {
        (void) sd_bus_reply_method_errorf(message, SD_BUS_ERROR_LIMITS_EXCEEDED, "%s", text);
}

static void bus_call_free(struct bus_call *call) {
        struct bus_peers *all = call->sender->all;

        g_queue_unlink(&call->sender->calls, &call->in_sender);
        if (call->delay)
                all->n_delayed--;
        else if (call->serve)
                all->n_waiting--;
        (void) sd_event_source_disable_unref(call->delay);
        if (call->user)
                call->user->n_connections--;
        call->inquiry = inquiry_cancel(call->inquiry);
        (void) sd_bus_message_unref(call->message);
        free(call);
}

static struct bus_call *bus_call_new(struct bus_peer *sender, sd_bus_message *message) {
        struct bus_call *call;

        call = calloc(1, sizeof(*call));
        if (!call)
                return NULL;

        call->sender = sender;
        call->message = sd_bus_message_ref(message);
        call->in_sender.data = call;
        g_queue_push_tail_link(&sender->calls, &call->in_sender);
        return call;
}

static void bus_peer_free(gpointer data) {
        struct bus_peer *sender = data;

        while (!g_queue_is_empty(&sender->calls))
                bus_call_free(g_queue_peek_head(&sender->calls));

        g_queue_unlink(&sender->all->in_order, &sender->in_order);
        (void) sd_bus_slot_unref(sender->identity);
        (void) sd_bus_slot_unref(sender->gone);
        peer_done(&sender->peer);
        free(sender->name);
        free(sender);
}

static void forget(struct bus_peer *sender) {
        (void) g_hash_table_remove(sender->all->by_name, sender->name);
}

static struct user *find_user(struct bus_peers *peers, const struct peer *peer) {
        return user_get(&peers->broker->users, broker_policy(peers->broker), peer->quota_uid,
                        broker_now_us(peers->broker));
}

/* False, and it is answered, if its user sends more than the policy lets through. */
static bool account(struct bus_peer *sender, sd_bus_message *message) {
        struct broker *broker = sender->all->broker;
        struct user *user = find_user(sender->all, &sender->peer);

        if (user && bucket_take(&user->messages, broker_now_us(broker)))
                return true;

        refuse(message, "your user sends too many messages: try again in a moment");
        return false;
}

/* What the bus daemon says about a name. */
struct identity {
        uid_t uid;
        pid_t pid;
        gid_t *gids;            /* owned */
        size_t n_gids;
        bool has_uid;
};

static int read_groups(sd_bus_message *message, struct identity *identity) {
        const void *gids;
        size_t size;
        int r;

        r = sd_bus_message_enter_container(message, 'v', "au");
        if (r >= 0)
                r = sd_bus_message_read_array(message, 'u', &gids, &size);
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        if (r < 0)
                return r;
        if (identity->gids || size == 0)
                return -EBADMSG;

        static_assert(sizeof(gid_t) == sizeof(uint32_t), "as on the bus");
        identity->gids = malloc(size);
        if (!identity->gids)
                return -ENOMEM;
        memcpy(identity->gids, gids, size);
        identity->n_gids = size / sizeof(gid_t);
        return 0;
}

static int read_field(sd_bus_message *message, struct identity *identity) {
        const char *key;
        uint32_t number;
        int r;

        r = sd_bus_message_read(message, "s", &key);
        if (r < 0)
                return r;

        if (strcmp(key, "UnixUserID") == 0) {
                r = sd_bus_message_read(message, "v", "u", &number);
                identity->uid = number;
                identity->has_uid = r >= 0;
                return r;
        }
        if (strcmp(key, "ProcessID") == 0) {
                r = sd_bus_message_read(message, "v", "u", &number);
                identity->pid = r >= 0 && number <= INT32_MAX ? (pid_t) number : 0;
                return r;
        }
        if (strcmp(key, "UnixGroupIDs") == 0)
                return read_groups(message, identity);

        return sd_bus_message_skip(message, "v");
}

/* Without any of user, process and groups nobody is known: a Deny list may name a group. */
static int read_identity(sd_bus_message *message, struct identity *identity) {
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                r = read_field(message, identity);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;

        return identity->has_uid && identity->pid > 0 && identity->gids ? 0 : -ENODATA;
}

static int identify(struct bus_peer *sender, sd_bus_message *message) {
        struct identity identity = {};
        int r;

        if (sd_bus_message_is_method_error(message, NULL))
                return -ENXIO;

        r = read_identity(message, &identity);
        if (r >= 0)
                r = peer_init_from_ids(&sender->all->broker->kernel, identity.uid, identity.pid,
                                       identity.gids, identity.n_gids, &sender->peer);
        if (r < 0) {
                free(identity.gids);
                return r;
        }

        return peer_complete(&sender->peer) == REASON_NONE ? 0 : -ESRCH;
}

static int on_identity(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus_peer *sender = userdata;
        struct bus_call *call;
        int r;

        r = identify(sender, message);
        sender->known = r >= 0;
        sender->identity = sd_bus_slot_unref(sender->identity);

        while ((call = g_queue_peek_head(&sender->calls)) && call->serve && !call->delay) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *waiting =
                        sd_bus_message_ref(call->message);
                bus_serve_fn serve = call->serve;
                void *with = call->userdata;

                bus_call_free(call);
                if (!sender->known)
                        (void) sd_bus_reply_method_errorf(
                                waiting, SD_BUS_ERROR_ACCESS_DENIED,
                                "cannot find out who you are, or your process runs as another user "
                                "than it connected to the bus as");
                else if (account(sender, waiting))
                        serve(sender, waiting, with);
        }

        if (!sender->known)
                forget(sender); /* asked about again with its next message */
        return 0;
}

static int on_gone(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus_peer *sender = userdata;
        const char *name, *before, *after;

        if (sd_bus_message_read(message, "sss", &name, &before, &after) >= 0 &&
            strcmp(name, sender->name) == 0 && after[0] == '\0')
                forget(sender);
        return 0;
}

/* In this order: a name that ends before the match is there is not known to the second question. */
static int ask_bus(struct bus_peer *sender, sd_bus *connection) {
        _cleanup_free_ char *match = NULL;
        int r;

        if (asprintf(&match,
                     "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                     "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
                     sender->name) < 0) {
                match = NULL;
                return -ENOMEM;
        }
        r = sd_bus_add_match_async(connection, &sender->gone, match, on_gone, NULL, sender);
        if (r < 0)
                return r;

        return sd_bus_call_method_async(connection, &sender->identity, "org.freedesktop.DBus",
                                        "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                        "GetConnectionCredentials", on_identity, sender, "s",
                                        sender->name);
}

/* Whoever waits for nothing can be asked about again. False if all do. */
static bool make_room(struct bus_peers *peers) {
        if (g_hash_table_size(peers->by_name) < PEERS_MAX)
                return true;

        for (GList *link = peers->in_order.head; link; link = link->next) {
                struct bus_peer *sender = link->data;

                if (sender->known && g_queue_is_empty(&sender->calls)) {
                        forget(sender);
                        return true;
                }
        }
        return false;
}

static struct bus_peer *bus_peer_new(struct bus_peers *peers, sd_bus *connection,
                                     const char *name) {
        struct bus_peer *sender;

        if (!make_room(peers))
                return NULL;

        sender = calloc(1, sizeof(*sender));
        if (!sender)
                return NULL;
        sender->name = strdup(name);
        if (!sender->name) {
                free(sender);
                return NULL;
        }

        sender->all = peers;
        sender->peer = PEER_NONE;
        sender->in_order.data = sender;
        g_queue_init(&sender->calls);
        g_queue_push_tail_link(&peers->in_order, &sender->in_order);
        if (ask_bus(sender, connection) < 0) {
                bus_peer_free(sender);
                return NULL;
        }

        (void) g_hash_table_insert(peers->by_name, sender->name, sender);
        return sender;
}

int bus_peers_new(struct broker *broker, struct bus_peers **ret) {
        struct bus_peers *peers;

        peers = calloc(1, sizeof(*peers));
        if (!peers)
                return -ENOMEM;

        peers->broker = broker;
        peers->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, bus_peer_free);
        g_queue_init(&peers->in_order);

        *ret = peers;
        return 0;
}

struct bus_peers *bus_peers_free(struct bus_peers *peers) {
        if (!peers)
                return NULL;

        g_hash_table_unref(peers->by_name);
        free(peers);
        return NULL;
}

void bus_peers_clear(struct bus_peers *peers) {
        g_hash_table_remove_all(peers->by_name);
}

int bus_peers_see(struct bus_peers *peers, sd_bus_message *message) {
        const char *name = sd_bus_message_get_sender(message);
        struct bus_peer *sender;

        if (!sd_bus_message_is_method_call(message, NULL, NULL) || !name)
                return 0;

        self_charge(&peers->broker->self, broker_now_us(peers->broker));
        sender = g_hash_table_lookup(peers->by_name, name);
        if (!sender) {
                (void) bus_peer_new(peers, sd_bus_message_get_bus(message), name);
                return 0;
        }

        g_queue_unlink(&peers->in_order, &sender->in_order);
        g_queue_push_tail_link(&peers->in_order, &sender->in_order);
        return sender->known && !account(sender, message);
}

int bus_peers_dispatch(struct bus_peers *peers, sd_bus_message *message, bus_serve_fn serve,
                       void *userdata) {
        const char *name = sd_bus_message_get_sender(message);
        struct bus_peer *sender = name ? g_hash_table_lookup(peers->by_name, name) : NULL;
        struct bus_call *call;

        if (sender && sender->known) {
                serve(sender, message, userdata);
                return 1;
        }

        if (!sender || peers->n_waiting >= WAITING_MAX ||
            sender->calls.length >= WAITING_PER_PEER_MAX) {
                refuse(message, "too many calls wait to be served: try again in a moment");
                return 1;
        }
        call = bus_call_new(sender, message);
        if (!call)
                return -ENOMEM;

        call->serve = serve;
        call->userdata = userdata;
        peers->n_waiting++;
        return 1;
}

static int on_delayed(sd_event_source *source, uint64_t usec, void *userdata) {
        struct bus_call *call = userdata;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = sd_bus_message_ref(call->message);
        struct bus_peer *sender = call->sender;
        bus_serve_fn serve = call->serve;
        void *with = call->userdata;

        bus_call_free(call);
        if (sd_bus_message_rewind(message, true) >= 0)
                serve(sender, message, with);
        return 0;
}

bool bus_peer_delay(struct bus_peer *sender, sd_bus_message *message, uint64_t delay_us, bus_serve_fn serve,
                    void *userdata) {
        struct bus_peers *peers = sender->all;
        struct bus_call *call;

        /* one each, so that whoever has many calls to make does not take the room of the others */
        if (peers->n_delayed >= DELAYED_MAX || !g_queue_is_empty(&sender->calls))
                return false;
        call = bus_call_new(sender, message);
        if (!call)
                return false;

        if (sd_event_add_time_relative(peers->broker->event, &call->delay, CLOCK_MONOTONIC, delay_us, 1000,
                                       on_delayed, call) < 0) {
                bus_call_free(call);
                return false;
        }
        call->serve = serve;
        call->userdata = userdata;
        peers->n_delayed++;
        return true;
}

struct call bus_peer_call(struct bus_peer *sender) {
        return (struct call) {
                .broker = sender->all->broker,
                .peer = &sender->peer,
                .user = find_user(sender->all, &sender->peer),
                .bus_name = sender->name,
                .pidfd = -1,
        };
}

static void on_inquired(const union wire_response *response, size_t size, void *userdata) {
        struct bus_call *call = userdata;

        call->inquiry = NULL;
        call->reply(call->sender, call->message, response, call->userdata);
        bus_call_free(call);
}

void bus_peer_ask(struct bus_peer *sender, sd_bus_message *message, const struct call *asked,
                  const union wire_request *request, bus_reply_fn reply, void *userdata) {
        struct call full = bus_peer_call(sender);
        union wire_response response;
        struct bus_call *call = NULL;

        if (full.user)
                call = bus_call_new(sender, message);
        if (!call) {
                refuse(message, "out of memory");
                return;
        }

        full.transport = asked->transport;
        full.action = asked->action;
        full.check_rttime = asked->check_rttime;
        full.interactive = asked->interactive;
        call->reply = reply;
        call->userdata = userdata;
        call->user = full.user;
        call->user->n_connections++; /* so that it is not forgotten meanwhile */

        if (inquiry_call(&full, request, &response, on_inquired, call, &call->inquiry) == 0)
                return;
        reply(sender, message, &response, userdata);
        bus_call_free(call);
}
