/*
 * forward_connector: passes everything from the pipelines that it ends to those that it begins.
 *
 * Owner: nothing is kept.
 *
 * Thread: that of each node.
 */
#include "core/pipeline/component.h"

static const struct field forward_fields[] = {FIELD_END};

extern const struct component_type forward_connector_type;
const struct component_type forward_connector_type = {
    .config =
        {
            .name = "forward",
            .section = CONFIG_CONNECTORS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Passes data from the pipelines where it is an exporter to the pipelines of the "
                    "same signal where it is a receiver: to merge pipelines, or to part them.",
            .fields = forward_fields,
            .config_size = sizeof(char),
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct node),
    .consume = node_forward,
};
