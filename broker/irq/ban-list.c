/* SPDX-License-Identifier: MIT */

#include "broker/irq/ban-list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where it is, or would have to be. */
static unsigned place_of(const struct ban_list *list, unsigned line) {
        unsigned i = 0;

        while (i < list->n && list->lines[i] < line)
                i++;
        return i;
}

bool ban_list_has(const struct ban_list *list, unsigned line) {
        unsigned i = place_of(list, line);

        return i < list->n && list->lines[i] == line;
}

int ban_list_add(struct ban_list *list, unsigned line) {
        unsigned i = place_of(list, line);

        if (ban_list_has(list, line))
                return 0;
        if (list->n == BAN_LIST_MAX)
                return -ENOSPC;
        memmove(&list->lines[i + 1], &list->lines[i], (list->n - i) * sizeof(list->lines[0]));
        list->lines[i] = line;
        list->n++;
        return 0;
}

void ban_list_remove(struct ban_list *list, unsigned line) {
        unsigned i = place_of(list, line);

        if (!ban_list_has(list, line))
                return;
        list->n--;
        memmove(&list->lines[i], &list->lines[i + 1], (list->n - i) * sizeof(list->lines[0]));
}

bool ban_list_equal(const struct ban_list *a, const struct ban_list *b) {
        return a->n == b->n && memcmp(a->lines, b->lines, a->n * sizeof(a->lines[0])) == 0;
}

int ban_list_parse(const char *reply, struct ban_list *ret) {
        static const char first[] = "SLEEP ", each[] = "IRQ ";
        struct ban_list list = {};
        int r;

        if (strncmp(reply, first, strlen(first)) != 0)
                return -EBADMSG;
        for (const char *at = reply; (at = strstr(at, each));) {
                unsigned long line;
                char *end;

                if (at[-1] != ' ')
                        return -EBADMSG;
                at += strlen(each);
                if (*at < '0' || *at > '9')
                        return -EBADMSG;
                line = strtoul(at, &end, 10);
                if (line > INT_MAX || *end != ' ')
                        return -EBADMSG;
                r = ban_list_add(&list, (unsigned) line);
                if (r < 0)
                        return r;
                at = end;
        }
        *ret = list;
        return 0;
}

int ban_list_format(const struct ban_list *list, char command[BAN_COMMAND_SIZE]) {
        size_t n = strlen(BAN_COMMAND);

        if (list->n == 0) {
                (void) snprintf(command, BAN_COMMAND_SIZE, BAN_COMMAND "NONE");
                return 0;
        }
        (void) snprintf(command, BAN_COMMAND_SIZE, BAN_COMMAND);
        for (unsigned i = 0; i < list->n; i++) {
                int length = snprintf(command + n, BAN_COMMAND_SIZE - n, "%s%u", i > 0 ? " " : "",
                                      list->lines[i]);

                if (list->lines[i] == 0)
                        return -EINVAL;
                if ((size_t) length >= BAN_COMMAND_SIZE - n)
                        return -ENOSPC;
                n += (size_t) length;
        }
        return 0;
}
