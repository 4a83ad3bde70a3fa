/*
 * connections: how connectors join pipelines.
 *
 * A connector is an exporter of some pipelines and a receiver of others, as in the Collector. Each
 * pipeline that leads to it must have one that it can lead to, and the other way round, and no
 * pipeline may lead back to itself.
 *
 * Owner: nothing is kept.
 *
 * Thread: one at a time, while the configuration is loaded.
 */
#ifndef PROFCOL_CONFIG_CONNECTIONS_H
#define PROFCOL_CONFIG_CONNECTIONS_H

#include "config/loading.h"

/* Whether a connector consumes a signal and emits the other one (or the same) for it: then a
 * pipeline of the first may lead through it to one of the second. */
bool config_connector_leads(const struct config_type *type, enum config_signal consumed,
                            enum config_signal emitted);
/* Whether a connector emits a signal for any that it consumes. */
bool config_connector_emits(const struct config_type *type, enum config_signal emitted);
/* Whether a pipeline leads to another one through a connector. */
bool config_pipeline_leads_to(const struct config_pipeline *from, const struct config_pipeline *to);

/* Reports connectors without one of their ends, and cycles. The pipelines are decoded. */
void config_check_connections(struct config_check *check);

#endif
