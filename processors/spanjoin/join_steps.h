/*
 * join_steps: what the join does with a request, one step after the other, and what the index and
 * the metrics learn of it.
 *
 * The steps that read the request and ask the index run on the worker for a small request, and in a
 * job for a large one (large_requests.h); those that touch nodes, messages and metrics run on the
 * worker.
 *
 * Owner: the caller; results are freed as it is said.
 *
 * Thread: those that take a spanjoin or a plan and no node: any, one at a time for a batch. The
 * others: the node's worker.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_STEPS_H
#define PROFCOL_SPANJOIN_JOIN_STEPS_H

#include "core/data/span_index.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/sample_ids.h"
#include "processors/spanjoin/spanjoin.h"

/* --- traces --- */

/* What came of telling the index of a request's spans. */
struct learned_spans {
    struct request_spans spans;
    struct waiting_keys keys; /* of the waiter */
    struct span_wakeups wakeups;
    uint64_t late; /* samples that had gone on without these spans */
    int64_t *lags; /* of spans whose samples came first; in the arena of `spans` */
    uint32_t lag_count;
    uint32_t lag_capacity;
};
/* waiter NULL: nobody waits, and there are no keys. Then join_tell_learned, request_spans_deinit
 * and waiting_keys_deinit. */
void join_learn_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      const struct span_waiter *waiter, struct learned_spans *learned_out);
/* Wakes who waits for these spans, and counts. */
void join_tell_learned(struct spanjoin_node *node, struct learned_spans *learned);
/* After join_learn_spans with this waiter, who waits no more. */
struct request_spans join_collect_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                        const struct span_waiter *waiter,
                                        struct waiting_keys *keys);

/* --- profiles --- */

/* with_totals: they are computed, for join_add_samples. request: a number that no other request
 * has. */
struct sample_plan *join_plan_samples(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                      bool with_totals, uint64_t request);
/* Asks the index about the keys of the plan. */
void join_find_spans(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns);
/* Remembers what goes on without its span, so that it is counted when the span comes. */
void join_leave_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                        const struct span_waiter *waiter);
/* overflow: no room was left to wait in. */
struct join_counts join_count_samples(const struct sample_plan *plan, bool overflow);
/* Adds the totals to the index, wakes who waits for samples, and counts. waiter: for spans that are
 * missing; NULL: nobody waits. */
void join_add_samples(struct spanjoin_node *node, struct sample_plan *plan,
                      const struct span_waiter *waiter);
void join_record_lags(struct spanjoin_node *node, const struct sample_plan *plan, uint64_t now_ns);

#endif
