/*
 * join_steps: the steps of the join for a request, and the updates of the index and the metrics.
 *
 * The steps that only read the request and use the index run on the worker for a small request, and
 * in a job for a large one (large_requests.h). Those that use nodes, messages or metrics run on the
 * worker.
 *
 * Owner: the caller, who frees the results as described below.
 *
 * Thread: functions without a node argument: any, one at a time for a batch. The others: the node's
 * worker.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_STEPS_H
#define PROFCOL_SPANJOIN_JOIN_STEPS_H

#include "core/data/span_index.h"
#include "processors/spanjoin/enrich_spans.h"
#include "processors/spanjoin/sample_ids.h"
#include "processors/spanjoin/spanjoin.h"
#include "processors/spanjoin/thread_samples.h"
#include "processors/spanjoin/upload_times.h"

/* Samples that had left without a span when it arrived. */
struct left_counts {
    uint64_t late;
    uint64_t late_detail; /* of these, of spans that keep their detail */
};

/* ---- traces ---- */

/* The results of adding a request's spans to the index. */
struct learned_spans {
    struct request_spans spans;
    struct instance_waiter *waiters; /* of the instances whose profiles it waits for */
    uint32_t waiting;                /* number of these */
    struct span_wakeups wakeups;
    uint64_t late;                 /* samples that were sent on without these spans */
    uint64_t late_detail;          /* likewise, of spans that keep their detail */
    uint32_t kept_by[KEEP_BY_END]; /* numbers of spans */
    int64_t *lags; /* of spans whose samples arrived first; in the arena of `spans` */
    uint32_t lag_count;
    uint32_t lag_capacity;
};
/* Adds the spans of a request to the index. waiter: waits until profiles cover them; NULL: nobody
 * waits. Call join_tell_learned, request_spans_deinit and instances_stop_waiting
 * afterwards. */
void join_learn_spans(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      const struct span_waiter *waiter, struct learned_spans *learned_out);
/* Wakes the requests that wait for these spans, and updates the metrics. */
void join_tell_learned(struct spanjoin_node *node, struct learned_spans *learned);
/* After join_learn_spans: reads the totals again. */
struct request_spans join_collect_spans(struct spanjoin *join, struct batch *batch,
                                        uint64_t now_ns);

/* ---- profiles ---- */

/* Creates the plan of a request that has just arrived. with_totals: compute totals, for
 * join_add_samples. request: a number that no other request has. */
struct sample_plan *join_plan_samples(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                      bool with_totals, uint64_t request);
/* The same for a request that was held, without totals. arrived_ns, before: of the plan that it had
 * then. */
struct sample_plan *join_plan_held(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                                   uint64_t arrived_ns, const struct plan_before *before);
/* Whether samples of the request may be joined by thread and time. */
bool join_has_threads(const struct sample_plan *plan);
/* Whether it waits for spans of their threads: not if none of their processes are known yet. Call
 * it before join_link_threads. */
bool join_waits_for_threads(const struct sample_plan *plan);
/* Joins samples by thread and time. If it has to change the request for that, it frees the plan.
 * Returns the plan of the request as it is now, with its spans looked up. It has totals of all
 * samples if the plan had totals; otherwise of those that were joined, for join_add_linked.
 * request: the number of the request. */
struct sample_plan *join_link_threads(struct spanjoin *join, struct sample_plan *plan,
                                      uint64_t now_ns, uint64_t request);
/* Keeps the samples for which join_link_threads has found no span, for spans that arrive later,
 * when the request is sent on. Call it before join_end_hold and join_tell_uploads, once. Any
 * thread. */
void join_leave_threads(struct sample_plan *plan, uint64_t now_ns, struct left_counts *counts_out);
/* Removes the waiter from the spans that the plan asked for (`place` of the keys). Call it before
 * join_link_threads, because the keys of its plan have other numbers. */
void join_stop_waiting(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                       const struct span_waiter *waiter);
/* Adds the totals of a plan of join_link_threads to the index, when a held request is sent on. Any
 * thread. */
void join_add_linked(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns);
/* The samples that went on from a local root to its children. */
struct moved_samples {
    struct sample_plan *plan; /* of the request as it is now, with their totals; NULL: there are
                                 none, and the request did not change */
    struct thread_links links;
    struct buffer *before; /* the bytes to which the old plan points */
};
/* Lets samples go on to children, if the settings say so. request: its number. The old plan stays
 * valid until moved_samples_deinit. Any thread. */
void join_move_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                       uint64_t request, struct moved_samples *out);
/* Adds their totals to the children. Call it before those of the old plan are added. Any thread. */
void join_add_moved(struct spanjoin *join, const struct moved_samples *moved, uint64_t now_ns);
/* Returns the plan to apply, and counts. Call it when the services of the old plan are decided
 * (join_tell_uploads, join_learn_services). It does not change the index. Any thread. */
struct sample_plan *join_moved_plan(struct moved_samples *moved, struct sample_plan *plan,
                                    struct join_counts *counts);
/* Tells the index which children have samples with their detail. Call it once it is sure that the
 * request goes on, before join_end_hold and join_tell_uploads. Any thread. */
void join_tell_moved(struct spanjoin *join, const struct moved_samples *moved, uint64_t now_ns);
void moved_samples_deinit(struct moved_samples *moved);
/* Whether samples are recorded when they are sent on. */
bool join_records_samples(const struct sample_plan *plan);
/* Looks up the keys of the plan in the index, and decides which of them keep their detail. */
void join_find_spans(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns);
/* Records the samples that are sent on without their span, or without its detail (`keep`). Returns
 * how many samples were sent on without their detail before their span turned out to be worth it.
 */
uint64_t join_leave_samples(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns,
                            const struct span_waiter *waiter);
/* Counts the results. */
struct join_counts join_count_samples(const struct sample_plan *plan);
/* Notes that samples leave whose spans have not arrived, if children of these want to know it. Call
 * it before join_end_hold and join_tell_uploads. */
void join_note_unjoined(struct spanjoin *join, const struct sample_plan *plan, uint64_t now_ns);
/* Adds the totals to the index, tells of the uploads, and updates the metrics. waiter: waits for
 * missing spans; NULL: nobody waits. */
void join_add_samples(struct spanjoin_node *node, struct sample_plan *plan,
                      const struct span_waiter *waiter);
/* Tells which time the profiles of the request cover, wakes the requests that waited for it, and
 * decides under which service the profiles stand.
 * Call it when the totals are added, and again when spans were found later. Any thread. */
void join_tell_uploads(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns);
/* Begins to hold the uploads of a request that a job will read: spans of their time are not covered
 * until its totals are in the index, too. */
void join_hold_unread(struct spanjoin *join, struct batch *batch, uint64_t now_ns,
                      struct held_uploads *held_out);
/* Begins to hold the uploads of a request that waits: spans of their time are not covered until it
 * has left. Call it before join_add_samples. */
void join_hold_uploads(struct spanjoin *join, const struct sample_plan *plan,
                       struct held_uploads *held_out);
/* Ends it. Call it when all totals are in the index, before join_tell_uploads. Any thread. */
void join_end_hold(struct spanjoin *join, struct held_uploads *held, uint64_t now_ns);
/* Decides under which service the profiles of the request stand, where join_tell_uploads comes too
 * late for that. */
void join_learn_services(struct spanjoin *join, struct sample_plan *plan, uint64_t now_ns);
/* Changes the request as planned: samples gain their span, profiles their service, and samples that
 * do not keep their detail lose it. */
void join_apply(struct sample_plan *plan, struct join_counts *counts);

#endif
