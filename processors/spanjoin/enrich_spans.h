/*
 * enrich_spans: the traces side of the join: reads the spans of a request for the index, and adds
 * attributes to them.
 *
 * Reading uses the bytes; a span is opened only if it gains an attribute. Only attributes are
 * added, and existing ones are not changed.
 *
 * Owner: added data lives in the batch's arena. The caller owns struct request_spans, and frees it
 * before the request is sent on and perhaps queued.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_ENRICH_SPANS_H
#define PROFCOL_SPANJOIN_ENRICH_SPANS_H

#include "core/data/thread_spans.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/join_feed.h"
#include "processors/spanjoin/joined_values.h"
#include "processors/spanjoin/request_source.h"

/* A span that may own samples which have left (left_by_thread.h). */
struct late_span {
    struct thread_span span;
    struct span_source source;
};

struct request_spans {
    struct arena arena;
    struct seen_span *seen; /* spans that have totals, in the order of the request */
    size_t seen_count;
    size_t seen_capacity;
    size_t count; /* spans that have both ids */
    struct late_span *late;
    uint32_t late_count;
    uint32_t late_capacity;
};

/* Called for blocks of spans that have both ids; looks them up in the index. Totals that it sets
 * must be in the arena; nothing else is kept. */
struct span_reader {
    void (*read)(struct span_reader *reader, struct span_put *puts, size_t count,
                 struct arena *arena);
    bool wants_values; /* set facts.values, which the index keeps */
};

/* Reads the spans of a batch, which must be unchanged (batch_flatten). sender: of this batch. */
struct request_spans request_spans_read(struct batch *batch, const struct request_sender *sender,
                                        struct span_reader *reader);
/* Frees the memory. */
void request_spans_deinit(struct request_spans *spans);
/* Adds attributes to the spans that have totals. values: what OTTL computes for them. report: of
 * these spans, is filled; NULL: none. Returns the number of spans that gained one. */
uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct value_programs *values,
                              const struct request_spans *spans, struct join_report *report);

#endif
