/* SPDX-License-Identifier: MIT */

#include "broker/event-source.h"

#include <errno.h>
#include <glib.h>

struct event_source {
        GSource base;           /* first: GLib allocates it, and hands it back as this */
        sd_event *event;        /* owned */
};

/*
 * Each step looks at the state first: GLib prepares and checks again without dispatching when
 * something of higher priority came up, and sd-event takes its steps only in their order.
 */
static gboolean on_prepare(GSource *base, gint *ret_timeout_ms) {
        sd_event *event = ((struct event_source *) base)->event;

        *ret_timeout_ms = -1;
        if (sd_event_get_state(event) == SD_EVENT_INITIAL && sd_event_prepare(event) < 0)
                return TRUE;

        return sd_event_get_state(event) != SD_EVENT_ARMED;
}

static gboolean on_check(GSource *base) {
        sd_event *event = ((struct event_source *) base)->event;

        if (sd_event_get_state(event) == SD_EVENT_ARMED && sd_event_wait(event, 0) < 0)
                return TRUE;

        return sd_event_get_state(event) == SD_EVENT_PENDING;
}

static gboolean on_dispatch(GSource *base, GSourceFunc callback, gpointer userdata) {
        sd_event *event = ((struct event_source *) base)->event;

        if (sd_event_get_state(event) == SD_EVENT_PENDING)
                (void) sd_event_dispatch(event);

        return G_SOURCE_CONTINUE;
}

static GSourceFuncs event_source_funcs = {
        .prepare = on_prepare,
        .check = on_check,
        .dispatch = on_dispatch,
};

struct event_source *event_source_new(sd_event *event) {
        GSource *base = g_source_new(&event_source_funcs, sizeof(struct event_source));
        struct event_source *source = (struct event_source *) base;

        source->event = sd_event_ref(event);
        /* Nobody runs the loop within it; but else GLib would take its descriptor out of the poll
         * around each dispatch, and wake itself up for that. */
        g_source_set_can_recurse(base, TRUE);
        (void) g_source_add_unix_fd(base, sd_event_get_fd(event), G_IO_IN);
        (void) g_source_attach(base, NULL);
        return source;
}

struct event_source *event_source_free(struct event_source *source) {
        if (!source)
                return NULL;

        g_source_destroy(&source->base);
        (void) sd_event_unref(source->event);
        g_source_unref(&source->base);
        return NULL;
}

int event_source_loop(sd_event *event) {
        int code, r;

        while (sd_event_get_state(event) != SD_EVENT_FINISHED)
                (void) g_main_context_iteration(NULL, TRUE);

        r = sd_event_get_exit_code(event, &code);
        return r < 0 ? r : code;
}
