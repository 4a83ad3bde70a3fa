#include "processors/filter/filter_walk.h"

#include "core/base/memory.h"
#include "core/data/groups_split.h"
#include "core/data/wire_runs.h"

#include <assert.h>

/* Depths of messages below the request, as ottl_context_depth has them. */
enum { RESOURCES, SCOPES, ITEMS, PARTS };

/* The message that a walk is at, on each depth. */
struct place {
    struct place *above; /* NULL: of the request */
    struct message_iter it;
    struct message_field field;
};

void filter_walk_init(struct filter_walk *walk, const struct filter_plan *plan, const char *label,
                      struct ottl_program *const *programs)
{
    *walk = (struct filter_walk){.plan = plan, .label = label};
    walk->evaluators = memory_array(plan->count + 1, sizeof(struct ottl_evaluator *));
    walk->dropped = memory_array(plan->count + 1, sizeof *walk->dropped);
    for (uint32_t i = 0; i < plan->count; i++)
        walk->evaluators[i] = ottl_evaluator_new(programs[i]);
}

void filter_walk_deinit(struct filter_walk *walk)
{
    for (uint32_t i = 0; walk->plan && i < walk->plan->count; i++)
        ottl_evaluator_free(walk->evaluators[i]);
    free(walk->evaluators);
    free(walk->dropped);
    walk->plan = NULL;
}

/* ---- messages ---- */

static bool is_relayed(enum signal signal)
{
    return signal == SIGNAL_METRICS || signal == SIGNAL_LOGS;
}

static uint32_t number_of(const struct filter_walk *walk, unsigned depth)
{
    static const uint32_t numbers[] = {REQUEST_GROUPS, GROUP_SCOPES, SCOPE_ITEMS};
    if (depth == PARTS)
        return walk->batch->signal == SIGNAL_TRACES ? (uint32_t)SPAN_EVENTS
                                                    : (uint32_t)PROFILE_SAMPLES;
    return numbers[depth];
}

static struct message_iter enter(const struct filter_walk *walk, const struct message_field *field)
{
    return message_iter_into(field, &walk->batch->arena);
}

static bool has_child(const struct filter_walk *walk, const struct message_field *field,
                      unsigned depth)
{
    struct message_iter it = enter(walk, field);
    struct message_field child;
    return message_next_bytes(&it, number_of(walk, depth + 1), &child);
}

static uint32_t count_items(const struct filter_walk *walk, const struct message_field *field,
                            unsigned depth)
{
    enum signal signal = walk->batch->signal;
    bool is_item = depth == (signal == SIGNAL_PROFILES ? PARTS : ITEMS);
    if (depth > ITEMS || is_item)
        return is_item;
    if (depth == SCOPES && is_relayed(signal)) /* nobody opens relayed scopes */
        return groups_count_scope_items(signal, field->wire.bytes);
    struct message_iter it = enter(walk, field);
    struct message_field child;
    uint32_t count = 0;
    while (message_next_bytes(&it, number_of(walk, depth + 1), &child))
        count += count_items(walk, &child, depth + 1);
    return count;
}

static void open_way(struct place *place)
{
    if (!place->above || place->it.message)
        return;
    open_way(place->above);
    message_iter_open(&place->it, &place->above->it, &place->above->field);
}

static uint32_t remove_here(struct filter_walk *walk, struct place *place, unsigned depth)
{
    uint32_t items = count_items(walk, &place->field, depth);
    open_way(place);
    message_remove(&place->it, &place->field);
    assert(walk->batch->items >= items);
    walk->batch->items -= items;
    walk->dropped_items += items;
    walk->changed = true;
    return items;
}

/* ---- conditions ---- */

static void set_item(struct filter_walk *walk, const struct place *place, unsigned depth)
{
    struct arena *arena = &walk->batch->arena;
    struct ottl_item *item = &walk->item;
    bool is_traces = walk->batch->signal == SIGNAL_TRACES;
    if (depth == RESOURCES)
        ottl_item_set_group(item, message_iter_into(&place->field, arena));
    else if (depth == SCOPES)
        ottl_item_set_scope_group(item, message_iter_into(&place->field, arena));
    else if (depth == ITEMS && is_traces)
        ottl_item_set_span(item, message_iter_into(&place->field, arena));
    else if (depth == ITEMS)
        ottl_item_set_profile(item, message_iter_into(&place->field, arena));
    else if (is_traces)
        ottl_item_set_span_event(item, message_iter_into(&place->field, arena));
    else
        ottl_item_set_sample(item, message_iter_into(&place->field, arena));
}

/* What is known of the stack of a sample is not evaluated again. */
static enum ottl_result evaluate(struct filter_walk *walk, uint32_t condition)
{
    struct ottl_evaluator *evaluator = walk->evaluators[condition];
    return walk->has_stack ? ottl_evaluate_stack(evaluator, &walk->item, walk->stack)
                           : ottl_evaluate(evaluator, &walk->item);
}

