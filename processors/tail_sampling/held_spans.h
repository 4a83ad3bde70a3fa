/*
 * held_spans: the spans of a request that wait, by trace, and new requests made of them.
 *
 * The bytes of a request stay where they are until the last of its traces was decided. Only what is
 * sent on is copied.
 *
 * Owner: a held request has a reference for each of its pieces, and frees itself with the last one.
 *
 * Thread: the node's worker.
 */
#ifndef PROFCOL_TAIL_SAMPLING_HELD_SPANS_H
#define PROFCOL_TAIL_SAMPLING_HELD_SPANS_H

#include "processors/tail_sampling/trace_reader.h"

struct held_span {
    const uint8_t *data; /* payload */
    uint32_t size;
    uint32_t scope;
};

struct held_scope {
    struct slice header;
    uint32_t group;
};

/* The spans of one trace in a held request. */
struct piece {
    struct held_request *request;
    struct piece *next; /* of the same trace, or in a list */
    uint32_t first, count;
};

struct held_request {
    struct list_link link; /* of the requests of a node */
    uint64_t ordinal;      /* among them */
    uint64_t reading; /* of the rules by which it was read (tail_rules.h); 0: to be read again */
    uint32_t references;
    uint32_t span_count;
    size_t charged;
    struct budget *held; /* that `charged` is given back to */
    struct buffer **buffers;
    size_t buffer_count;
    struct slice *groups;
    struct held_scope *scopes;
    struct held_span *spans; /* of one trace after the other */
    struct piece *pieces;    /* of each trace that was read */
};

/* Returns about how many bytes a held request takes, with its buffers. */
size_t held_request_memory(const struct trace_reader *reader, const struct batch *batch);
/* Holds what the reader has read of the batch. pieces[i] is of trace i; whoever keeps it takes a
 * reference. Charged bytes were reserved in `held`. */
struct held_request *held_request_new(const struct trace_reader *reader, const struct batch *batch,
                                      struct budget *held, size_t charged);
void held_request_ref(struct held_request *request);
void held_request_unref(struct held_request *request);

/* Returns a request of the first `count` spans of a list of pieces, in the order of their arrival,
 * and takes them off the list. A piece without spans loses its reference. */
struct buffer *pieces_join(struct piece **first, uint32_t count, struct budget *budget);
/* Drops the references of a list. */
void pieces_drop(struct piece *first);

#endif
