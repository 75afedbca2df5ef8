/* SPDX-License-Identifier: MIT */

#include <glib.h>
#include <string.h>

#include "policy/reader/scan.h"

static bool is_blank(char c) {
        return c == ' ' || c == '\t';
}

static bool has_control(const char *text, size_t length) {
        for (size_t i = 0; i < length; i++)
                if ((unsigned char) text[i] < ' ' && text[i] != '\t')
                        return true;

        return memchr(text, 0x7f, length);
}

static const char *find_bad_character(const char *text, size_t length) {
        if (memchr(text, '\0', length))
                return "a NUL byte";
        if (has_control(text, length))
                return "a control character";
        if (!g_utf8_validate_len(text, length, NULL))
                return "not valid UTF-8";

        return NULL;
}

static struct scan_line scan_fault(struct scan_line line, const char *fault) {
        line.kind = SCAN_FAULT;
        line.fault = fault;
        return line;
}

/* @text starts with '[' and is trimmed. */
static struct scan_line scan_section(struct scan_line line, const char *text, size_t length) {
        const char *end = memchr(text, ']', length);

        if (!end)
                return scan_fault(line, "a section without its ]");
        if (end != text + length - 1)
                return scan_fault(line, "text after the ] of a section");

        line.kind = SCAN_SECTION;
        line.name = text + 1;
        line.name_length = length - 2;
        return line;
}

static struct scan_line scan_key(struct scan_line line, const char *text, size_t length) {
        const char *end = memchr(text, '=', length);

        if (text[0] == ';')
                return scan_fault(line, "not a comment: those begin with #");
        if (!end)
                return scan_fault(line, "neither [Section], Key=Value nor # comment");
        if (end == text)
                return scan_fault(line, "no key before the =");

        line.kind = SCAN_KEY;
        line.name = text;
        line.name_length = (size_t) (end - text);
        while (is_blank(text[line.name_length - 1]))
                line.name_length--;
        return line;
}

/* False if the line says nothing. */
static bool scan_line(struct scan_line line, const char *text, struct scan_line *ret_line) {
        const char *bad;
        size_t length = line.length;

        if (length > 0 && text[length - 1] == '\r')
                length--;

        bad = find_bad_character(text, length);
        if (bad) {
                *ret_line = scan_fault(line, bad);
                return true;
        }

        while (length > 0 && is_blank(text[0])) {
                text++;
                length--;
        }
        while (length > 0 && is_blank(text[length - 1]))
                length--;
        if (length == 0 || text[0] == '#')
                return false;

        *ret_line = text[0] == '[' ? scan_section(line, text, length)
                                   : scan_key(line, text, length);
        return true;
}

bool scan_next(struct scanner *scanner, struct scan_line *ret_line) {
        struct scan_line line;
        const char *text, *end;

        while (scanner->offset < scanner->length) {
                text = scanner->text + scanner->offset;
                end = memchr(text, '\n', scanner->length - scanner->offset);

                line = (struct scan_line) {
                        .number = ++scanner->number,
                        .offset = scanner->offset,
                        .length = end ? (size_t) (end - text) : scanner->length - scanner->offset,
                };
                scanner->offset += line.length + (end ? 1 : 0);

                if (scan_line(line, text, ret_line))
                        return true;
        }

        return false;
}