enum decision { KEEP, DROP, FAIL };

/* The first condition that is true decides. With error_mode propagate, one that fails does. */
static enum decision decide(struct filter_walk *walk, unsigned depth, uint32_t *by_out)
{
    const struct filter_pass *pass = walk->pass;
    for (uint32_t i = pass->first; i < pass->first + pass->count; i++) {
        const struct filter_condition *condition = &walk->plan->conditions[i];
        if (ottl_context_depth(condition->context) != depth)
            continue;
        enum ottl_result result = evaluate(walk, i);
        *by_out = i;
        if (result == OTTL_MATCH)
            return DROP;
        if (result != OTTL_FAILED)
            continue;
        ottl_errors_report(&walk->errors, condition->error_mode, OTTL_OF_CONDITION, condition->text,
                           ottl_evaluator_error(walk->evaluators[i]));
        if (condition->error_mode == OTTL_PROPAGATE)
            return FAIL;
    }
    return KEEP;
}

/* ---- samples that stay ---- */

static bool asks_stacks(const struct filter_walk *walk)
{
    const struct filter_pass *pass = walk->pass;
    for (uint32_t i = pass->first; i < pass->first + pass->count; i++)
        if (ottl_context_depth(walk->plan->conditions[i].context) == PARTS &&
            !ottl_is_of_stack(walk->evaluators[i]))
            return false;
    return pass->depth == PARTS;
}

static struct entry_marks make_marks(struct filter_walk *walk, int table)
{
    uint32_t count = dictionary_count(batch_dictionary(walk->batch), table);
    return (struct entry_marks){arena_array(&walk->batch->arena, (size_t)count + 1, 1), count};
}

/* Finds the stacks whose samples no condition drops. */
static void find_kept_stacks(struct filter_walk *walk)
{
    const struct filter_pass *pass = walk->pass;
    uint32_t count = dictionary_count(batch_dictionary(walk->batch), DICTIONARY_STACK_TABLE);
    walk->stack_count = count;
    walk->keeps_stack = arena_alloc(&walk->batch->arena, count + 1);
    memset(walk->keeps_stack, 1, count);
    for (uint32_t i = pass->first; i < pass->first + pass->count; i++)
        if (ottl_context_depth(walk->plan->conditions[i].context) == PARTS)
            ottl_miss_stacks(walk->evaluators[i], &walk->item, walk->keeps_stack, count);
    walk->keeps_all = !memchr(walk->keeps_stack, 0, count);
    walk->has_marks = !walk->keeps_all;
    if (walk->has_marks)
        walk->marks = (struct sample_marks){
            .stacks = make_marks(walk, DICTIONARY_STACK_TABLE),
            .links = make_marks(walk, DICTIONARY_LINK_TABLE),
            .attributes = make_marks(walk, DICTIONARY_ATTRIBUTE_TABLE),
        };
}

/* Asks the conditions for which that was not known. */
static bool ask_about_stack(struct filter_walk *walk, uint32_t stack)
{
    const struct filter_pass *pass = walk->pass;
    for (uint32_t i = pass->first; i < pass->first + pass->count; i++)
        if (ottl_context_depth(walk->plan->conditions[i].context) == PARTS &&
            ottl_evaluate_stack(walk->evaluators[i], &walk->item, stack) != OTTL_NO_MATCH)
            return false;
    return true;
}

/* Whether no condition drops the sample, as far as its stack says it. Marks what it refers to. */
static inline bool is_kept(struct filter_walk *walk, struct slice sample)
{
    struct sample_references references;
    if (!sample_references_read_usual(sample, &references))
        return false;
    uint32_t stack = references.stack;
    bool is_known = stack < walk->stack_count && walk->keeps_stack[stack];
    if (!is_known && !ask_about_stack(walk, stack)) {
        walk->stack = stack;
        walk->has_stack = true;
        return false;
    }
    sample_marks_add(&walk->marks, &references);
    return true;
}

/* Goes past the samples ahead that no condition drops. Returns the address after them. */
static const uint8_t *skip_run(struct filter_walk *walk, const uint8_t *at, const uint8_t *end)
{
    enum { TAG = PROFILE_SAMPLES << 3 | WIRE_BYTES };
    struct slice sample;
    for (const uint8_t *next; (next = wire_short_payload(at, end, TAG, &sample)); at = next)
        if (!walk->keeps_all && !is_kept(walk, sample))
            break;
    return at;
}

/* Goes past samples that no condition drops, as most are. Stops before the first one that may be
 * dropped, whose stack it notes, or is unusual. Returns whether there were any. */
