/*
 * service: which pipelines run, of which components, and how the process tells about itself.
 *
 * Decodes service::pipelines, service::extensions and service::telemetry and checks them against
 * the sections, which are decoded before.
 *
 * Owner: everything lives in the configuration's arena.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONFIG_SERVICE_H
#define PROFCOL_CONFIG_SERVICE_H

#include "config/loading.h"

/* key and node of "service"; may be NULL. */
void config_decode_service(struct config_check *check, const struct config_node *key,
                           const struct config_node *node);

/* A warning for each component that no pipeline uses, each extension that is not listed. */
void config_warn_unused(struct config_check *check);

/* service::telemetry, for print-config, the schema and the reference. */
struct telemetry_settings;
extern const struct field config_telemetry_fields[];
extern const size_t config_telemetry_size;
void config_telemetry_apply(struct config_check *check, const struct config_path *path,
                            const struct config_node *key, const struct config_node *node);

#endif
