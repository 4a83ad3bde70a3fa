#include "core/pipeline/health.h"

#include "config/model.h"
#include "core/pipeline/graph.h"

#include <assert.h>
#include <string.h>

#define EXTENSIONS "extensions"
#define PIPELINE "pipeline:"

/* ---- of several one ---- */

/* The first of these that any of them has. */
static const enum status_kind by_rank[] = {STATUS_FATAL_ERROR, STATUS_STARTING, STATUS_STOPPING,
                                           STATUS_STOPPED};
static const enum status_kind permanent_first[] = {STATUS_PERMANENT_ERROR,
                                                   STATUS_RECOVERABLE_ERROR};
static const enum status_kind recoverable_first[] = {STATUS_RECOVERABLE_ERROR,
                                                     STATUS_PERMANENT_ERROR};

static bool any_is(const struct health *group, enum status_kind status)
{
    for (size_t i = 0; i < group->child_count; i++)
        if (group->children[i].status == status)
            return true;
    return false;
}

static bool all_are_equal(const struct health *group)
{
    for (size_t i = 1; i < group->child_count; i++)
        if (group->children[i].status != group->children[0].status)
            return false;
    return group->child_count > 0;
}

static enum status_kind status_of_group(const struct health *group, bool is_recoverable_first)
{
    const enum status_kind *errors = is_recoverable_first ? recoverable_first : permanent_first;
    if (all_are_equal(group))
        return group->children[0].status;
    for (size_t i = 0; i < sizeof by_rank / sizeof by_rank[0]; i++)
        if (any_is(group, by_rank[i]))
            return by_rank[i] == STATUS_STOPPED ? STATUS_STOPPING : by_rank[i];
    for (size_t i = 0; i < 2; i++)
        if (any_is(group, errors[i]))
            return errors[i];
    return STATUS_NONE;
}

/* An error is that which began first: it is the most likely cause of the others. */
static void take_error(struct health *group)
{
    const struct health *first = NULL;
    for (size_t i = 0; i < group->child_count; i++) {
        const struct health *child = &group->children[i];
        if (child->status == group->status && (!first || child->since_ns < first->since_ns))
            first = child;
    }
    assert(first);
    group->since_ns = first->since_ns;
    group->error = first->error;
}

static void combine(struct health *group, bool is_recoverable_first)
{
    group->status = status_of_group(group, is_recoverable_first);
    group->error = "";
    if (status_is_error(group->status)) {
        take_error(group);
        return;
    }
    for (size_t i = 0; i < group->child_count; i++)
        if (group->children[i].since_ns > group->since_ns)
            group->since_ns = group->children[i].since_ns;
}

/* ---- components ---- */

struct reading {
    struct arena *arena;
    const struct process *process;
    bool is_recoverable_first;
};

static struct health read_component(const struct reading *reading,
                                    const struct config_component *configured, int signal)
{
    struct component *component = graph_component(reading->process->graph, configured);
    struct status_event event;
    assert(component); /* the graph has all that a pipeline uses */
    component_status_read(&component->status, signal, &event);
    return (struct health){
        .name = arena_printf(reading->arena, "%s:%s",
                             config_section_kinds[configured->type->section], configured->id),
        .component = component,
        .status = event.status,
        .since_ns = event.since_ns,
        .error = event.error[0] ? arena_strdup(reading->arena, event.error) : "",
    };
}

static void add_components(const struct reading *reading, struct health *group,
                           const struct config_component *const *components, size_t count,
                           int signal)
{
    for (size_t i = 0; i < count; i++)
        group->children[group->child_count++] = read_component(reading, components[i], signal);
}

static struct health read_pipeline(const struct reading *reading,
                                   const struct config_pipeline *pipeline)
{
    int signal = (int)graph_signal(pipeline);
    size_t count = pipeline->receiver_count + pipeline->processor_count + pipeline->exporter_count;
    struct health group = {.name = arena_printf(reading->arena, PIPELINE "%s", pipeline->id)};
    group.children = arena_array(reading->arena, count, sizeof *group.children);
    add_components(reading, &group, pipeline->receivers, pipeline->receiver_count, signal);
    add_components(reading, &group, pipeline->processors, pipeline->processor_count, signal);
    add_components(reading, &group, pipeline->exporters, pipeline->exporter_count, signal);
    assert(group.child_count == count);
    combine(&group, reading->is_recoverable_first);
    return group;
}

static struct health read_extensions(const struct reading *reading, const struct config *config)
{
    struct health group = {.name = EXTENSIONS};
    group.children = arena_array(reading->arena, config->extension_count, sizeof *group.children);
    add_components(reading, &group, config->extensions, config->extension_count,
                   STATUS_ALL_SIGNALS);
    assert(group.child_count == config->extension_count);
    combine(&group, reading->is_recoverable_first);
    return group;
}

/* A configuration that could not be loaded or applied again. It must not make a probe fail. */
static bool read_configuration(const struct reading *reading, struct health *child)
{
    struct status_event event;
    if (!reading->process->configuration)
        return false;
    component_status_read(reading->process->configuration, STATUS_ALL_SIGNALS, &event);
    if (!status_is_error(event.status))
        return false;
    *child = (struct health){.name = "configuration",
                             .status = event.status,
                             .since_ns = event.since_ns,
                             .error = arena_strdup(reading->arena, event.error),
                             .is_only_shown = true};
    return true;
}

/* Adds what is only shown. An error of a component counts more. */
static void add_configuration(const struct reading *reading, struct health *whole)
{
    struct health *child = &whole->children[whole->child_count];
    if (!read_configuration(reading, child))
        return;
    whole->child_count++;
    if (whole->status != STATUS_OK)
        return;
    whole->status = child->status;
    whole->since_ns = child->since_ns;
    whole->error = child->error;
    whole->is_only_shown = true;
}

struct health *health_read(struct arena *arena, const struct process *process,
                           bool is_recoverable_first)
{
    const struct config *config = process->config;
    const struct reading reading = {arena, process, is_recoverable_first};
    struct health *whole = arena_zalloc(arena, sizeof *whole);
    assert(config && process->graph);
    whole->name = "";
    whole->children = arena_array(arena, config->pipeline_count + 2, sizeof *whole->children);
    if (config->extension_count > 0)
        whole->children[whole->child_count++] = read_extensions(&reading, config);
    for (size_t i = 0; i < config->pipeline_count; i++)
        whole->children[whole->child_count++] = read_pipeline(&reading, &config->pipelines[i]);
    assert(whole->child_count == config->pipeline_count + (config->extension_count > 0));
    combine(whole, is_recoverable_first);
    add_configuration(&reading, whole);
    return whole;
}

const struct health *health_find(const struct health *process, const char *scope)
{
    const size_t prefix = sizeof PIPELINE - 1;
    for (size_t i = 0; i < process->child_count; i++) {
        const char *name = process->children[i].name;
        bool is_pipeline = strncmp(name, PIPELINE, prefix) == 0;
        if (strcmp(is_pipeline ? name + prefix : name, scope) == 0)
            return &process->children[i];
    }
    return NULL;
}
