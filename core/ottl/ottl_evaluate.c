#include "core/ottl/ottl_evaluation.h"

#include "core/base/memory.h"
#include "core/ottl/ottl_around.h"
#include "core/ottl/ottl_draft.h"
#include "core/ottl/ottl_encode.h"
#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_lambda.h"
#include "core/ottl/ottl_paths.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_trace_state.h"
#include "core/ottl/ottl_verdicts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* Short texts, such as an id in hex, need no allocation. */
enum { SMALL_BYTES = 512 };

struct scratch {
    _Alignas(16) uint8_t small[SMALL_BYTES];
    size_t used;
    struct arena *arena; /* &own, or that of the program being compiled */
    struct arena own;
};

/* A result for the current resource, scope or span. */
struct slot {
    uint64_t batch; /* 0: none */
    uint64_t serial, entered;
    bool is_lasting; /* statements do not change it */
    bool ok;
    struct ottl_value value;
    size_t steps; /* of reading the value; 0: few */
    char error[200];
};

struct ottl_evaluation {
    struct ottl_item *item; /* NULL: constants are computed */
    struct ottl_matcher *matcher;
    struct scratch scratch[OTTL_LEVEL_COUNT]; /* for results of each level */
    enum ottl_level level;                    /* of the result that is computed */
    bool is_again;                            /* because a statement has changed the message */
    unsigned work;                            /* of the function that is called */
    struct ottl_value input;
    struct ottl_item *target; /* of a statement */
    size_t free_bytes;
    bool writes_around; /* the target of the program is in a message around its items */
    struct wire_writer writer;
    struct text text;
    struct attribute_list list; /* a map that is changed */
    struct ottl_locals locals;
    struct error error;
};

struct ottl_evaluator {
    const struct ottl_program *program;
    struct ottl_evaluation evaluation;
    uint64_t batch;
    size_t bytes; /* of the batch, which have given steps */
    size_t steps; /* that are left for what the items share */
    struct {
        uint64_t batch, serial;
    } kept[OTTL_LEVEL_COUNT];           /* whose results are in the scratch memory of the level */
    unsigned levels_read;               /* by the evaluation: a bit for each */
    struct ottl_stack_search *searches; /* of the program's calls that look into stacks */
    struct ottl_verdicts verdicts;
    struct slot slots[];
};

static struct ottl_evaluator *evaluator_of(struct ottl_evaluation *evaluation)
{
    return (struct ottl_evaluator *)((char *)evaluation -
                                     offsetof(struct ottl_evaluator, evaluation));
}

/* ---- scratch memory ---- */

static void scratch_clear(struct scratch *scratch)
{
    scratch->used = 0;
    if (scratch->own.blocks)
        arena_deinit(&scratch->own);
}

void *ottl_evaluation_alloc(struct ottl_evaluation *evaluation, size_t size)
{
    struct scratch *scratch = &evaluation->scratch[evaluation->level];
    size_t rounded = (size + 15) & ~(size_t)15;
    if (evaluation->locals.depth > 0)
        ottl_locals_take(&evaluation->locals, size);
    if (scratch->arena == &scratch->own && rounded <= SMALL_BYTES - scratch->used) {
        scratch->used += rounded;
        return scratch->small + scratch->used - rounded;
    }
    return arena_alloc(scratch->arena, size);
}

struct slice ottl_evaluation_text(struct ottl_evaluation *evaluation, struct text *text)
{
    uint8_t *copy = ottl_evaluation_alloc(evaluation, text->size + 1);
    size_t size = text->size;
    if (size > 0)
        memcpy(copy, text->data, size);
    text_deinit(text);
    return slice_of(copy, size);
}

const struct ottl_item *ottl_evaluation_item(const struct ottl_evaluation *evaluation)
{
    assert(evaluation->item);
    return evaluation->item;
}

struct error *ottl_evaluation_error(struct ottl_evaluation *evaluation)
{
    return &evaluation->error;
}

struct ottl_matcher *ottl_evaluation_matcher(struct ottl_evaluation *evaluation)
{
    if (!evaluation->matcher)
        evaluation->matcher = ottl_matcher_new();
    return evaluation->matcher;
}

struct ottl_value *ottl_evaluation_input(struct ottl_evaluation *evaluation)
{
    return &evaluation->input;
}

struct ottl_item *ottl_evaluation_target(struct ottl_evaluation *evaluation)
{
    assert(evaluation->target);
    return evaluation->target;
}

struct wire_writer *ottl_evaluation_writer(struct ottl_evaluation *evaluation)
{
    wire_writer_clear(&evaluation->writer);
    return &evaluation->writer;
}

