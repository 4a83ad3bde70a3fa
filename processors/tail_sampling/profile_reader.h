/*
 * profile_reader: reads which traces the samples of a profiles request are linked to, and what the
 * policies from the join need of them: CPU time, number, functions.
 *
 * Owner: the node owns its reader. It borrows the batch.
 *
 * Thread: the node's worker, or the job that works on its batch.
 */
#ifndef PROFCOL_TAIL_SAMPLING_PROFILE_READER_H
#define PROFCOL_TAIL_SAMPLING_PROFILE_READER_H

#include "core/base/index_table.h"
#include "core/pipeline/batch.h"
#include "processors/tail_sampling/leaf_tests.h"
#include "processors/tail_sampling/trace_facts.h"

struct linked_trace {
    const uint8_t *id; /* 16 bytes, in the batch */
    struct trace_facts facts;
};

struct profile_reader {
    const struct tail_plan *plan;
    struct leaf_tests tests;
    uint32_t words;
    /* Of the last request: */
    struct arena arena;
    struct dictionary *dictionary;
    struct linked_trace *traces;
    uint64_t *bits; /* `words` of each trace */
    uint32_t trace_count;
    uint32_t *trace_of_link; /* index plus 1; 0: none */
    struct index_table by_id;
};

/* programs: those of the component (leaf_tests.h). */
void profile_reader_init(struct profile_reader *reader, const struct tail_plan *plan,
                         const struct leaf_programs *programs, const char *label);
void profile_reader_deinit(struct profile_reader *reader);
/* Reads a flat batch. What it finds is valid until the next call, or the batch changes. */
void profile_reader_read(struct profile_reader *reader, struct batch *batch);
/* Forgets the last request. */
void profile_reader_clear(struct profile_reader *reader);

#endif
