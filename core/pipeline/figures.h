/*
 * figures: what passed a component, as pages for people show it.
 *
 * Counts of items come from the nodes (graph_read_items); of receivers and exporters also what was
 * refused or could not be sent, from the Collector's metrics.
 *
 * Owner: the caller.
 *
 * Thread: any, while the graph exists.
 */
#ifndef PROFCOL_CORE_PIPELINE_FIGURES_H
#define PROFCOL_CORE_PIPELINE_FIGURES_H

#include "core/pipeline/component.h"

/* A component at its place in a pipeline. */
struct figures_place {
    struct component *component;
    enum config_section section;
    enum signal signal;
    const char *pipeline;
};

struct figures {
    double in, out, lost;
    const char *lost_name; /* what `lost` is: "refused", "failed"; NULL: it has none */
};

/* Returns the place of a component in this pipeline. */
struct figures_place figures_place_of(const struct config_pipeline *pipeline,
                                      struct component *component);
/* Reads what passed the component; of receivers and exporters, in all pipelines of the signal. */
struct figures figures_read(const struct figures_place *place);
/* Sums a metric of the Collector over the series of a receiver or exporter: "receiver_accepted" for
 * spans is otelcol_receiver_accepted_spans. */
double figures_count(const struct figures_place *place, const char *what);
/* Reads a gauge of an exporter, by its whole name; 0 if it has none. */
double figures_gauge(const struct figures_place *place, const char *name);

#endif
