#include "extensions/zpages/pages.h"

#include "config/config.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/pipeline/figures.h"
#include "core/pipeline/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { ERRORS_ON_OVERVIEW = 10 };

/* ---- figures of components ---- */

/* A component at its place in a pipeline. */
struct place {
    const struct health *health;
    struct figures_place at;
};

static const char *describe_figures(const struct page_source *source, const struct figures *figures)
{
    struct text text = {0};
    assert(figures->lost == 0 || figures->lost_name);
    document_print_count(&text, figures->in);
    text_append(&text, " in, ");
    document_print_count(&text, figures->out);
    text_append(&text, " out");
    if (figures->lost > 0) {
        text_append(&text, ", ");
        document_print_count(&text, figures->lost);
        text_printf(&text, " %s", figures->lost_name);
    }
    const char *described = arena_strdup(source->arena, text_string(&text));
    text_deinit(&text);
    return described;
}

static struct place place_of(const struct config_pipeline *pipeline, const struct health *health)
{
    return (struct place){.health = health, .at = figures_place_of(pipeline, health->component)};
}

/* ---- pipelines ---- */

static void print_chain(const struct page_source *source, struct document *document,
                        const struct config_pipeline *pipeline, const struct health *health)
{
    const size_t exporters = pipeline->receiver_count + pipeline->processor_count;
    assert(health->child_count == exporters + pipeline->exporter_count);
    document_begin_chain(document, pipeline->id);
    for (size_t i = 0; i < health->child_count; i++) {
        struct place place = place_of(pipeline, &health->children[i]);
        struct figures figures = figures_read(&place.at);
        /* Receivers are side by side, and so are exporters. */
        bool is_next = i >= pipeline->receiver_count && i <= exporters;
        document_box(document, is_next, config_section_kinds[place.at.section],
                     place.at.component->id, describe_figures(source, &figures),
                     place.health->status);
    }
    document_end_chain(document);
}

static void print_chains(const struct page_source *source, struct document *document)
{
    const struct config *config = source->process->config;
    for (size_t i = 0; i < config->pipeline_count && !document->is_json; i++) {
        const struct health *health = health_find(source->health, config->pipelines[i].id);
        assert(health);
        print_chain(source, document, &config->pipelines[i], health);
    }
}

static void print_place(struct document *document, const struct place *place)
{
    struct figures figures = figures_read(&place->at);
    document_row(document);
    document_text(document, "kind", "Kind", config_section_kinds[place->at.section]);
    document_text(document, "id", "Component", place->at.component->id);
    document_status(document, "status", "Status", place->health->status);
    document_time(document, "status_time", "Since", place->health->since_ns);
    document_number(document, "items_in", "Items in", figures.in);
    document_number(document, "items_out", "Items out", figures.out);
    if (figures.lost_name)
        document_number(document, figures.lost_name, "Refused or failed", figures.lost);
    else
        document_none(document, "Refused or failed");
    document_text(document, "error", "Error", place->health->error);
}

static void print_pipeline(const struct page_source *source, struct document *document,
                           const struct config_pipeline *pipeline)
{
    const struct health *health = health_find(source->health, pipeline->id);
    assert(health);
    if (!document->is_json)
        print_chain(source, document, pipeline, health);
    document_begin_table(document, health->name, NULL);
    for (size_t i = 0; i < health->child_count; i++) {
        struct place place = place_of(pipeline, &health->children[i]);
        print_place(document, &place);
    }
    document_end_table(document);
}

static void print_pipelines(const struct page_source *source, struct document *document)
{
    const struct config *config = source->process->config;
    for (size_t i = 0; i < config->pipeline_count; i++)
        print_pipeline(source, document, &config->pipelines[i]);
    if (!document->is_json)
        document_paragraph(document, "note",
                           "Items are spans and samples of profiles. A component that several "
                           "pipelines share counts the items of all of them; a processor counts "
                           "in each pipeline on its own. Items that wait, are merged or are "
                           "dropped make the difference between in and out.");
}

/* ---- exporters ---- */

