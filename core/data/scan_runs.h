/*
 * scan_runs: the fast path of the scan, for runs of plain messages.
 *
 * Nearly all bytes of a request are consecutive spans and their attributes, or samples and table
 * entries. A run accepts consecutive messages as long as it recognises them: known fields of the
 * right type with tags of one byte, texts in ASCII, no nested messages except plain attributes and
 * the like. It only accepts. Everything else is left to the scan's slow path, which also produces
 * the error messages.
 *
 * Owner: plain data; nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_SCAN_RUNS_H
#define PROFCOL_CORE_DATA_SCAN_RUNS_H

#include "core/data/otlp.h"
#include "core/data/scan_schema.h"

#define SCAN_NUMBER_SIZE_MAX 10 /* of a varint */

/* What the scan has found so far. */
struct scan_found {
    uint32_t elements;
    uint32_t widest_stack; /* bytes of the largest */
    uint32_t counts[SCAN_COUNTERS];
    /* Number of entries that each table must have for the indices found; 0: none was found */
    uint64_t needed[DICTIONARY_TABLE_COUNT];
};

/* Nesting depth that a run of attributes adds (KeyValue, AnyValue); such a run may occur at any
 * depth. */
#define SCAN_RUN_DEPTH 2

/* Accepts a run. `p` is at the tag of its first message, whose field has this action; the run ends
 * at `end` at the latest. Bytes up to `request_end` may be read. Returns the position after the
 * last message accepted, or `p` if none was. */
const uint8_t *scan_run(enum scan_action action, struct scan_found *found, const uint8_t *p,
                        const uint8_t *end, const uint8_t *request_end);

/* Whether it is a KeyValue with a short key and a plain value. If so, it counts as two elements. */
bool scan_is_plain_attribute(const uint8_t *p, size_t size);

/* Adds the number of packed values to *count. Returns false if the last one is truncated, or one is
 * too long. */
bool scan_count_numbers(struct slice packed, size_t *count);

/* Returns the number of entries that a table must have for these packed indices. Returns 0 if the
 * slow path has to check them, because an index has more than two bytes or is invalid. `indices`
 * must not be empty. */
uint32_t scan_needed_by(struct slice indices);

/* Notes the size of a stack in bytes. */
static inline void scan_note_stack(struct scan_found *found, size_t size)
{
    if (size > found->widest_stack)
        found->widest_stack = (uint32_t)size; /* fits, because the length of a field has 32 bits */
}

/* Notes that a table must have this number of entries. */
static inline void scan_need(struct scan_found *found, unsigned table, uint64_t entries)
{
    if (entries > found->needed[table])
        found->needed[table] = entries;
}

#endif
