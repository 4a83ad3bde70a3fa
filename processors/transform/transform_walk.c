#include "processors/transform/transform_walk.h"

#include "core/base/memory.h"
#include "core/pipeline/items.h"

#include <assert.h>

/* Depths of messages below the request, as ottl_context_depth has them. */
enum { RESOURCES, SCOPES, ITEMS, PARTS };

/* ---- evaluators ---- */

static struct ottl_evaluator **make_evaluators(struct ottl_program *const *programs, size_t count)
{
    struct ottl_evaluator **evaluators = memory_array(count + 1, sizeof(struct ottl_evaluator *));
    for (size_t i = 0; i < count; i++)
        evaluators[i] = ottl_evaluator_new(programs[i]);
    return evaluators;
}

static void free_evaluators(struct ottl_evaluator **evaluators, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ottl_evaluator_free(evaluators[i]);
    free(evaluators);
}

void transform_walk_init(struct transform_walk *walk, const struct transform_plan *plan,
                         const char *label, const struct transform_programs *programs)
{
    *walk = (struct transform_walk){.plan = plan, .label = label, .draft = ottl_draft_new()};
    walk->evaluators = memory_array(plan->count + 1, sizeof *walk->evaluators);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct transform_group *group = &plan->groups[i];
        walk->evaluators[i] = (struct transform_evaluators){
            make_evaluators(programs[i].conditions, group->conditions.count),
            make_evaluators(programs[i].statements, group->statements.count)};
    }
}

void transform_walk_deinit(struct transform_walk *walk)
{
    for (uint32_t i = 0; walk->plan && i < walk->plan->count; i++) {
        const struct transform_group *group = &walk->plan->groups[i];
        free_evaluators(walk->evaluators[i].conditions, group->conditions.count);
        free_evaluators(walk->evaluators[i].statements, group->statements.count);
    }
    free(walk->evaluators);
    ottl_cache_clear(&walk->cache);
    ottl_draft_free(walk->draft);
    walk->plan = NULL;
}

/* ---- one item ---- */

static void report(struct transform_walk *walk, enum ottl_source source, const char *text,
                   const struct ottl_evaluator *evaluator)
{
    ottl_errors_report(&walk->errors, walk->plan->groups[walk->group].error_mode, source, text,
                       ottl_evaluator_error(evaluator));
}

static bool matches(struct transform_walk *walk)
{
    const struct config_strings *conditions = &walk->plan->groups[walk->group].conditions;
    for (size_t i = 0; i < conditions->count && !walk->errors.failed; i++) {
        struct ottl_evaluator *evaluator = walk->evaluators[walk->group].conditions[i];
        enum ottl_result result = ottl_evaluate(evaluator, &walk->item);
        if (result == OTTL_MATCH)
            return true;
        if (result == OTTL_FAILED)
            report(walk, OTTL_OF_CONDITION, conditions->items[i], evaluator);
    }
    return conditions->count == 0;
}

static void execute(struct transform_walk *walk)
{
    const struct config_strings *statements = &walk->plan->groups[walk->group].statements;
    ottl_cache_clear(&walk->cache);
    if (!matches(walk))
        return;
    for (size_t i = 0; i < statements->count && !walk->errors.failed; i++) {
        struct ottl_evaluator *evaluator = walk->evaluators[walk->group].statements[i];
        if (ottl_execute(evaluator, &walk->item) == OTTL_FAILED)
            report(walk, OTTL_OF_STATEMENT, statements->items[i], evaluator);
    }
    ottl_item_finish(&walk->item);
}

/* ---- the walk ---- */

static uint32_t number_of(const struct transform_walk *walk, unsigned depth)
{
    static const uint32_t numbers[] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS};
    if (depth == PARTS)
        return walk->batch->signal == SIGNAL_TRACES ? (uint32_t)SPAN_EVENTS
                                                    : (uint32_t)PROFILE_SAMPLES;
    return numbers[depth];
}

static void set_item(struct transform_walk *walk, unsigned depth)
{
    bool is_traces = walk->batch->signal == SIGNAL_TRACES;
    struct message_iter message = message_iter_into(&walk->way.fields[depth], &walk->batch->arena);
    message.arena = &walk->batch->arena;
    if (depth == RESOURCES)
        ottl_item_set_group(&walk->item, message);
    else if (depth == SCOPES)
        ottl_item_set_scope_group(&walk->item, message);
    else if (depth == ITEMS)
        (is_traces ? ottl_item_set_span : ottl_item_set_profile)(&walk->item, message);
    else
        (is_traces ? ottl_item_set_span_event : ottl_item_set_sample)(&walk->item, message);
}

/* Walks the messages of a depth inside the current one above it, down to those of the group. */
static void walk_depth(struct transform_walk *walk, unsigned depth)
{
    struct ottl_way *way = &walk->way;
    bool is_last = depth == ottl_context_depth(walk->plan->groups[walk->group].context);
    while (!walk->errors.failed &&
           message_next_bytes(&way->iters[depth], number_of(walk, depth), &way->fields[depth])) {
        set_item(walk, depth);
        if (is_last) {
            execute(walk);
            continue;
        }
        way->iters[depth + 1] = message_iter_into(&way->fields[depth], &walk->batch->arena);
        walk_depth(walk, depth + 1);
        ottl_item_leave(&walk->item, depth);
    }
}

/* What the groups of a batch share, after the first one. */
struct limits {
    size_t room, cache_room; /* those of struct ottl_item */
};

static void walk_group(struct transform_walk *walk, uint32_t group, struct limits *limits)
{
    struct batch *batch = walk->batch;
    walk->group = group;
    ottl_item_begin(&walk->item);
    if (batch->signal == SIGNAL_PROFILES)
        ottl_item_set_dictionary(&walk->item, batch_dictionary(batch), &batch->arena);
    ottl_item_set_way(&walk->item, &walk->way, walk->draft, limits->room);
    if (group > 0)
        walk->item.cache_room = limits->cache_room;
    walk->item.cache = &walk->cache;
    for (size_t i = 0; i < batch->part_count && !walk->errors.failed; i++) {
        walk->way.iters[0] = message_iter(&batch->parts[i].root, &batch->arena);
        walk_depth(walk, RESOURCES);
    }
    ottl_cache_clear(&walk->cache);
    *limits = (struct limits){walk->item.room, walk->item.cache_room};
    walk->changed |= walk->item.is_changed;
}

void transform_walk_batch(struct transform_walk *walk, struct batch *batch)
{
    struct limits limits = {.room = items_values_room(batch)};
    ottl_errors_begin(&walk->errors, walk->label);
    walk->changed = false;
    walk->batch = batch;
    for (uint32_t i = 0; i < walk->plan->count && !walk->errors.failed; i++)
        walk_group(walk, i, &limits);
    walk->batch = NULL;
}
