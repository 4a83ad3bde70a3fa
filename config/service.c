#include "config/service.h"

#include "config/connections.h"
#include "config/node.h"
#include "config/sections.h"
#include "config/suggest.h"

#include <assert.h>
#include <stdlib.h>

enum { PIPELINES_MAX = 1000, MEMBERS_MAX = 1000 };

/* ---- lists of ids ---- */

static void tell_undefined(struct config_check *check, const struct config_node *item,
                           const struct config_path *path, enum config_section section,
                           const struct config_id *id)
{
    if (config_is_misspelt(check, section, id))
        return; /* the error stands where it is defined */
    const char *near = config_suggest_component(check, section, id);
    const char *kind = config_section_kinds[section];
    const char *written = config_quote(check->arena, id->text);
    if (near)
        config_error_at(check, item->place, path,
                        "references %s %s which is not configured, did you mean \"%s\"?", kind,
                        written, near);
    else
        config_error_at(check, item->place, path,
                        "references %s %s which is not configured; it needs an entry under %s",
                        kind, written, config_section_names[section]);
}

static struct config_component *resolve(struct config_check *check, const struct config_node *item,
                                        const struct config_path *path, enum config_section section)
{
    if (item->broken)
        return NULL;
    if (item->kind != CONFIG_NODE_SCALAR) {
        config_error_at(check, item->place, path, "expected the id of a %s, got %s",
                        config_section_kinds[section], config_node_describe(item));
        return NULL;
    }
    struct config_id id;
    const char *problem = config_id_parse(check->arena, config_node_verbatim(item), &id);
    if (problem) {
        config_error_at(check, item->place, path, "%s", problem);
        return NULL;
    }
    struct config_component *component = config_find_component(check->config, section, id.text);
    if (!component && (section == CONFIG_RECEIVERS || section == CONFIG_EXPORTERS))
        component = config_find_component(check->config, CONFIG_CONNECTORS, id.text);
    if (!component)
        tell_undefined(check, item, path, section, &id);
    return component;
}

struct members {
    const struct config_component **items;
    size_t count;
};

static bool contains(const struct members *members, const struct config_component *component)
{
    for (size_t i = 0; i < members->count; i++)
        if (members->items[i] == component)
            return true;
    return false;
}

/* Reports a component that occurs twice in a list. A processor would do its work twice; for others,
 * once must be meant. */
static bool tell_repeated(struct config_check *check, const struct config_node *item,
                          const struct config_path *path, const struct config_component *component,
                          enum config_section section)
{
    if (section == CONFIG_PROCESSORS)
        return config_error_at(check, item->place, path,
                               "references processor \"%s\" multiple times", component->id);
    config_warn_at(check, item->place, path, "references %s \"%s\" multiple times, once is enough",
                   config_section_kinds[section], component->id);
    return false;
}

/* Reads a list of ids. path: of the pipeline, or of service::extensions. */
static struct members read_members(struct config_check *check, const struct config_node *list,
                                   const struct config_path *path, enum config_section section)
{
    struct members members = {0};
    if (config_node_kind(list) == CONFIG_NODE_NULL || list->broken)
        return members;
    if (list->kind != CONFIG_NODE_LIST) {
        config_error_at(check, list->place, path, "expected a list of %s, got %s",
                        config_section_names[section], config_node_describe(list));
        return members;
    }
    if (list->count > MEMBERS_MAX) {
        config_error_at(check, list->place, path, "at most %d are allowed", MEMBERS_MAX);
        return members;
    }
    members.items = arena_array(check->arena, list->count, sizeof(void *));
    for (size_t i = 0; i < list->count; i++) {
        struct config_component *component = resolve(check, list->items[i], path, section);
        if (!component)
            continue;
        if (contains(&members, component)) {
            tell_repeated(check, list->items[i], path, component, section);
            continue;
        }
        assert(members.count <= i);
        component->used = true;
        members.items[members.count++] = component;
    }
    return members;
}

/* ---- pipelines ---- */

static bool signal_of(const char *name, enum config_signal *signal_out)
{
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++)
        if (strcmp(name, config_signal_names[signal]) == 0) {
            *signal_out = (enum config_signal)signal;
            return true;
        }
    return false;
}

static bool read_pipeline_id(struct config_check *check, const struct config_path *path,
                             const struct config_node *key, struct config_pipeline *out)
{
    struct config_id id;
    const char *problem = config_id_parse(check->arena, key->text, &id);
    out->id = id.text;
    if (problem)
        return config_error_at(check, key->place, path, "%s", problem);
    if (signal_of(id.type, &out->signal))
        return true;
    const char *near = config_suggest(id.type, config_signal_names, CONFIG_SIGNAL_COUNT);
    return config_error_at(check, key->place, path,
                           "in \"%s\" id: unknown pipeline signal: \"%s\"%s%s%s", id.text, id.type,
                           near ? ", did you mean \""
                                : "; the signals are traces, profiles, metrics and logs",
                           near ? near : "", near ? "\"?" : "");
}

