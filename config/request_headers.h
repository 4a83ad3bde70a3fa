/*
 * request_headers: what of requests a component can see: headers, and what an authenticator knows
 * of the client. A receiver has them only with include_metadata, or auth, and a processor may lose
 * them.
 *
 * Owner: the configuration.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_REQUEST_HEADERS_H
#define PROFCOL_CONFIG_REQUEST_HEADERS_H

#include "config/check.h"
#include "config/model.h"

/* Returns the component that loses the header (in lower case; NULL: what is known of the client) of
 * all requests before they reach a component of the pipeline: a processor, or a receiver that does
 * not keep it. NULL: requests may have it there. */
const struct config_component *config_header_lost_at(const struct config *config,
                                                     const struct config_pipeline *pipeline,
                                                     const struct config_component *component,
                                                     const char *name);
/* Returns what to write so that this component does not lose the header. */
const char *config_header_remedy(struct arena *arena, const struct config_component *lost,
                                 const char *name);
/* For a component's `check`: warns at `key` if no request has this header (in either case; NULL: as
 * above) where the processor or exporter is. so: what follows: "nothing is set". */
void config_check_header(struct config_check *check, const char *key, const char *name,
                         const char *so);

#endif
