#include "core/components.h"

#include "core/net/cors.h"
#include "core/net/tls.h"
#include "core/pipeline/attribute_actions.h"
#include "core/pipeline/auth.h"
#include "core/pipeline/component.h"
#include "core/pipeline/delivery_settings.h"
#include "core/pipeline/server_settings.h"

extern const struct component_type otlp_receiver_type;
extern const struct component_type pprof_receiver_type;
extern const struct component_type pyroscope_receiver_type;
extern const struct component_type attributes_processor_type;
extern const struct component_type batch_processor_type;
extern const struct component_type filter_processor_type;
extern const struct component_type transform_processor_type;
extern const struct component_type memory_limiter_processor_type;
extern const struct component_type probabilistic_sampler_processor_type;
extern const struct component_type tail_sampling_processor_type;
extern const struct field tail_policy_fields[], tail_and_fields[];
extern const struct component_type redaction_processor_type;
extern const struct component_type resource_detection_processor_type;
extern const struct component_type resource_processor_type;
extern const struct component_type spanjoin_processor_type;
extern const struct component_type stack_limit_processor_type;
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
extern const struct component_type explore_extension_type;
extern const struct component_type headers_setter_extension_type;
extern const struct component_type health_check_extension_type;
extern const struct component_type pprof_extension_type;
extern const struct component_type zpages_extension_type;

const struct config_type *const component_types[] = {
    &otlp_receiver_type.config,
    &pprof_receiver_type.config,
    &pyroscope_receiver_type.config,

    &attributes_processor_type.config,
    &batch_processor_type.config,
    &filter_processor_type.config,
    &transform_processor_type.config,
    &memory_limiter_processor_type.config,
    &probabilistic_sampler_processor_type.config,
    &tail_sampling_processor_type.config,
    &redaction_processor_type.config,
    &resource_detection_processor_type.config,
    &resource_processor_type.config,
    &spanjoin_processor_type.config,
    &stack_limit_processor_type.config,

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
    &explore_extension_type.config,
    &headers_setter_extension_type.config,
    &health_check_extension_type.config,
    &pprof_extension_type.config,
    &zpages_extension_type.config,

    NULL,
};

const struct config_shared_block shared_blocks[] = {
    {"gRPC servers",
     "A listener for gRPC. What clients may do besides is limited as docs/architecture.md, "
     "Incoming "
     "connections, says.",
     grpc_server_fields},
    {"HTTP servers",
     "A listener for HTTP/1.1 and HTTP/2. The component's own table has its address, `endpoint`.",
     http_server_fields},
    {"TLS of servers", "A server needs `cert_file` and `key_file`, or `cert_pem` and `key_pem`.",
     tls_server_fields},
    {"TLS of clients", "By default the system's certificate authorities are trusted.",
     tls_client_fields},
    {"CORS", "Which pages of other origins may send data from browsers.", cors_fields},
    {"Authenticator", "The extension that decides who may send, or that adds credentials.",
     auth_fields},
    {"Authenticator of HTTP servers", "The extension that decides who may send.", http_auth_fields},
    {"Sending queue",
     "What an exporter holds while its backend is slow or away. docs/tuning.md says how to size "
     "it.",
     sending_queue_fields},
    {"Retry on failure", "When an exporter tries again what a backend did not accept.",
     retry_fields},
    {"Actions on attributes", "What to do with an attribute of a resource, a span or a sample.",
     attribute_action_fields},
    {"Policies of tail_sampling",
     "Each decides by the block that has the name of its type, and ignores the others.",
     tail_policy_fields},
    {"And of tail_sampling", "Policies that all have to sample.", tail_and_fields},
    {0},
};
