/*
 * wanted_attributes: finds the attributes of a span that the join looks for, in one pass over them.
 *
 * Those are the attributes that samples gain (by index in side->joined), and those that name the
 * thread. If an attribute occurs twice, the first one counts.
 *
 * Owner: whoever reads a request. Values point into the span that was read last.
 *
 * Thread: that of the request.
 */
#ifndef PROFCOL_SPANJOIN_WANTED_ATTRIBUTES_H
#define PROFCOL_SPANJOIN_WANTED_ATTRIBUTES_H

#include "processors/spanjoin/spanjoin_settings.h"

enum {
    WANTED_THREAD_ID = JOIN_ATTRIBUTES_MAX,
    WANTED_THREAD_NAME,
    WANTED_COUNT,
};

enum { WANTED_SIZES = 128 }; /* of keys; the last one stands for all larger ones */

struct wanted_attributes {
    uint64_t found; /* a bit for each attribute that the span has */
    unsigned count;
    uint8_t places[WANTED_COUNT]; /* of the keys, the first `count` */
    /* By the size of a key: 1 + the place of the last key with it, 0: none. By place: of the next
     * one. */
    uint8_t of_size[WANTED_SIZES];
    uint8_t next[WANTED_COUNT];
    struct slice keys[WANTED_COUNT];
    struct slice values[WANTED_COUNT]; /* payloads of AnyValues; empty: no value, or not found */
};

/* Initialises it. with_threads: thread.id and thread.name are looked for as well. */
void wanted_attributes_init(struct wanted_attributes *wanted, const struct spanjoin_side *side,
                            bool with_threads);
/* Begins a span. */
void wanted_attributes_begin(struct wanted_attributes *wanted);
/* Reads an attribute, an encoded KeyValue. */
void wanted_attributes_read(struct wanted_attributes *wanted, struct slice key_value);
/* Reads following short attributes of the span, and returns the address after them. */
const uint8_t *wanted_attributes_run(struct wanted_attributes *wanted, const uint8_t *at,
                                     const uint8_t *end);

#endif
