/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include "policy/policy-file.h"
#include "policy/reader/book.h"
#include "policy/reader/layers.h"
#include "policy/reader/merge.h"

struct policy_store *policy_store_free(struct policy_store *store) {
        if (!store)
                return NULL;

        g_ptr_array_unref(store->book->blocks);
        g_string_chunk_free(store->book->strings);
        g_free(store->book);
        g_free(store);
        return NULL;
}

/* Hands over what was read, and what there is to say of it. Takes @store; empties @report. */
static int finish(struct policy_store *store, struct report *report,
                  struct policy_store **ret_store, char **ret_messages) {
        int r = report->error;

        if (ret_messages)
                *ret_messages = report_steal_text(report);
        report_done(report);

        if (r < 0) {
                policy_store_free(store);
                return r;
        }

        *ret_store = store;
        return 0;
}

/* @over goes on top of what @path stands for; NULL: nothing does. */
static void read_layers(struct policy_store *store, const char *root, const char *path,
                        const char *over, struct report *report) {
        g_autoptr(GPtrArray) files = layers_list(root, path, report);
        const char *file = NULL;

        if (over)
                g_ptr_array_add(files, g_strdup(over));

        if (files->len == 0 && report->error == 0)
                report_errno(report, path ? path : POLICY_VENDOR_DIR "/policy.conf", -ENOENT,
                             "there is no policy");
        if (files->len == 0)
                return;

        for (size_t i = 0; i < files->len; i++) {
                g_autofree char *text = NULL;
                size_t length;

                file = files->pdata[i];
                text = layer_read(file, POLICY_TEXT_MAX, &length, report);
                if (text)
                        merge_text(store, file, text, length, report);
        }

        book_check(store, file, report);
}

int policy_store_load_rooted(const char *root, const char *path, struct policy_store **ret_store,
                             char **ret_messages) {
        struct policy_store *store = book_open();
        struct report report;

        report_init(&report);
        read_layers(store, root, path, NULL, &report);
        return finish(store, &report, ret_store, ret_messages);
}

int policy_store_load(const char *path, struct policy_store **ret_store, char **ret_messages) {
        return policy_store_load_rooted("", path, ret_store, ret_messages);
}

int policy_store_load_over(const char *path, struct policy_store **ret_store, char **ret_messages) {
        struct policy_store *store;
        struct report report;

        if (g_file_test(path, G_FILE_TEST_IS_DIR) || !g_file_test(path, G_FILE_TEST_EXISTS))
                return policy_store_load(path, ret_store, ret_messages);

        store = book_open();
        report_init(&report);
        read_layers(store, "", NULL, path, &report);
        return finish(store, &report, ret_store, ret_messages);
}

int policy_store_parse(const char *name, const char *text, size_t length,
                       struct policy_store **ret_store, char **ret_messages) {
        struct policy_store *store = book_open();
        struct report report;

        report_init(&report);
        merge_text(store, name, text, length, &report);
        book_check(store, name, &report);
        return finish(store, &report, ret_store, ret_messages);
}

bool policy_store_entry(const struct policy_store *store, size_t index,
                        struct policy_entry *ret_entry) {
        const struct policy_book *book = store->book;
        const struct section *section;

        for (size_t i = 0; i < book->n_sections; i++) {
                section = &book->sections[i];
                if (index < section->n_keys) {
                        *ret_entry = (struct policy_entry) {
                                .section = section->title,
                                .key = section->keys[index].name,
                                .value = section->values[index],
                                .rule = section->rules[index],
                        };
                        return true;
                }
                index -= section->n_keys;
        }

        return false;
}
