/*
 * health_settings: the settings of the extension health_check, in both of the Collector's forms.
 *
 * The first form has one listener with `endpoint` and `path`. The second (healthcheckv2) has `http`
 * and `grpc`, which answer with the status of components.
 *
 * Owner: the configuration.
 *
 * Thread: read-only after parsing.
 */
#ifndef PROFCOL_HEALTH_SETTINGS_H
#define PROFCOL_HEALTH_SETTINGS_H

#include "core/pipeline/server_settings.h"

struct response_body {
    const char *healthy, *unhealthy; /* NULL: not set */
};

struct check_collector_pipeline {
    bool enabled;
    const char *interval;
    uint64_t exporter_failure_threshold;
};

struct health_page {
    bool enabled;
    const char *path;
    bool verbose;
    bool include_attributes;
};

struct health_http_settings {
    bool enabled;
    const char *endpoint;
    struct http_server_settings server;
    struct health_page status, config;
};

struct component_health_settings {
    bool enabled; /* it is written */
    bool include_permanent_errors;
    bool include_recoverable_errors;
    int64_t recovery_duration;
};

struct health_check_settings {
    const char *endpoint;
    const char *path;
    struct http_server_settings server;
    struct response_body response_body;
    struct check_collector_pipeline check_collector_pipeline;
    bool use_v2;
    struct health_http_settings http;
    struct grpc_server_settings grpc;
    struct component_health_settings component_health;
};

extern const struct field health_check_fields[];
/* The component's check. */
void health_check_check(void *config, struct config_check *check);
/* Whether the second form is used. */
bool health_check_is_v2(const struct health_check_settings *settings);

#endif
