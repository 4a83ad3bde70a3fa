/*
 * request_source: determines the source of a request (core/data/span_sources.h).
 *
 * The source is the tenant, if `source.tenant_from` finds one, otherwise the peer and the service
 * of the resource. It is determined once per resource, not per span or sample.
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
#include "processors/spanjoin/tenants_seen.h"

struct request_sender {
    const struct spanjoin_settings *settings;
    struct span_index *index;
    struct tenants_seen *tenants;               /* NULL: nobody wants to know */
    const struct keep_programs *keep;           /* of traces */
    const struct value_programs *sample_values; /* of traces: what samples gain */
    const struct batch *batch;
    uint64_t now_ns;
    uint64_t arrived_ns; /* of profiles: when the request arrived, since 1970 */
};

/* Returns the source of a resource, which is encoded and may be empty. */
struct span_source request_source(const struct request_sender *sender, struct slice resource);

#endif
