/*
 * sample_fields: reads the fields of one encoded Sample, in whatever order and form they are.
 *
 * Repeated numbers may be packed, in several fields or one by one.
 *
 * Owner: results borrow from the sample, or are in the arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_FIELDS_H
#define PROFCOL_CORE_DATA_SAMPLE_FIELDS_H

#include "core/base/slice.h"

struct arena;

/* Where the fields of a usual sample are: in the order of their numbers, each of them once at most,
 * lists packed. Samples are as profilers write them, so that nearly all are usual. */
struct sample_layout {
    const uint8_t *attributes_start; /* the field; if there is none, where it would be */
    const uint8_t *attributes_end;
    struct slice attributes; /* packed; empty: no field */
    struct slice values;     /* likewise */
    struct slice timestamps; /* likewise */
    uint32_t stack;
    uint32_t link;
};
/* Reads the layout of an encoded Sample. Returns false if it is not a usual one. */
bool sample_layout_read(struct slice raw, struct sample_layout *out);
/* Returns the sum of packed varints, and adds their number to *count. */
uint64_t sample_sum(struct slice values, uint64_t *count);
/* Whether the list has exactly one value, which it sets. */
bool sample_single_value(struct slice values, uint64_t *value_out);

struct sample_head {
    uint32_t stack, link;
};

/* Returns the indices of stack and link. */
struct sample_head sample_head(struct slice sample);
/* Returns all numbers of a repeated field (SAMPLE_VALUES, ...) as one packed list. */
struct slice sample_list(struct slice sample, uint32_t number, struct arena *arena);
/* Returns the fields that OTLP 1.10 does not have, encoded one after another. */
struct slice sample_other_fields(struct slice sample, struct arena *arena);

/* All of them, mostly with one look at each field. */
struct sample_fields {
    struct sample_layout layout; /* also of others than usual samples, but without the place of
                                    their attributes */
    struct slice others;
};
void sample_fields_read(struct slice sample, struct arena *arena, struct sample_fields *out);

#endif
