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
    struct sample_head head;
    struct slice attributes, values, timestamps; /* packed */
    struct slice others;
};
struct sample_fields sample_fields_read(struct slice sample, struct arena *arena);

#endif
