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

/* Gets the spans of a request in blocks, with what the index is to keep of them; the values are
 * gone when it returns. */
struct span_learner {
    void (*learn)(struct span_learner *learner, struct span_put *puts, size_t count);
};

/* batch must be unchanged (batch_flatten). learner NULL: only the keys are read. */
struct request_spans request_spans_read(struct batch *batch,
                                        const struct spanjoin_settings *settings,
                                        struct span_learner *learner);
/* Adds attributes to the spans that have totals; returns how many gained something. */
uint64_t request_spans_enrich(struct batch *batch, const struct spanjoin_settings *settings,
                              const struct request_spans *spans);

#endif
