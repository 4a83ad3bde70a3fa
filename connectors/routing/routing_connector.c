/*
 * routing_connector: passes data on to the pipelines of the first route whose condition it meets.
 *
 * A batch that belongs to several destinations is split (routing_plan.h). Each part is a batch with
 * its own part of the receipt: if one is refused, the sender sends everything again, and what was
 * accepted arrives twice, as with every split request.
 *
 * Owner: the component owns the routes, each node its plan.
 *
 * Thread: that of each node; large batches are planned in a job.
 */
#include "connectors/routing/routing_plan.h"
#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/pipeline/component_as.h"
#include "core/pipeline/large_batches.h"
#include "core/pipeline/reservation.h"

#include <assert.h>
#include <stdio.h>

extern const struct component_type routing_connector_type;

/* Conditions on each span take about 100 ns, a part is copied. */
enum { LARGE_BYTES = 256 << 10 };

struct routing_component {
    struct component component; /* first */
    struct arena arena;
    struct routes routes;
    struct counter *dropped[SIGNAL_COUNT];
};

struct routing_node {
    struct node node; /* first */
    struct large_batches batches;
    struct routing_plan plan;
};

static struct routing_component *component_of(struct component *component)
{
    return component_as(struct routing_component, component, &routing_connector_type);
}

static struct routing_node *node_of(struct node *node)
{
    return node_as(struct routing_node, node, &routing_connector_type);
}

/* ---- routes ---- */

static bool are_same(const struct config_strings *a, const struct config_strings *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

/* Returns the destination with these pipelines, a new one if there is none. */
static uint32_t destination_for(struct routes *routes, const struct config_strings *pipelines)
{
    for (uint32_t i = 0; i < routes->destination_count; i++)
        if (are_same(routes->destinations[i].pipelines, pipelines))
            return i;
    routes->destinations[routes->destination_count].pipelines = pipelines;
    return routes->destination_count++;
}

/* A condition that stands in the table already can never match here, unless the first one copies;
 * the Collector ignores it in both cases. */
static bool is_repeated(const struct routes *routes, const struct route *route)
{
    for (uint32_t i = 0; i < routes->count; i++)
        if (routes->items[i].condition.context == route->condition.context &&
            strcmp(routes->items[i].text, route->text) == 0)
            return true;
    return false;
}

static bool add_route(struct routing_component *routing, const struct routing_entry *entry,
                      struct error *err)
{
    struct routes *routes = &routing->routes;
    struct route *route = &routes->items[routes->count];
    route->text = routing_entry_text(entry);
    route->is_copy = entry->action == ROUTING_COPY;
    if (!route_condition_init(&route->condition, entry, &routing->arena, err))
        return false;
    if (is_repeated(routes, route)) {
        log_warn(log_component(routing->component.label),
                 "A condition already exists in the routing table, this route is ignored",
                 LOG_TEXT("condition", route->text));
        route_condition_deinit(&route->condition);
        return true;
    }
    route->destination = destination_for(routes, &entry->pipelines);
    routes->has_spans |= route->condition.context == ROUTING_BY_SPAN;
    routes->has_groups |= route->condition.context == ROUTING_BY_RESOURCE;
    routes->count++;
    return true;
}

static void routing_deinit(struct component *component)
{
    struct routing_component *routing = component_of(component);
    for (uint32_t i = 0; i < routing->routes.count; i++)
        route_condition_deinit(&routing->routes.items[i].condition);
    arena_deinit(&routing->arena);
}

static void make_counters(struct routing_component *routing)
{
    struct text labels = {0}, name = {0};
    metrics_label(&labels, "connector", routing->component.id);
    for (int signal = 0; signal < SIGNAL_COUNT; signal++) {
        text_clear(&name);
        text_printf(&name, "profcol_routing_dropped_%s", signal_item_name((enum signal)signal));
        routing->dropped[signal] =
            metrics_counter(routing->component.process->metrics, text_string(&name),
                            "Items that no route took, because there are no default_pipelines.",
                            text_string(&labels));
    }
    text_deinit(&labels);
    text_deinit(&name);
}

static bool routing_init(struct component *component, struct error *err)
{
    struct routing_component *routing = component_of(component);
    const struct routing_settings *settings = component->settings;
    const struct routing_entry *entries = settings->table.items;
    struct routes *routes = &routing->routes;
    arena_init(&routing->arena, NULL);
    size_t count = settings->table.count;
    routes->label = component->label;
    routes->error_mode = (enum ottl_error_mode)settings->error_mode;
    routes->items = arena_array(&routing->arena, count, sizeof *routes->items);
    routes->destinations = arena_array(&routing->arena, count + 1, sizeof *routes->destinations);
    for (size_t i = 0; i < count; i++)
        if (!add_route(routing, &entries[i], err)) {
            routing_deinit(component);
            return false;
        }
    routes->fallback = settings->default_pipelines.count > 0
                           ? destination_for(routes, &settings->default_pipelines)
                           : UINT32_MAX;
    make_counters(routing);
    return true;
}

/* ---- the branches of a destination ---- */

struct chosen {
    struct branch **branches;
    size_t count;
};

static bool has_branch(const struct chosen *chosen, const struct branch *branch)
{
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->branches[i] == branch)
            return true;
    return false;
}

