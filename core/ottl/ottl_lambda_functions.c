#include "core/ottl/ottl_encode.h"
#include "core/ottl/ottl_entries.h"
#include "core/ottl/ottl_functions.h"
#include "core/ottl/ottl_lambda.h"

#include <assert.h>

#define FUNCTION(name)                                                                             \
    static bool name(struct ottl_evaluation *evaluation, const struct ottl_node *node,             \
                     struct ottl_value *out)

/* A walk over the entries of a map or list, whose lambda gets their keys, or indexes, and values.
 */
struct walk {
    struct ottl_value over;
    struct ottl_cursor cursor;
    struct ottl_lambda_call call;
    int64_t index;
    struct ottl_entry entry;
    struct ottl_value arguments[2];
};

static bool begin(struct ottl_evaluation *evaluation, const struct ottl_node *node,
                  struct walk *walk)
{
    *walk = (struct walk){.index = -1};
    if (!ottl_argument(evaluation, node, 0, &walk->over))
        return false;
    if (walk->over.kind != OTTL_MAP && walk->over.kind != OTTL_LIST)
        return error_set(ottl_evaluation_error(evaluation), "unsupported type provided: %s",
                         ottl_type_name(&walk->over));
    walk->cursor = ottl_cursor(&walk->over);
    walk->call = ottl_lambda_begin(evaluation, node, node->operands[0], &walk->over);
    return true;
}

static bool next(struct walk *walk)
{
    if (!ottl_cursor_next(&walk->cursor, &walk->entry))
        return false;
    walk->index++;
    walk->arguments[0] =
        walk->over.kind == OTTL_MAP ? ottl_string(walk->entry.key) : ottl_int(walk->index);
    walk->arguments[1] = walk->entry.value;
    return true;
}

/* Goes on to the first entry for which the lambda says `wanted`. *found_out: there is one. */
static bool find(struct walk *walk, const struct ottl_node *lambda, bool wanted, bool *found_out)
{
    bool truth = !wanted;
    while (truth != wanted && next(walk))
        if (!ottl_lambda_test(&walk->call, lambda, walk->arguments, &truth))
            return false;
    *found_out = truth == wanted;
    return true;
}

static struct ottl_entry *room_for_all(struct ottl_evaluation *evaluation, const struct walk *walk)
{
    size_t count = ottl_value_count(&walk->over);
    return ottl_evaluation_alloc(evaluation, (count + 1) * sizeof(struct ottl_entry));
}

/* ---- Any, All, Find ---- */

FUNCTION(any)
{
    struct walk walk;
    bool found;
    if (!begin(evaluation, node, &walk))
        return false;
    bool ok = find(&walk, node->operands[1], true, &found);
    ottl_lambda_end(&walk.call);
    *out = ottl_bool(ok && found);
    return ok;
}

FUNCTION(all)
{
    struct walk walk;
    bool found;
    if (!begin(evaluation, node, &walk))
        return false;
    bool ok = find(&walk, node->operands[1], false, &found);
    ottl_lambda_end(&walk.call);
    *out = ottl_bool(ok && !found);
    return ok;
}

FUNCTION(find_entry)
{
    struct walk walk;
    bool found;
    *out = (struct ottl_value){.kind = OTTL_NIL};
    if (!begin(evaluation, node, &walk))
        return false;
    bool ok = find(&walk, node->operands[1], true, &found);
    if (ok && found && !node->operands[2])
        *out = walk.entry.value;
    else if (ok && found)
        ok = ottl_lambda_apply(&walk.call, node->operands[2], walk.arguments, out);
    ottl_lambda_end(&walk.call);
    return ok;
}

/* ---- Filter, MapEach, MapKeys ---- */

FUNCTION(filter)
{
    struct walk walk;
    uint32_t count = 0;
    bool ok = true, keeps;
    if (!begin(evaluation, node, &walk))
        return false;
    struct ottl_entry *entries = room_for_all(evaluation, &walk);
    while (ok && next(&walk)) {
        ok = ottl_lambda_test(&walk.call, node->operands[1], walk.arguments, &keeps);
        if (ok && keeps)
            entries[count++] = walk.entry;
    }
    ottl_lambda_end(&walk.call);
    *out = ottl_entries_value(walk.over.kind, entries, count);
    return ok;
}

FUNCTION(map_each)
{
    struct walk walk;
    uint32_t count = 0;
    bool ok = true;
    if (!begin(evaluation, node, &walk))
        return false;
    struct ottl_entry *entries = room_for_all(evaluation, &walk);
    for (; ok && next(&walk); count++) {
        entries[count].key = walk.entry.key;
        ok =
            ottl_lambda_apply(&walk.call, node->operands[1], walk.arguments, &entries[count].value);
    }
    ottl_lambda_end(&walk.call);
    *out = ottl_entries_value(walk.over.kind, entries, count);
    return ok;
}

