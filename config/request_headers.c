#include "config/request_headers.h"

#include "config/loading.h"

#include <assert.h>

/* Whether a listener of a receiver asks an authenticator. */
static bool authenticates(const struct config_component *receiver)
{
    struct config_same_listener listeners[CONFIG_LISTENERS_MAX];
    const void *settings = receiver->settings;
    size_t count = receiver->type->same_listeners
                       ? receiver->type->same_listeners(settings, settings, listeners)
                       : 0;
    for (size_t i = 0; i < count; i++)
        if (listeners[i].authenticator)
            return true;
    return false;
}

/* Of a component with mistakes nothing is known. */
static bool passes(const struct config_component *component, const char *name)
{
    const struct config_type *type = component->type;
    if (!component->is_decoded)
        return true;
    if (!name && type->section == CONFIG_RECEIVERS)
        return authenticates(component);
    if (type->passes_header)
        return type->passes_header(component->settings, name);
    return type->section != CONFIG_RECEIVERS;
}

static bool is_connector(const struct config_component *component)
{
    return component->type && component->type->section == CONFIG_CONNECTORS;
}

struct search {
    const struct config *config;
    const char *name;
    const struct config_component **lost; /* by pipeline; NULL: it was not looked at, because the
                                             search ends where nothing is lost */
};

static const struct config_component *lost_in(struct search *search,
                                              const struct config_pipeline *pipeline,
                                              const struct config_component *component);

/* Looks at the pipelines before a connector. Recursion is as deep as pipelines are in a row, of
 * which there are at most 1,000. */
static const struct config_component *lost_before(struct search *search,
                                                  const struct config_component *connector)
{
    const struct config_component *lost = NULL;
    for (size_t i = 0; i < search->config->pipeline_count; i++) {
        const struct config_pipeline *before = &search->config->pipelines[i];
        if (!config_list_has(before->exporters, before->exporter_count, connector))
            continue;
        if (!search->lost[i])
            search->lost[i] = lost_in(search, before, NULL);
        if (!search->lost[i])
            return NULL;
        lost = lost ? lost : search->lost[i];
    }
    return lost;
}

static const struct config_component *lost_at_receivers(struct search *search,
                                                        const struct config_pipeline *pipeline)
{
    const struct config_component *lost = NULL;
    for (size_t i = 0; i < pipeline->receiver_count; i++) {
        const struct config_component *receiver = pipeline->receivers[i], *at = receiver;
        if (passes(receiver, search->name))
            at = is_connector(receiver) ? lost_before(search, receiver) : NULL;
        if (!at)
            return NULL;
        lost = lost ? lost : at;
    }
    return lost;
}

/* component: NULL: up to the end of the pipeline. */
static const struct config_component *lost_in(struct search *search,
                                              const struct config_pipeline *pipeline,
                                              const struct config_component *component)
{
    for (size_t i = 0; i < pipeline->processor_count && pipeline->processors[i] != component; i++)
        if (!passes(pipeline->processors[i], search->name))
            return pipeline->processors[i];
    return lost_at_receivers(search, pipeline);
}

const struct config_component *config_header_lost_at(const struct config *config,
                                                     const struct config_pipeline *pipeline,
                                                     const struct config_component *component,
                                                     const char *name)
{
    struct arena arena;
    assert(pipeline >= config->pipelines && pipeline < config->pipelines + config->pipeline_count);
    arena_init(&arena, NULL);
    struct search search = {config, name,
                            arena_array(&arena, config->pipeline_count, sizeof(void *))};
    const struct config_component *lost = lost_in(&search, pipeline, component);
    arena_deinit(&arena);
    return lost;
}

const char *config_header_remedy(struct arena *arena, const struct config_component *lost,
                                 const char *name)
{
    if (!name)
        return arena_printf(arena,
                            lost->type->section == CONFIG_RECEIVERS
                                ? "set auth: {authenticator: ...} at the listeners of \"%s\""
                                : "\"%s\" loses it; put that one behind",
                            lost->id);
    if (lost->type->section == CONFIG_RECEIVERS)
        return arena_printf(arena, "set include_metadata: true at the listeners of \"%s\"",
                            lost->id);
    return arena_printf(arena, "add %s to metadata_keys of \"%s\"", name, lost->id);
}

/* Whether data reaches the component in the pipeline, other than from another pipeline. */
static bool is_reached_in(const struct config_pipeline *pipeline,
                          const struct config_component *component)
{
    return config_list_has(pipeline->processors, pipeline->processor_count, component) ||
           config_list_has(pipeline->exporters, pipeline->exporter_count, component);
}

void config_check_header(struct config_check *check, const char *key, const char *name,
                         const char *so)
{
    const struct config *config = check->config;
    const struct config_component *lost = NULL;
    const char *header = name ? arena_lower_case(check->arena, name) : NULL;
    for (size_t i = 0; i < config->pipeline_count; i++) {
        const struct config_pipeline *pipeline = &config->pipelines[i];
        if (!is_reached_in(pipeline, check->component))
            continue;
        const struct config_component *at =
            config_header_lost_at(config, pipeline, check->component, header);
        if (!at)
            return;
        lost = lost ? lost : at;
    }
    if (lost)
        config_check_warn(check, key, "%s here, so %s: %s",
                          name ? "no request has this header" : "no client is authenticated", so,
                          config_header_remedy(check->arena, lost, header));
}