/* Whether a branch leads to a pipeline with processors, or, without `pipeline`, to this component.
 */
static bool leads_to(const struct branch *branch, const char *pipeline,
                     const struct config_component *configured)
{
    const struct node *to = branch->to;
    if (pipeline)
        return to->pipeline && strcmp(to->pipeline, pipeline) == 0;
    return !to->pipeline && &to->component->type->config == configured->type &&
           strcmp(to->component->id, configured->id) == 0;
}

/* Adds the first such branch that is not chosen yet: two pipelines may begin with one exporter. */
static void choose_one(const struct outlet *outlet, struct chosen *chosen, const char *pipeline,
                       const struct config_component *configured)
{
    for (size_t i = 0; i < outlet->count; i++)
        if (leads_to(outlet->branches[i], pipeline, configured) &&
            !has_branch(chosen, outlet->branches[i])) {
            chosen->branches[chosen->count++] = outlet->branches[i];
            return;
        }
}

static void choose_pipeline(const struct outlet *outlet, struct chosen *chosen,
                            const struct config_pipeline *pipeline)
{
    if (pipeline->processor_count > 0)
        choose_one(outlet, chosen, pipeline->id, NULL);
    for (size_t i = 0; pipeline->processor_count == 0 && i < pipeline->exporter_count; i++)
        choose_one(outlet, chosen, NULL, pipeline->exporters[i]);
}

/* Fills *chosen, whose array has room for all branches, with those of the signal. They are looked
 * up for each batch, because they belong to the graph. */
static void choose(const struct routing_node *routing, const struct destination *destination,
                   enum signal signal, struct chosen *chosen)
{
    const struct node *node = &routing->node;
    const struct config *config = node->component->pipelines;
    const struct config_strings *ids = destination->pipelines;
    chosen->count = 0;
    for (size_t i = 0; i < ids->count; i++)
        for (size_t k = 0; k < config->pipeline_count; k++)
            if (strcmp(config->pipelines[k].id, ids->items[i]) == 0 &&
                (int)config->pipelines[k].signal == (int)signal)
                choose_pipeline(&node->outlets[signal], chosen, &config->pipelines[k]);
}

/* ---- forwarding ---- */

static void forward_part(struct routing_node *routing, struct batch *part, uint32_t destination)
{
    static const struct verdict no_pipeline = {
        .code = GRPC_UNAVAILABLE, .retry_after_ns = -1, .text = "the route has no pipeline"};
    const struct outlet *outlet = &routing->node.outlets[part->signal];
    struct chosen chosen = {memory_array(outlet->count + 1, sizeof(struct branch *)), 0};
    choose(routing, &routing->plan.routes->destinations[destination], part->signal, &chosen);
    if (chosen.count > 0)
        node_forward_to(&routing->node, part, chosen.branches, chosen.count);
    else
        batch_drop(part, &no_pipeline);
    free(chosen.branches);
}

/* Returns a batch for a destination, with its part of the receipt. The last whole one is the batch
 * itself. */
static struct batch *take_part(struct routed_part *planned, struct batch *batch, bool is_itself)
{
    if (is_itself)
        return batch;
    struct batch *part = planned->is_whole
                             ? batch_clone(batch)
                             : batch_new(batch->owner, batch->signal, planned->buffer,
                                         planned->items, NULL, context_ref(batch->context));
    planned->buffer = NULL;
    part->receipt = batch->receipt;
    batch_copy_origin(part, batch);
    part->reservation = reservation_ref(batch->reservation);
    batch_copy_way(part, batch);
    return part;
}

