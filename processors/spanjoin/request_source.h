/*
 * request_source: who sends a request, as the span index knows it (core/data/span_sources.h).
 *
 * A tenant, where `source.tenant_from` names one, else the peer and the service of the resource.
 * Asked for once per resource, not per span or sample.
 *
 * Owner: the caller; everything is borrowed from the batch.
 *
 * Thread: the batch's worker.
 */
#ifndef PROFCOL_SPANJOIN_REQUEST_SOURCE_H
#define PROFCOL_SPANJOIN_REQUEST_SOURCE_H

#include "core/data/span_index.h"
#include "core/pipeline/batch.h"
#include "processors/spanjoin/spanjoin_settings.h"

struct request_sender {
    const struct spanjoin_settings *settings;
    struct span_index *index;
    const struct batch *batch;
    uint64_t now_ns;
};

/* resource: encoded Resource, may be empty. */
struct span_source request_source(const struct request_sender *sender, struct slice resource);

#endif