struct text *ottl_evaluation_empty_text(struct ottl_evaluation *evaluation)
{
    text_clear(&evaluation->text);
    evaluation->text.limit = 0;
    return &evaluation->text;
}

struct ottl_locals *ottl_evaluation_locals(struct ottl_evaluation *evaluation)
{
    return &evaluation->locals;
}

size_t *ottl_evaluation_free_bytes(struct ottl_evaluation *evaluation)
{
    return &evaluation->free_bytes;
}

struct attribute_list *ottl_evaluation_list(struct ottl_evaluation *evaluation)
{
    return &evaluation->list;
}

/* Evaluates a node without counting that what is kept is read, and counts it. */
static bool look_at(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    struct ottl_value *out);
static bool take_kept(struct ottl_evaluation *evaluation, const struct ottl_node *node);

/* ---- keys ---- */

static bool fail(struct ottl_evaluation *evaluation, const char *text)
{
    return error_set(&evaluation->error, "%s", text);
}

static bool wrong_key(struct ottl_evaluation *evaluation, const struct ottl_value *key,
                      const char *wanted)
{
    return error_set(&evaluation->error,
                     "could not resolve key for map/slice, expecting '%s' but got '%s'", wanted,
                     ottl_type_name(key));
}

static bool out_of_bounds(struct ottl_evaluation *evaluation, int64_t index)
{
    return error_set(&evaluation->error, "index %" PRId64 " out of bounds", index);
}

/* A lambda may search the same map for each of its entries. */
static void take_search(struct ottl_evaluation *evaluation, const struct ottl_value *in)
{
    if (evaluation->locals.depth > 0)
        ottl_locals_take_value(&evaluation->locals, in);
}

/* Goes from *value to what a key of a path leads to; *missing_out if a map has no such key. */
static bool enter_data(struct ottl_evaluation *evaluation, const struct ottl_node *key,
                       struct ottl_value *value, bool *missing_out)
{
    struct ottl_value at, from = *value;
    if (from.kind != OTTL_MAP && from.kind != OTTL_LIST)
        return error_set(&evaluation->error, "type %s does not support string indexing",
                         ottl_data_type_name(&from));
    if (!ottl_node_evaluate(evaluation, key, &at))
        return false;
    take_search(evaluation, &from);
    if (from.kind == OTTL_MAP) {
        if (at.kind != OTTL_STRING)
            return wrong_key(evaluation, &at, "string");
        *missing_out = !ottl_map_get(&from, at.bytes, value);
        return true;
    }
    if (at.kind != OTTL_INT)
        return wrong_key(evaluation, &at, "int64");
    return ottl_list_get(&from, at.integer, value) || out_of_bounds(evaluation, at.integer);
}

static bool enter_trace_state(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                              struct ottl_value *value)
{
    struct ottl_value key;
    struct slice member;
    if (!ottl_node_evaluate(evaluation, node->keys[0], &key))
        return false;
    bool is_text = key.kind == OTTL_STRING;
    if (!ottl_trace_state_get(value->bytes, is_text ? key.bytes : (struct slice){0}, &member))
        *value = (struct ottl_value){.kind = OTTL_NIL};
    else if (is_text)
        *value = ottl_string(member);
    else
        return fail(evaluation, "trace_state indexing type must be a string");
    return true;
}

/* Counts that an item reads what it shares with others, if it is much. */
static bool take_large(struct ottl_evaluation *evaluation, size_t steps)
{
    enum { FEW_STEPS = 256 };
    struct ottl_evaluator *evaluator = evaluator_of(evaluation);
    if (steps <= FEW_STEPS)
        return true;
    if (steps > evaluator->steps)
        return fail(evaluation, "too many items of the request read the same large data");
    evaluator->steps -= steps;
    return true;
}

static bool is_around(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    return ottl_context_depth(row->context) < ottl_evaluation_depth(evaluation);
}

/* What has too many entries for a draft is searched again after each change of its message. */
static bool take_search_again(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    const struct message_iter *message = ottl_message_of(evaluation, row);
    return !row->is_map || !evaluation->item->kept || !ottl_outer_is_open(evaluation->item, row) ||
           take_large(evaluation, (size_t)(message->cursor.end - message->cursor.next));
}

