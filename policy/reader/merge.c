/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "policy/reader/merge.h"
#include "policy/reader/scan.h"

/* A line that is worth a value or a message. */
struct item {
        struct rule at;
        char *fault;                    /* owned; NULL if it is good so far */
        struct section *section;
        const struct key *key;          /* NULL: the section's own line */
};

/* One text on its way into the policy. */
struct merge {
        struct policy_store *store;
        const char *file;
        char *text;                     /* owned; a copy without the lines that are faulty */
        GArray *items;                  /* struct item, in the order of lines */
        struct section *section;        /* of the lines that follow; NULL: faulty or none yet */
        bool sectioned;                 /* some section has begun */
        unsigned section_lines[SECTIONS_MAX];       /* where each began in this text; 0: nowhere */
        unsigned key_lines[SECTIONS_MAX][KEYS_MAX]; /* likewise */
};

static void item_clear(void *data) {
        struct item *item = data;

        g_free(item->fault);
}

/* Blanks the line, so that GKeyFile reads on. */
static void drop_line(struct merge *m, const struct scan_line *line) {
        memset(m->text + line->offset, ' ', line->length);
}

static void add_item(struct merge *m, const struct scan_line *line, const struct key *key) {
        struct item item = {
                .at = { .file = m->file, .line = line->number },
                .section = m->section,
                .key = key,
        };

        g_array_append_val(m->items, item);
}

static void add_fault(struct merge *m, const struct scan_line *line, const char *format, ...)
        G_GNUC_PRINTF(3, 4);

static void add_fault(struct merge *m, const struct scan_line *line, const char *format, ...) {
        struct item item = { .at = { .file = m->file, .line = line->number } };
        va_list args;

        va_start(args, format);
        item.fault = g_strdup_vprintf(format, args);
        va_end(args);

        g_array_append_val(m->items, item);
}

static size_t section_index(const struct merge *m, const struct section *section) {
        return (size_t) (section - m->store->book->sections);
}

static const char *section_hint(const struct scan_line *line) {
        if (edit_distance(line->name, line->name_length, "Broker", strlen("Broker")) <= 2)
                return ", did you mean [Broker]?";
        if (g_ascii_strncasecmp(line->name, "role", strlen("role")) == 0)
                return ", did you mean [Role NAME]?";
        if (g_ascii_strncasecmp(line->name, "irq", strlen("irq")) == 0)
                return ", did you mean [Irq NAME]?";

        return ": there are [Broker], [Role NAME] and [Irq NAME]";
}

/* What [KIND NAME] can be. */
static const struct named_section {
        const char *prefix;
        const char *what;
        struct section *(*add)(struct policy_store *store, const char *name, size_t length);
        int n_max;
} named_sections[] = {
        { "Role ", "role", book_add_role, POLICY_ROLES_MAX },
        { "Irq ", "irq", book_add_irq, POLICY_IRQS_MAX },
};

static const struct named_section *find_kind(const struct scan_line *line) {
        for (size_t i = 0; i < G_N_ELEMENTS(named_sections); i++)
                if (line->name_length >= strlen(named_sections[i].prefix) &&
                    memcmp(line->name, named_sections[i].prefix,
                           strlen(named_sections[i].prefix)) == 0)
                        return &named_sections[i];

        return NULL;
}

/* The section of that title, a new one if need be; NULL: reported. */
static struct section *find_or_add_section(struct merge *m, const struct scan_line *line) {
        const struct named_section *kind = find_kind(line);
        struct excerpt shown = excerpt(line->name, line->name_length);
        struct section *section;
        const char *name;
        size_t length;

        section = book_find_section(m->store, line->name, line->name_length);
        if (section)
                return section;

        if (!kind) {
                add_fault(m, line, "unknown section [%s]%s", shown.text, section_hint(line));
                return NULL;
        }
        name = line->name + strlen(kind->prefix);
        length = line->name_length - strlen(kind->prefix);
        if (!role_name_is_valid(name, length)) {
                add_fault(m, line, "[%s]: the name of %s %s is 1 to %d of A-Z a-z 0-9 _ -",
                          shown.text, kind->what[0] == 'i' ? "an" : "a", kind->what,
                          POLICY_ROLE_NAME_MAX);
                return NULL;
        }

        section = kind->add(m->store, name, length);
        if (!section)
                add_fault(m, line, "[%s]: more than %d %ss", shown.text, kind->n_max, kind->what);
        return section;
}

static void take_section(struct merge *m, const struct scan_line *line) {
        unsigned *seen;

        m->sectioned = true;
        m->section = find_or_add_section(m, line);
        if (!m->section) {
                drop_line(m, line);
                return;
        }

        /* The second one is kept for GKeyFile: it joins them, and the keys below are looked at. */
        seen = &m->section_lines[section_index(m, m->section)];
        if (*seen > 0)
                add_fault(m, line, "[%s] is at line %u already", m->section->title, *seen);
        else
                *seen = line->number;
}

