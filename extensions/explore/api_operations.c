#include "extensions/explore/api_operations.h"

#include "config/config.h"
#include "core/base/clock.h"
#include "core/pipeline/figures.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/health.h"
#include "extensions/explore/join_advice.h"

#include <assert.h>

#define JOIN_TYPE "spanjoin"
#define JOIN_METRICS METRICS_OWN JOIN_TYPE "_"

/* ---- figures of a spanjoin ---- */

static struct text join_label(const char *id)
{
    struct text label = {0};
    metrics_label(&label, JOIN_TYPE, id);
    return label;
}

/* Sums a counter of the spanjoin; reason: NULL if it has none. */
static uint64_t read_count(struct metrics *metrics, const char *id, const char *name,
                           const char *reason)
{
    struct text labels = join_label(id);
    if (reason)
        metrics_label(&labels, "reason", reason);
    double value = metrics_sum(metrics, name, text_string(&labels));
    text_deinit(&labels);
    return value > 0 ? (uint64_t)value : 0;
}

struct lag_search {
    const char *labels;
    struct join_figures *figures;
};

static void take_lags(void *context, const struct metric_series *series)
{
    const struct lag_search *search = context;
    struct join_figures *figures = search->figures;
    if (strcmp(series->name, JOIN_METRICS "lag_seconds") != 0 ||
        strcmp(series->labels, search->labels) != 0 || series->bound_count > JOIN_LAGS_MAX)
        return;
    figures->bound_count = series->bound_count;
    memcpy(figures->bounds, series->bounds, series->bound_count * sizeof *series->bounds);
    memcpy(figures->counts, series->buckets, (series->bound_count + 1) * sizeof *series->buckets);
}

/* Returns a duration of the settings; block: the name of the block that has it; NULL: none. */
static int64_t read_duration(const struct config_component *component, const char *block,
                             const char *name)
{
    const struct field *fields = component->type->fields;
    const char *settings = component->settings;
    for (const struct field *field = fields; block && field->kind != FIELD_KIND_END; field++)
        if (field->kind == FIELD_KIND_BLOCK && strcmp(field->name, block) == 0) {
            settings += field->offset;
            fields = field->block;
            break;
        }
    for (const struct field *field = fields; field->kind != FIELD_KIND_END; field++)
        if (field->kind == FIELD_KIND_DURATION && strcmp(field->name, name) == 0)
            return *(const int64_t *)(const void *)(settings + field->offset);
    assert(!"the setting exists");
    return 0;
}

static struct join_figures read_join(struct metrics *metrics,
                                     const struct config_component *component)
{
    const char *id = component->id;
    struct join_figures figures = {
        .id = id,
        .window_ns = read_duration(component, NULL, "window"),
        .wait_ns = read_duration(component, "samples", "wait"),
        .joined = read_count(metrics, id, JOIN_METRICS "samples_joined", NULL),
        .by_thread = read_count(metrics, id, JOIN_METRICS "samples_joined_by_thread", NULL),
        .evicted = read_count(metrics, id, JOIN_METRICS "evicted", "full"),
    };
    for (int i = 0; i < JOIN_REASONS; i++)
        figures.unjoined[i] =
            read_count(metrics, id, JOIN_METRICS "samples_unjoined", join_reason_names[i]);
    struct text label = join_label(id);
    metrics_visit(metrics, take_lags,
                  &(struct lag_search){.labels = text_string(&label), .figures = &figures});
    text_deinit(&label);
    return figures;
}

static bool is_join(const struct config_component *component)
{
    return strcmp(component->type->name, JOIN_TYPE) == 0;
}

/* ---- /api/join ---- */

static void write_samples(const struct join_figures *figures, struct json_text *json)
{
    json_text_open(json, "samples", '{');
    json_text_number(json, "joined", (double)figures->joined);
    json_text_number(json, "by_thread", (double)figures->by_thread);
    json_text_open(json, "unjoined", '{');
    for (int i = 0; i < JOIN_REASONS; i++)
        json_text_number(json, join_reason_names[i], (double)figures->unjoined[i]);
    json_text_close(json, '}');
    json_text_close(json, '}');
}

static void write_lags(const struct join_figures *figures, struct json_text *json)
{
    json_text_open(json, "lag", '{');
    json_text_open(json, "bounds_ns", '[');
    for (size_t i = 0; i < figures->bound_count; i++)
        json_text_number(json, NULL, figures->bounds[i] * 1e9);
    json_text_close(json, ']');
    json_text_open(json, "counts", '[');
    for (size_t i = 0; figures->bound_count && i <= figures->bound_count; i++)
        json_text_number(json, NULL, (double)figures->counts[i]);
    json_text_close(json, ']');
    json_text_close(json, '}');
}

