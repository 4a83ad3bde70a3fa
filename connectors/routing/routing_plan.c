#include "connectors/routing/routing_plan.h"

#include "core/base/memory.h"
#include "core/data/groups_split.h"
#include "core/data/profiles_merge.h"

#include <assert.h>
#include <inttypes.h>

enum { UNKNOWN = -1 };

void routing_plan_init(struct routing_plan *plan, const struct routes *routes)
{
    *plan = (struct routing_plan){.routes = routes};
    plan->evaluators = memory_array(routes->count + 1, sizeof(struct ottl_evaluator *));
    plan->results = memory_array(routes->count + 1, sizeof *plan->results);
    plan->parts = memory_zalloc((routes->destination_count + 1) * sizeof *plan->parts);
    for (uint32_t i = 0; i < routes->count; i++) {
        struct ottl_program *program = routes->items[i].condition.program;
        plan->evaluators[i] = program ? ottl_evaluator_new(program) : NULL;
    }
}

static void forget(struct routing_plan *plan)
{
    for (uint32_t i = 0; i < plan->routes->destination_count; i++) {
        selection_deinit(&plan->parts[i].units);
        buffer_unref(plan->parts[i].buffer);
        plan->parts[i] = (struct routed_part){0};
    }
    free(plan->group_items);
    plan->group_items = NULL;
    plan->group_count = plan->unit_count = plan->dropped_items = 0;
    ottl_errors_begin(&plan->errors, plan->routes->label);
}

void routing_plan_deinit(struct routing_plan *plan)
{
    if (!plan->routes)
        return;
    forget(plan);
    for (uint32_t i = 0; i < plan->routes->count; i++)
        ottl_evaluator_free(plan->evaluators[i]);
    free(plan->evaluators);
    free(plan->results);
    free(plan->parts);
}

/* ---- conditions ---- */

static bool evaluate(struct routing_plan *plan, uint32_t index)
{
    const struct route *route = &plan->routes->items[index];
    if (route->condition.context == ROUTING_BY_REQUEST)
        return request_condition_matches(&route->condition.request, plan->batch->context);
    enum ottl_result result = ottl_evaluate(plan->evaluators[index], &plan->item);
    if (result == OTTL_FAILED)
        ottl_errors_report(&plan->errors, plan->routes->error_mode, OTTL_OF_CONDITION, route->text,
                           ottl_evaluator_error(plan->evaluators[index]));
    return result == OTTL_MATCH;
}

/* Evaluates conditions on requests and resources once for each of these. */
static bool matches(struct routing_plan *plan, uint32_t index)
{
    if (plan->routes->items[index].condition.context == ROUTING_BY_SPAN)
        return evaluate(plan, index);
    if (plan->results[index] == UNKNOWN)
        plan->results[index] = (signed char)evaluate(plan, index);
    return plan->results[index] != 0;
}

static void forget_results(struct routing_plan *plan)
{
    memset(plan->results, UNKNOWN, plan->routes->count);
}

/* ---- units ---- */

static void add_to(struct routing_plan *plan, uint32_t destination, uint32_t items)
{
    struct routed_part *part = &plan->parts[destination];
    assert(destination < plan->routes->destination_count);
    if (selection_has(&part->units, plan->unit_count))
        return;
    selection_add(&part->units, plan->unit_count);
    part->items += items;
}

/* Finds the destinations of the next unit, which has so many items. */
static void decide(struct routing_plan *plan, uint32_t items)
{
    const struct routes *routes = plan->routes;
    bool is_moved = false, is_taken = false;
    for (uint32_t i = 0; i < routes->count && !is_moved && !plan->errors.failed; i++) {
        if (!matches(plan, i))
            continue;
        add_to(plan, routes->items[i].destination, items);
        is_taken = true;
        is_moved = !routes->items[i].is_copy;
    }
    if (!is_moved && routes->fallback != UINT32_MAX)
        add_to(plan, routes->fallback, items);
    else if (!is_taken)
        plan->dropped_items += items;
    plan->unit_count++;
}

static void decide_spans(struct routing_plan *plan, struct slice group)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, span;
    while (!plan->errors.failed && wire_next_bytes(&scopes, GROUP_SCOPES, &scope)) {
        struct wire_cursor spans = wire_cursor(scope.bytes);
        ottl_item_set_scope_group(&plan->item, message_iter_bytes(scope.bytes));
        while (!plan->errors.failed && wire_next_bytes(&spans, SCOPE_ITEMS, &span)) {
            ottl_item_set_span(&plan->item, message_iter_bytes(span.bytes));
            decide(plan, 1);
        }
    }
}