/* Reads attributes as a whole from the draft, as a copy: it may change while they are used. */
static bool read_draft(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                       const struct attribute_list *list, struct ottl_value *out)
{
    enum { DRAFTED = 1, STEPS_OF_ENTRY = 24 };
    size_t size = 0;
    bool is_shared = is_around(evaluation, row);
    if (is_shared && !take_large(evaluation, STEPS_OF_ENTRY * (size_t)list->count))
        return false;
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        size += key_value_field_size(DRAFTED, list->entries[i].key, list->entries[i].value);
    if (is_shared && !take_large(evaluation, size))
        return false;
    struct message_iter *copy = ottl_evaluation_alloc(evaluation, sizeof *copy);
    uint8_t *bytes = ottl_evaluation_alloc(evaluation, size + 1), *to = bytes;
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        to = key_value_field_write(to, DRAFTED, list->entries[i].key, list->entries[i].value);
    assert(to == bytes + size);
    *copy = message_iter_bytes(slice_of(bytes, size));
    *out = (struct ottl_value){.kind = OTTL_MAP, .form = OTTL_FORM_ATTRIBUTES};
    out->message = copy;
    out->number = DRAFTED;
    return true;
}

/* What is kept is read again and again, without the rest of the message. */
static bool read_path(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                      struct ottl_value *out)
{
    const struct attribute_list *list =
        evaluation->item->draft ? ottl_draft_find_changed(evaluation, row) : NULL;
    if (list)
        return read_draft(evaluation, row, list, out);
    if (row->is_indices_list && evaluation->item->kept)
        ottl_draft_write_indices(evaluation->item);
    if (!take_search_again(evaluation, row) || !ottl_path_read(evaluation, row, out))
        return false;
    if (evaluation->level < OTTL_LEVEL_LOWEST)
        ottl_around_copy(evaluation, out);
    return true;
}

static void take_search_of_attributes(struct ottl_evaluation *evaluation,
                                      const struct ottl_path_row *row)
{
    struct ottl_value map;
    if (evaluation->locals.depth > 0 && ottl_path_read(evaluation, row, &map))
        take_search(evaluation, &map);
}

/* Sets *value to a map that is kept. In a lambda, a search in it takes steps of the lambda. */
static bool look_at_map(struct ottl_evaluation *evaluation, const struct ottl_node *map,
                        struct ottl_value *value)
{
    return look_at(evaluation, map, value) &&
           (evaluation->locals.depth > 0 || take_kept(evaluation, map));
}

/* Sets *value to the attribute of the first key. */
static bool enter_attributes(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                             struct ottl_value *value, bool *missing_out)
{
    const struct ottl_path_row *row = node->path;
    struct ottl_value key;
    struct slice found;
    uint32_t at;
    if (!ottl_node_evaluate(evaluation, node->keys[0], &key))
        return false;
    if (key.kind != OTTL_STRING)
        return wrong_key(evaluation, &key, "string");
    struct attribute_list *draft =
        evaluation->item->draft ? ottl_draft_find(evaluation, row) : NULL;
    if (!draft) {
        take_search_of_attributes(evaluation, row);
        if (row->is_indices || !take_search_again(evaluation, row))
            return false;
        *missing_out =
            !attributes_get(ottl_message_of(evaluation, row), row->number, key.bytes, &found);
    } else if (attribute_list_find(draft, key.bytes, &at)) {
        found = draft->entries[at].value;
    } else {
        *missing_out = true;
    }
    if (!*missing_out)
        ottl_value_read(found, value);
    return true;
}

/* Whether attributes are found in their message by a key. */
static bool has_keys(const struct ottl_path_row *row)
{
    return row->is_map && !row->is_cache && !row->is_indices;
}

/* A message around the items is searched once more, but not after each statement that changes it or
 * one around it. */
static void open_if_again(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    if (evaluation->is_again && evaluation->item->draft && is_around(evaluation, row))
        ottl_outer_open(evaluation->item, row);
}

static bool evaluate_path(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          struct ottl_value *out)
{
    open_if_again(evaluation, node->path);
    bool is_missing = false, is_kept = node->operand_count > 0; /* what the keys are of */
    bool is_drafted =
        node->key_count > 0 && evaluation->item->draft && ottl_draft_find(evaluation, node->path);
    uint32_t first = 0;
    if (is_kept && !is_drafted) {
        if (!look_at_map(evaluation, node->operands[0], out))
            return false;
    } else if (node->key_count > 0 && (is_drafted || has_keys(node->path))) {
        if (!enter_attributes(evaluation, node, out, &is_missing))
            return false;
        first = 1;
    } else if (!read_path(evaluation, node->path, out)) {
        return false;
    }
    if (node->key_count > 0 && node->path->indexing == OTTL_TRACE_STATE_INDEXED)
        return enter_trace_state(evaluation, node, out);
    for (uint32_t i = first; i < node->key_count && !is_missing; i++)
        if (!enter_data(evaluation, node->keys[i], out, &is_missing))
            return false;
    if (is_missing) /* whatever the keys after it are */
        *out = (struct ottl_value){.kind = OTTL_NIL};
    return true;
}

