/*
 * scan_runs: the short way of the scan, for runs of plain messages.
 *
 * Nearly all bytes of a request are spans and their attributes, or samples and the entries of the
 * tables, one behind the other. A run takes as many of them as it knows: known fields of the right
 * type with tags of one byte, texts in ASCII, no messages but plain attributes and such. It only
 * ever accepts. What it does not know it leaves to the scan's own walk, which is also the one that
 * finds the words for errors.
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

/* What was met so far. */
struct scan_found {
    uint32_t elements;
    uint32_t widest_stack; /* bytes of the largest */
    uint32_t counts[SCAN_COUNTERS];
    /* Entries that a table must have for every index that was met; 0: none was */
    uint64_t needed[DICTIONARY_TABLE_COUNT];
};

/* How deep a run of attributes goes, which may be anywhere: a KeyValue, an AnyValue. */
#define SCAN_RUN_DEPTH 2

/* Takes a run. At `p` stands the tag of its first message, whose field has this action; the run
 * ends at `end` at the latest. Up to `request_end` bytes may be read. Behind the last one taken;
 * `p` when there is none. */
const uint8_t *scan_run(enum scan_action action, struct scan_found *found, const uint8_t *p,
                        const uint8_t *end, const uint8_t *request_end);

/* Is it a KeyValue with a short key and a plain value? Two elements, then. */
bool scan_is_plain_attribute(const uint8_t *p, size_t size);

/* Adds how many packed numbers these are; false when the last one is cut off, or one is too long.
 */
bool scan_count_numbers(struct slice packed, size_t *count);

/* Entries that a table must have for this list of indices, which is not empty; 0 when that takes a
 * closer look, because of an index of more than two bytes, or a broken one. */
uint32_t scan_needed_by(struct slice indices);

static inline void scan_note_stack(struct scan_found *found, size_t size)
{
    if (size > found->widest_stack)
        found->widest_stack = (uint32_t)size; /* of a field, whose length has 32 bits */
}

static inline void scan_need(struct scan_found *found, unsigned table, uint64_t entries)
{
    if (entries > found->needed[table])
        found->needed[table] = entries;
}

#endif