static void write_join(const struct join_figures *figures, struct json_text *json)
{
    json_text_open(json, NULL, '{');
    json_text_string(json, "id", figures->id);
    json_text_number(json, "window_ns", (double)figures->window_ns);
    json_text_number(json, "wait_ns", (double)figures->wait_ns);
    write_samples(figures, json);
    write_lags(figures, json);
    json_text_open(json, "advice", '[');
    join_advice_write(figures, json);
    json_text_close(json, ']');
    json_text_close(json, '}');
}

void api_write_join(const struct process *process, const struct join_late *late, struct text *out)
{
    struct json_text json = {.out = out};
    const struct config *config = process->config;
    json_text_open(&json, NULL, '{');
    json_text_open(&json, "spanjoin", '[');
    for (size_t i = 0; i < config->component_count[CONFIG_PROCESSORS]; i++) {
        const struct config_component *component = &config->components[CONFIG_PROCESSORS][i];
        if (!component->used || !is_join(component))
            continue;
        struct join_figures figures = read_join(process->metrics, component);
        join_late_apply(late, &figures);
        write_join(&figures, &json);
    }
    json_text_close(&json, ']');
    json_text_close(&json, '}');
}

/* ---- /api/pipelines ---- */

struct drawing {
    const struct process *process;
    const struct health *health;
    struct arena *arena;
    struct json_text json;
    const char **drawn; /* nodes or edges, because pipelines share receivers and exporters */
    uint32_t drawn_count, drawn_capacity;
};

/* Returns whether it is there for the first time. */
static bool is_new(struct drawing *drawing, const char *name)
{
    for (uint32_t i = 0; i < drawing->drawn_count; i++)
        if (strcmp(drawing->drawn[i], name) == 0)
            return false;
    drawing->drawn = arena_grow(drawing->arena, drawing->drawn, drawing->drawn_count,
                                &drawing->drawn_capacity, sizeof *drawing->drawn);
    drawing->drawn[drawing->drawn_count++] = name;
    return true;
}

/* A processor has a node in each pipeline, a connector one, the others one for each signal. */
static const char *node_id(const struct drawing *drawing, const struct figures_place *place)
{
    const char *kind = config_section_kinds[place->section];
    const char *where = place->section == CONFIG_PROCESSORS   ? place->pipeline
                        : place->section == CONFIG_CONNECTORS ? ""
                                                              : signal_name(place->signal);
    return arena_printf(drawing->arena, "%s/%s/%s", kind, place->component->id, where);
}

static void write_counters(const struct figures_place *place, struct json_text *json)
{
    struct figures figures = figures_read(place);
    json_text_open(json, "counters", '{');
    json_text_number(json, "incoming", figures.in);
    json_text_number(json, "outgoing", figures.out);
    if (place->section == CONFIG_RECEIVERS)
        json_text_number(json, "refused", figures.lost);
    if (place->section == CONFIG_EXPORTERS) {
        double limit = figures_gauge(place, "otelcol_exporter_queue_capacity");
        json_text_number(json, "dropped",
                         figures.lost + figures_count(place, "exporter_enqueue_failed"));
        if (limit > 0) {
            json_text_number(json, "queue", figures_gauge(place, "otelcol_exporter_queue_size"));
            json_text_number(json, "queue_limit", limit);
        }
    }
    json_text_close(json, '}');
}

static void write_joined(const struct drawing *drawing, const struct config_component *configured,
                         struct json_text *json)
{
    struct join_figures figures = read_join(drawing->process->metrics, configured);
    json_text_open(json, "joined", '{');
    json_text_number(json, "samples", (double)figures.joined);
    json_text_number(json, "of", (double)join_figures_samples(&figures));
    json_text_close(json, '}');
}

static void write_node(struct drawing *drawing, const struct figures_place *place,
                       const struct health *health, const struct config_component *configured)
{
    struct json_text *json = &drawing->json;
    const char *id = node_id(drawing, place);
    if (!is_new(drawing, id))
        return;
    json_text_open(json, NULL, '{');
    json_text_string(json, "id", id);
    json_text_string(json, "kind", config_section_kinds[place->section]);
    json_text_string(json, "name", place->component->id);
    json_text_string(json, "signal", signal_name(place->signal));
    json_text_string(json, "pipeline", place->pipeline);
    json_text_string(json, "status", status_name(health->status));
    json_text_string(json, "error", health->error);
    write_counters(place, json);
    if (is_join(configured) && place->signal == SIGNAL_PROFILES)
        write_joined(drawing, configured, json);
    json_text_close(json, '}');
}

