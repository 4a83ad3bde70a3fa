/*
 * service: which pipelines run, with which components, and how the process reports on itself
 * (telemetry).
 *
 * Decodes service::pipelines, service::extensions and service::telemetry and checks them against
 * the sections, which are decoded first.
 *
 * Owner: everything lives in the configuration's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_SERVICE_H
#define PROFCOL_CONFIG_SERVICE_H

#include "config/loading.h"

/* Decodes the section `service`. key and node may be NULL: the section is missing. */
void config_decode_service(struct config_check *check, const struct config_node *key,
                           const struct config_node *node);

/* Reports a warning for each component that no pipeline uses and each extension that is not
 * listed. */
void config_warn_unused(struct config_check *check);

/* The fields of service::telemetry, also for print-config, the schema and the reference. */
struct telemetry_settings;
extern const struct field config_telemetry_fields[];
extern const size_t config_telemetry_size;
/* Decodes service::telemetry into the configuration. key and node may be NULL. */
void config_telemetry_apply(struct config_check *check, const struct config_path *path,
                            const struct config_node *key, const struct config_node *node);

#endif
