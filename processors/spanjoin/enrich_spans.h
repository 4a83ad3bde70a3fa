/*
 * enrich_spans: the traces side of the join: what the index learns of a request's spans, and what
 * the spans gain.
 *
 * Reading goes over the bytes; a span is opened only when it gains something. Nothing but
 * attributes is added, none that is there already.
 *
 * Owner: everything lives in the batch's arena.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_ENRICH_SPANS_H
#define PROFCOL_SPANJOIN_ENRICH_SPANS_H

#include "core/pipeline/batch.h"
#include "processors/spanjoin/joined_values.h"

struct request_spans {
    struct span_put *puts; /* of the spans that have both ids, in the order of the request */
    size_t count;
};

/* batch must be unchanged (batch_flatten). with_values: also what the index keeps; without, only
 * the keys. */
struct request_spans request_spans_read(struct batch *batch,
                                        const struct spanjoin_settings *settings, bool with_values);
/* Adds attributes to the spans that have totals; returns how many gained something. */
uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct request_spans *spans);

#endif