static const struct config_component *configured_at(const struct config_pipeline *pipeline,
                                                    size_t number)
{
    if (number < pipeline->receiver_count)
        return pipeline->receivers[number];
    number -= pipeline->receiver_count;
    if (number < pipeline->processor_count)
        return pipeline->processors[number];
    number -= pipeline->processor_count;
    assert(number < pipeline->exporter_count);
    return pipeline->exporters[number];
}

static void write_nodes(struct drawing *drawing, const struct config_pipeline *pipeline)
{
    const struct health *health = health_find(drawing->health, pipeline->id);
    assert(health);
    for (size_t i = 0; i < health->child_count; i++) {
        const struct health *child = &health->children[i];
        struct figures_place place = figures_place_of(pipeline, child->component);
        write_node(drawing, &place, child, configured_at(pipeline, i));
    }
}

/* Nodes count what they pass on in all, and what reaches them in all. With several on both sides
 * that is the most that can have taken this way. */
static double read_edge(const struct figures_place *from, const struct figures_place *to)
{
    double out = figures_read(from).out, in = figures_read(to).in;
    return in < out ? in : out;
}

static void write_edge(struct drawing *drawing, const struct figures_place *from,
                       const struct figures_place *to)
{
    struct json_text *json = &drawing->json;
    const char *from_id = node_id(drawing, from), *to_id = node_id(drawing, to);
    if (!is_new(drawing, arena_printf(drawing->arena, "%s>%s", from_id, to_id)))
        return;
    json_text_open(json, NULL, '{');
    json_text_string(json, "from", from_id);
    json_text_string(json, "to", to_id);
    json_text_string(json, "signal", signal_name(from->signal));
    json_text_number(json, "items", read_edge(from, to));
    json_text_close(json, '}');
}

/* From each receiver to the first processor, between processors, and from the last one to each
 * exporter. Without processors from each receiver to each exporter. */
static void write_edges(struct drawing *drawing, const struct config_pipeline *pipeline)
{
    const struct health *health = health_find(drawing->health, pipeline->id);
    const size_t receivers = pipeline->receiver_count, processors = pipeline->processor_count;
    assert(health && health->child_count == receivers + processors + pipeline->exporter_count);
    for (size_t from = 0; from < receivers + processors; from++) {
        size_t next = from < receivers ? receivers : from + 1;
        size_t end = next < receivers + processors ? next + 1 : health->child_count;
        for (size_t to = next; to < end; to++) {
            struct figures_place a = figures_place_of(pipeline, health->children[from].component);
            struct figures_place b = figures_place_of(pipeline, health->children[to].component);
            write_edge(drawing, &a, &b);
        }
    }
}

static void draw(struct drawing *drawing, const char *key,
                 void (*write)(struct drawing *drawing, const struct config_pipeline *pipeline))
{
    const struct config *config = drawing->process->config;
    drawing->drawn_count = 0;
    json_text_open(&drawing->json, key, '[');
    for (size_t i = 0; i < config->pipeline_count; i++)
        write(drawing, &config->pipelines[i]);
    json_text_close(&drawing->json, ']');
}

void api_write_pipelines(const struct process *process, const struct join_late *late,
                         struct text *out)
{
    (void)late;
    struct arena arena;
    arena_init(&arena, NULL);
    struct drawing drawing = {.process = process,
                              .health = health_read(&arena, process, false),
                              .arena = &arena,
                              .json = {.out = out}};
    json_text_open(&drawing.json, NULL, '{');
    draw(&drawing, "nodes", write_nodes);
    draw(&drawing, "edges", write_edges);
    json_text_time(&drawing.json, "now", clock_wall_ns());
    json_text_close(&drawing.json, '}');
    arena_deinit(&arena);
}

/* ---- /api/config ---- */

void api_write_config(const struct process *process, const struct join_late *late, struct text *out)
{
    (void)late;
    struct json_text json = {.out = out};
    struct text yaml = {0};
    config_print(process->config, &yaml);
    json_text_open(&json, NULL, '{');
    json_text_slice(&json, "text", slice_of(yaml.data, yaml.size));
    json_text_close(&json, '}');
    text_deinit(&yaml);
}
