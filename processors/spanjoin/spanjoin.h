/*
 * spanjoin: what the files of the processor share: the state per component id, and the state per
 * worker and pipeline.
 *
 * The same id is used in a traces and a profiles pipeline; both share the index, the settings, the
 * metrics and the limit for held requests. docs/spanjoin.md describes the join.
 *
 * Owner: the component, and messages being delivered, hold references to struct spanjoin.
 *
 * Thread: a node stays on its worker. Of struct spanjoin, a worker uses only atomics, the index and
 * its nodes of the group.
 */
#ifndef PROFCOL_SPANJOIN_H
#define PROFCOL_SPANJOIN_H

#include "core/base/budget.h"
#include "core/data/span_shard.h"
#include "core/pipeline/component.h"
#include "processors/spanjoin/hold_state.h"
#include "processors/spanjoin/keep_spans.h"
#include "processors/spanjoin/spanjoin_settings.h"
#include "processors/spanjoin/types_seen.h"

struct join_group;
struct join_report;
struct sample_plan;
struct span_index;
struct spanjoin_node;

enum unjoined {
    UNJOINED_NO_ID,
    UNJOINED_NO_PROCESS,
    UNJOINED_NO_SPAN_ON_THREAD,
    UNJOINED_AMBIGUOUS_THREAD,
    UNJOINED_NOT_SPLIT,
    UNJOINED_NOT_FOUND,
    UNJOINED_SPAN_OPEN,
    UNJOINED_EXPIRED,
    UNJOINED_OVERFLOW,
    UNJOINED_COUNT
};

/* What became of samples under `keep`: the label `result`. */
enum keep_result {
    KEEP_RESULT_KEPT,
    KEEP_RESULT_FOLDED,
    KEEP_RESULT_COMBINED,
    KEEP_RESULT_DROPPED,
    KEEP_RESULT_LATE,
    KEEP_RESULTS
};

/* How the wait of a request with spans ended: the label `result`. At the stop it is not counted. */
enum spans_wait_end {
    SPANS_WAIT_COVERED,   /* uploads cover all of its spans */
    SPANS_WAIT_TIMED_OUT, /* spans.wait was over */
    SPANS_WAIT_OVERFLOW,  /* memory was short */
    SPANS_WAIT_ENDS
};

struct spanjoin_metrics {
    struct counter *joined;
    struct counter *by_thread;
    struct counter *to_children; /* only with attribute_children */
    struct counter *unjoined[UNJOINED_COUNT];
    struct counter *ambiguous;
    struct counter *spans_enriched;
    struct counter *spans_waited[SPANS_WAIT_ENDS]; /* only with spans.wait */
    struct counter *renamed;
    struct counter *service_conflicts;
    struct counter *keep[KEEP_RESULTS];
    struct counter *kept_samples[KEEP_BY_END]; /* NULL: there is no such condition */
    struct counter *kept_spans[KEEP_BY_END];   /* likewise, or it is on CPU time */
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
    struct span_index *index; /* after a reload maybe shared with the component that it replaced */
    struct join_group *group; /* the joins that share the index */
    struct budget held;    /* memory of requests that wait, or are sent on and not accepted yet */
    struct budget leaving; /* the part of `held` that does not wait any more; no limit */
    struct keep_programs keep;
    struct value_programs sample_values;
    struct value_programs span_values;
    struct spanjoin_metrics metrics;
    uint32_t first_hold_generation; /* so that holds of components that share an index have
                                       different ids */
    struct types_seen types;
    struct spanjoin_node *sweeper; /* the node that sweeps the index; NULL: none */
    size_t large_bytes;            /* requests of this size or more are processed by jobs */
    _Atomic uint64_t requests;
};

struct spanjoin_node {
    struct node node;
    struct spanjoin *join;
    struct list_link link; /* of the group */
    struct holds holds;
    struct list large;   /* requests that jobs process (large_requests.h) */
    struct timer sweep;  /* set on one node only */
    struct timer settle; /* set while there are waits that end with time (spanjoin_settle) */
};

/* Creates the state of a component, with one reference. predecessor: of the component that it
 * replaces; if it has the same settings, but for `keep`, both share its index until it has drained.
 * NULL: none. */
struct spanjoin *spanjoin_new(struct component *component, struct spanjoin *predecessor);
/* Drops a reference; the last one frees the state. */
void spanjoin_unref(struct spanjoin *join);

/* Wakes the requests with spans that have waited long enough for uploads of some kind
 * (instances_settle), and sets the timer for the others. Call it on the worker, after
 * join_tell_uploads, or when spans begin to wait. join_steps.c has it. */
void spanjoin_settle(struct spanjoin_node *node);
/* Adds the results of a request to the metrics. */
void spanjoin_count(struct spanjoin_node *node, const struct join_counts *counts);
/* Enriches a held request with the present content of the index, before it is sent on. Any
 * thread. */
void spanjoin_enrich_held(struct spanjoin_node *node, struct hold *hold, struct batch *batch,
                          uint64_t now_ns);

/* Whether a request is processed by jobs. */
bool spanjoin_is_large(const struct spanjoin *join, const struct batch *batch);
/* For tests: sets the size of large requests, for components that are created later. */
void spanjoin_set_large_bytes(size_t bytes);

/* ---- steps that small and large requests share ---- */

/* Returns a number that no other request has. */
static inline uint64_t spanjoin_next_request(struct spanjoin *join)
{
    return atomic_fetch_add_explicit(&join->requests, 1, memory_order_relaxed) + 1;
}
/* Whether the component is also in a pipeline of the other signal. */
bool spanjoin_has_other_side(const struct spanjoin_node *node);
/* Whether requests of the node may wait. */
bool spanjoin_may_wait(const struct spanjoin_node *node);
/* Hold a request, and settle its receipt. Take over the batch and the plan, or the waiters that
 * wait under `id`. If they do not return HOLD_ROOM, nothing has changed. */
enum hold_room spanjoin_hold_profiles(struct spanjoin_node *node, struct batch *batch,
                                      struct sample_plan *plan, uint32_t missing);
enum hold_room spanjoin_hold_traces(struct spanjoin_node *node, struct batch *batch, uint64_t id,
                                    uint32_t waiting, struct instance_waiter *waiters);
/* Whether a request that finds no room to wait is sent on without waiting: if sending it again
 * would not help, or if room is reserved for it already. */
bool spanjoin_must_go_on(const struct batch *batch, enum hold_room room);
/* Counts, and sends a request on with its own receipt, or drops it if `keep` left nothing of it.
 * Takes over the report; NULL: none. */
void spanjoin_forward(struct spanjoin_node *node, struct batch *batch,
                      const struct join_counts *counts, struct join_report *report);
/* Refuses a request for which there is no room. */
void spanjoin_refuse(struct spanjoin_node *node, struct batch *batch);
/* Updates the index and the metrics for a request that is sent on with what it has found. */
void spanjoin_tell_samples(struct spanjoin_node *node, struct sample_plan *plan);

#endif
