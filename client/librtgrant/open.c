/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "client/cleanup.h"
#include "client/librtgrant/handle.h"

static int address_init(const char *path, struct sockaddr_un *ret) {
        size_t length;

        if (!path)
                path = secure_getenv("RTGRANT_SOCKET");
        if (!path)
                path = WIRE_SOCKET_PATH;

        if (path[0] == '\0')
                return -EINVAL;
        length = strlen(path);
        if (length >= sizeof(ret->sun_path))
                return -ENAMETOOLONG;

        *ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
        memcpy(ret->sun_path, path, length);
        return 0;
}

static int error_of_connect(int error) {
        switch (error) {
        case ENOENT:
        case ENOTDIR:
        case ECONNREFUSED:      /* a socket or file that nobody listens on */
                return RTGRANT_ABSENT;
        case EPERM:             /* -EPERM would say that the broker refused */
                return -EACCES;
        case EPROTOTYPE:        /* a socket of another type */
                return -EPROTO;
        }

        return -error;
}

/*
 * A Unix socket whose backlog is full cannot be polled for its turn to come, but a blocking
 * connect() waits for it, as long as SO_SNDTIMEO says, and then fails with EAGAIN; unix(7).
 */
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_ns) {
        struct timeval timeout;
        int left_ms;

        for (;;) {
                left_ms = deadline_left_ms(deadline_ns);
                if (left_ms == 0)
                        return -ETIMEDOUT;

                timeout = (struct timeval) {
                        .tv_sec = left_ms / 1000,
                        .tv_usec = left_ms % 1000 * 1000L,
                };
                if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
                        return -errno;

                if (connect(fd, (const struct sockaddr *) address, sizeof(*address)) == 0)
                        return 0;
                if (errno != EINTR && errno != EAGAIN)
                        return error_of_connect(errno);
        }
}

int handle_connect(const struct sockaddr_un *address, uint64_t deadline_ns) {
        _cleanup_close_ int fd = -1;
        int r;

        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;

        r = connect_until(fd, address, deadline_ns);
        if (r < 0)
                return r;

        return STEAL_FD(fd);
}

int handle_say_hello(struct rtgrant *handle, uint64_t deadline_ns) {
        struct wire_hello_reply reply = { .reason = RTGRANT_REASON_NONE };
        struct wire_hello hello = { .header = { .size = sizeof(hello), .verb = WIRE_HELLO } };
        struct call call = CALL_INIT(hello, hello, &reply);
        int r;

        r = handle_call(handle, &call, deadline_ns);
        if (r < 0)
                return r;

        return reply.reason == RTGRANT_REASON_NONE ? 0 : reason_to_error(reply.reason);
}

int rtgrant_open(struct rtgrant **ret, const char *socket_path, int timeout_ms) {
        _cleanup_close_ int fd = -1;
        struct sockaddr_un address;
        struct rtgrant *handle;
        uint64_t deadline_ns;
        int r;

        if (!ret || timeout_ms < 0)
                return -EINVAL;
        if (timeout_ms == 0)
                timeout_ms = TIMEOUT_MS_DEFAULT;

        deadline_ns = deadline_from_now(timeout_ms);

        r = address_init(socket_path, &address);
        if (r < 0)
                return r;

        fd = handle_connect(&address, deadline_ns);
        if (fd < 0)
                return fd;

        r = handle_new(fd, &address, timeout_ms, &handle);
        if (r < 0)
                return r;
        (void) STEAL_FD(fd);

        r = handle_say_hello(handle, deadline_ns);
        if (r < 0) {
                (void) rtgrant_close(handle);
                return r;
        }

        *ret = handle;
        return 0;
}
