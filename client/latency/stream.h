/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_LATENCY_STREAM_H
#define RTGRANT_LATENCY_STREAM_H

/* The periods of a sound stream that runs now, so that the real deadline is measured. */

#include <stdio.h>

struct stream {
        unsigned rate, frames, periods;
        char from[160]; /* where it was found, for people */
};

/*
 * @which       "alsa", "jack", "pipewire", or "auto" for the first of them that there is
 * @root        what /proc is below of; "" for this machine
 *
 * Errors: -ENOENT if none runs; -EINVAL if @which is none of these.
 */
int stream_find(const char *which, const char *root, struct stream *ret);

/* /proc/asound/card0/pcm0p/sub0/hw_params. Errors: -ENOENT if it is closed. */
int stream_parse_hw_params(FILE *file, struct stream *ret);

/* The command line of jackd, with NULs between the words. Errors: -ENOENT if it is another's. */
int stream_parse_jackd(const char *cmdline, size_t size, struct stream *ret);

/* What "pw-metadata -n settings 0" prints. Errors: -ENOENT. */
int stream_parse_pipewire(FILE *file, struct stream *ret);

#endif
