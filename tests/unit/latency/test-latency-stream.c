/* SPDX-License-Identifier: MIT */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/latency/stream.h"

static int parse(int (*parser)(FILE *, struct stream *), const char *text, struct stream *ret) {
        FILE *file = fmemopen((void *) (uintptr_t) text, strlen(text), "r");
        int r;

        assert_non_null(file);
        r = parser(file, ret);
        (void) fclose(file);
        return r;
}

static void test_alsa(void **state) {
        struct stream s;

        assert_int_equal(parse(stream_parse_hw_params,
                               "access: MMAP_INTERLEAVED\nformat: S32_LE\nsubformat: STD\n"
                               "channels: 2\nrate: 48000 (48000/1)\nperiod_size: 64\n"
                               "buffer_size: 192\n",
                               &s),
                         0);
        assert_int_equal(s.rate, 48000);
        assert_int_equal(s.frames, 64);
        assert_int_equal(s.periods, 3);
        assert_int_equal(parse(stream_parse_hw_params, "closed\n", &s), -ENOENT);
        assert_int_equal(parse(stream_parse_hw_params,
                               "rate: 48000 (48000/1)\nperiod_size: 0\nbuffer_size: 0\n", &s),
                         -ENOENT);
}

static void test_jackd(void **state) {
        static const char separate[] = "/usr/bin/jackd\0-R\0-P70\0-d\0alsa\0-r\0"
                                       "96000\0-p\0"
                                       "64\0-n\0"
                                       "3";
        static const char joined[] = "jackd\0-dalsa\0-r44100\0-p128";
        static const char words[] = "jackdbus\0--rate=48000\0--period\0"
                                    "256\0--nperiods=2";
        static const char other[] = "/usr/bin/jack_metro\0-b\0"
                                    "120";
        struct stream s;

        assert_int_equal(stream_parse_jackd(separate, sizeof(separate), &s), 0);
        assert_int_equal(s.rate, 96000);
        assert_int_equal(s.frames, 64);
        assert_int_equal(s.periods, 3);
        assert_int_equal(stream_parse_jackd(joined, sizeof(joined), &s), 0);
        assert_int_equal(s.rate, 44100);
        assert_int_equal(s.frames, 128);
        assert_int_equal(s.periods, 2);
        assert_int_equal(stream_parse_jackd(words, sizeof(words), &s), 0);
        assert_int_equal(s.frames, 256);
        assert_int_equal(stream_parse_jackd(other, sizeof(other), &s), -ENOENT);
        assert_int_equal(stream_parse_jackd(separate, 10, &s), -ENOENT);
        assert_int_equal(stream_parse_jackd("", 0, &s), -ENOENT);
}

static void test_pipewire(void **state) {
        struct stream s;

        assert_int_equal(parse(stream_parse_pipewire,
                               "Found \"settings\" metadata 31\n"
                               "update: id:0 key:'log.level' value:'2' type:''\n"
                               "update: id:0 key:'clock.rate' value:'48000' type:''\n"
                               "update: id:0 key:'clock.quantum' value:'1024' type:''\n"
                               "update: id:0 key:'clock.force-quantum' value:'256' type:''\n"
                               "update: id:0 key:'clock.force-rate' value:'0' type:''\n",
                               &s),
                         0);
        assert_int_equal(s.rate, 48000);
        assert_int_equal(s.frames, 256);
        assert_int_equal(s.periods, 2);
        assert_int_equal(parse(stream_parse_pipewire, "pw-metadata: cannot connect\n", &s),
                         -ENOENT);
}

static void test_unknown_kind(void **state) {
        struct stream s;

        assert_int_equal(stream_find("oss", "/nonexistent", &s), -EINVAL);
        assert_int_equal(stream_find("auto", "/nonexistent", &s), -ENOENT);
        assert_int_equal(stream_find("alsa", "/nonexistent", &s), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alsa),
                cmocka_unit_test(test_jackd),
                cmocka_unit_test(test_pipewire),
                cmocka_unit_test(test_unknown_kind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
