/*
 * telemetry_resource: reads service::telemetry::resource, the attributes of the process itself: a
 * map of texts (null removes a default), or `attributes`, a list of {name, value}.
 *
 * Owner: the configuration's arena owns the result.
 *
 * Thread: the one that loads the configuration.
 */
#ifndef PROFCOL_CONFIG_TELEMETRY_RESOURCE_H
#define PROFCOL_CONFIG_TELEMETRY_RESOURCE_H

#include "config/decode.h"

/* Sets *out to the attributes that are written; value NULL: the attribute is removed. Reports what
 * is wrong. node may be NULL. */
void config_telemetry_resource_read(struct config_check *check, const struct config_path *path,
                                    const struct config_node *node, struct config_pairs *out);

#endif