/* A part of a batch, or an empty one, which goes nowhere. */
static bool is_sent(const struct routed_part *part)
{
    return part->is_whole || part->buffer;
}

struct sending {
    struct batch *batch;
    uint32_t destination;
};

/* Makes a batch of each part. Returns their number; the batch is then gone, or one of them. */
static uint32_t take_parts(struct routing_plan *plan, struct batch *batch, struct sending *sendings)
{
    uint32_t count = 0, own = UINT32_MAX, last = plan->routes->destination_count;
    for (uint32_t i = 0; i < last; i++) {
        count += is_sent(&plan->parts[i]);
        own = plan->parts[i].is_whole ? i : own;
    }
    if (count > 1 && batch->receipt)
        receipt_add_parts(batch->receipt, count - 1);
    count = 0;
    for (uint32_t i = 0; i < last; i++)
        if (is_sent(&plan->parts[i]))
            sendings[count++] = (struct sending){take_part(&plan->parts[i], batch, i == own), i};
    if (own == UINT32_MAX && count > 0) {
        batch->receipt = NULL; /* it is with the parts */
        batch_free(batch);
    }
    return count;
}

static void refuse(struct routing_node *routing, struct batch *batch)
{
    struct verdict verdict = ottl_errors_verdict(&routing->plan.errors, batch->acknowledged);
    node_refuse(&routing->node, batch, REFUSED_FAILED, &verdict);
}

static void forward_planned(struct node *node, struct batch *batch, uint64_t result)
{
    struct routing_node *routing = node_of(node);
    struct routing_plan *plan = &routing->plan;
    struct routing_component *component = component_of(node->component);
    (void)result;
    if (plan->errors.failed) {
        refuse(routing, batch);
        return;
    }
    counter_add(component->dropped[batch->signal], node->worker->index, plan->dropped_items);
    struct sending *sendings = memory_array(plan->routes->destination_count + 1, sizeof *sendings);
    uint32_t count = take_parts(plan, batch, sendings);
    if (count == 0)
        batch_drop(batch, &verdict_ok);
    for (uint32_t i = 0; i < count; i++)
        forward_part(routing, sendings[i].batch, sendings[i].destination);
    free(sendings);
}

static uint64_t plan_batch(struct node *node, struct batch *batch)
{
    routing_plan_make(&node_of(node)->plan, batch);
    return 0; /* the plan says it all */
}

static const struct batch_work routing_work = {
    .work = plan_batch, .forward = forward_planned, .large_bytes = LARGE_BYTES};

static void routing_consume(struct node *node, struct batch *batch)
{
    large_batches_add(&node_of(node)->batches, batch);
}

/* ---- nodes ---- */

static bool routing_node_start(struct node *node, struct error *err)
{
    (void)err;
    routing_plan_init(&node_of(node)->plan, &component_of(node->component)->routes);
    large_batches_init(&node_of(node)->batches, node, &routing_work);
    return true;
}

static bool routing_is_idle(const struct node *node)
{
    return large_batches_is_empty(
        &node_as(const struct routing_node, node, &routing_connector_type)->batches);
}

static void routing_node_stop(struct node *node)
{
    large_batches_stop(&node_of(node)->batches);
    routing_plan_deinit(&node_of(node)->plan);
}

const struct component_type routing_connector_type = {
    .config =
        {
            .name = "routing",
            .section = CONFIG_CONNECTORS,
            .stability = {[CONFIG_TRACES] = STABILITY_ALPHA,
                          [CONFIG_PROFILES] = STABILITY_DEVELOPMENT,
                          [CONFIG_METRICS] = STABILITY_ALPHA,
                          [CONFIG_LOGS] = STABILITY_ALPHA},
            .help = "Passes data on to different pipelines, as OTTL conditions on resources or "
                    "spans, or on the headers of the request, decide.",
            .fields = routing_fields,
            .config_size = sizeof(struct routing_settings),
            .check = routing_check,
        },
    .component_size = sizeof(struct routing_component),
    .init = routing_init,
    .deinit = routing_deinit,
    .node_size = sizeof(struct routing_node),
    .node_start = routing_node_start,
    .consume = routing_consume,
    .is_idle = routing_is_idle,
    .node_stop = routing_node_stop,
};