/* What a function returned is indexed more strictly. */
static bool enter_result(struct ottl_evaluation *evaluation, const struct ottl_node *key,
                         struct ottl_value *value)
{
    struct ottl_value at, from = *value;
    if (!ottl_node_evaluate(evaluation, key, &at))
        return false;
    take_search(evaluation, &from);
    if (at.kind == OTTL_STRING) {
        if (from.kind != OTTL_MAP)
            return error_set(&evaluation->error, "type %s does not support string indexing",
                             ottl_type_name(&from));
        return ottl_map_get(&from, at.bytes, value) || fail(evaluation, "key not found in map");
    }
    if (at.kind != OTTL_INT)
        return at.kind == OTTL_NIL
                   ? fail(evaluation, "key expression returned nil, expected an int or string")
                   : error_set(&evaluation->error,
                               "key expression must evaluate to string or int, got %s",
                               ottl_type_name(&at));
    if (from.kind != OTTL_LIST)
        return error_set(&evaluation->error, "type %s does not support int indexing",
                         ottl_type_name(&from));
    return ottl_list_get(&from, at.integer, value) || out_of_bounds(evaluation, at.integer);
}

/* ---- nodes ---- */

static bool call(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                 struct ottl_value *out)
{
    unsigned before = evaluation->work;
    evaluation->work = node->work;
    bool ok = node->function->call(evaluation, node, out);
    evaluation->work = before;
    return ok;
}

static bool evaluate_call(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          struct ottl_value *out)
{
    if (!call(evaluation, node, out))
        return false;
    for (uint32_t i = 0; i < node->key_count; i++)
        if (!enter_result(evaluation, node->keys[i], out))
            return false;
    return true;
}

static bool evaluate_local(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                           struct ottl_value *out)
{
    if (!ottl_local_read(evaluation, node, out))
        return false;
    for (uint32_t i = 0; i < node->key_count; i++)
        if (!enter_result(evaluation, node->keys[i], out))
            return false;
    return true;
}

static bool evaluate_math(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                          struct ottl_value *out)
{
    if (!ottl_node_evaluate(evaluation, node->operands[0], out))
        return false;
    for (uint32_t i = 1; i < node->operand_count; i++) {
        struct ottl_value left = *out, right;
        if (!ottl_node_evaluate(evaluation, node->operands[i], &right) ||
            !ottl_compute(&left, node->operators[i], &right, out, &evaluation->error))
            return false;
    }
    return true;
}

/* A map keeps the last of several entries with the same key. */
static bool make_entries(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                         enum ottl_kind kind, struct ottl_value *out)
{
    struct ottl_entry *entries =
        ottl_evaluation_alloc(evaluation, (node->operand_count + 1) * sizeof *entries);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        entries[i] = (struct ottl_entry){0};
        if (kind == OTTL_MAP)
            entries[i].key = node->names[i];
        if (!ottl_node_evaluate(evaluation, node->operands[i], &entries[i].value))
            return false;
    }
    *out = ottl_entries_value(kind, entries, node->operand_count);
    return true;
}

/* Member by member: a value that is copied as a whole waits for its members. */
static void give_bool(bool truth, struct ottl_value *out)
{
    out->kind = OTTL_BOOL;
    out->form = OTTL_FORM_BYTES;
    out->truth = truth;
}

/* Only the entries of maps are counted before they are compared; anything else takes no longer than
 * the smaller operand, which is the item's own. */
static bool take_comparison(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            const struct ottl_value *left, const struct ottl_value *right)
{
    if (left->kind != OTTL_MAP || right->kind != OTTL_MAP)
        return true;
    return take_kept(evaluation, node->operands[0]) && take_kept(evaluation, node->operands[1]);
}

static bool evaluate_comparison(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                                struct ottl_value *out)
{
    const struct ottl_node *other = node->operands[1];
    const struct ottl_value *second = &other->constant;
    enum ottl_operator operator= node->operators[1];
    struct ottl_value left, right;
    if (!look_at(evaluation, node->operands[0], &left))
        return false;
    if (other->code != OTTL_CONSTANT) {
        if (!look_at(evaluation, other, &right))
            return false;
        second = &right;
    }
    if (!take_comparison(evaluation, node, &left, second))
        return false;
    bool is_order = operator!= OTTL_EQUAL && operator!= OTTL_NOT_EQUAL;
    if (is_order || left.kind != OTTL_STRING || second->kind != OTTL_STRING)
        give_bool(ottl_compare(&left, operator, second), out);
    else /* most conditions are this */
        give_bool(slice_equal(left.bytes, second->bytes) == (operator== OTTL_EQUAL), out);
    return true;
}

