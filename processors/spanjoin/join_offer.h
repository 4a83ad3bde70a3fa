/*
 * join_offer: offers the requests that leave the join to the join feed
 * (core/pipeline/join_feed.h).
 *
 * Owner: a report belongs to the request until it is offered.
 *
 * Thread: join_report_of, join_report_of_spans: that of the batch. join_offer_make: the node's
 * worker.
 */
#ifndef PROFCOL_SPANJOIN_JOIN_OFFER_H
#define PROFCOL_SPANJOIN_JOIN_OFFER_H

#include "core/pipeline/join_feed.h"
#include "processors/spanjoin/sample_plan.h"
#include "processors/spanjoin/spanjoin.h"

struct request_spans;

/* Returns what became of the samples of a request whose spans are looked up; NULL if nobody
 * listens. */
struct join_report *join_report_of(const struct spanjoin *join, const struct sample_plan *plan);
/* Returns a report with room for the spans of a request that have totals, for request_spans_enrich;
 * NULL if there are none, or nobody listens. */
struct join_report *join_report_of_spans(const struct spanjoin *join,
                                         const struct request_spans *spans);
/* Offers a request that is about to be sent on, or of which `keep` has dropped all samples. Takes
 * over the report, which may be NULL. */
void join_offer_make(struct spanjoin_node *node, struct batch *batch, struct join_report *report);

#endif
