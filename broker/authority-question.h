/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_BROKER_AUTHORITY_QUESTION_H
#define RTGRANT_BROKER_AUTHORITY_QUESTION_H

/*
 * A question to polkit as it goes over the bus: who asks, and what an administrator's rules can
 * look up.
 */

#include <glib.h>

#include "broker/authority.h"

/* The same for equal questions of one asker; for g_free(). NULL if who asks is gone. */
char *question_key(const struct authority_question *question);

/* Who asks, "(sa{sv})"; for g_variant_unref(). NULL if that one is gone. */
GVariant *question_subject(const struct authority_question *question);

/* What rules look up, "a{ss}"; for g_variant_unref(). */
GVariant *question_details(const struct authority_question *question);

#endif
