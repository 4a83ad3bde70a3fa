/*
 * enrich_spans: the traces side of the join: what the index learns of a request's spans, and what
 * the spans gain.
 *
 * Reading goes over the bytes; a span is opened only when it gains something. Nothing but
 * attributes is added, none that is there already.
 *
 * Owner: what a request gains lives in the batch's arena; what was read of it is the caller's, who
 * lets go of it before the request goes on and perhaps into a queue.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_ENRICH_SPANS_H
#define PROFCOL_SPANJOIN_ENRICH_SPANS_H

#include "core/pipeline/batch.h"
#include "processors/spanjoin/joined_values.h"
#include "processors/spanjoin/request_source.h"

struct request_spans {
    struct arena arena;
    struct seen_span *seen; /* that have totals, in the order of the request */
    size_t seen_count;
    size_t seen_capacity;
    size_t count;     /* spans that have both ids */
    uint32_t waiting; /* of them, how many wait for samples */
};

/* Gets the spans that have both ids, in blocks, and asks the index about them. What it sets in
 * totals is in the arena; the rest is forgotten when it returns. */
struct span_reader {
    void (*read)(struct span_reader *reader, struct span_put *puts, size_t count,
                 struct arena *arena);
    bool wants_values; /* facts.values, which the index is to keep */
};

/* batch must be unchanged (batch_flatten). sender: of this batch. */
struct request_spans request_spans_read(struct batch *batch, const struct request_sender *sender,
                                        struct span_reader *reader);
void request_spans_deinit(struct request_spans *spans);
/* Adds attributes to the spans that have totals; returns how many gained something. */
uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct request_spans *spans);

#endif