/* Whether a component can be on a side of a pipeline. */
static bool carries(const struct config_type *type, enum config_section side,
                    enum config_signal signal)
{
    if (type->section == CONFIG_CONNECTORS && side == CONFIG_RECEIVERS)
        return config_connector_emits(type, signal);
    return type->stability[signal] != STABILITY_NONE;
}

static const char *signals_of(struct arena *arena, const struct config_type *type,
                              enum config_section side)
{
    const char *list = "", *last = NULL;
    for (int signal = 0; signal < CONFIG_SIGNAL_COUNT; signal++) {
        if (!carries(type, side, (enum config_signal)signal))
            continue;
        if (last)
            list = arena_printf(arena, "%s%s%s", list, *list ? ", " : "", last);
        last = config_signal_names[signal];
    }
    if (!last)
        return "nothing";
    return *list ? arena_printf(arena, "%s and %s", list, last) : last;
}

static void check_signals(struct config_check *check, const struct config_path *path,
                          const struct config_node *list, const struct members *members,
                          enum config_section side, const struct config_pipeline *pipeline)
{
    assert(list || members->count == 0);
    for (size_t i = 0; i < members->count; i++) {
        const struct config_component *component = members->items[i];
        if (!component->type || carries(component->type, side, pipeline->signal))
            continue;
        struct config_place place = list->place;
        for (size_t k = 0; k < list->count; k++)
            if (strcmp(config_node_verbatim(list->items[k]), component->id) == 0)
                place = list->items[k]->place;
        bool is_relayed = pipeline->signal == CONFIG_METRICS || pipeline->signal == CONFIG_LOGS;
        config_error_at(check, place, path, "the %s \"%s\" does not support %s, only %s%s",
                        config_section_kinds[component->type->section], component->id,
                        config_signal_names[pipeline->signal],
                        signals_of(check->arena, component->type, side),
                        is_relayed ? "; profcol only relays metrics and logs: remove it from this "
                                     "pipeline"
                                   : "");
    }
}

/* Returns an earlier pipeline of the same signal that has this component; NULL if there is none. */
static const struct config_pipeline *other_pipeline(const struct config *config,
                                                    const struct config_component *component,
                                                    enum config_signal signal)
{
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (pipeline->signal == signal &&
            config_list_has(pipeline->processors, pipeline->processor_count, component))
            return pipeline;
    }
    return NULL;
}

static void check_single_places(struct config_check *check, const struct config_path *path,
                                const struct config_node *key,
                                const struct config_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->processor_count; i++) {
        const struct config_component *component = pipeline->processors[i];
        assert(component->used); /* read_members has set it */
        if (!component->type || !component->type->one_pipeline_per_signal)
            continue;
        const struct config_pipeline *other =
            other_pipeline(check->config, component, pipeline->signal);
        if (other)
            config_error_at(check, key->place, path,
                            "the processor \"%s\" is already used in pipeline \"%s\"; give this "
                            "pipeline its own (\"%s/NAME\")",
                            component->id, other->id, component->type->name);
    }
}

static const char *const pipeline_keys[] = {"receivers", "processors", "exporters"};

static void check_pipeline_keys(struct config_check *check, const struct config_path *path,
                                const struct config_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        const char *text = node->keys[i]->text;
        const char *near = config_suggest(text, pipeline_keys, 3);
        if (near && strcmp(near, text) == 0)
            continue;
        config_error_at(check, node->keys[i]->place, path, "unknown key %s%s%s%s",
                        config_quote(check->arena, text),
                        near ? ", did you mean \""
                             : "; the keys are receivers, processors, exporters",
                        near ? near : "", near ? "\"?" : "");
    }
}

static struct members read_side(struct config_check *check, const struct config_path *path,
                                const struct config_node *node, enum config_section section,
                                const struct config_pipeline *pipeline)
{
    assert((size_t)section < sizeof pipeline_keys / sizeof *pipeline_keys);
    const struct config_node *list = config_node_get(node, pipeline_keys[section]);
    struct members members = read_members(check, list, path, section);
    check_signals(check, path, list, &members, section, pipeline);
    return members;
}

static bool has_items(const struct config_node *pipeline, const char *key)
{
    const struct config_node *list = config_node_get(pipeline, key);
    return list && (list->kind != CONFIG_NODE_NULL || list->broken) &&
           (list->kind != CONFIG_NODE_LIST || list->count);
}

