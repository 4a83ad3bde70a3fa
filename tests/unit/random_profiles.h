/*
 * random_profiles: clients that send random profiles requests, as tests of the dictionary need
 * them.
 *
 * A client's dictionary stays from request to request, grows, changes in one table or starts anew.
 * Every request passes the scan and is normalised.
 *
 * Owner: the caller.
 *
 * Thread: one; the sequence of numbers is the same in every run.
 */
#ifndef PROFCOL_TESTS_RANDOM_PROFILES_H
#define PROFCOL_TESTS_RANDOM_PROFILES_H

#include "core/base/buffer.h"
#include "core/data/otlp.h"
#include "core/data/wire_out.h"

/* A client without tables is all zero but for the first three members. */
struct random_client {
    bool texts_are_unique;  /* each string and value of an attribute is "s17s", "v18v", ... */
    bool shapes_differ;     /* samples have timestamps and values in every form */
    bool samples_are_alike; /* they refer to three entries of each table */
    struct wire_out tables[DICTIONARY_TABLE_COUNT]; /* encoded entries, concatenated */
    uint32_t counts[DICTIONARY_TABLE_COUNT];
};

/* Returns the next random number below the limit. */
uint32_t random_below(uint32_t limit);

/* Gives the client a new dictionary. */
void random_client_begin(struct random_client *client);
/* Changes the dictionary before the next request, or leaves it. */
void random_client_change(struct random_client *client);
void random_client_deinit(struct random_client *client);
/* Returns a request with the client's dictionary. Its buffer is charged to the budget. */
struct buffer *random_request(const struct random_client *client, struct budget *budget);

#endif