/* Stops at the first operand that decides. */
static bool evaluate_joined(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            bool decisive, struct ottl_value *out)
{
    for (uint32_t i = 0; i < node->operand_count; i++) {
        if (!ottl_node_evaluate(evaluation, node->operands[i], out))
            return false;
        assert(out->kind == OTTL_BOOL);
        if (out->truth == decisive)
            return true;
    }
    give_bool(!decisive, out);
    return true;
}

static bool evaluate_truth(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                           struct ottl_value *out)
{
    if (!ottl_node_evaluate(evaluation, node->operands[0], out))
        return false;
    return out->kind == OTTL_BOOL ||
           error_set(&evaluation->error,
                     "value returned from Converter in constant expression must be bool but got %s",
                     out->kind == OTTL_NIL ? "<nil>" : ottl_type_name(out));
}

static bool evaluate(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                     struct ottl_value *out)
{
    struct ottl_value operand;
    switch (node->code) {
    case OTTL_CONSTANT:
        *out = node->constant;
        return true;
    case OTTL_PATH:
        return evaluate_path(evaluation, node, out);
    case OTTL_CALL:
        return evaluate_call(evaluation, node, out);
    case OTTL_MATH:
        return evaluate_math(evaluation, node, out);
    case OTTL_NEGATE:
        return ottl_node_evaluate(evaluation, node->operands[0], &operand) &&
               ottl_negate(&operand, out, &evaluation->error);
    case OTTL_MAKE_LIST:
    case OTTL_MAKE_MAP:
        return make_entries(evaluation, node, node->code == OTTL_MAKE_LIST ? OTTL_LIST : OTTL_MAP,
                            out);
    case OTTL_COMPARE:
        return evaluate_comparison(evaluation, node, out);
    case OTTL_AND:
    case OTTL_OR:
        return evaluate_joined(evaluation, node, node->code == OTTL_OR, out);
    case OTTL_TRUTH:
        return evaluate_truth(evaluation, node, out);
    case OTTL_INPUT:
        *out = evaluation->input;
        return true;
    case OTTL_LOCAL:
        return evaluate_local(evaluation, node, out);
    case OTTL_FAILURE:
        return error_set(&evaluation->error, "%.*s", SLICE_ARG(node->constant.bytes));
    case OTTL_LAMBDA:
    case OTTL_NOT:
        break;
    }
    assert(node->code == OTTL_NOT);
    if (!ottl_node_evaluate(evaluation, node->operands[0], out))
        return false;
    out->truth = !out->truth;
    return true;
}

/* ---- results that are kept ---- */

enum ottl_level ottl_evaluation_level(struct ottl_evaluation *evaluation)
{
    if (!evaluation->item)
        return OTTL_LEVEL_CONSTANT;
    unsigned depth = ottl_evaluation_depth(evaluation);
    enum ottl_level own = (enum ottl_level)(OTTL_LEVEL_RESOURCE + depth);
    return evaluation->level < own ? evaluation->level : own;
}

unsigned ottl_evaluation_depth(struct ottl_evaluation *evaluation)
{
    return ottl_context_depth(evaluator_of(evaluation)->program->context);
}

bool ottl_evaluation_writes_around(const struct ottl_evaluation *evaluation)
{
    return evaluation->writes_around;
}

struct ottl_stack_search *ottl_evaluation_search(struct ottl_evaluation *evaluation,
                                                 const struct ottl_node *call)
{
    struct ottl_evaluator *evaluator = evaluator_of(evaluation);
    assert(call->search < evaluator->program->search_count);
    return &evaluator->searches[call->search];
}

static uint64_t serial_of(const struct ottl_item *item, enum ottl_level level)
{
    assert(level >= OTTL_LEVEL_RESOURCE && level < OTTL_LEVEL_LOWEST);
    return item->serials[level - OTTL_LEVEL_RESOURCE];
}

/* Forgets what was kept for another resource, scope or span, unless the evaluation has read some of
 * it: then memory is added. */
static void renew(struct ottl_evaluator *evaluator, enum ottl_level level)
{
    const struct ottl_item *item = evaluator->evaluation.item;
    uint64_t serial = serial_of(item, level);
    bool is_current =
        evaluator->kept[level].batch == item->batch && evaluator->kept[level].serial == serial;
    if (!is_current && !(evaluator->levels_read & 1U << level))
        scratch_clear(&evaluator->evaluation.scratch[level]);
    evaluator->levels_read |= 1U << level;
}