static bool skip_kept_samples(struct filter_walk *walk, struct message_iter *it)
{
    struct wire_cursor cursor = {.next = it->cursor.next, .end = message_plain_end(it)};
    struct wire_field field;
    bool were_any = false;
    if (!walk->keeps_stack)
        find_kept_stacks(walk);
    for (;;) {
        cursor.next = skip_run(walk, it->cursor.next, cursor.end);
        were_any |= cursor.next != it->cursor.next;
        it->cursor.next = cursor.next;
        bool goes_on = !walk->has_stack && wire_next(&cursor, &field);
        if (!goes_on || (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES))
            break;
        it->cursor.next = cursor.next; /* after another field */
    }
    assert(!cursor.broken); /* scanned */
    return were_any;
}

/* ---- the walk ---- */

static bool walk_below(struct filter_walk *walk, struct place *above, unsigned depth,
                       bool *dropped_out);

/* Returns whether the message at the place, which no condition drops, goes because it is empty. */
static bool is_emptied(struct filter_walk *walk, struct place *place, unsigned depth)
{
    bool dropped = false, has_children;
    if (depth >= walk->pass->depth)
        return depth <= SCOPES && !has_child(walk, &place->field, depth);
    has_children = walk_below(walk, place, depth + 1, &dropped);
    if (depth == ITEMS) /* only a profile is nothing without what is in it */
        return dropped && !has_children && walk->batch->signal == SIGNAL_PROFILES;
    return !has_children;
}

/* Returns whether the place is left. */
static bool walk_place(struct filter_walk *walk, struct place *place, unsigned depth,
                       bool *dropped_out)
{
    uint32_t by = 0;
    set_item(walk, place, depth);
    enum decision decision = decide(walk, depth, &by);
    if (decision == FAIL || (decision == KEEP && depth == PARTS))
        walk->has_marks = false; /* what is left here is not in them */
    if (decision == FAIL)
        return true;
    if (decision == DROP) {
        uint32_t items = remove_here(walk, place, depth);
        bool is_event = depth == PARTS && walk->batch->signal == SIGNAL_TRACES;
        walk->dropped[by] += is_event ? 1 : items;
        *dropped_out = true;
        return false;
    }
    if (!is_emptied(walk, place, depth))
        return true;
    remove_here(walk, place, depth);
    return false;
}

/* Walks the messages of a depth inside the place above. Returns whether any is left. */
static bool walk_below(struct filter_walk *walk, struct place *above, unsigned depth,
                       bool *dropped_out)
{
    struct place place = {.above = above, .it = enter(walk, &above->field)};
    uint32_t number = number_of(walk, depth);
    bool is_left = false;
    for (;;) {
        walk->has_stack = false;
        if (depth == PARTS && walk->asks_stacks)
            is_left |= skip_kept_samples(walk, &place.it);
        if (!message_next_bytes(&place.it, number, &place.field))
            return is_left;
        is_left |= walk_place(walk, &place, depth, dropped_out);
    }
}

static bool walk_part(struct filter_walk *walk, struct batch_part *part)
{
    struct place place = {.it = message_iter(&part->root, &walk->batch->arena)};
    bool is_left = false, dropped = false;
    while (message_next_bytes(&place.it, REQUEST_GROUPS, &place.field))
        is_left |= walk_place(walk, &place, RESOURCES, &dropped);
    return is_left;
}

static void make_pass(struct filter_walk *walk, const struct filter_pass *pass)
{
    struct batch *batch = walk->batch;
    walk->pass = pass;
    walk->has_groups = false;
    walk->keeps_stack = NULL;
    walk->has_marks = false;
    walk->asks_stacks = batch->signal == SIGNAL_PROFILES && asks_stacks(walk);
    ottl_item_begin(&walk->item);
    if (batch->signal == SIGNAL_PROFILES)
        ottl_item_set_dictionary(&walk->item, batch_dictionary(batch), &batch->arena);
    for (size_t i = 0; i < batch->part_count; i++)
        walk->has_groups |= walk_part(walk, &batch->parts[i]);
}

void filter_walk_batch(struct filter_walk *walk, struct batch *batch)
{
    const struct filter_plan *plan = walk->plan;
    ottl_errors_begin(&walk->errors, walk->label);
    memset(walk->dropped, 0, plan->count * sizeof *walk->dropped);
    walk->dropped_items = 0;
    walk->changed = false;
    walk->has_groups = true;
    walk->batch = batch;
    if (is_relayed(batch->signal))
        batch_flatten(batch); /* to count in the bytes of scopes */
    for (uint32_t i = 0; i < plan->pass_count && !walk->errors.failed; i++)
        if (plan->passes[i].count > 0)
            make_pass(walk, &plan->passes[i]);
    walk->batch = NULL;
}
