/*
 * root_spans: the local root above a span: the span of the same process in the same trace that has
 * no parent, or a parent in another process.
 *
 * Local roots keep the values that `root.` paths take from them in the index; others find them
 * through span_trees.h when requests leave.
 *
 * Owner: results live in the given arena.
 *
 * Thread: any.
 */
#ifndef PROFCOL_SPANJOIN_ROOT_SPANS_H
#define PROFCOL_SPANJOIN_ROOT_SPANS_H

#include "core/data/span_trees.h"
#include "processors/spanjoin/joined_values.h"

struct sample_plan;

/* Whether spans have to be added to the trees of the index. */
bool root_spans_are_needed(const struct spanjoin_settings *settings);
/* Whether a span is a local root: it has no parent, or says that its parent is remote; if it does
 * not say so, its kind tells. */
bool span_is_local_root(const struct span_view *span);
/* Returns what the trees have to know of a span. */
struct tree_span tree_span_of(const struct span_view *span, const struct span_put *put);

/* Finds the local roots of spans in the index. Returns a match for each, NULL where it is not
 * known. */
const struct span_match **root_spans_find(struct span_index *index, uint64_t now_ns,
                                          const struct tree_place *places, size_t count,
                                          struct arena *arena);
/* Returns where the span of each key of a plan is; all-zero for keys without one. */
const struct tree_place *root_spans_places(struct sample_plan *plan);
/* Finds the local roots of the spans of a plan: sets plan->roots. Call it when they are chosen. */
void root_spans_find_for_samples(struct sample_plan *plan, struct span_index *index,
                                 uint64_t now_ns);

#endif
