/* SPDX-License-Identifier: MIT */

#include "client/librtgrant/public.h"

#include <string.h>

static size_t read_size(const void *structure) {
        size_t size;

        memcpy(&size, structure, sizeof(size));
        return size;
}

static size_t smaller(size_t a, size_t b) {
        return a < b ? a : b;
}

int public_check_out(const void *ret, size_t size_first) {
        size_t size;

        if (!ret)
                return 0;

        size = read_size(ret);
        return size < size_first || size > PUBLIC_SIZE_MAX ? -EINVAL : 0;
}

int public_copy_in(const void *in, size_t size_first, void *ret, size_t ret_size) {
        const unsigned char *bytes = in;
        size_t size;
        int r;

        if (!in)
                return -EINVAL;

        r = public_check_out(in, size_first);
        if (r < 0)
                return r;

        size = read_size(in);
        for (size_t i = ret_size; i < size; i++)
                if (bytes[i] != 0)
                        return -E2BIG;

        memset(ret, 0, ret_size);
        memcpy(ret, in, smaller(size, ret_size));
        return 0;
}

void public_copy_out(const void *in, size_t in_size, void *ret) {
        size_t size;

        if (!ret)
                return;

        size = read_size(ret);
        memset((char *) ret + sizeof(size), 0, size - sizeof(size));
        memcpy((char *) ret + sizeof(size), (const char *) in + sizeof(size),
               smaller(size, in_size) - sizeof(size));
}
