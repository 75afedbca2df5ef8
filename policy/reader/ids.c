/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "policy/reader/ids.h"

/* A group's entry lists its members; glibc needs the whole of it in our buffer. */
#define ENTRY_SIZE_FIRST 1024
#define ENTRY_SIZE_MAX 4194304

#define NAME_LENGTH_MAX 255
#define WORDS_MAX 1024

static int find_user(const char *name, char *buffer, size_t size, uint32_t *ret_id) {
        struct passwd entry, *found;
        int r;

        r = getpwnam_r(name, &entry, buffer, size, &found);
        if (r != 0 || !found)
                return -r;

        *ret_id = entry.pw_uid;
        return 1;
}

static int find_group(const char *name, char *buffer, size_t size, uint32_t *ret_id) {
        struct group entry, *found;
        int r;

        r = getgrnam_r(name, &entry, buffer, size, &found);
        if (r != 0 || !found)
                return -r;

        *ret_id = entry.gr_gid;
        return 1;
}

const struct id_source id_source_users = { "user", find_user };
const struct id_source id_source_groups = { "group", find_group };

static int find(const struct id_source *source, const char *name, uint32_t *ret_id) {
        g_autofree char *buffer = NULL;
        int r = -ERANGE;

        for (size_t size = ENTRY_SIZE_FIRST; r == -ERANGE && size <= ENTRY_SIZE_MAX; size *= 4) {
                buffer = g_realloc(buffer, size);
                r = source->find(name, buffer, size, ret_id);
        }

        return r;
}

char **split_words(const char *value) {
        g_autoptr(GPtrArray) words = g_ptr_array_new();
        size_t length;

        for (const char *s = value + strspn(value, " \t"); *s; s += strspn(s, " \t")) {
                length = strcspn(s, " \t");
                g_ptr_array_add(words, g_strndup(s, length));
                s += length;
        }

        g_ptr_array_add(words, NULL);
        return (char **) g_ptr_array_free(g_steal_pointer(&words), FALSE);
}

static bool is_number(const char *word) {
        return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

static bool read_number(const struct value_context *context, const struct id_source *source,
                        const char *word, GArray *ids) {
        guint64 n;
        uint32_t id;

        /* The highest number is setuid(2)'s word for none. */
        if (!g_ascii_string_to_unsigned(word, 10, 0, UINT32_MAX - 1, &n, NULL)) {
                report_fault(context->report, context->at, "%s=: %s is not a %s id, 0 to %u",
                             context->key->name, excerpt(word, strlen(word)).text, source->what,
                             UINT32_MAX - 1);
                return false;
        }

        id = (uint32_t) n;
        g_array_append_val(ids, id);
        return true;
}

static void read_name(const struct value_context *context, const struct id_source *source,
                      const char *word, GArray *ids) {
        struct excerpt shown = excerpt(word, strlen(word));
        uint32_t id = 0;
        int r;

        r = strlen(word) <= NAME_LENGTH_MAX ? find(source, word, &id) : 0;
        if (r > 0)
                g_array_append_val(ids, id);
        else if (r == 0 || r == -ENOENT || r == -ESRCH || r == -EBADF || r == -EPERM)
                /* getpwnam(3): any of these may mean that there is none. */
                report_warning(context->report, context->at, "%s=: no %s is named %s, ignoring it",
                               context->key->name, source->what, shown.text);
        else
                report_warning(context->report, context->at,
                               "%s=: cannot look up %s %s: %s, ignoring it", context->key->name,
                               source->what, shown.text, g_strerror(-r));
}

bool id_list_read(const struct value_context *context, const struct id_source *source,
                  const char *value, struct id_list *ret_list) {
        g_auto(GStrv) words = split_words(value);
        g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        bool everybody = false, good = true;
        void *block;
        gsize n_ids;

        if (g_strv_length(words) > WORDS_MAX) {
                report_fault(context->report, context->at, "%s=: more than %d names; use a group",
                             context->key->name, WORDS_MAX);
                return false;
        }

        for (size_t i = 0; words[i]; i++) {
                if (strcmp(words[i], "*") == 0)
                        everybody = true;
                else if (is_number(words[i]))
                        good = read_number(context, source, words[i], ids) && good;
                else
                        read_name(context, source, words[i], ids);
        }
        if (!good)
                return false;

        block = g_array_steal(ids, &n_ids);
        if (block)
                g_ptr_array_add(context->blocks, block);
        *ret_list = (struct id_list) { .ids = block, .n_ids = n_ids, .everybody = everybody };
        return true;
}
