/*
 * spanjoin: what the files of the processor share: the part per component id, and the part per
 * worker and pipeline.
 *
 * One id stands in a traces and in a profiles pipeline; both ends share the index, the settings,
 * the metrics and the bound of what is held. docs/spanjoin.md.
 *
 * Owner: struct spanjoin is counted by its component and by messages under way.
 *
 * Thread: a node is its worker's; of struct spanjoin only atomics, the index and the worker's own
 * row of `nodes` are touched.
 */
#ifndef PROFCOL_SPANJOIN_H
#define PROFCOL_SPANJOIN_H

#include "core/base/budget.h"
#include "core/pipeline/component.h"
#include "processors/spanjoin/hold.h"
#include "processors/spanjoin/spanjoin_settings.h"

struct span_index;
struct spanjoin_node;

enum unjoined {
    UNJOINED_NO_ID,
    UNJOINED_NOT_FOUND,
    UNJOINED_SPAN_OPEN,
    UNJOINED_EXPIRED,
    UNJOINED_OVERFLOW,
    UNJOINED_COUNT
};
enum { EVICTION_REASONS = 6 };

struct spanjoin_metrics {
    struct counter *joined;
    struct counter *unjoined[UNJOINED_COUNT];
    struct counter *ambiguous;
    struct counter *spans_enriched;
    struct counter *evicted[EVICTION_REASONS];
    struct counter *dropped_refused;
    struct counter *dropped_stopped;
    struct gauge *held_requests;
    struct histogram *lag;
};

struct spanjoin {
    atomic_uint references;
    const struct spanjoin_settings *settings;
    struct process *process;
    struct span_index *index;
    struct budget held;    /* memory of what waits, is leaving, or has left and is not taken */
    struct budget leaving; /* the part of it that does not wait any more; without a limit */
    struct spanjoin_metrics metrics;
    _Atomic uint64_t requests;
    struct spanjoin_node *nodes[WORKERS_MAX][SIGNAL_COUNT]; /* a row is its worker's */
};

struct spanjoin_node {
    struct node node;
    struct spanjoin *join;
    struct holds holds;
    struct timer sweep; /* of one node */
};

struct spanjoin *spanjoin_new(struct component *component);
void spanjoin_unref(struct spanjoin *join);

/* Counts what became of a request's items. */
void spanjoin_count(struct spanjoin_node *node, const struct join_counts *counts);
/* The held request leaves: it takes what the index knows now. */
void spanjoin_enrich_held(struct spanjoin_node *node, struct hold *hold, struct batch *batch);

#endif