/* What was read of the dictionary is not all of it if there were no steps left. */
static bool has_steps(struct ottl_evaluation *evaluation)
{
    const struct ottl_profile_tables *tables = evaluation->item->tables;
    return !tables || !tables->ran_out || fail(evaluation, ottl_steps_error);
}

/* Returns the steps of reading a value of a message around the items; 0: they are few. */
static size_t steps_of(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       const struct ottl_value *value)
{
    bool is_around = node->level < OTTL_LEVEL_RESOURCE + ottl_evaluation_depth(evaluation);
    return is_around ? ottl_around_steps(value) : 0;
}

/* Whether the slot has a result for the message that the item is in, perhaps from before a
 * statement changed it. */
static bool is_of_item(const struct ottl_evaluation *evaluation, const struct ottl_node *node,
                       const struct slot *slot)
{
    const struct ottl_item *item = evaluation->item;
    return slot->batch == item->batch &&
           slot->entered == item->entered[node->level - OTTL_LEVEL_RESOURCE];
}

static bool needs_no_memory(const struct ottl_value *value)
{
    return value->kind <= OTTL_FLOAT || value->kind == OTTL_MESSAGES;
}

static void fill(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                 struct slot *slot)
{
    struct ottl_evaluator *evaluator = evaluator_of(evaluation);
    enum ottl_level before = evaluation->level;
    bool was_again = evaluation->is_again;
    renew(evaluator, node->level);
    evaluation->level = node->level;
    evaluation->is_again = is_of_item(evaluation, node, slot);
    slot->ok = evaluate(evaluation, node, &slot->value);
    slot->ok &= has_steps(evaluation);
    evaluation->level = before;
    evaluation->is_again = was_again;
    slot->batch = evaluation->item->batch;
    slot->serial = serial_of(evaluation->item, node->level);
    slot->entered = evaluation->item->entered[node->level - OTTL_LEVEL_RESOURCE];
    slot->is_lasting = node->is_fixed && slot->ok && needs_no_memory(&slot->value);
    evaluator->kept[node->level].batch = slot->batch;
    evaluator->kept[node->level].serial = slot->serial;
    slot->steps = slot->ok ? steps_of(evaluation, node, &slot->value) : 0;
    if (!slot->ok)
        snprintf(slot->error, sizeof slot->error, "%.*s", (int)sizeof slot->error - 1,
                 evaluation->error.text);
}

static bool has_slot(const struct ottl_evaluation *evaluation, const struct ottl_node *node)
{
    return node->slot != OTTL_NO_SLOT && evaluation->item;
}

/* Returns the slot of a node, with its value for the item. */
static struct slot *slot_of(struct ottl_evaluation *evaluation, const struct ottl_node *node)
{
    struct ottl_evaluator *evaluator = evaluator_of(evaluation);
    struct slot *slot = &evaluator->slots[node->slot];
    assert(node->slot < evaluator->program->slot_count);
    bool is_lasting = slot->is_lasting && is_of_item(evaluation, node, slot);
    if (!is_lasting && (slot->batch != evaluation->item->batch ||
                        slot->serial != serial_of(evaluation->item, node->level)))
        fill(evaluation, node, slot);
    evaluator->levels_read |= 1U << node->level;
    return slot;
}

static bool give_kept(struct ottl_evaluation *evaluation, const struct slot *slot,
                      struct ottl_value *out)
{
    if (!slot->ok)
        return fail(evaluation, slot->error);
    *out = slot->value;
    return true;
}

/* Counts that an item reads a value that it shares with others. */
static bool take_slot(struct ottl_evaluation *evaluation, const struct slot *slot)
{
    return take_large(evaluation, slot->steps);
}

/* Returns the bytes of the message for which the result is computed. */
static size_t size_of_own(const struct ottl_evaluation *evaluation)
{
    const struct ottl_item *item = evaluation->item;
    bool is_profile = item->tables != NULL;
    const struct message_iter *messages[OTTL_DEPTH_COUNT] = {
        &item->resource, &item->scope, is_profile ? &item->profile : &item->span,
        is_profile ? &item->sample : &item->span_event};
    enum ottl_level level = ottl_evaluation_level((struct ottl_evaluation *)evaluation);
    assert(level >= OTTL_LEVEL_RESOURCE);
    const struct wire_cursor *cursor = &messages[level - OTTL_LEVEL_RESOURCE]->cursor;
    return (size_t)(cursor->end - cursor->next);
}

bool ottl_take_repeated(struct ottl_evaluation *evaluation, size_t steps)
{
    return !evaluation->item || take_large(evaluation, steps);
}