static void print_queue(struct document *document, const struct place *place)
{
    double capacity = figures_gauge(&place->at, "otelcol_exporter_queue_capacity");
    double limit = figures_gauge(&place->at, "profcol_exporter_held_bytes_limit");
    if (capacity > 0)
        document_share(document, "queue_size", "Queue",
                       figures_gauge(&place->at, "otelcol_exporter_queue_size"), capacity, false);
    else
        document_none(document, "Queue");
    if (limit > 0)
        document_share(document, "held_bytes", "Memory",
                       figures_gauge(&place->at, "profcol_exporter_held_bytes"), limit, true);
    else
        document_none(document, "Memory");
}

static void print_exporter(struct document *document, const struct place *place)
{
    char last_error[STATUS_ERROR_MAX];
    struct component *component = place->at.component;
    uint64_t failed_ns =
        component_status_last_error(&component->status, (int)place->at.signal, last_error);
    struct figures figures = figures_read(&place->at);
    document_row(document);
    document_text(document, "id", "Exporter", component->id);
    document_text(document, "signal", "Signal", signal_name(place->at.signal));
    document_status(document, "status", "Status", place->health->status);
    document_number(document, "sent", "Sent", figures.out);
    document_number(document, "failed", "Failed", figures.lost);
    document_number(document, "not_queued", "Not queued",
                    figures_count(&place->at, "exporter_enqueue_failed"));
    print_queue(document, place);
    document_text(document, "last_error", "Last error", last_error);
    document_time(document, "last_error_time", "When", failed_ns);
}

static bool is_first(const struct config *config, size_t pipeline,
                     const struct config_component *exporter)
{
    for (size_t i = 0; i < pipeline; i++)
        for (size_t e = 0; e < config->pipelines[i].exporter_count; e++)
            if (config->pipelines[i].exporters[e] == exporter &&
                config->pipelines[i].signal == config->pipelines[pipeline].signal)
                return false;
    return true;
}

/* One row for each exporter and signal. */
static void print_exporters(const struct page_source *source, struct document *document)
{
    const struct config *config = source->process->config;
    document_begin_table(document, "exporters", "Exporters");
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        const struct health *health = health_find(source->health, pipeline->id);
        const size_t first = pipeline->receiver_count + pipeline->processor_count;
        assert(health && health->child_count == first + pipeline->exporter_count);
        for (size_t e = 0; e < pipeline->exporter_count; e++) {
            struct place place = place_of(pipeline, &health->children[first + e]);
            if (place.at.section == CONFIG_EXPORTERS && is_first(config, i, pipeline->exporters[e]))
                print_exporter(document, &place);
        }
    }
    document_end_table(document);
}

/* ---- errors ---- */

static void print_records(struct document *document, size_t max)
{
    struct log_record *records = memory_array(LOG_RECENT_MAX, sizeof *records);
    size_t count = log_recent(records);
    assert(count <= LOG_RECENT_MAX);
    document_begin_table(document, "errors", "Recent errors and warnings");
    for (size_t i = 0; i < count && i < max; i++) {
        document_row(document);
        document_time(document, "time", "When", records[i].wall_ns);
        document_text(document, "level", "Level", log_level_name(records[i].level));
        document_text(document, "component", "Component", records[i].component);
        document_text(document, "message", "Message", records[i].message);
    }
    document_end_table(document);
    free(records);
}

static void print_logs(const struct page_source *source, struct document *document)
{
    (void)source;
    print_records(document, LOG_RECENT_MAX);
    if (!document->is_json)
        document_paragraph(document, "note",
                           "The last 100 warnings and errors of the log, newest first. A text "
                           "that repeats is sampled, as in the log. A backend that goes away has "
                           "one line; whether it is back shows as the status of its exporter.");
}

/* ---- the process ---- */

static double read_metric(const struct page_source *source, const char *name)
{
    return metrics_sum(source->process->metrics, name, "");
}

static void print_process(const struct page_source *source, struct document *document)
{
    const struct process *process = source->process;
    document_begin_fields(document, "service", NULL);
    document_status(document, "status", "Status", source->health->status);
    if (source->health->error[0])
        document_text(document, "error", "Error", source->health->error);
    document_text(document, "version", "Version", process->version);
    document_time(document, "start_time", "Started", process->started_ns);
    document_seconds(document, "uptime_seconds", "Uptime",
                     read_metric(source, "otelcol_process_uptime"));
    document_seconds(document, "cpu_seconds", "Processor time",
                     read_metric(source, "otelcol_process_cpu_seconds"));
    document_number(document, "workers", "Workers", process->worker_count);
    if (process->budget)
        document_share(document, "budget_used_bytes", "Memory for requests",
                       (double)budget_used(process->budget), (double)process->budget->limit_bytes,
                       true);
    document_bytes(document, "memory_limit_bytes", "Memory limit",
                   (double)process->memory_limit_bytes);
    document_bytes(document, "memory_rss_bytes", "Resident memory",
                   read_metric(source, "otelcol_process_memory_rss"));
    document_number(document, "connections", "Connections",
                    read_metric(source, "profcol_server_connections"));
    document_end_fields(document);
}