/* Where a key belongs that is not of @section; NULL if nowhere. */
static const char *home_of(const struct section *section, const struct scan_line *line) {
        const struct {
                const struct key *keys;
                size_t n_keys;
                const char *title;
        } homes[] = {
                { broker_keys, _BROKER_KEY_MAX, "[Broker]" },
                { role_keys, _ROLE_KEY_MAX, "[Role NAME]" },
                { irq_keys, _IRQ_KEY_MAX, "[Irq NAME]" },
        };

        for (size_t i = 0; i < G_N_ELEMENTS(homes); i++)
                if (homes[i].keys != section->keys &&
                    key_find(homes[i].keys, homes[i].n_keys, line->name, line->name_length))
                        return homes[i].title;

        return NULL;
}

static void add_unknown_key(struct merge *m, const struct scan_line *line) {
        const struct section *section = m->section;
        struct excerpt shown = excerpt(line->name, line->name_length);
        const char *home = home_of(section, line), *near;

        if (home) {
                add_fault(m, line, "%s= is a key of %s, not of [%s]", shown.text, home,
                          section->title);
                return;
        }

        near = key_suggest(section->keys, section->n_keys, line->name, line->name_length);
        add_fault(m, line, "unknown key %s= in [%s]%s%s%s", shown.text, section->title,
                  near ? ", did you mean " : "", near ? near : "", near ? "=?" : "");
}

/* The key, if it is known and new; NULL: reported. */
static const struct key *find_new_key(struct merge *m, const struct scan_line *line) {
        const struct section *section = m->section;
        const struct key *key;
        unsigned *seen;

        key = key_find(section->keys, section->n_keys, line->name, line->name_length);
        if (!key) {
                add_unknown_key(m, line);
                return NULL;
        }

        seen = &m->key_lines[section_index(m, section)][key - section->keys];
        if (*seen > 0) {
                add_fault(m, line, "%s= is at line %u already", key->name, *seen);
                return NULL;
        }

        *seen = line->number;
        return key;
}

static void take_key(struct merge *m, const struct scan_line *line) {
        const struct key *key = NULL;

        if (m->section)
                key = find_new_key(m, line);
        else if (!m->sectioned)
                add_fault(m, line, "%s= stands before any [Section]",
                          excerpt(line->name, line->name_length).text);

        if (key)
                add_item(m, line, key);
        else
                drop_line(m, line);
}

static void take_lines(struct merge *m, const char *text, size_t length) {
        struct scanner scanner = { .text = text, .length = length };
        struct scan_line line;

        while (scan_next(&scanner, &line))
                switch (line.kind) {
                case SCAN_SECTION:
                        take_section(m, &line);
                        break;
                case SCAN_KEY:
                        take_key(m, &line);
                        break;
                case SCAN_FAULT:
                        add_fault(m, &line, "%s", line.fault);
                        drop_line(m, &line);
                        break;
                }
}

/* Takes the values of the good lines, and tells of the others, in the order of lines. */
static void take_values(struct merge *m, GKeyFile *key_file, struct report *report) {
        for (size_t i = 0; i < m->items->len; i++) {
                const struct item *item = &g_array_index(m->items, struct item, i);
                g_autofree char *value = NULL;

                if (item->fault) {
                        report_fault(report, item->at, "%s", item->fault);
                        continue;
                }

                value = g_key_file_get_value(key_file, item->section->title, item->key->name, NULL);
                if (value)
                        book_set(m->store, item->section, item->key, g_strchomp(value), item->at,
                                 report);
                else
                        report_fault(report, item->at, "%s= cannot be read", item->key->name);
        }
}

static void merge_lines(struct merge *m, const char *text, size_t length, struct report *report) {
        g_autoptr(GKeyFile) key_file = g_key_file_new();
        g_autoptr(GError) error = NULL;

        take_lines(m, text, length);

        if (!g_key_file_load_from_data(key_file, m->text, length, G_KEY_FILE_NONE, &error))
                report_fault(report, (struct rule) { .file = m->file }, "%s", error->message);
        take_values(m, key_file, report);
}

void merge_text(struct policy_store *store, const char *file, const char *text, size_t length,
                struct report *report) {
        struct merge m = {
                .store = store,
                .file = g_string_chunk_insert_const(store->book->strings, file),
        };

        if (length > POLICY_TEXT_MAX) {
                report_fault(report, (struct rule) { .file = file }, "is larger than %u bytes",
                             POLICY_TEXT_MAX);
                return;
        }

        m.text = g_memdup2(text, length);
        for (size_t i = 0; i < length; i++)
                if (m.text[i] == '\r')
                        m.text[i] = ' '; /* GKeyFile would keep that of an unfinished last line */
        m.items = g_array_new(FALSE, FALSE, sizeof(struct item));
        g_array_set_clear_func(m.items, item_clear);

        if (length > 0)
                merge_lines(&m, text, length, report);

        g_array_unref(m.items);
        g_free(m.text);
}
