#include "core/components.h"

#include "core/pipeline/component.h"

extern const struct component_type otlp_receiver_type;
extern const struct component_type pprof_receiver_type;
extern const struct component_type pyroscope_receiver_type;
extern const struct component_type batch_processor_type;
extern const struct component_type memory_limiter_processor_type;
extern const struct component_type resource_detection_processor_type;
extern const struct component_type resource_processor_type;
extern const struct component_type spanjoin_processor_type;
extern const struct component_type debug_exporter_type;
extern const struct component_type file_exporter_type;
extern const struct component_type nop_exporter_type;
extern const struct component_type otlp_grpc_exporter_type;
extern const struct component_type otlp_http_exporter_type;
extern const struct component_type pyroscope_exporter_type;
extern const struct component_type count_connector_type;
extern const struct component_type forward_connector_type;
extern const struct component_type routing_connector_type;
extern const struct component_type basicauth_extension_type;
extern const struct component_type bearertokenauth_extension_type;
extern const struct component_type headers_setter_extension_type;
extern const struct component_type health_check_extension_type;
extern const struct component_type pprof_extension_type;
extern const struct component_type zpages_extension_type;

const struct config_type *const component_types[] = {
    &otlp_receiver_type.config,
    &pprof_receiver_type.config,
    &pyroscope_receiver_type.config,

    &batch_processor_type.config,
    &memory_limiter_processor_type.config,
    &resource_detection_processor_type.config,
    &resource_processor_type.config,
    &spanjoin_processor_type.config,

    &debug_exporter_type.config,
    &file_exporter_type.config,
    &nop_exporter_type.config,
    &otlp_grpc_exporter_type.config,
    &otlp_http_exporter_type.config,
    &pyroscope_exporter_type.config,

    &count_connector_type.config,
    &forward_connector_type.config,
    &routing_connector_type.config,

    &basicauth_extension_type.config,
    &bearertokenauth_extension_type.config,
    &headers_setter_extension_type.config,
    &health_check_extension_type.config,
    &pprof_extension_type.config,
    &zpages_extension_type.config,

    NULL,
};
