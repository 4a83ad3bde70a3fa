#include "core/base/metric_names.h"

#include <string.h>

/* The first prefix that fits decides. Names with another prefix are profcol's own. */
static const struct {
    const char *prefix;
    const char *scope;
    enum metrics_level level;
} groups[] = {
    {"target_info", NULL, METRICS_BASIC},
    {"otelcol_processor_batch_batch_send_size_bytes",
     "go.opentelemetry.io/collector/processor/batchprocessor", METRICS_DETAILED},
    {"otelcol_processor_batch_", "go.opentelemetry.io/collector/processor/batchprocessor",
     METRICS_NORMAL},
    {"otelcol_processor_memory_limiter_",
     "go.opentelemetry.io/collector/processor/memorylimiterprocessor", METRICS_BASIC},
    {"otelcol_processor_", "go.opentelemetry.io/collector/processor/processorhelper",
     METRICS_BASIC},
    {"otelcol_receiver_", "go.opentelemetry.io/collector/receiver/receiverhelper", METRICS_BASIC},
    {"otelcol_exporter_queue_batch_", "go.opentelemetry.io/collector/exporter/exporterhelper",
     METRICS_DETAILED},
    {"otelcol_exporter_", "go.opentelemetry.io/collector/exporter/exporterhelper", METRICS_BASIC},
    {"otelcol_process_", "go.opentelemetry.io/collector/service", METRICS_BASIC},
    {"http_", "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp", METRICS_DETAILED},
    {"rpc_", "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc",
     METRICS_DETAILED},
    {"", "profcol", METRICS_BASIC},
};

/* The metrics whose names lack their unit. */
static const struct {
    const char *name;
    const char *suffix;
} units[] = {
    {"http_client_request_body_size", "_bytes"},  {"http_client_request_duration", "_seconds"},
    {"http_server_request_body_size", "_bytes"},  {"http_server_request_duration", "_seconds"},
    {"http_server_response_body_size", "_bytes"}, {"otelcol_process_memory_rss", "_bytes"},
    {"otelcol_process_uptime", "_seconds"},       {"rpc_client_call_duration", "_seconds"},
    {"rpc_server_call_duration", "_seconds"},
};

static size_t group_of(const char *name)
{
    size_t i = 0;
    while (strncmp(name, groups[i].prefix, strlen(groups[i].prefix)) != 0)
        i++; /* the last prefix is empty */
    return i;
}

const char *metric_scope(const char *name)
{
    return groups[group_of(name)].scope;
}

enum metrics_level metric_level(const char *name)
{
    return groups[group_of(name)].level;
}

const char *metric_unit_suffix(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].suffix;
    return "";
}
