#include "core/pipeline/exporter_counter.h"

struct counter *exporter_counter(const struct node *node, const char *what, const char *help)
{
    struct text name = {0}, labels = {0};
    text_printf(&name, METRICS_COLLECTOR "exporter_%s_%s", what, signal_item_name(node->signal));
    metrics_label(&labels, "exporter", node->component->id);
    struct counter *counter = metrics_counter(node->component->process->metrics, text_string(&name),
                                              help, text_string(&labels));
    text_deinit(&name);
    text_deinit(&labels);
    return counter;
}
