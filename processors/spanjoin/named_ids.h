/*
 * named_ids: finds the span and the trace that a list of attributes names.
 *
 * It implements rule 2 of docs/spanjoin.md: the first of `sources` whose value is an id, and the
 * first of `trace_sources`. Entries of the attribute_table are classified once per request
 * (sample_plan_class).
 *
 * Owner: plain data.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_NAMED_IDS_H
#define PROFCOL_SPANJOIN_NAMED_IDS_H

#include "processors/spanjoin/sample_plan.h"

/* The ids that the attributes of a sample, a profile or a resource name. */
struct named_ids {
    bool has_span;
    bool has_trace;
    uint8_t span_id[SPAN_ID_SIZE];
    uint8_t trace_id[TRACE_ID_SIZE];
};

/* Returns the ids of a sample or a profile. attributes: indices into the attribute_table. */
struct named_ids named_ids_of_attributes(struct sample_plan *plan, const uint32_t *attributes,
                                         uint32_t count);
/* Returns the ids of an encoded Resource. */
struct named_ids named_ids_of_resource(const struct spanjoin_settings *settings,
                                       struct slice resource);

#endif
