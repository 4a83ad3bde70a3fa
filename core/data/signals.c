#include "core/data/signals.h"

#include <assert.h>

static const struct signal_traits traits[SIGNAL_COUNT] = {
    [SIGNAL_TRACES] =
        {
            .name = "traces",
            .title = "Traces",
            .items = "spans",
            .item_metric = "spans",
            .rejected = "spans",
            .group = "resource spans",
            .url_path = "/v1/traces",
            .grpc_service = "/opentelemetry.proto.collector.trace.v1.TraceService/",
            .request = JSON_TRACES_REQUEST,
            .response = JSON_TRACES_RESPONSE,
            .scan = scan_traces,
        },
    [SIGNAL_PROFILES] =
        {
            .name = "profiles",
            .title = "Profiles",
            .items = "profile samples",
            .item_metric = "profile_samples",
            .rejected = "profiles",
            .group = "resource profiles",
            .url_path = OTLP_PROFILES_URL_PATH,
            .grpc_service = OTLP_PROFILES_SERVICE,
            .request = JSON_PROFILES_REQUEST,
            .response = JSON_PROFILES_RESPONSE,
            .scan = scan_profiles,
        },
    [SIGNAL_METRICS] =
        {
            .name = "metrics",
            .title = "Metrics",
            .items = "metric data points",
            .item_metric = "metric_points",
            .rejected = "data_points",
            .group = "resource metrics",
            .url_path = "/v1/metrics",
            .grpc_service = "/opentelemetry.proto.collector.metrics.v1.MetricsService/",
            .request = JSON_METRICS_REQUEST,
            .response = JSON_METRICS_RESPONSE,
            .scan = scan_metrics,
            .is_relayed = true,
        },
    [SIGNAL_LOGS] =
        {
            .name = "logs",
            .title = "Logs",
            .items = "log records",
            .item_metric = "log_records",
            .rejected = "log_records",
            .group = "resource logs",
            .url_path = "/v1/logs",
            .grpc_service = "/opentelemetry.proto.collector.logs.v1.LogsService/",
            .request = JSON_LOGS_REQUEST,
            .response = JSON_LOGS_RESPONSE,
            .scan = scan_logs,
            .is_relayed = true,
        },
};

const struct signal_traits *signal_traits(enum signal signal)
{
    assert((unsigned)signal < SIGNAL_COUNT);
    return &traits[signal];
}