bool ottl_take_work(struct ottl_evaluation *evaluation, const struct ottl_value *value)
{
    enum { FREE_STEPS = 256, FREE_FACTOR = 4 };
    size_t work = evaluation->work > 0 ? evaluation->work : evaluation->is_again;
    if (work == 0 || value->kind < OTTL_STRING || !evaluation->item)
        return true;
    size_t steps = ottl_around_steps(value);
    if (steps <= FREE_STEPS)
        return true;
    bool is_own = !evaluation->is_again &&
                  ((value->form == OTTL_FORM_INDICES && evaluation->level == OTTL_LEVEL_LOWEST) ||
                   steps <= FREE_FACTOR * size_of_own(evaluation));
    return is_own || take_large(evaluation, work * steps);
}

static bool take_kept(struct ottl_evaluation *evaluation, const struct ottl_node *node)
{
    return !has_slot(evaluation, node) || take_slot(evaluation, slot_of(evaluation, node));
}

static bool look_at(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                    struct ottl_value *out)
{
    return has_slot(evaluation, node) ? give_kept(evaluation, slot_of(evaluation, node), out)
                                      : evaluate(evaluation, node, out);
}

bool ottl_node_evaluate_any(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                            struct ottl_value *out)
{
    if (!has_slot(evaluation, node))
        return evaluate(evaluation, node, out);
    const struct slot *slot = slot_of(evaluation, node);
    return give_kept(evaluation, slot, out) && take_slot(evaluation, slot);
}

bool ottl_node_fold(const struct ottl_node *node, struct arena *arena, struct ottl_value *out,
                    struct error *err)
{
    struct ottl_evaluation *evaluation = memory_zalloc(sizeof *evaluation);
    evaluation->scratch[OTTL_LEVEL_CONSTANT].arena = arena;
    ottl_locals_begin(&evaluation->locals);
    bool ok = evaluate(evaluation, node, out);
    *err = evaluation->error;
    ottl_matcher_free(evaluation->matcher);
    free(evaluation);
    return ok;
}

/* ---- evaluators ---- */

static bool writes_around(const struct ottl_program *program)
{
    const struct ottl_node *editor = program->editor;
    const struct ottl_node *target =
        editor && editor->operand_count > 0 ? editor->operands[0] : NULL;
    return target && target->code == OTTL_PATH &&
           ottl_context_depth(target->path->context) < ottl_context_depth(program->context);
}

const struct ottl_program *ottl_evaluator_program(const struct ottl_evaluator *evaluator)
{
    return evaluator->program;
}

struct ottl_verdicts *ottl_evaluator_verdicts(struct ottl_evaluator *evaluator)
{
    return &evaluator->verdicts;
}

const struct ottl_stack_search *ottl_evaluator_search(const struct ottl_evaluator *evaluator,
                                                      const struct ottl_node *call)
{
    assert(call->search < evaluator->program->search_count);
    return &evaluator->searches[call->search];
}

struct ottl_evaluator *ottl_evaluator_new(const struct ottl_program *program)
{
    struct ottl_evaluator *evaluator =
        memory_zalloc(sizeof *evaluator + program->slot_count * sizeof(struct slot));
    evaluator->program = program;
    evaluator->evaluation.level = OTTL_LEVEL_LOWEST;
    evaluator->evaluation.writes_around = writes_around(program);
    evaluator->searches = memory_zalloc((program->search_count + 1) * sizeof *evaluator->searches);
    for (int i = 0; i < OTTL_LEVEL_COUNT; i++) {
        struct scratch *scratch = &evaluator->evaluation.scratch[i];
        scratch->arena = &scratch->own;
    }
    return evaluator;
}

void ottl_evaluator_free(struct ottl_evaluator *evaluator)
{
    if (!evaluator)
        return;
    ottl_matcher_free(evaluator->evaluation.matcher);
    wire_writer_deinit(&evaluator->evaluation.writer);
    text_deinit(&evaluator->evaluation.text);
    attribute_list_deinit(&evaluator->evaluation.list);
    for (int i = 0; i < OTTL_LEVEL_COUNT; i++)
        arena_deinit(&evaluator->evaluation.scratch[i].own);
    free(evaluator->searches);
    free(evaluator);
}

static void begin_batch(struct ottl_evaluator *evaluator, const struct ottl_item *item)
{
    enum { SPARE_STEPS = 1 << 20 };
    evaluator->batch = item->batch;
    evaluator->bytes = 0;
    evaluator->steps = SPARE_STEPS;
    ottl_locals_begin(&evaluator->evaluation.locals);
    if (evaluator->evaluation.matcher)
        ottl_matcher_begin(evaluator->evaluation.matcher);
}

