/* SPDX-License-Identifier: MIT */

#include "broker/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "broker/cleanup.h"
#include "broker/text.h"

#define FILE_MAX (1024 * 1024)

int proc_parse_stat(const char *text, size_t length, struct proc_stat *ret) {
        const char *close_paren;
        struct proc_stat stat = {};
        int ppid;

        /* The name may hold anything, `) R 1 1` and newlines too: it ends at the last bracket. */
        close_paren = memrchr(text, ')', length);
        if (!close_paren || memchr(close_paren, '\0', length - (size_t) (close_paren - text)))
                return -EBADMSG;

        if (sscanf(close_paren + 1,
                   " %c %d %*d %*d %*d %*d %" SCNu32
                   " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                   &stat.state, &ppid, &stat.flags, &stat.start_time) != 4)
                return -EBADMSG;

        stat.ppid = ppid;
        *ret = stat;
        return 0;
}

static bool parse_ids(const char *value, uint32_t ids[_PROC_IDS_MAX]) {
        return sscanf(value, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &ids[PROC_REAL],
                      &ids[PROC_EFFECTIVE], &ids[PROC_SAVED], &ids[PROC_FS]) == 4;
}

static bool parse_ns_pids(const char *value, struct proc_status *status) {
        unsigned n = 0;
        char *end;

        for (;; n++) {
                long id = strtol(value, &end, 10);

                if (end == value)
                        break;
                status->ns_pid = (pid_t) id;
                value = end;
                if (*value != ' ' && *value != '\t') {
                        n++;
                        break;
                }
        }

        status->ns_depth = n - 1;
        return n > 0;
}

enum {
        SEEN_TGID = 1 << 0,
        SEEN_UID = 1 << 1,
        SEEN_GID = 1 << 2,
        SEEN_CAPS = 1 << 3,
        SEEN_ALL = (1 << 4) - 1,
};

/* Returns the SEEN_ bit of a line that was needed and understood, 0 for any other, or -EBADMSG. */
static int parse_status_line(const char *key, const char *value, struct proc_status *status) {
        unsigned n;
        int tgid, mode;

        if (strcmp(key, "Tgid") == 0) {
                if (sscanf(value, "%d", &tgid) != 1)
                        return -EBADMSG;
                status->tgid = tgid;
                return SEEN_TGID;
        }
        if (strcmp(key, "State") == 0)
                (void) sscanf(value, " %c", &status->state);
        if (strcmp(key, "Uid") == 0)
                return parse_ids(value, status->uids) ? SEEN_UID : -EBADMSG;
        if (strcmp(key, "Gid") == 0)
                return parse_ids(value, status->gids) ? SEEN_GID : -EBADMSG;
        if (strcmp(key, "NSpid") == 0)
                return parse_ns_pids(value, status) ? 0 : -EBADMSG;
        if (strcmp(key, "CapPrm") == 0)
                return sscanf(value, "%" SCNx64, &status->cap_permitted) == 1 ? SEEN_CAPS
                                                                              : -EBADMSG;
        if (strcmp(key, "CapEff") == 0)
                return sscanf(value, "%" SCNx64, &status->cap_effective) == 1 ? 0 : -EBADMSG;
        if (strcmp(key, "Seccomp") == 0 && sscanf(value, "%d", &mode) == 1)
                status->seccomp = mode;
        if (strcmp(key, "Seccomp_filters") == 0 && sscanf(value, "%u", &n) == 1)
                status->seccomp_filters = n;

        return 0;
}

int proc_parse_status(const char *text, size_t length, struct proc_status *ret) {
        struct proc_status status = { .seccomp = -1 };
        const char *end = text + length;
        unsigned seen = 0;

        for (const char *line = text; line < end;) {
                const char *newline = memchr(line, '\n', (size_t) (end - line));
                const char *stop = newline ? newline : end;
                const char *colon = memchr(line, ':', (size_t) (stop - line));
                char key[24], value[288]; /* 33 numbers: pid namespaces nest 32 deep */
                int r;

                /* Longer keys and values (groups) are none of those looked for. */
                if (colon && (size_t) (colon - line) < sizeof(key)) {
                        text_copy(key, (size_t) (colon - line) + 1, line);
                        text_copy(value,
                                  (size_t) (stop - colon) < sizeof(value) ? (size_t) (stop - colon)
                                                                          : sizeof(value),
                                  colon + 1);
                        r = parse_status_line(key, value, &status);
                        if (r < 0)
                                return r;
                        seen |= (unsigned) r;
                }

                line = stop + 1;
        }

        if (seen != SEEN_ALL)
                return -EBADMSG;

        *ret = status;
        return 0;
}

bool proc_uid_map_is_initial(const char *text) {
        uint32_t inside, outside, count;

        return sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &count) == 3 &&
               inside == 0 && outside == 0 && count == UINT32_MAX;
}

static int read_all(int fd, char **ret_text, size_t *ret_length) {
        _cleanup_free_ char *text = NULL;
        size_t size = 4096, length = 0;

        text = malloc(size);
        if (!text)
                return -ENOMEM;

        for (;;) {
                ssize_t n = read(fd, text + length, size - length - 1);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;

                length += (size_t) n;
                if (length == size - 1) {
                        char *larger;

                        if (size >= FILE_MAX)
                                return -E2BIG;
                        size *= 4;
                        larger = realloc(text, size);
                        if (!larger)
                                return -ENOMEM;
                        text = larger;
                }
        }

        text[length] = '\0';
        *ret_text = STEAL(text);
        if (ret_length)
                *ret_length = length;
        return 0;
}

int proc_read(pid_t pid, pid_t tid, const char *name, char **ret_text, size_t *ret_length) {
        _cleanup_close_ int fd = -1;
        char path[64];

        if (tid == 0)
                (void) snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
        else
                (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;

        return read_all(fd, ret_text, ret_length);
}

int proc_read_stat(pid_t pid, pid_t tid, struct proc_stat *ret) {
        _cleanup_free_ char *text = NULL;
        size_t length;
        int r;

        r = proc_read(pid, tid, "stat", &text, &length);
        if (r < 0)
                return r;

        return proc_parse_stat(text, length, ret);
}

int proc_read_status(pid_t pid, pid_t tid, struct proc_status *ret) {
        _cleanup_free_ char *text = NULL;
        size_t length;
        int r;

        r = proc_read(pid, tid, "status", &text, &length);
        if (r < 0)
                return r;

        return proc_parse_status(text, length, ret);
}

void proc_read_comm(pid_t pid, pid_t tid, char *buffer, size_t size) {
        _cleanup_free_ char *text = NULL;
        size_t length;

        buffer[0] = '\0';
        if (proc_read(pid, tid, "comm", &text, &length) < 0)
                return;

        if (length > 0 && text[length - 1] == '\n')
                length--;
        text_escape(buffer, size, text, length);
}

static int read_userns(pid_t pid, struct stat *ret) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        if (stat(path, ret) < 0)
                return errno == ENOENT ? -ESRCH : -errno;

        return 0;
}

int proc_in_initial_userns(pid_t pid) {
        _cleanup_free_ char *text = NULL;
        struct stat theirs, ours;
        int r;

        /* A privileged container may map all ids to themselves: the namespace itself is the proof. */
        r = read_userns(pid, &theirs);
        if (r >= 0 && read_userns(getpid(), &ours) >= 0)
                return theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
        if (r == -ESRCH)
                return r;

        /* Without CAP_SYS_PTRACE that cannot be read of others; their maps can. */
        r = proc_read(pid, 0, "uid_map", &text, NULL);
        if (r == -EACCES)
                return false;
        if (r < 0)
                return r;

        return proc_uid_map_is_initial(text);
}

int proc_userns_owner(pid_t pid, uid_t *ret) {
        _cleanup_close_ int fd = -1;
        char path[64];
        uid_t owner = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;

        /* Up to 32 levels (create_user_ns()), then the initial one, whose parent is out of reach.
         */
        for (unsigned level = 0; level <= 33; level++) {
                int parent = ioctl(fd, NS_GET_PARENT);

                if (parent < 0)
                        break;
                if (ioctl(fd, NS_GET_OWNER_UID, &owner) < 0) {
                        (void) close(parent);
                        return -errno;
                }

                (void) close(fd);
                fd = parent;
        }

        *ret = owner;
        return 0;
}
