/* SPDX-License-Identifier: MIT */
#ifndef RTGRANT_TESTS_UNIT_BROKER_LEASE_STORE_TEST_H
#define RTGRANT_TESTS_UNIT_BROKER_LEASE_STORE_TEST_H

/* A store in a place of its own, from within and from outside. */

#include "broker/lease-store.h"
#include "tests/unit/broker/broker-test.h"

/* The layout on file, as a successor must know it. */
#define HEADER_SIZE 64
#define SLOT_SIZE (8 + 2 * sizeof(struct lease_record))
#define AT_SLOT_SIZE 8
#define AT_BOOT_ID 16
#define AT_SLOT(n) (HEADER_SIZE + (n) * SLOT_SIZE)
#define AT_COPY(n, copy) (AT_SLOT(n) + 8 + ((copy) - 1) * sizeof(struct lease_record))
#define SLOTS_AT_FIRST 64
#define SLOTS_MAX 65536

struct place {
        char dir[64];
        char path[80];
        struct lease_store *store;
};

int place_set_up(void **state);
int place_tear_down(void **state);

/* ---- the store; @n tells one record from the others ---- */

void open_store(struct place *p);
void reopen_store(struct place *p);
void assert_refused(struct place *p, int error);

struct lease_record make_record(unsigned n);
unsigned take_slot(struct place *p);
unsigned put_new(struct place *p, unsigned n);
void put_again(struct place *p, unsigned slot, unsigned n);
void assert_holds(const struct place *p, unsigned slot, unsigned n);

/* ---- the file ---- */

struct file {
        uint8_t *bytes; /* freed by the caller */
        size_t size;
};

struct file read_file(const struct place *p);
void write_bytes(const struct place *p, size_t at, const void *bytes, size_t length);
void write_number(const struct place *p, size_t at, uint32_t number);
uint32_t read_number(const struct place *p, size_t at);

#endif
