/*
 * request_instance: determines which process a resource comes from (core/data/instances.h).
 *
 * A process is identified by `service.instance.id`, or by `process.pid` with `container.id` or
 * `host.id`. Without these, all of its identifying attributes and the peer stand for it.
 *
 * Owner: nothing is kept.
 *
 * Thread: the batch's worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_REQUEST_INSTANCE_H
#define PROFCOL_SPANJOIN_REQUEST_INSTANCE_H

#include "core/data/instances.h"
#include "processors/spanjoin/request_source.h"

/* Returns the number of the process of a resource, which is encoded and may be empty. source: its
 * source. 0: there is no room for another process. */
uint16_t request_instance(const struct request_sender *sender, struct slice resource,
                          const struct span_source *source);
/* The times of a request, for instances.h. */
struct instance_clock request_clock(const struct request_sender *sender);

#endif