FUNCTION(map_keys)
{
    struct walk walk;
    struct ottl_value key;
    uint32_t count = 0;
    if (!begin(evaluation, node, &walk))
        return false;
    bool ok = walk.over.kind == OTTL_MAP ||
              error_set(ottl_evaluation_error(evaluation), "expected pcommon.Map but got %s",
                        ottl_type_name(&walk.over));
    struct ottl_entry *entries = room_for_all(evaluation, &walk);
    for (; ok && next(&walk); count++) {
        ok = ottl_lambda_apply(&walk.call, node->operands[1], walk.arguments, &key);
        if (ok && key.kind != OTTL_STRING)
            ok = error_set(ottl_evaluation_error(evaluation),
                           "lambda expression must return a value of type string, got %s",
                           ottl_type_name(&key));
        entries[count] = (struct ottl_entry){key.bytes, walk.entry.value};
    }
    ottl_lambda_end(&walk.call);
    if (ok)
        *out = ottl_entries_value(OTTL_MAP, entries,
                                  ottl_entries_keep_last(evaluation, entries, count));
    return ok;
}

/* ---- Reduce, When ---- */

/* The data decides how often Reduce puts a value into another one, and whoever reads the result
 * does so by recursion. No receiver takes a value that is nested deeper. */
static bool check_depth(struct ottl_evaluation *evaluation, const struct ottl_value *value)
{
    enum { REDUCED_DEPTH_MAX = 50 };
    return value->form != OTTL_FORM_ENTRIES || value->depth <= REDUCED_DEPTH_MAX ||
           ottl_refuse_depth(ottl_evaluation_error(evaluation));
}

FUNCTION(reduce)
{
    struct walk walk;
    struct ottl_value arguments[3];
    bool ok = true;
    if (!ottl_argument(evaluation, node, 1, out) || !begin(evaluation, node, &walk))
        return false;
    while (ok && next(&walk)) {
        arguments[0] = *out;
        arguments[1] = walk.arguments[0];
        arguments[2] = walk.arguments[1];
        ok = ottl_lambda_apply(&walk.call, node->operands[2], arguments, out) &&
             check_depth(evaluation, out);
    }
    ottl_lambda_end(&walk.call);
    return ok;
}

FUNCTION(when)
{
    static const struct ottl_value nothing = {.kind = OTTL_NIL};
    bool truth;
    struct ottl_lambda_call call = ottl_lambda_begin(evaluation, node, node->operands[0], &nothing);
    bool ok = ottl_lambda_test(&call, node->operands[0], NULL, &truth);
    ottl_lambda_end(&call);
    return ok && ottl_argument(evaluation, node, truth ? 1 : 2, out);
}

#define SOURCE                                                                                     \
    {                                                                                              \
        "source", OTTL_PARAMETER_ANY, false                                                        \
    }
#define PREDICATE                                                                                  \
    {                                                                                              \
        "predicate", OTTL_PARAMETER_LAMBDA_2, false                                                \
    }

const struct ottl_function ottl_lambda_functions[] = {
    {.name = "All", .parameters = {SOURCE, PREDICATE}, .call = all},
    {.name = "Any", .parameters = {SOURCE, PREDICATE}, .call = any},
    {.name = "Filter", .parameters = {SOURCE, PREDICATE}, .call = filter},
    {.name = "Find",
     .parameters = {SOURCE, PREDICATE, {"mapper", OTTL_PARAMETER_LAMBDA_2, true}},
     .call = find_entry},
    {.name = "MapEach",
     .parameters = {SOURCE, {"mapper", OTTL_PARAMETER_LAMBDA_2, false}},
     .call = map_each},
    {.name = "MapKeys",
     .parameters = {{"source", OTTL_PARAMETER_MAP, false},
                    {"key_mapper", OTTL_PARAMETER_LAMBDA_2, false}},
     .call = map_keys},
    {.name = "Reduce",
     .parameters = {SOURCE,
                    {"seed", OTTL_PARAMETER_ANY, false},
                    {"accumulator", OTTL_PARAMETER_LAMBDA_3, false}},
     .call = reduce},
    {.name = "When",
     .parameters = {{"condition", OTTL_PARAMETER_LAMBDA_0, false},
                    {"true_value", OTTL_PARAMETER_ANY, false},
                    {"false_value", OTTL_PARAMETER_ANY, false}},
     .call = when},
    {.name = NULL},
};
