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
#include "core/data/span_shard.h"
#include "core/pipeline/component.h"
#include "processors/spanjoin/hold_state.h"
#include "processors/spanjoin/spanjoin_settings.h"

struct sample_plan;
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

struct spanjoin_metrics {
    struct counter *joined;
    struct counter *unjoined[UNJOINED_COUNT];
    struct counter *ambiguous;
    struct counter *spans_enriched;
    struct counter *evicted[SPAN_EVICTION_COUNT];
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
    size_t large_bytes; /* requests of so many are worked on beside the loop */
    _Atomic uint64_t requests;
    struct spanjoin_node *nodes[WORKERS_MAX][SIGNAL_COUNT]; /* a row is its worker's */
};

struct spanjoin_node {
    struct node node;
    struct spanjoin *join;
    struct holds holds;
    struct list large;  /* requests that jobs work on (large_requests.h) */
    struct timer sweep; /* of one node */
};

struct spanjoin *spanjoin_new(struct component *component);
void spanjoin_unref(struct spanjoin *join);

/* Counts what became of a request's items. */
void spanjoin_count(struct spanjoin_node *node, const struct join_counts *counts);
/* The held request leaves: it takes what the index knows now. Any thread. */
void spanjoin_enrich_held(struct spanjoin_node *node, struct hold *hold, struct batch *batch,
                          uint64_t now_ns);

bool spanjoin_is_large(const struct spanjoin *join, const struct batch *batch);
/* For tests: what is large from here on, in components that are made later. */
void spanjoin_set_large_bytes(size_t bytes);

/* What follows is the way of a request through the node, for those that are worked on at once and
 * those that are large. */

static inline uint64_t spanjoin_next_request(struct spanjoin *join)
{
    return atomic_fetch_add_explicit(&join->requests, 1, memory_order_relaxed) + 1;
}
/* Whether the other signal comes through the component, too. */
bool spanjoin_has_other_side(const struct spanjoin_node *node);
bool spanjoin_may_wait(const struct spanjoin_node *node);
/* Holds the request, which is answered then; takes over batch and plan, or the keys that wait under
 * the id. Else nothing has happened. */
enum hold_room spanjoin_hold_profiles(struct spanjoin_node *node, struct batch *batch,
                                      struct sample_plan *plan, uint32_t missing);
enum hold_room spanjoin_hold_traces(struct spanjoin_node *node, struct batch *batch, uint64_t id,
                                    uint32_t waiting, const struct waiting_keys *keys);
/* No room to wait in: it goes on as it is where sending it again would not help, or where room is
 * reserved for it already. */
bool spanjoin_must_go_on(const struct batch *batch, enum hold_room room);
void spanjoin_refuse(struct spanjoin_node *node, struct batch *batch);
/* The request goes on with what it has found: the index and the metrics are told. */
void spanjoin_tell_samples(struct spanjoin_node *node, struct sample_plan *plan, bool overflow);

#endif
