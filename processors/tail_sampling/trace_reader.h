/*
 * trace_reader: reads a traces request once: divides its spans by trace, and finds out for each
 * trace what the policies need.
 *
 * Owner: the node owns its reader, whose arrays are reused. It borrows the batch.
 *
 * Thread: the node's worker, or the job that works on its batch.
 */
#ifndef PROFCOL_TAIL_SAMPLING_TRACE_READER_H
#define PROFCOL_TAIL_SAMPLING_TRACE_READER_H

#include "core/base/index_table.h"
#include "core/pipeline/batch.h"
#include "processors/tail_sampling/leaf_tests.h"
#include "processors/tail_sampling/trace_table.h"

struct read_span {
    struct slice bytes; /* payload */
    uint32_t scope;     /* index */
    uint32_t trace;     /* index */
};

/* A ScopeSpans, or with is_group a ResourceSpans; `header` are its other fields. */
struct read_scope {
    struct slice header;
    uint32_t group;
};

struct read_trace {
    const uint8_t *id;
    struct trace_facts facts;
    uint32_t spans;
    uint32_t group; /* the last one whose size and matches were added, plus 1 */
};

struct trace_reader {
    const struct tail_plan *plan;
    struct leaf_tests tests;
    uint32_t words;
    /* Of the last request: */
    struct arena arena; /* of headers that had to be joined, and of all arrays */
    struct read_span *spans;
    uint32_t span_count;
    struct read_scope *scopes;
    uint32_t scope_count, scope_capacity;
    struct slice *groups;
    uint32_t group_count, group_capacity;
    struct read_trace *traces;
    uint64_t *bits; /* `words` of each trace */
    uint32_t trace_count, trace_capacity;
    struct index_table by_id;
    uint64_t *group_bits, *span_bits;
};

/* programs: those of the component (leaf_tests.h). */
void trace_reader_init(struct trace_reader *reader, const struct tail_plan *plan,
                       const struct leaf_programs *programs, const char *label);
void trace_reader_deinit(struct trace_reader *reader);
/* Reads a flat batch. What it finds is valid until the next call. */
void trace_reader_read(struct trace_reader *reader, struct batch *batch);
/* Reads the buffers of a flat batch, which have so many spans; finds the traces in the same order.
 */
void trace_reader_read_buffers(struct trace_reader *reader, struct buffer *const *buffers,
                               size_t buffer_count, uint32_t spans);
/* Forgets the last request. */
void trace_reader_clear(struct trace_reader *reader);

#endif