static void print_service(const struct page_source *source, struct document *document)
{
    print_process(source, document);
    print_chains(source, document);
    print_exporters(source, document);
    print_records(document, ERRORS_ON_OVERVIEW);
}

static void print_extensions(const struct page_source *source, struct document *document)
{
    const struct health *extensions = health_find(source->health, "extensions");
    document_begin_table(document, "extensions", NULL);
    for (size_t i = 0; extensions && i < extensions->child_count; i++) {
        const struct health *extension = &extensions->children[i];
        assert(extension->component && extension->child_count == 0);
        document_row(document);
        document_text(document, "id", "Extension", extension->component->id);
        document_status(document, "status", "Status", extension->status);
        document_time(document, "status_time", "Since", extension->since_ns);
        document_text(document, "error", "Error", extension->error);
    }
    document_end_table(document);
}

static void print_config(const struct page_source *source, struct document *document)
{
    struct text yaml = {0}, json = {0};
    config_print(source->process->config, &yaml);
    if (!config_print_json(source->process->config, &json))
        text_append(&json, "null"); /* too large */
    document_paragraph(document, "note",
                       "What `profcol print-config` prints: all defaults are written out, secrets "
                       "are masked.");
    document_verbatim(document, "config", text_string(&yaml), slice_of(json.data, json.size));
    text_deinit(&yaml);
    text_deinit(&json);
}

static void print_features(const struct page_source *source, struct document *document)
{
    (void)source;
    document_paragraph(document, "note",
                       "profcol has no feature gates. --feature-gates is accepted, so that the "
                       "Collector's command line works.");
}

static void print_traces(const struct page_source *source, struct document *document)
{
    (void)source;
    document_paragraph(document, "note",
                       "profcol records no spans of itself. What fails is on the page Errors, what "
                       "passes each component on the page Pipelines, and the metrics (port 8888 "
                       "by default) have the durations of the loops' turns "
                       "(profcol_loop_lag_seconds).");
}

/* Go's expvar has what a Go program publishes; this has the same idea. */
static void print_expvar(const struct page_source *source, struct document *document)
{
    print_process(source, document);
}

/* ---- all of them ---- */

static const struct page pages[] = {
    {{"/debug/servicez", "Overview"}, print_service, false},
    {{"/debug/pipelinez", "Pipelines"}, print_pipelines, false},
    {{"/debug/logz", "Errors"}, print_logs, false},
    {{"/debug/configz", "Configuration"}, print_config, false},
    {{"/debug/extensionz", "Extensions"}, print_extensions, false},
    {{"/debug/featurez", "Feature gates"}, print_features, false},
    {{"/debug/tracez", "Traces"}, print_traces, false},
    {{"/debug/expvarz", "Variables"}, print_expvar, true},
};
enum { PAGES = sizeof pages / sizeof pages[0] };

static const struct document_link links[] = {
    {"/debug/servicez", "Overview"},     {"/debug/pipelinez", "Pipelines"},
    {"/debug/logz", "Errors"},           {"/debug/configz", "Configuration"},
    {"/debug/extensionz", "Extensions"}, {NULL, NULL},
};

const struct page *page_at(struct slice path, bool has_expvar)
{
    if (slice_is(path, "/") || slice_is(path, "/debug") || slice_is(path, "/debug/"))
        return &pages[0];
    for (size_t i = 0; i < PAGES; i++)
        if (slice_is(path, pages[i].link.path))
            return pages[i].is_expvar && !has_expvar ? NULL : &pages[i];
    return NULL;
}

void page_print(const struct page *page, const struct page_source *source, bool is_json,
                struct text *out)
{
    struct document document;
    document_begin(&document, out, is_json, clock_wall_ns(), page->link.title, links,
                   page->link.path);
    page->print(source, &document);
    document_end(&document);
}