static void decode_pipeline(struct config_check *check, const struct config_path *parent,
                            const struct config_node *key, const struct config_node *node)
{
    struct config_pipeline pipeline = {0};
    if (node->broken || !read_pipeline_id(check, parent, key, &pipeline))
        return;
    struct config_path path = {.parent = parent, .name = pipeline.id};
    for (size_t i = 0; i < check->config->pipeline_count; i++)
        if (strcmp(pipeline.id, check->config->pipelines[i].id) == 0) {
            config_error_at(check, key->place, parent,
                            "duplicate name \"%s\": it is already defined above", pipeline.id);
            return;
        }
    if (node->kind == CONFIG_NODE_SCALAR || node->kind == CONFIG_NODE_LIST) {
        config_error_at(check, node->place, &path, "expected a map, got %s",
                        config_node_describe(node));
        return;
    }
    check_pipeline_keys(check, &path, node);
    struct members receivers = read_side(check, &path, node, CONFIG_RECEIVERS, &pipeline);
    struct members processors = read_side(check, &path, node, CONFIG_PROCESSORS, &pipeline);
    struct members exporters = read_side(check, &path, node, CONFIG_EXPORTERS, &pipeline);
    pipeline.receivers = receivers.items;
    pipeline.receiver_count = receivers.count;
    pipeline.processors = processors.items;
    pipeline.processor_count = processors.count;
    pipeline.exporters = exporters.items;
    pipeline.exporter_count = exporters.count;
    if (!has_items(node, "receivers"))
        config_error_at(check, key->place, &path, "must have at least one receiver");
    if (!has_items(node, "exporters"))
        config_error_at(check, key->place, &path, "must have at least one exporter");
    check_single_places(check, &path, key, &pipeline);
    assert(check->config->pipeline_count < PIPELINES_MAX);
    check->config->pipelines[check->config->pipeline_count++] = pipeline;
}

static void decode_pipelines(struct config_check *check, const struct config_path *service,
                             const struct config_node *key, const struct config_node *node)
{
    struct config_path path = {.parent = service, .name = "pipelines"};
    if (node && node->broken)
        return;
    if (node && (node->kind == CONFIG_NODE_SCALAR || node->kind == CONFIG_NODE_LIST)) {
        config_error_at(check, node->place, &path, "expected a map of pipelines, got %s",
                        config_node_describe(node));
        return;
    }
    size_t count = config_node_count(node);
    if (count == 0 || count > PIPELINES_MAX) {
        config_error_at(check, key->place, &path,
                        count ? "at most %d are allowed"
                              : "service must have at least one pipeline",
                        PIPELINES_MAX);
        return;
    }
    assert(node);
    check->config->pipelines = arena_array(check->arena, count, sizeof(struct config_pipeline));
    for (size_t i = 0; i < count; i++)
        decode_pipeline(check, &path, node->keys[i], node->items[i]);
}

/* ---- service ---- */

static void decode_extensions(struct config_check *check, const struct config_path *service,
                              const struct config_node *node)
{
    struct config_path path = {.parent = service, .name = "extensions"};
    struct members members = read_members(check, node, &path, CONFIG_EXTENSIONS);
    check->config->extensions = members.items;
    check->config->extension_count = members.count;
}

static void check_service_keys(struct config_check *check, const struct config_path *path,
                               const struct config_node *node)
{
    static const char *const keys[] = {"pipelines", "extensions", "telemetry"};
    for (size_t i = 0; i < node->count; i++) {
        const char *text = node->keys[i]->text;
        const char *near = config_suggest(text, keys, 3);
        if (near && strcmp(near, text) == 0)
            continue;
        config_error_at(check, node->keys[i]->place, path, "unknown key %s%s%s%s",
                        config_quote(check->arena, text),
                        near ? ", did you mean \""
                             : "; the keys are pipelines, extensions, telemetry",
                        near ? near : "", near ? "\"?" : "");
    }
}

static const struct config_node *key_or(const struct config_node *map, const char *name,
                                        const struct config_node *otherwise)
{
    size_t found = config_node_find(map, name);
    return !map || found == SIZE_MAX ? otherwise : map->keys[found];
}

void config_decode_service(struct config_check *check, const struct config_node *key,
                           const struct config_node *node)
{
    struct config_path path = {.name = "service"};
    if (node && node->broken)
        return;
    if (node && (node->kind == CONFIG_NODE_SCALAR || node->kind == CONFIG_NODE_LIST)) {
        config_error_at(check, node->place, &path, "expected a map, got %s",
                        config_node_describe(node));
        return;
    }
    if (node)
        check_service_keys(check, &path, node);
    decode_extensions(check, &path, config_node_get(node, "extensions"));
    decode_pipelines(check, &path, key_or(node, "pipelines", key),
                     config_node_get(node, "pipelines"));
    config_check_connections(check);
    struct config_path telemetry = {.parent = &path, .name = "telemetry"};
    config_telemetry_apply(check, &telemetry, key_or(node, "telemetry", key),
                           config_node_get(node, "telemetry"));
}

void config_warn_unused(struct config_check *check)
{
    for (int section = 0; section < CONFIG_SECTION_COUNT; section++)
        for (size_t i = 0; i < check->config->component_count[section]; i++) {
            const struct config_component *component = &check->config->components[section][i];
            if (component->used)
                continue;
            struct config_path parent = {.name = config_section_names[section]};
            struct config_path path = {.parent = &parent, .name = component->id};
            config_warn_at(check, component->key->place, &path,
                           section == CONFIG_EXTENSIONS
                               ? "is not started: it is not in service::extensions"
                               : "is not used by any pipeline");
        }
}
