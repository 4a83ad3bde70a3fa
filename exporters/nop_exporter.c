/*
 * nop_exporter: accepts all data and does nothing with it.
 *
 * For pipelines that only need an exporter: tests, measurements, a receiver whose data is not
 * needed yet.
 *
 * Owner: nothing is kept.
 *
 * Thread: that of each node.
 */
#include "core/pipeline/component.h"

static const struct field nop_fields[] = {FIELD_END};

static void nop_consume(struct node *node, struct batch *batch)
{
    (void)node;
    batch_drop(batch, &verdict_ok);
}

extern const struct component_type nop_exporter_type;
const struct component_type nop_exporter_type = {
    .config =
        {
            .name = "nop",
            .section = CONFIG_EXPORTERS,
            .stability = {[CONFIG_TRACES] = STABILITY_BETA,
                          [CONFIG_PROFILES] = STABILITY_ALPHA,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Accepts everything and does nothing with it.",
            .fields = nop_fields,
            .config_size = sizeof(char),
        },
    .component_size = sizeof(struct component),
    .node_size = sizeof(struct node),
    .consume = nop_consume,
};
