/*
 * transform_processor: changes what is in requests by OTTL statements.
 *
 * It is the Collector's `transform` processor, for traces down to the events of a span, for
 * profiles down to the samples, and for metrics and logs down to their scopes.
 *
 * Owner: the component owns the programs, which are read-only; each node its evaluators.
 *
 * Thread: that of each node; large batches are changed in a job.
 */
#include "core/base/memory.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "processors/transform/transform_walk.h"

/* A usual statement takes a quarter of a microsecond for each span. */
enum { FEW_STATEMENTS = 8, LARGE_BYTES = 256 << 10, LARGE_FOR_MANY_BYTES = 64 << 10 };

extern const struct component_type transform_processor_type;

struct transform_component {
    struct component component;                        /* first */
    struct transform_programs *programs[SIGNAL_COUNT]; /* of each group */
};

struct transform_node {
    struct node node; /* first */
    struct large_batches batches;
    struct transform_walk walk;
};

static struct transform_component *component_of(struct component *component)
{
    return component_as(struct transform_component, component, &transform_processor_type);
}

static struct transform_node *node_of(struct node *node)
{
    return node_as(struct transform_node, node, &transform_processor_type);
}

static const struct transform_plan *plan_of(const struct component *component, int signal)
{
    const struct transform_settings *settings = component->settings;
    return &settings->plans[signal];
}

/* ---- the component ---- */

static bool init_group(const struct transform_group *group, struct transform_programs *programs,
                       struct error *err)
{
    programs->conditions =
        memory_zalloc((group->conditions.count + 1) * sizeof(struct ottl_program *));
    programs->statements =
        memory_zalloc((group->statements.count + 1) * sizeof(struct ottl_program *));
    for (size_t i = 0; i < group->conditions.count; i++)
        if (!(programs->conditions[i] = transform_compile_condition(group, i, err)))
            return false;
    for (size_t i = 0; i < group->statements.count; i++)
        if (!(programs->statements[i] = transform_compile_statement(group, i, err)))
            return false;
    return true;
}

static void free_programs(struct ottl_program **programs, size_t count)
{
    for (size_t i = 0; programs && i < count; i++)
        ottl_program_free(programs[i]);
    free(programs);
}

static void transform_deinit(struct component *component)
{
    struct transform_component *transform = component_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        const struct transform_plan *plan = plan_of(component, signal);
        struct transform_programs *programs = transform->programs[signal];
        for (uint32_t i = 0; programs && i < plan->count; i++) {
            free_programs(programs[i].conditions, plan->groups[i].conditions.count);
            free_programs(programs[i].statements, plan->groups[i].statements.count);
        }
        free(programs);
    }
}

static bool transform_init(struct component *component, struct error *err)
{
    struct transform_component *transform = component_of(component);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        const struct transform_plan *plan = plan_of(component, signal);
        struct transform_programs *programs = memory_zalloc((plan->count + 1) * sizeof *programs);
        transform->programs[signal] = programs;
        for (uint32_t i = 0; i < plan->count; i++)
            if (!init_group(&plan->groups[i], &programs[i], err)) {
                transform_deinit(component);
                return false;
            }
    }
    return true;
}

/* ---- nodes ---- */

static uint64_t transform_batch(struct node *node, struct batch *batch)
{
    struct transform_walk *walk = &node_of(node)->walk;
    transform_walk_batch(walk, batch);
    if (walk->changed && batch->signal == SIGNAL_PROFILES)
        batch_prune(batch); /* what was replaced must not leave in the dictionary */
    return 0;
}

static void forward_transformed(struct node *node, struct batch *batch, uint64_t result)
{
    const struct transform_walk *walk = &node_of(node)->walk;
    (void)result;
    if (walk->errors.failed) {
        struct verdict verdict = ottl_errors_verdict(&walk->errors, batch->acknowledged);
        node_refuse(node, batch, REFUSED_FAILED, &verdict);
    } else {
        node_forward(node, batch);
    }
}

static const struct batch_work few_work = {
    .work = transform_batch, .forward = forward_transformed, .large_bytes = LARGE_BYTES};
static const struct batch_work many_work = {
    .work = transform_batch, .forward = forward_transformed, .large_bytes = LARGE_FOR_MANY_BYTES};

static bool has_few_statements(const struct transform_plan *plan)
{
    size_t count = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        count += plan->groups[i].conditions.count + plan->groups[i].statements.count;
    return count <= FEW_STATEMENTS;
}

static void transform_consume(struct node *node, struct batch *batch)
{
    if (plan_of(node->component, batch->signal)->count == 0)
        node_forward(node, batch);
    else
        large_batches_add(&node_of(node)->batches, batch);
}

static bool transform_node_start(struct node *node, struct error *err)
{
    struct transform_component *transform = component_of(node->component);
    const struct transform_plan *plan = plan_of(node->component, node->signal);
    (void)err;
    transform_walk_init(&node_of(node)->walk, plan, transform->component.label,
                        transform->programs[node->signal]);
    large_batches_init(&node_of(node)->batches, node,
                       has_few_statements(plan) ? &few_work : &many_work);
    return true;
}

static bool transform_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct transform_node, node, &transform_processor_type)->batches);
}

static void transform_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    transform_walk_deinit(&node_of(node)->walk);
}

const struct component_type transform_processor_type = {
    .config =
        {
            .name = "transform",
            .section = CONFIG_PROCESSORS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_DEVELOPMENT,
                          [CONFIG_LOGS] = STABILITY_DEVELOPMENT},
            .help = "Changes spans, events of spans, profiles and samples by OTTL statements, and "
                    "resources and scopes of all signals.",
            .fields = transform_fields,
            .config_size = sizeof(struct transform_settings),
            .check = transform_check,
            .checks_despite_mistakes = true,
        },
    .component_size = sizeof(struct transform_component),
    .init = transform_init,
    .deinit = transform_deinit,
    .node_size = sizeof(struct transform_node),
    .node_start = transform_node_start,
    .consume = transform_consume,
    .is_idle = transform_is_idle,
    .node_stop = transform_node_stop,
};
