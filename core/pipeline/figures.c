#include "core/pipeline/figures.h"

#include "core/pipeline/graph.h"

#include <assert.h>

struct figures_place figures_place_of(const struct config_pipeline *pipeline,
                                      struct component *component)
{
    assert(component);
    return (struct figures_place){.component = component,
                                  .section = component->type->config.section,
                                  .signal = graph_signal(pipeline),
                                  .pipeline = pipeline->id};
}

double figures_count(const struct figures_place *place, const char *what)
{
    assert(place->section == CONFIG_RECEIVERS || place->section == CONFIG_EXPORTERS);
    struct text name = {0}, label = {0};
    text_printf(&name, METRICS_COLLECTOR "%s_%s", what, signal_item_name(place->signal));
    metrics_label(&label, config_section_kinds[place->section], place->component->id);
    double sum =
        metrics_sum(place->component->process->metrics, text_string(&name), text_string(&label));
    text_deinit(&name);
    text_deinit(&label);
    return sum;
}

double figures_gauge(const struct figures_place *place, const char *name)
{
    struct text labels = {0};
    metrics_label(&labels, "exporter", place->component->id);
    metrics_label(&labels, "data_type", signal_name(place->signal));
    double value = metrics_sum(place->component->process->metrics, name, text_string(&labels));
    text_deinit(&labels);
    return value;
}

struct figures figures_read(const struct figures_place *place)
{
    const bool is_processor = place->section == CONFIG_PROCESSORS;
    struct graph_items items =
        graph_read_items(place->component->process->graph, place->component,
                         is_processor ? place->pipeline : NULL, place->signal);
    struct figures figures = {(double)items.in, (double)items.out, 0, NULL};
    if (place->section == CONFIG_RECEIVERS) {
        figures.out = figures_count(place, "receiver_accepted");
        figures.lost = figures_count(place, "receiver_refused");
        figures.in = figures.out + figures.lost;
        figures.lost_name = "refused";
    } else if (place->section == CONFIG_EXPORTERS) {
        figures.out = figures_count(place, "exporter_sent");
        figures.lost = figures_count(place, "exporter_send_failed");
        figures.lost_name = "failed";
    }
    return figures;
}
