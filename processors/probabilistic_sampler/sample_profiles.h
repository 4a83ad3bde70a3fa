/*
 * sample_profiles: applies a sampler to the samples of a profiles batch, by the trace of their
 * Link.
 *
 * Samples of traces that are not kept are folded (core/data/fold.h) or dropped. Samples without a
 * trace pass, or are sampled by stack: all samples of a stack in one profile are kept together, and
 * the values of those that are kept are divided by the probability.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_PROBABILISTIC_SAMPLER_SAMPLE_PROFILES_H
#define PROFCOL_PROBABILISTIC_SAMPLER_SAMPLE_PROFILES_H

#include "core/data/fold.h"
#include "core/pipeline/batch.h"
#include "processors/probabilistic_sampler/trace_sampler.h"

enum otherwise { OTHERWISE_FOLD, OTHERWISE_DROP };
enum without_trace { WITHOUT_TRACE_PASS, WITHOUT_TRACE_SAMPLE };

struct profile_sampling {
    enum otherwise otherwise;            /* what becomes of samples whose trace is not kept */
    enum without_trace without_trace;    /* and of those that name none */
    const struct slice *fold_attributes; /* keys that folding takes away in addition */
    size_t fold_attribute_count;
};

/* Samples the batch, prunes its dictionary, and sets batch->items. */
struct fold_result sample_profiles(struct batch *batch, const struct trace_sampler *sampler,
                                   const struct profile_sampling *sampling);

#endif
