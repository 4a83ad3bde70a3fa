/*
 * request_headers: which headers of requests a component can see. A receiver keeps them only with
 * include_metadata, and a processor may lose them.
 *
 * Owner: the configuration.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_REQUEST_HEADERS_H
#define PROFCOL_CONFIG_REQUEST_HEADERS_H

#include "config/model.h"

/* Returns the component that loses the header (in lower case) of all requests before they reach a
 * component of the pipeline: a processor, or a receiver that does not keep it. NULL: requests may
 * have it there. */
const struct config_component *config_header_lost_at(const struct config *config,
                                                     const struct config_pipeline *pipeline,
                                                     const struct config_component *component,
                                                     const char *name);

#endif