/* Remembers how many items the group has, to find its samples. */
static void count_group(struct routing_plan *plan, uint32_t items)
{
    uint32_t count = plan->group_count;
    if ((count & (count - 1)) == 0) /* full: 0, 1, 2, 4, ... */
        plan->group_items =
            memory_grow(plan->group_items, count ? (size_t)count * 2 : 1, sizeof(uint32_t));
    plan->group_items[plan->group_count++] = items;
}

static void decide_group(struct routing_plan *plan, struct slice group)
{
    enum signal signal = plan->batch->signal;
    forget_results(plan);
    ottl_item_set_group(&plan->item, message_iter_bytes(group));
    if (plan->routes->has_spans && signal == SIGNAL_TRACES) {
        decide_spans(plan, group);
        return;
    }
    uint32_t items = groups_count_items(signal, group);
    if (signal == SIGNAL_PROFILES)
        count_group(plan, items);
    decide(plan, items);
}

static void decide_groups(struct routing_plan *plan)
{
    ottl_item_begin(&plan->item);
    for (size_t i = 0; i < plan->batch->part_count; i++) {
        struct wire_cursor groups = wire_cursor(buffer_slice(plan->batch->parts[i].buffer));
        struct wire_field group;
        while (!plan->errors.failed && wire_next_bytes(&groups, REQUEST_GROUPS, &group))
            decide_group(plan, group.bytes);
    }
}

/* ---- parts ---- */

static struct buffer *select_units(const struct routing_plan *plan, const struct selection *units)
{
    struct batch *batch = plan->batch;
    struct slice *slices = memory_array(batch->part_count, sizeof *slices);
    for (size_t i = 0; i < batch->part_count; i++)
        slices[i] = buffer_slice(batch->parts[i].buffer);
    bool by_span = plan->routes->has_spans && batch->signal == SIGNAL_TRACES;
    struct buffer *part = (by_span ? groups_select_spans : groups_select)(
        slices, batch->part_count, units, batch->arena.budget);
    free(slices);
    return part;
}

/* Adds the samples of the selected groups, a run of groups at once. */
static void add_samples(const struct routing_plan *plan, const struct selection *units,
                        struct profiles_source *source)
{
    uint32_t first = 0, run = 0;
    for (uint32_t i = 0; i < plan->group_count; i++) {
        if (selection_has(units, i)) {
            run += plan->group_items[i];
            continue;
        }
        if (run > 0)
            profiles_source_add(source, first, run);
        first += run + plan->group_items[i];
        run = 0;
    }
    if (run > 0)
        profiles_source_add(source, first, run);
}

static void make_profiles(struct routing_plan *plan)
{
    struct profiles_merge *merge = profiles_merge_new(plan->batch->arena.budget);
    struct profiles_source *source = profiles_source_new(merge, plan->batch->parts[0].buffer);
    assert(plan->batch->part_count == 1);
    for (uint32_t i = 0; i < plan->routes->destination_count; i++) {
        struct routed_part *part = &plan->parts[i];
        if (part->is_whole || part->items == 0)
            continue;
        add_samples(plan, &part->units, source);
        part->buffer = profiles_merge_finish(merge);
    }
    profiles_source_free(source);
    profiles_merge_free(merge);
}

static void make_parts(struct routing_plan *plan)
{
    bool has_parts = false;
    for (uint32_t i = 0; i < plan->routes->destination_count; i++) {
        struct routed_part *part = &plan->parts[i];
        part->is_whole = plan->unit_count > 0 && part->units.count == plan->unit_count;
        has_parts |= part->units.count > 0 && !part->is_whole;
        if (plan->batch->signal != SIGNAL_PROFILES && part->units.count > 0 && !part->is_whole)
            part->buffer = select_units(plan, &part->units);
    }
    if (has_parts && plan->batch->signal == SIGNAL_PROFILES)
        make_profiles(plan);
}

void routing_plan_make(struct routing_plan *plan, struct batch *batch)
{
    const struct routes *routes = plan->routes;
    forget(plan);
    forget_results(plan);
    plan->batch = batch;
    if (routes->has_groups || routes->has_spans) {
        batch_flatten(batch);
        decide_groups(plan);
    } else {
        decide(plan, batch->items);
    }
    if (!plan->errors.failed)
        make_parts(plan);
    plan->batch = NULL;
}
