/*
 * span_sets: what many spans have in common, stored once: their kind, status and kept values.
 *
 * Millions of spans have some thousand different sets of name, route, kind and status. An entry of
 * the span index has only the hash of its set. The hash is keyed and has 64 bits, so it is the
 * set's identity: a set that left and is stored again has the same one.
 *
 * Nobody counts the entries that refer to a set. It stays as long as a span that uses it may be
 * found: for a window and a quarter after the last span with it. When memory is short, the owner
 * (a tenant or peer) with the most bytes loses the sets that it has not used for the longest time;
 * their spans are then no longer found. Owners share no sets, so that none can take another's away.
 *
 * Owner: a span_index. Results are copies in the caller's arena.
 *
 * Thread: any; the sets are divided into parts with a lock each.
 */
#ifndef PROFCOL_CORE_DATA_SPAN_SETS_H
#define PROFCOL_CORE_DATA_SPAN_SETS_H

#include "core/base/arena.h"
#include "core/data/span_records.h"

enum { SPAN_SETS_RECENT = 256, SPAN_SETS_HASHED = 16 };

struct span_sets;

/* Creates the sets of an index. max_bytes: their memory, without that of the tables which find
 * them. parts: a power of two. */
struct span_sets *span_sets_new(size_t max_bytes, unsigned parts);
/* Frees them. */
void span_sets_free(struct span_sets *sets);

/* Stores sets, or notes that they are used again. It remembers what it has stored last, so use one
 * for as many spans as possible that arrive together. The values of all of them must exist until
 * span_sets_finish: equal ones at the same address are hashed once. */
struct span_sets_writer {
    struct span_sets *sets;
    struct span_set_hash {
        struct slice values;
        uint64_t rest; /* of what is hashed */
        uint64_t hash; /* 0: none */
    } hashed[SPAN_SETS_HASHED];
    uint64_t now_ns;
    uint64_t window_ns;
    unsigned recent_mask;
    struct span_set_use {
        uint64_t hash; /* 0: none */
        uint32_t more; /* spans after the first */
    } recent[SPAN_SETS_RECENT];
};
/* Begins to store the sets of `count` spans. now_ns: monotonic. */
void span_sets_begin(struct span_sets_writer *writer, struct span_sets *sets, size_t count,
                     uint64_t now_ns, uint64_t window_ns);
/* Returns the hash of the kind, status and values of the facts, never 0. May evict other sets. */
uint64_t span_sets_store(struct span_sets_writer *writer, uint16_t owner,
                         const struct span_facts *facts);
/* Call it when all spans are stored. */
void span_sets_finish(struct span_sets_writer *writer);

/* Reads sets. It remembers what it has read last. */
struct span_sets_reader {
    struct span_sets *sets;
    struct arena *arena;
    unsigned recent_mask;
    struct span_set_copy {
        uint64_t hash; /* 0: none */
        struct slice values;
        uint8_t kind;
        uint8_t status;
    } recent[SPAN_SETS_RECENT];
};
/* Begins to read the sets of `count` spans. */
void span_sets_open(struct span_sets_reader *reader, struct span_sets *sets, size_t count,
                    struct arena *arena);
/* Sets kind, status and values of the facts. Returns false if the set is not there any more. */
bool span_sets_read(struct span_sets_reader *reader, uint64_t hash, struct span_facts *facts);

/* Frees sets that no span within the window uses. Call it regularly. */
void span_sets_sweep(struct span_sets *sets, uint64_t now_ns, uint64_t window_ns);
/* Returns the number of spans that used evicted sets within the last window or two, since the last
 * call. */
uint64_t span_sets_take_evicted(struct span_sets *sets);
/* Returns the memory in bytes. */
size_t span_sets_memory(struct span_sets *sets);

#endif
