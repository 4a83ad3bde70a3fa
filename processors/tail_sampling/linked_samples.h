/*
 * linked_samples: what becomes of the samples of a profiles batch, by the decision about the trace
 * of their link.
 *
 * Samples of traces that are not sampled are folded (core/data/fold.h) or dropped; those of traces
 * that are not known as the settings say; those without a link pass.
 *
 * Owner: what is written lives in the batch's arena.
 *
 * Thread: that of the batch; it uses the table, which has locks.
 */
#ifndef PROFCOL_TAIL_SAMPLING_LINKED_SAMPLES_H
#define PROFCOL_TAIL_SAMPLING_LINKED_SAMPLES_H

#include "core/data/fold.h"
#include "core/pipeline/batch.h"
#include "processors/tail_sampling/trace_table.h"

struct linked_result {
    struct fold_result fold;
    uint32_t unknown; /* samples whose trace is not known, whatever became of them */
};

/* Applies the decisions, prunes the dictionary, and sets batch->items. */
struct linked_result linked_samples_apply(struct batch *batch, struct trace_table *table,
                                          const struct table_user *user, uint64_t now_ns);

#endif
