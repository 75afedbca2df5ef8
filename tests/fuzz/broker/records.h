/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_FUZZ_BROKER_RECORDS_H
#define RTGRANT_TESTS_FUZZ_BROKER_RECORDS_H

/* Records for a broker: such as could be meant, and what chance makes of them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/protocol.h"

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#define SLEEPERS 4
#define LEASES_KNOWN 32

struct source {
        uint64_t random;                /* state of the generator */
        pid_t tids[SLEEPERS + 1];       /* that sleep; the main thread first */
        uint8_t leases[LEASES_KNOWN][WIRE_LEASE_ID_SIZE]; /* that were given once */
        unsigned n_records;
};

uint64_t next(struct source *s);
unsigned below(struct source *s, unsigned limit);
bool one_in(struct source *s, unsigned n);

struct record {
        _Alignas(uint64_t) uint8_t bytes[2 * WIRE_RECORD_MAX];
        size_t length;
};

/* One as it could be meant, or not any more. */
void make_record(struct source *s, struct record *record);

#endif