/* Each group comes with the steps of its bytes. */
static void begin_group(struct ottl_evaluator *evaluator, const struct ottl_item *item)
{
    enum { STEPS_PER_BYTE = 64 };
    assert(evaluator->bytes < item->bytes);
    size_t more = item->bytes - evaluator->bytes;
    evaluator->steps += STEPS_PER_BYTE * more;
    ottl_locals_grow(&evaluator->evaluation.locals, more);
    evaluator->bytes = item->bytes;
}

static void begin_item(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    struct ottl_evaluation *evaluation = &evaluator->evaluation;
    assert(item->batch > 0 && item->serials[ottl_context_depth(evaluator->program->context)] > 0);
    if (evaluator->batch != item->batch)
        begin_batch(evaluator, item);
    if (evaluator->bytes != item->bytes)
        begin_group(evaluator, item);
    evaluator->levels_read = 0;
    evaluation->item = item;
    if (evaluator->program->reads_scope)
        ottl_item_find_scope(item);
    if (item->tables)
        item->tables->ran_out = false;
}

static void end_item(struct ottl_evaluation *evaluation)
{
    scratch_clear(&evaluation->scratch[OTTL_LEVEL_LOWEST]);
    evaluation->item = NULL;
}

static enum ottl_result evaluate_condition(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    struct ottl_evaluation *evaluation = &evaluator->evaluation;
    struct ottl_value value;
    begin_item(evaluator, item);
    if (!item->tables && evaluator->program->is_always)
        return OTTL_MATCH;
    bool ok = ottl_node_evaluate(evaluation, evaluator->program->root, &value);
    ok &= has_steps(evaluation); /* whatever else came of it */
    end_item(evaluation);
    assert(!ok || value.kind == OTTL_BOOL);
    if (!ok)
        return OTTL_FAILED;
    return value.truth ? OTTL_MATCH : OTTL_NO_MATCH;
}

enum ottl_result ottl_evaluate(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    assert(!ottl_draft_is_changed(item)); /* see ottl_item_finish */
    return evaluate_condition(evaluator, item);
}

enum ottl_result ottl_evaluate_value(struct ottl_evaluator *evaluator, struct ottl_item *item,
                                     size_t limit, struct wire_writer *out)
{
    struct ottl_evaluation *evaluation = &evaluator->evaluation;
    struct ottl_value value = {.kind = OTTL_NIL};
    begin_item(evaluator, item);
    bool ok = ottl_node_evaluate_any(evaluation, evaluator->program->root, &value);
    ok = ok && has_steps(evaluation) && ottl_encode(&value, limit, out, &evaluation->error);
    if (ok && out->size > limit)
        ok = ottl_refuse_growth(&evaluation->error);
    end_item(evaluation);
    if (!ok)
        return OTTL_FAILED;
    return value.kind == OTTL_NIL ? OTTL_NO_MATCH : OTTL_MATCH;
}

/* Memory that one large item needed is not kept. */
static void trim(struct ottl_evaluation *evaluation)
{
    enum { KEPT_BYTES = 64 << 10 };
    if (evaluation->writer.capacity > KEPT_BYTES)
        wire_writer_deinit(&evaluation->writer);
    if (evaluation->text.capacity > KEPT_BYTES)
        text_deinit(&evaluation->text);
    attribute_list_clear(&evaluation->list);
}

/* Of values that every item may gain by one statement. */
enum { FREE_BYTES = 64 };

enum ottl_result ottl_execute(struct ottl_evaluator *evaluator, struct ottl_item *item)
{
    struct ottl_evaluation *evaluation = &evaluator->evaluation;
    const struct ottl_node *editor = evaluator->program->editor;
    struct ottl_value nothing;
    assert(editor && item->way && item->draft);
    ottl_draft_begin(item, ottl_evaluation_depth(evaluation));
    evaluation->target = item;
    enum ottl_result result = evaluate_condition(evaluator, item);
    if (result == OTTL_MATCH) {
        evaluation->item = item;
        evaluation->free_bytes = FREE_BYTES;
        bool ok = call(evaluation, editor, &nothing) && has_steps(evaluation);
        ottl_outer_settle(item);
        if (!ok)
            ottl_draft_undo(item);
        result = ok ? OTTL_MATCH : OTTL_FAILED;
        trim(evaluation);
    }
    end_item(evaluation);
    evaluation->target = NULL;
    return result;
}

const char *ottl_evaluator_error(const struct ottl_evaluator *evaluator)
{
    return evaluator->evaluation.error.text;
}
