/*
 * sample_spans: applies a sampler to the spans of a batch.
 *
 * A scope is written anew with the spans that are kept, because most of them gain a tracestate.
 * Scopes and resources without spans go, as in the Collector.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROBABILISTIC_SAMPLER_SAMPLE_SPANS_H
#define PROFCOL_PROBABILISTIC_SAMPLER_SAMPLE_SPANS_H

#include "core/pipeline/batch.h"
#include "processors/probabilistic_sampler/trace_sampler.h"

/* Numbers of spans, by policy and whether they were kept. */
struct sampled_counts {
    uint64_t of[POLICIES][2];
};

/* Removes the spans that are not kept, from batch->items, too. */
void sample_spans(struct batch *batch, const struct trace_sampler *sampler,
                  struct sampled_counts *counts);

#endif
