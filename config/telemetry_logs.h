/*
 * telemetry_logs: service::telemetry::logs, the settings of the process's own log.
 *
 * Owner: the configuration's arena owns everything.
 *
 * Thread: the one that loads the configuration.
 */
#ifndef PROFCOL_CONFIG_TELEMETRY_LOGS_H
#define PROFCOL_CONFIG_TELEMETRY_LOGS_H

#include "config/decode.h"
#include "core/base/log_types.h"

struct log_sampling_settings {
    bool enabled;
    uint64_t initial;
    uint64_t thereafter;
    int64_t tick;
};

struct log_settings {
    int level;
    int encoding;
    struct log_sampling_settings sampling;
    struct config_strings output_paths;
    struct config_strings error_output_paths;
    bool development;
    bool disable_caller;
    bool disable_stacktrace;
    bool disable_zap_resource;
    const struct config_node *initial_fields;
    const struct config_node *processors;
};

extern const struct field config_telemetry_logs_fields[];

/* Sets the options, apart from the resource, and reports what is wrong. node: the block, may be
 * NULL. */
void config_telemetry_logs_read(struct config_check *check, const struct config_path *path,
                                const struct config_node *node, const struct log_settings *settings,
                                struct log_options *out);

#endif
